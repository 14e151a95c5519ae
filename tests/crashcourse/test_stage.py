"""Tests of crashcourse.stage and crashcourse.victim: deaths are real, places are exact, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from crashcourse import stage as stages
from crashcourse.stage import RunFailed, Stage
from crashcourse.victim import KILLED

if TYPE_CHECKING:
    from pathlib import Path

CORRECT, NOTES, CAPSTONE = "longrun.checkpoint.correct", "longrun.memory.naive_notes", "longrun.capstone.correct"
AFTER_REPLY = "turn5.tool1.effect+"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """One for the correct agent of lesson 2."""
    return Stage(tmp_path / "stage", CORRECT)


def test_a_killed_process_leaves_what_a_shell_calls_137(stage: Stage) -> None:
    """It says nothing more; its places end where it died, and the act there is done, while those behind it are not."""
    death = stage.start(kill_at=AFTER_REPLY)
    assert (death.exit, death.killed, death.said) == (137, True, {})
    assert stage.places()[-2:] == ["turn5.tool1.effect-", AFTER_REPLY]
    world = stage.world()
    assert (world["replies"], world["pages"]) == ([["T-101", 0]], [])
    assert stage.memory()["open calls"] == ["send_reply", "page_oncall", "send_reply"]
    assert stage.checkpoint()["turns"] == stage.memory()["turns"] == 5


def test_before_and_after_an_act_are_two_places(tmp_path: Path) -> None:
    """Just before it nothing is done outside; to its files that makes no difference, and after the record it does."""
    counts, prints = [], []
    for place in ("turn5.tool1.effect-", AFTER_REPLY, "turn5.tool1.ledger+"):
        dead = Stage(tmp_path / place, CORRECT)
        dead.start(kill_at=place)
        counts.append(len(dead.world()["replies"]))
        prints.append(dead.fingerprint())
    assert counts == [0, 1, 1]
    assert prints[0] == prints[1] != prints[2]


def test_a_resumed_run_comes_to_its_end_and_the_server_counts_all(stage: Stage) -> None:
    """What died had asked, too: the tally goes over all processes, and so does a good checkpoint's."""
    stage.start(kill_at="turn2.request+")
    assert stage.requests() == 2
    end = stage.resume()
    assert (end.exit, end.said["status"], end.said["requests"]) == (0, "done", stage.requests())


@pytest.mark.parametrize("how", [{"kill_at": "turn99.A+"}, {"kill_at": "turn5.tool1.effect"}])
def test_a_place_that_is_never_reached_is_no_death(stage: Stage, how: dict[str, str]) -> None:
    """The run went to its end, and says so: an exhibit must not tell of a kill that did not come."""
    with pytest.raises(RunFailed, match="exit 0"):
        stage.start(**how)


def test_a_module_that_cannot_be_had_is_told_with_its_error(tmp_path: Path) -> None:
    """What the child wrote to stderr is in the text."""
    with pytest.raises(RunFailed, match="no_such_module"):
        Stage(tmp_path / "stage", "longrun.no_such_module").start()


def test_a_refusal_is_an_answer(stage: Stage) -> None:
    """An error that the agent raises is said by name."""
    stage.start(kill_at="turn2.A+")
    ended = stage.start()
    assert (ended.exit, ended.said["error"]) == (2, "HistoryExists")


def test_a_copy_goes_on_by_itself(stage: Stage, tmp_path: Path) -> None:
    """With another harness; the first one keeps what it had."""
    stage.start(kill_at=AFTER_REPLY)
    copy = stage.copy(tmp_path / "copy", "longrun.resume.naive_rerun_all")
    copy.resume()
    replies = [[ticket for ticket, _ in each.world()["replies"]].count("T-101") for each in (stage, copy)]
    assert replies == [1, 2]


def test_a_full_disk_meets_one_record(stage: Stage) -> None:
    """The record is not there, the act is done, and the next process finds room again."""
    first = stage.start(full_at=AFTER_REPLY)
    assert (first.said["error"], len(stage.world()["replies"])) == ("OSError", 1)
    assert [record["tool"] for record in stage.records()] == ["set_label"] * 4 + ["open_case"]
    assert stage.resume().said["status"] == "done"


def test_a_second_owner_comes_while_the_first_one_stands_still(tmp_path: Path) -> None:
    """With a lease it is refused, and the first one goes on to its end."""
    ended = Stage(tmp_path / "stage", CAPSTONE).start(second_at="turn5.A+")
    assert (ended.second["error"], ended.said["status"]) == ("LeaseHeld", "done")


def test_where_nothing_stops_them_two_owners_do_everything_twice(tmp_path: Path) -> None:
    """The same meeting without a lease, in one file: both come to their end, and each reply is out twice."""
    stage = Stage(tmp_path / "stage", "longrun.capstone.naive_no_lease", "hasty")
    ended = stage.start(second_at="turn5.A+")
    assert (ended.second["status"], ended.said["status"]) == ("done", "done")
    assert [ticket for ticket, _ in stage.world()["replies"]] == ["T-101", "T-101", "T-102", "T-102"]


def test_places_inside_of_a_save_are_told_when_asked_for(stage: Stage) -> None:
    """Each save of a file has two: before and after the new one gets its name."""
    stage.start(kill_at="turn1.request.named1+")
    assert stage.places() == ["R+", "turn1.request+"]
    assert stage.places(drafts=True)[-3:] == ["turn1.request+", "turn1.request.draft1+", "turn1.request.named1+"]


def test_a_poisonous_call_kills_who_makes_it(tmp_path: Path) -> None:
    """In turn 7, by SIGKILL, each time."""
    stage = Stage(tmp_path / "stage", CAPSTONE)
    assert stage.start(poison=True).exit == KILLED
    assert stage.places()[-1] == "turn7.A+"
    assert stage.resume(poison=True).exit == KILLED


def test_lines_of_a_run_have_their_own_points_and_heads(tmp_path: Path) -> None:
    """Back to turn 4 in one process, a fork in another; each goes on from its own head."""
    stage = Stage(tmp_path / "stage", "longrun.rewind.correct", "hasty")
    stage.start(kill_at="turn6.A+")
    assert stage.rewind(4).said["turns"] == 4
    stage.fork("other", 4)
    heads = [stage.head(line) for line in ("", "other")]
    assert [head.timeline.partition("@")[0] for head in heads if head] == ["main", "other"]
    assert stage.resume(line="other").said["status"] == "done"
    assert stage.points("other")[-1].turns == 7
    assert stage.points()[-1].turns == 4


def test_a_run_that_hangs_is_ended_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit ends a process and its child, also one that stands still."""
    monkeypatch.setattr(stages, "TIMEOUT_S", 1.0)
    forks = "import os, signal; os.fork() or os.kill(os.getpid(), signal.SIGSTOP); signal.pause()"
    with pytest.raises(subprocess.TimeoutExpired):
        stages.ended([sys.executable, "-c", forks])


def test_the_lock_is_no_file_of_interest(tmp_path: Path) -> None:
    """An agent with notes leaves its notes."""
    stage = Stage(tmp_path / "stage", NOTES)
    stage.start(kill_at="turn4.B+")
    assert list(stage.files()) == ["NOTES.md"]
    assert stage.read("NOTES.md").startswith("# Notes")
