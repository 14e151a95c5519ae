"""Sessions on an event log whose process is killed for real: places, what is left, and what is no death."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashcourse.log_stage import LogStage, conduct_of
from crashcourse.stage import RunFailed
from longrun.eventlog import naive_glue_tail, naive_late_barrier
from longrun.eventlog.conduct import CONDUCT

if TYPE_CHECKING:
    from pathlib import Path


def test_before_and_after_an_act_are_two_places(tmp_path: Path) -> None:
    """The same log, and two worlds."""
    pages, last = [], []
    for place in ("page_oncall-", "page_oncall+"):
        stage = LogStage(tmp_path / place)
        assert stage.run(kill_at=place).killed
        pages.append(len(stage.world()["pages"]))
        last.append(stage.types()[-1])
    assert pages == [0, 1]
    assert last == ["tool/call", "tool/call"]


def test_another_process_goes_on_and_comes_to_the_end(tmp_path: Path) -> None:
    """Nothing that the dead one wrote is written anew, and an inspection changes nothing."""
    stage = LogStage(tmp_path)
    stage.run(kill_at="ask2")
    left = stage.path.read_bytes()
    assert [event.TYPE for event in stage.found().repairs] == ["turn/end"]
    assert stage.path.read_bytes() == left
    ended = stage.run(writer="B")
    assert (ended.exit, ended.said["status"], ended.said["unknown"]) == (0, "completed", [])
    assert stage.path.read_bytes().startswith(left)
    assert stage.world()["pages"] == ["T-101"]


def test_a_copy_goes_on_by_itself_with_another_design(tmp_path: Path) -> None:
    """What comes of the copy is not seen at the first one."""
    stage = LogStage(tmp_path / "one")
    stage.run(kill_at="page_oncall+")
    other = stage.copy(tmp_path / "two", naive_late_barrier.__name__)
    other.run()
    assert len(other.types()) > len(stage.types())
    assert stage.types()[-1] == "tool/call"


def test_a_refusal_is_an_answer(tmp_path: Path) -> None:
    """A damaged log is no failure of the stage."""
    stage = LogStage(tmp_path)
    stage.run(kill_at="ask2")
    stage.path.write_bytes(stage.path.read_bytes().replace(b'"seq":3', b'"seq":4', 1))
    ended = stage.run()
    assert (ended.exit, ended.said["error"]) == (2, "LogDamaged")


@pytest.mark.parametrize(("module", "kill_at"), [("longrun.eventlog.conduct", "ask99"), ("no.such.module", "")])
def test_a_place_that_is_never_reached_is_no_death(module: str, kill_at: str, tmp_path: Path) -> None:
    """And a module that cannot be had is told with its error."""
    with pytest.raises(RunFailed, match=r"exit 0|No module named"):
        LogStage(tmp_path, module).run(kill_at=kill_at)


def test_a_module_with_a_design_alone_gets_the_correct_conduct() -> None:
    """On its own log; and one that has a conduct keeps it."""
    held = conduct_of(naive_glue_tail.__name__)
    assert (held.design, held.act) == (naive_glue_tail.DESIGN, CONDUCT.act)
    assert conduct_of(naive_late_barrier.__name__) == naive_late_barrier.CONDUCT
