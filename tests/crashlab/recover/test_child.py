"""A step ends as an interpreter ends, in an environment that is the same every time."""

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

from crashlab import Subject, UsageError, explore
from crashlab import trace as t
from crashlab.recover import travel
from crashlab.recover.host import Host
from tests.crashlab.here import needs_strace
from tests.crashlab.recover.one_step import end_of, record, recorded, recover, request, write_one

if TYPE_CHECKING:
    from pathlib import Path


def test_threads_and_atexit_run_before_the_end() -> None:
    """A thread that is no daemon is waited for, then atexit functions run, as Python does."""

    def run(lab: Any) -> str:
        def later() -> None:
            time.sleep(0.1)
            (lab.dir / "thread").write_text("thread")

        threading.Thread(target=later).start()
        atexit.register((lab.dir / "atexit").write_text, "atexit")
        return "done"

    recording = record(run)
    created = [op.path for op in recording.ops if isinstance(op, t.Create)]
    assert (recording.how, recording.value) == ("returned", {"end": "done"})
    assert created == ["dir/thread", "dir/atexit"]
    assert recording.threads == 2


@needs_strace
def test_a_process_that_is_watched_from_outside_loads_no_watcher() -> None:
    """Each of hundreds of runs is an interpreter of its own: what it loads for nothing it loads under strace."""

    def run(_lab: Any) -> list[str]:
        return sorted(name for name in sys.modules if name.startswith("crashlab.record.strace"))

    with Host(travel.pack(Subject(run))) as host:
        recording = host.record(timeout_s=20, traced={})
    assert (recording.how, recording.value) == ("returned", {"end": []})


def test_environment_of_a_step() -> None:
    """Own session, default signal handlers, umask 022, the traced places, empty standard input."""

    def resume(lab: Any) -> dict[str, Any]:
        mask = os.umask(0)
        os.umask(mask)
        root = str(lab.dir.parent)
        return {
            "session": os.getsid(0) == os.getpid(),
            "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
            "terminate": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
            "mask": mask,
            "places": [os.environ[name].removeprefix(root) for name in ("HOME", "TMPDIR", "CRASHLAB_DIR")],
            "fixed": [os.environ[name] for name in ("PYTHONHASHSEED", "OMP_NUM_THREADS", "SUBJECT")],
            "input": sys.stdin.read(),
            "cwd": os.getcwd(),
        }

    subject = Subject(write_one, resume, env={"SUBJECT": "{dir}:{tmp}"})
    with Host(travel.pack(subject), env={"FROM_HOST": "yes"}) as host:
        (answer,) = host.recover([request(recorded(host))])
        root = host.root
    assert end_of(answer) == {
        "session": True,
        "interrupt": True,
        "terminate": True,
        "mask": 0o022,
        "places": ["/home", "/tmp", "/dir"],
        "fixed": ["0", "1", f"{root}/dir:{root}/tmp"],
        "input": "",
        "cwd": os.getcwd(),
    }


def test_output_of_a_step_and_its_children() -> None:
    """What the step prints, buffered or not, and what its children print, is kept apart by stream."""

    def resume(_lab: Any) -> str:
        subprocess.run(["/bin/sh", "-c", "echo child; echo problem >&2"], check=True)
        sys.stdout.write("buffered")
        return "done"

    step = recover(resume)
    assert (step.stdout, step.stderr) == ("child\nbuffered", "problem\n")


def test_interpreter_mode_gives_the_same_answers() -> None:
    """Every step in a fresh interpreter: the same recording, recovery, events and time limit."""

    def resume(lab: Any) -> str:
        if not (lab.dir / "file").exists():
            threading.Event().wait()
        lab.effect("mail", key="k")
        return str((lab.dir / "file").read_text())

    with Host(travel.pack(Subject(write_one, resume)), interpreter=True) as host:
        trace = recorded(host)
        never_ends = {**request(trace, timeout_s=0.5), "state": "kill@0"}
        answer, hanging = host.recover([request(trace, steps=2), never_ends])
        killed = host.record(kill=(1, 0), timeout_s=20)
        assert host.mode == "interpreter"
    assert [op.KIND for op in trace.ops] == ["create", "write"]
    first, second = answer.steps
    assert (first.how, end_of(answer), len(first.events)) == ("returned", "content", 1)
    assert (second.how, [op.counted for op in second.events]) == ("returned", [False])  # type: ignore[attr-defined]  # these ops are effects
    assert [step.how for step in hanging.steps] == ["hang"]
    assert (killed.how, [op.KIND for op in killed.ops]) == ("signal", ["create"])


def test_a_control_in_fresh_interpreters_beside_the_forked_way() -> None:
    """The same request comes out alike, forked and in a fresh interpreter."""
    with Host(travel.pack(Subject(write_one, lambda lab: (lab.dir / "file").read_text()))) as host:
        trace = recorded(host)
        (forked,) = host.recover([request(trace)])
        (fresh,) = host.recover_fresh([request(trace)])
        assert host.mode != "interpreter"
    assert end_of(forked) == end_of(fresh) == "content"


@pytest.mark.parametrize("module", ["starts_a_thread", "starts_a_thread_late"])
def test_a_subject_that_starts_threads_is_never_forked(module: str) -> None:
    """Threads after the import, or after the late imports of the run, mean fresh interpreters."""
    with Host(travel.pack(f"tests.crashlab.recover.{module}:SUBJECT")) as host:
        trace = recorded(host)
        assert host.mode == "interpreter"
        (answer,) = host.recover([request(trace)])
    assert end_of(answer) == "written"


def test_an_end_without_a_json_form_is_the_subjects_mistake() -> None:
    """The message names the type and the way out."""
    recording = record(lambda _lab: object())
    assert recording.how == "raised"
    assert recording.error == (
        f"{UsageError.__name__}: the end is an object, which has no JSON form. Pass view=lambda end: vars(end)."
    )


FROM_A_FILE = """
import importlib.util, sys
from crashlab import Store

def plugin():
    spec = importlib.util.spec_from_file_location("codec", {file!r})
    sys.modules["codec"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

def save(dir, value):
    if "codec" not in sys.modules:
        plugin()
    sys.modules["codec"].save(dir, value)

def load(dir):
    if "codec" not in sys.modules:
        plugin()
    return sys.modules["codec"].load(dir)

SUBJECT = Store(save, load, values=["one", "two"])
"""
CODEC = """
import os

def save(dir, value):
    with open(dir / "new", "w") as file:
        file.write(value)
        file.flush()
        os.fsync(file.fileno())
    os.replace(dir / "new", dir / "value")

def load(dir):
    return (dir / "value").read_text() if (dir / "value").exists() else None
"""


def test_a_module_from_a_chosen_file_is_not_taken_for_its_namesake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path leads to another module of that name, which a recovery would meet if it were imported beforehand."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "codec.py").write_text(CODEC)
    (tmp_path / "codec.py").write_text("def load(dir):\n    raise ValueError('the wrong one')\n")
    (tmp_path / "from_a_file.py").write_text(FROM_A_FILE.format(file=str(tmp_path / "plugins" / "codec.py")))
    monkeypatch.syspath_prepend(tmp_path)
    report = explore("from_a_file:SUBJECT", faults="kill", out=tmp_path / "out")
    assert report.verdict == "consistent", str(report)
