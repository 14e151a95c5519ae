"""A step of the subject may do anything to itself, and the worker reports it and goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from crashlab import Subject
from crashlab.recover import travel
from crashlab.recover.host import Host
from tests.crashlab.recover.one_step import recorded, recover, request, write_one


def find_pipe() -> int:
    """The descriptor of the lab's answer pipe: the highest pipe that is no standard stream."""
    pipes = [int(name) for name in os.listdir("/proc/self/fd") if _target(name).startswith("pipe:")]
    return max(number for number in pipes if number > 2)


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return ""


def misbehave(lab: Any) -> str:  # noqa: C901, PLR0912 - a table of what can go wrong
    """Do what the file ``how`` in the test's own folder says; the worker meets all of it in one life."""
    match json.loads((lab.dir / "file").read_text())["how"]:
        case "healthy":
            return "recovered"
        case "raises":
            text = "no such luck"
            raise LookupError(text)
        case "exit code 0":
            os._exit(0)
        case "exit code 3":
            os._exit(3)
        case "exit text":
            sys.exit("cannot resume")
        case "signal":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            threading.Event().wait()
        case "thread that never ends":
            threading.Thread(target=threading.Event().wait).start()
        case "closes the pipe":
            os.closerange(3, 256)
        case "noise in the pipe":
            os.write(find_pipe(), b"\xff{not json\n")
        case "half a line in the pipe":
            os.write(find_pipe(), b'{"result": {"end": "forged')
            os._exit(0)
        case "prints 100 MB":
            for _ in range(100):
                os.write(1, b"x" * 1_000_000)
            os.write(1, b"the end")
        case "huge result":
            return "x" * (17 << 20)
        case "endless line":
            while True:
                os.write(find_pipe(), b"x" * 65536)
        case "kills its parent":
            os.kill(os.getppid(), signal.SIGKILL)
            threading.Event().wait()
        case "forks":
            for _ in range(30):
                if os.fork() == 0:
                    time.sleep(600)
    return "recovered"


EXPECTED = {
    "raises": ("raised", "LookupError: no such luck"),
    "exit code 0": ("exit", "exit code 0 and gave the lab no result"),
    "exit code 3": ("exit", "exit code 3"),
    "exit text": ("exit", "SystemExit: cannot resume"),
    "signal": ("signal", ""),
    "hang": ("hang", ""),
    "thread that never ends": ("hang", ""),
    "closes the pipe": ("exit", "exit code 70"),
    "noise in the pipe": ("raised", "LabError: the process wrote into the lab's pipe: b'\\xff{not json'"),
    "half a line in the pipe": ("raised", "LabError"),
    "prints 100 MB": ("returned", ""),
    "huge result": ("raised", "UsageError: the result is too large: 17 MiB"),
    "endless line": ("raised", "UsageError: the answer is too large"),
    "kills its parent": ("signal", "killed its parent"),
    "forks": ("returned", ""),
}
HOWS = sorted(EXPECTED)


def write_all(lab: Any) -> str:
    """Each bad way is a state of its own, each followed by a healthy one."""
    for how in HOWS:
        for each in (how, "healthy"):
            (lab.dir / "file.tmp").write_text(json.dumps({"how": each}))
            os.replace(lab.dir / "file.tmp", lab.dir / "file")
            lab.save_point(each)
    return "written"


@pytest.fixture(scope="module")
def answers() -> dict[str, list[Any]]:
    """Every bad way, and the healthy one after it, all in one worker."""
    with Host(travel.pack(Subject(write_all, misbehave)), jobs=1) as host:
        trace = recorded(host)
        points = [op for op in trace.ops if op.KIND == "save-point"]
        requests = [
            # Only what never ends is ended by the clock: 30 forks may take long where many work at once.
            {
                "state": f"kill@{op.n}",
                "steps": [{"step": "first"}],
                "timeout_s": 1.0 if EXPECTED.get(op.name, ("",))[0] == "hang" else 60.0,  # type: ignore[attr-defined]  # these ops are save points
            }
            for op in points
        ]
        got = {answer.state: answer.steps[0] for answer in host.recover(requests)}
        found: dict[str, list[Any]] = {}
        for bad, healthy in zip(points[::2], points[1::2], strict=True):
            found[bad.name] = [got[f"kill@{bad.n}"], got[f"kill@{healthy.n}"]]  # type: ignore[attr-defined]  # these ops are effects
        return found


@pytest.mark.parametrize("how", HOWS)
def test_a_bad_step_is_reported_and_the_next_one_is_healthy(answers: dict[str, list[Any]], how: str) -> None:
    """Whatever a step does to itself, it is told apart, and the worker serves the next state."""
    step, after = answers[how]
    expected_how, expected_error = EXPECTED[how]
    assert step.how == expected_how, step
    assert expected_error in step.error
    assert (step.value is not None) == (expected_how == "returned")
    assert (after.how, after.value["end"]) == ("returned", "recovered")


def test_output_is_kept_up_to_its_end(answers: dict[str, list[Any]]) -> None:
    """Of 100 MB the last 64 KiB are kept."""
    step = answers["prints 100 MB"][0]
    assert len(step.stdout) == 1 << 16
    assert step.stdout.endswith("xxthe end")


def test_living_descendants_are_named_and_gone(answers: dict[str, list[Any]]) -> None:
    """Thirty forks that sleep are thirty names, and none of them lives."""
    assert answers["forks"][0].left == ("a fork of the subject",) * 30
    assert answers["forks"][1].left == ()


