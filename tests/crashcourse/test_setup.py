"""``doctor``: a broken set-up is told apart from an exercise that is not begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse import catalog, setup
from crashlab import doctor

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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
