"""One process for many states: it stays as it was, or each state gets processes of its own."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Subject
from crashlab.recover import reused, sweep, travel
from crashlab.recover.host import ALWAYS_ISOLATED, Host
from tests.crashlab.recover.one_step import recorded, request, write_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.observation import Answer

pytestmark = pytest.mark.skipif(not sweep.CAN_SWEEP, reason="one process for many states: Linux only so far")


def recovered(resume: Callable[[Any], Any], states: int = 3, *, timeout_s: float = 20.0, **more: Any) -> list[Answer]:
    """What a worker answers when it may use one process for all of these states."""
    with Host(travel.pack(Subject(write_one, resume))) as host:
        asked = {**request(recorded(host), steps=2, timeout_s=timeout_s), "warm": True, **more}
        answers = list(host.recover(dict(asked) for _ in range(states)))
        assert host.mode == "warm"
    return answers


def ends(answer: Answer) -> list[Any]:
    """The end of each step."""
    return [step.value["end"] if step.value else step.how for step in answer.steps]


def test_many_states_share_one_process() -> None:
    """Every step of every state, on files that are made anew, with the effects of the step before."""

    def resume(lab: Any) -> list[Any]:
        lab.effect("mail", key="k")
        fresh = not (lab.dir / "again").exists()
        (lab.dir / "again").write_text("")
        return [os.getpid(), fresh]

    answers = recovered(resume)
    assert all(answer.shared for answer in answers)
    assert len({ends(answer)[0][0] for answer in answers}) == 1
    assert [[fresh for _, fresh in ends(answer)] for answer in answers] == [[True, False]] * 3
    assert [[op.counted for step in answer.steps for op in step.events] for answer in answers] == [[True, False]] * 3  # type: ignore[attr-defined]  # these ops are effects


def leave_a_child(_lab: Any) -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def leave_a_grandchild(_lab: Any) -> None:
    subprocess.run(["/bin/sh", "-c", "sleep 60 &"], check=True)


def leave_a_thread(_lab: Any) -> None:
    threading.Thread(target=threading.Event().wait, args=(0.3,)).start()


_kept: list[Any] = []


def leave_a_file_open(lab: Any) -> None:
    _kept.append((lab.dir / "file").open())


def leave_another_directory(lab: Any) -> None:
    os.chdir(lab.dir)


def leave_a_umask(_lab: Any) -> None:
    os.umask(0o077)


def leave_a_variable(_lab: Any) -> None:
    os.environ["LEFT"] = "here"


def leave_a_last_word(_lab: Any) -> None:
    atexit.register(print, "the end")


def leave_by_exit(_lab: Any) -> None:
    sys.exit("no")


def end_itself(_lab: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def close_everything(_lab: Any) -> None:
    os.closerange(3, 64)


LEAVING = [
    leave_a_child,
    leave_a_grandchild,
    leave_a_thread,
    leave_a_file_open,
    leave_another_directory,
    leave_a_umask,
    leave_a_variable,
    leave_a_last_word,
    leave_by_exit,
    end_itself,
    close_everything,
]


@pytest.mark.parametrize("leave", LEAVING, ids=lambda each: each.__name__)
def test_a_state_that_leaves_something_gets_processes_of_its_own(leave: Callable[[Any], None]) -> None:
    """The answer is the one of a process of its own, and nothing of it reaches the next state."""

    def resume(lab: Any) -> int:
        leave(lab)
        return os.getpid()

    answers = recovered(resume)
    assert not any(answer.shared for answer in answers)
    pids = [end for answer in answers for end in ends(answer)]
    if leave in (leave_by_exit, end_itself, close_everything):
        assert set(pids) <= {"raised", "signal", "exit"}
    else:
        assert len(set(pids)) == 6
    assert all(bool(answer.steps[0].left) == leave.__name__.endswith("child") for answer in answers)


def test_a_state_on_which_it_raises_shares_the_process_too() -> None:
    """Up to the step that raises; the words are those of a process of its own, and what became of the files is told."""

    def resume(lab: Any) -> int:
        if (lab.dir / "again").exists():
            (lab.dir / "file").write_text("gone")
            text = f"{os.getpid()}"
            raise RuntimeError(text)
        (lab.dir / "again").write_text("")
        return os.getpid()

    answers = recovered(resume)
    assert all(answer.shared for answer in answers)
    (pid,) = {answer.steps[0].value["end"] for answer in answers if answer.steps[0].value}
    for answer in answers:
        assert [step.how for step in answer.steps] == ["returned", "raised"]
        assert answer.steps[1].error == f"RuntimeError: {pid}"
        assert (answer.steps[1].destroyed, answer.steps[1].exit_code) == (("dir/file",), 1)


def test_a_refusal_that_moves_files_aside_needs_processes_of_its_own() -> None:
    """What the next recovery makes of that is asked in a new one."""

    def resume(lab: Any) -> None:
        (lab.dir / "file").rename(lab.dir / "aside")
        raise RuntimeError

    answers = recovered(resume)
    assert not any(answer.shared for answer in answers)
    assert all(answer.steps[0].aside == ("dir/file",) for answer in answers)


def test_a_state_that_never_ends_is_a_hang_and_the_next_one_is_not() -> None:
    """The one process is ended with all that it started; a new one takes the next state."""

    def resume(lab: Any) -> str:
        if (lab.dir / "file").exists() and os.path.getsize(lab.dir / "file"):
            subprocess.Popen(["/bin/sleep", "60"])
            time.sleep(60)
        return "done"

    with Host(travel.pack(Subject(write_one, resume))) as host:
        trace = recorded(host)
        never_ends = {**request(trace, timeout_s=0.5), "warm": True}
        answers = list(host.recover([never_ends, {**request(trace), "warm": True, "state": "kill@0"}]))
    assert [(answer.shared, answer.steps[0].how, answer.steps[0].left) for answer in answers] == [
        (False, "hang", ()),
        (True, "returned", ()),
    ]


def test_both_ways_are_compared_where_that_is_asked() -> None:
    """The answer is the one of processes of their own; beside it is what the shared one saw."""

    def resume(lab: Any) -> str:
        _kept.append("one more")
        (lab.dir / f"{len(_kept)}").write_text("")
        return f"{len(_kept)}"

    answers = recovered(resume, compared=True)
    assert [ends(answer) for answer in answers] == [["1", "1"]] * 3
    shared = [[step.value["end"] for step in answer.compared if step.value] for answer in answers]
    assert shared == [["1", "2"], ["3", "4"], ["5", "6"]]
    assert not any(answer.left_same for answer in answers)


def test_files_that_are_others_every_time_are_the_subjects_own_choice() -> None:
    """A random name is no sign of memory."""

    def resume(lab: Any) -> str:
        (lab.dir / os.urandom(8).hex()).write_text("")
        return "done"

    assert all(answer.left_same for answer in recovered(resume, compared=True))


def test_a_process_is_replaced_after_many_states() -> None:
    """Whatever it looks like."""
    answers = recovered(lambda _lab: os.getpid(), states=reused.STATES_IN_ONE_LIFE + 1)
    assert all(answer.shared for answer in answers[:-1])
    assert len({ends(answer)[0] for answer in answers}) > 1


def test_the_switch_gives_every_step_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the environment."""
    monkeypatch.setenv(ALWAYS_ISOLATED, "1")
    with Host(travel.pack(Subject(write_one))) as host:
        assert host.mode == "isolated"


@pytest.mark.parametrize("broken", [{"descriptors": ()}, {"threads": 0}, {"at_end": -1}, {"umask": 0o1000}])
def test_the_shape_of_a_process_is_looked_at(broken: dict[str, Any]) -> None:
    """Each part by itself turns it."""
    now = reused.Shape.now()
    assert now.changed() == ""
    assert reused.Shape(**{**vars(now), **broken}).changed() == next(iter(broken))