def test_codes_and_signals(answers: dict[str, list[Any]]) -> None:
    """Exit code and signal are told; a hang has neither."""
    assert (answers["exit code 3"][0].exit_code, answers["exit code 3"][0].signal) == (3, None)
    assert (answers["signal"][0].exit_code, answers["signal"][0].signal) == (None, signal.SIGSEGV)
    assert (answers["hang"][0].exit_code, answers["hang"][0].signal) == (None, None)
    assert answers["exit text"][0].exit_code == 1
    assert "cannot resume" in answers["exit text"][0].stderr


def test_the_traceback_starts_in_the_subject(answers: dict[str, list[Any]]) -> None:
    """The lab's own frames are left out, the subject's file and line are there."""
    text = answers["raises"][0].traceback
    assert "misbehave" in text
    assert "recover/child.py" not in text
    assert f'File "{__file__}"' in text


def test_a_daemon_is_left_and_named() -> None:
    """A daemon by double fork and a new session does not escape, and its command line has no pid."""

    def resume(_lab: Any) -> str:
        subprocess.Popen(
            ["/bin/sh", "-c", "(setsid sleep 600 &) ; exit 0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ).wait()
        return "recovered"

    step = recover(resume)
    assert (step.how, step.left) == ("returned", ("sleep 600",))


def test_a_child_that_ends_with_the_step_is_not_left() -> None:
    """A helper that ends by itself when its parent has gone is no finding."""

    def resume(_lab: Any) -> str:
        subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        return "recovered"

    assert recover(resume).left == ()


def test_children_of_a_hang_are_ended_and_no_finding() -> None:
    """A step at its time limit takes its children with it."""

    def resume(lab: Any) -> None:
        child = subprocess.Popen(["sleep", "600"])
        lab.effect(str(child.pid))
        child.wait()

    step = recover(resume, timeout_s=0.5)
    assert (step.how, step.left) == ("hang", ())
    for started in step.events:  # none where the machine stood still until the limit
        assert not os.path.exists(f"/proc/{started.name}")  # type: ignore[attr-defined]  # these ops are effects


def test_events_before_a_death_are_kept() -> None:
    """An effect of a step that died is done: it is on the wire before the call returns."""

    def resume(lab: Any) -> None:
        lab.effect("mail", key="k", to="ada")
        os.kill(os.getpid(), signal.SIGKILL)

    step = recover(resume)
    assert (step.how, step.signal) == ("signal", signal.SIGKILL)
    assert [(op.KIND, op.name, op.n) for op in step.events] == [("effect", "mail", 1)]  # type: ignore[attr-defined]  # these ops are effects


def test_steps_share_the_directory_and_the_outside_world() -> None:
    """The second step meets the files and the effects of the first, and no step follows a failure."""

    def resume(lab: Any) -> list[Any]:
        count = lab.dir / "count"
        seen = int(count.read_text()) if count.exists() else 0
        count.write_text(str(seen + 1))
        receipt = lab.effect("mail", key="k")
        if seen == 1:
            raise ValueError(receipt)
        return [seen, receipt, len(lab.records())]

    with Host(travel.pack(Subject(write_one, resume))) as host:
        trace = recorded(host)
        (answer,) = host.recover([request(trace, steps=3)])
        (again,) = host.recover([request(trace, steps=1)])
    first, second = answer.steps
    assert first.value is not None
    assert first.value["end"] == [0, "mail-1", 1]
    assert (second.how, second.error) == ("raised", "ValueError: mail-1")
    assert [op.counted for op in second.events] == [False]  # type: ignore[attr-defined]  # these ops are effects
    assert again.steps[0].value == first.value


def test_destroyed_names_files_that_a_failing_step_changed() -> None:
    """A refusal that overwrote or removed files of the state names them; new files do not count."""

    def run(lab: Any) -> None:
        for name in ("kept", "changed", "removed"):
            (lab.dir / name).write_text(name)

    def resume(lab: Any) -> None:
        (lab.dir / "changed").write_text("other")
        (lab.dir / "removed").unlink()
        (lab.dir / "new").write_text("new")
        text = "refused"
        raise RuntimeError(text)

    with Host(travel.pack(Subject(run, resume))) as host:
        (answer,) = host.recover([request(recorded(host))])
    assert answer.steps[0].destroyed == ("dir/changed", "dir/removed")


def test_what_a_refusal_moves_aside_is_not_destroyed_and_is_recovered_again() -> None:
    """A file under a new name keeps its bytes; a copy that was there before does not count as that."""

    def run(lab: Any) -> None:
        for name in ("bad", "gone", "twin"):
            (lab.dir / name).write_text("the same" if name != "bad" else name)

    def resume(lab: Any) -> list[str]:
        if (lab.dir / "bad").exists():
            (lab.dir / "bad").rename(lab.dir / "bad.aside")
            (lab.dir / "gone").unlink()
            text = "refused"
            raise RuntimeError(text)
        return sorted(path.name for path in lab.dir.iterdir())

    with Host(travel.pack(Subject(run, resume))) as host:
        (answer,) = host.recover([request(recorded(host))])
    first, second = answer.steps
    assert (first.destroyed, first.aside) == (("dir/gone",), ("dir/bad",))
    assert (second.step, second.value and second.value["end"]) == ("second", ["bad.aside", "twin"])
