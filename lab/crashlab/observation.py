"""What recovery did on one crash state, as plain data: it crosses from the worker to the judge as JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab import trace as t
    from crashlab.tree import Tree

How = Literal["returned", "raised", "exit", "signal", "hang"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the recovery of one state, in a process of its own.

    ``value`` is what :func:`crashlab.workload.recover` returned. ``destroyed`` are files of the state
    that a step which did not return left gone or changed, ``aside`` those whose bytes it left under another
    name; ``left`` are processes that it left behind (they have been ended).
    """

    step: str
    how: How
    value: dict[str, Any] | None = None
    error: str = ""
    traceback: str = ""
    stdout: str = ""
    stderr: str = ""
    events: tuple[t.Op, ...] = ()
    destroyed: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: int | None = None

    @property
    def loud(self) -> bool:
        """Whether it refused aloud: an error, or an exit code that is one with some words on standard error.

        A silent end and a signal tell nobody anything.
        """
        return self.how == "raised" or (self.how == "exit" and self.exit_code != 0 and bool(self.stderr.strip()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All steps on one crash state, in order.

    After a step that did not return there is none, but where the first one has put files ``aside``.
    ``shared``: they ran in a process that has recovered other states before. ``compared`` are the steps as they
    came out there, where they ran both ways, and ``left_same`` says whether they left the same files.
    """

    state: str
    steps: tuple[Step, ...]
    shared: bool = False
    compared: tuple[Step, ...] = ()
    left_same: bool = True


def same(one: tuple[Step, ...], other: tuple[Step, ...]) -> bool:
    """Whether two recoveries of one state came to the same.

    What a new run may choose for itself (the time of day, a random key, an end that ``check`` judges) may differ.
    """
    return [_gist(step) for step in one] == [_gist(step) for step in other]


def _gist(step: Step) -> tuple[Any, ...]:
    value = {} if step.value is None else step.value
    left_out = ("end", "raised") if "check" in value else ("raised",)
    kept = {name: part for name, part in value.items() if name not in left_out}
    return step.step, step.how, kept, [(type(op), getattr(op, "name", "")) for op in step.events]


def unfolded(answer: Answer) -> Answer:
    """The answer with a step ``second`` where the first process was asked to do it again itself."""
    first = answer.steps[0]
    if first.value is None or "again" not in first.value:
        return answer
    again = first.value["again"]
    how: How = "raised" if "error" in again else "returned"
    value = None if how == "raised" else again
    second = Step(step="second", how=how, value=value, error=again.get("error", ""))
    return dataclasses.replace(answer, steps=(first, second))


def readable(answer: Answer, root: str) -> Answer:
    """The answer with the paths in its texts as people know them: relative to ``lab.dir``.

    The root is a temporary folder with another name on every run, so it would also make two reports
    of one fault differ.
    """
    shorter = shortener(root)
    steps = (
        dataclasses.replace(
            step,
            error=shorter(step.error),
            traceback=shorter(step.traceback),
            stdout=shorter(step.stdout),
            stderr=shorter(step.stderr),
            value=_shorter_texts(step.value, shorter),
        )
        for step in answer.steps
    )
    return dataclasses.replace(answer, steps=tuple(steps))


def readable_run(recording: RawRecording) -> RawRecording:
    """The same of what a run under an error said, and of what its calls raised."""
    shorter = shortener(recording.root)
    value = _shorter_texts(recording.value, shorter)
    if value is not None and isinstance(value.get("again"), str):
        value["again"] = shorter(value["again"])
    return dataclasses.replace(
        recording,
        value=value,
        error=shorter(recording.error),
        traceback=shorter(recording.traceback),
        stdout=shorter(recording.stdout),
        stderr=shorter(recording.stderr),
    )


def shortener(root: str) -> Callable[[str], str]:
    """Makes paths in a text as people know them."""
    return lambda text: text.replace(f"{root}/dir/", "").replace(f"{root}/dir", ".").replace(f"{root}/", "~")


def _shorter_texts(value: dict[str, Any] | None, shorter: Callable[[str], str]) -> dict[str, Any] | None:
    """The texts about errors inside a value; the subject's own values stay as they are."""
    if value is None:
        return None
    changed = dict(value)
    for name in ("raised", "check_error"):
        if isinstance(changed.get(name), str):
            changed[name] = shorter(changed[name])
    for name, inner in (("more", "error"), ("check", "text")):
        if isinstance(changed.get(name), dict) and inner in changed[name]:
            changed[name] = {**changed[name], inner: shorter(changed[name][inner])}
    return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecording:
    """One run of the workload under the recorder, before anything was proved of it.

    ``base`` is the tree before, ``last`` the tree that really was there afterwards. ``mapped``: stores into
    a mapped file were not looked at; ``late``: they were looked at too late. Where it was watched from outside,
    ``origins`` are the system calls of the ops, by process, name and number there, ``calls`` how many of each a
    process made, and ``first`` is the process that was started.
    """

    root: str
    base: Tree
    ops: tuple[t.Op, ...]
    last: Tree
    how: How
    value: dict[str, Any] | None = None
    error: str = ""
    traceback: str = ""
    stdout: str = ""
    stderr: str = ""
    outside_writes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    threads: int = 1
    modules: tuple[str, ...] = ()
    left: tuple[str, ...] = field(default=())
    mapped: bool = False
    late: bool = False
    origins: tuple[tuple[int, str, int], ...] = ()
    calls: tuple[tuple[int, str, int], ...] = ()
    first: int = 0
