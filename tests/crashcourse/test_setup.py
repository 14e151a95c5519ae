"""``doctor``: a broken set-up is told apart from an exercise that is not begun."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog, setup
from crashlab import doctor

if TYPE_CHECKING:
    from pathlib import Path


def finding(*, works: bool) -> doctor.Finding:
    return doctor.Finding(
        name="a check from end to end", works=works, core=True, needed_for="all", detail="no fork", next="Mend it."
    )


def test_a_whole_machine_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict first; what is not begun is a note and no fault."""
    monkeypatch.setattr(doctor, "examine", lambda: [finding(works=True)])
    found = setup.examine(tmp_path)
    assert found.to_json()["ready"] is True
    assert len(found.not_started) == len(catalog.exercises())
    shown = list(setup.lines(found))
    assert shown[0].startswith("READY  python 3.")
    assert "fork yes" in shown[0]
    assert "NOT STARTED" in shown[1]
    assert not any(line.startswith("SETUP BROKEN") for line in shown)


def test_a_broken_machine_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And that it is not the exercise's fault."""
    monkeypatch.setattr(doctor, "examine", lambda: [finding(works=False)])
    found = setup.examine(tmp_path)
    assert found.to_json()["broken"] == [{"what": "a check from end to end: no fork", "next": "Mend it."}]
    shown = list(setup.lines(found))
    assert shown[:2] == ["SETUP BROKEN  a check from end to end: no fork", "   next  Mend it."]
    assert not any("READY" in line for line in shown)


def test_a_damaged_progress_file_is_the_setups_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, and left alone."""
    monkeypatch.setattr(doctor, "examine", lambda: [finding(works=True)])
    (tmp_path / "progress.json").write_text("{")
    shown = list(setup.lines(setup.examine(tmp_path)))
    assert shown[0].startswith("SETUP BROKEN  the course:")
    assert "progress.json is not a progress file" in " ".join(" ".join(shown).split())


def test_one_that_is_not_begun_is_named() -> None:
    """By its number."""
    found = setup.Setup(parts=("python 3.11",), broken=(), not_started=("2.3",))
    assert list(setup.lines(found))[1].startswith("note   2.3 is NOT STARTED: its failures are expected")


@pytest.mark.parametrize(
    ("works", "detail", "part"),
    [
        (True, "6.1, may watch processes", "strace 6.1"),
        (False, "strace is there, and may not watch processes", "strace no"),
    ],
)
def test_strace_counts_where_it_may_watch(
    works: bool, detail: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that is installed and not allowed to work is as good as none, and the course is ready all the same."""
    strace = doctor.Finding(name="strace", works=works, needed_for="programs", detail=detail)
    monkeypatch.setattr(doctor, "examine", lambda: [finding(works=True), strace])
    found = setup.examine(tmp_path)
    assert part in found.parts
    assert any(detail in note for note in found.notes) is not works
    assert not found.broken


def test_what_is_hidden_from_it_it_misses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts are looked at here and now: the version is this Python's, and without a PATH there is no strace."""
    monkeypatch.setattr(doctor, "examine", lambda: [finding(works=True), *doctor._strace()])
    monkeypatch.setenv("PATH", str(tmp_path))
    parts = setup.examine(tmp_path).parts
    assert parts[:3] == (f"python {sys.version_info.major}.{sys.version_info.minor}", "fork yes", "strace no")


def test_a_machine_that_starts_no_process_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as such, and not as a fault of the lab."""

    def refused() -> list[doctor.Finding]:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(doctor, "examine", refused)
    shown = list(setup.lines(setup.examine(tmp_path)))
    assert (
        shown[0] == f"SETUP BROKEN  a check from end to end: {BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))}"
    )
    assert "ulimit -u" in shown[1]
