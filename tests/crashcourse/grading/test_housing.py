"""Where submissions run: the best isolation that works, found by trying, and a user that nobody is."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from crashcourse.grading import housing
from crashcourse.material import root

KINDS = ("same-user", "user", "user+namespaces")


def test_the_best_that_works_is_found_and_explained() -> None:
    """Where it is not the best there is, it says why; nothing is left of the trial."""
    kind, why = housing.find()
    assert kind in KINDS
    assert bool(why) == (kind != KINDS[-1])
    assert not list(Path(tempfile.gettempdir()).glob("crashcourse-*"))


def test_another_user_than_root_makes_no_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says that root would."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    kind, why = housing.find()
    assert kind == "same-user"
    assert "root" in why or "Linux" in why


@pytest.mark.skipif(not os.path.isdir("/proc/1"), reason="users are told from /proc")
def test_a_free_user_has_no_process() -> None:
    """Of the range that no account has."""
    user = housing.free_user()
    assert housing.FIRST_USER <= user <= housing.LAST_USER
    owners = {path.stat().st_uid for path in Path("/proc").iterdir() if path.name.isdigit() and path.exists()}
    assert user not in owners


def test_solutions_and_what_others_handed_in_are_hidden(tmp_path: Path) -> None:
    """Whatever is named besides, too."""
    found = housing.hidden(tmp_path)
    assert str(root() / "exercises") in found
    assert str(tmp_path.resolve()) in found
