"""Run one recorded run or one recovery step of a subject that a test wrote, and look at what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab import Subject
from crashlab import trace as t
from crashlab.recover import travel
from crashlab.recover.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.observation import Answer, RawRecording, Step


def write_one(lab: Any) -> str:
    """The workload of every test here: one file."""
    (lab.dir / "file").write_text("content")
    return "written"


def recorded(host: Host) -> t.Trace:
    """The trace of the workload, given to the recovery workers."""
    recording = host.record(timeout_s=20)
    assert recording.how == "returned", recording
    trace = t.Trace(root=recording.root, base=recording.base, ops=recording.ops)
    host.prepare(trace, modules=recording.modules)
    return trace


def request(trace: t.Trace, *, steps: int = 1, timeout_s: float = 20.0) -> dict[str, Any]:
    """A request on the last state of the trace."""
    names = ("first", "second", "third")[:steps]
    return {
        "state": f"kill@{len(trace.ops)}",
        "profile": None,
        "rebuilt": (),
        "steps": [{"step": name} for name in names],
        "timeout_s": timeout_s,
    }


def end_of(answer: Answer) -> Any:
    """What the first step of an answer returned."""
    value = answer.steps[0].value
    assert value is not None, answer
    return value["end"]


def recover(resume: Callable[[Any], Any], *, timeout_s: float = 20.0, **options: Any) -> Step:
    """The one step in which ``resume`` ran, with a healthy one after it in the same worker."""
    with Host(travel.pack(Subject(write_one, resume)), **options) as host:
        trace = recorded(host)
        (answer,) = host.recover([request(trace, timeout_s=timeout_s)])
        return answer.steps[0]


def record(run: Callable[[Any], Any], *, timeout_s: float = 20.0, **options: Any) -> RawRecording:
    """The recorded run of ``run``."""
    kill = options.pop("kill", None)
    with Host(travel.pack(Subject(run)), **options) as host:
        return host.record(kill=kill, timeout_s=timeout_s)
