"""The oracle of an error: the call says so, the old value stays, the same call works once the error has gone.

What is on disk is judged as after a kill, by :class:`~crashlab.judge.Judge`: a save that returned is an ack,
a save that raised is one that was under way. This module adds what only the process that met the error
could show: that the same call raised again, that a run went on to a wrong end, that it never ended.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.states import Prefixes
from crashlab.demands import Problem, Reference
from crashlab.honesty import Honesty, matches
from crashlab.judge import Judgement
from crashlab.kinds import gravity
from crashlab.observation import Answer, Step
from crashlab.subject import Commands
from crashlab.tree import File
from crashlab.values import canonical, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab.crash.states import CrashState
    from crashlab.error_points import ErrorState
    from crashlab.judge import Judge
    from crashlab.observation import RawRecording
    from crashlab.tree import Tree

_HEX = re.compile(r"[0-9a-f]{8,}")

SAID = "words on standard error"
"""What is expected of a program that ends because of an error."""

LIVE = "live"
"""The name of the step that met the error."""


class Shapes:
    """The uncrashed run as names and sizes: what a state of another run of the same program can be held against.

    Bytes differ between two runs of a program that draws random names; hexadecimal parts of names do not count.
    """

    def __init__(self, trace: t.Trace) -> None:
        self._trace = trace

    @cached_property
    def _dones(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        prefixes = Prefixes(self._trace)
        for done in range(len(self._trace.ops) + 1):
            found.setdefault(shape_of(prefixes.tree(done)), []).append(done)
        return found

    def cannot_tell(self, unknown: t.Unknown, tree: Tree) -> bool:
        """Whether the uncrashed run has this shape both before and after an effect that ``unknown`` may mean."""
        effects = [op.n for op in self._trace.ops if isinstance(op, t.Effect) and op.counted and matches(unknown, op)]
        return len({bisect_right(effects, done) for done in self._dones.get(shape_of(tree), ())}) > 1


def shape_of(tree: Tree) -> str:
    """Names and sizes of a tree, in one text.

    Of several names of one file the first counts: a rename that a power loss has half undone leaves both, and no
    reader is asked to conclude from that how far a save had come.
    """
    nodes: dict[int, tuple[str, int]] = {}
    for path, inode, node in sorted(tree.walk(), key=lambda each: each[0]):
        nodes.setdefault(inode, (_HEX.sub("#", path), node.content.size if isinstance(node, File) else -1))
    return str(sorted(nodes.values()))


class LiveHonesty(Honesty):
    """:class:`Honesty` of one run under an error: by its own ops, and by what the uncrashed run would have done next.

    ``lenient``: the state is not known, since a recovery whose reads failed has changed it; then every unknown is
    honest.
    """

    def __init__(self, trace: t.Trace, shapes: Shapes, *, lenient: bool = False) -> None:
        self._late: Honesty | None = None
        self._run, self._shapes, self._lenient = trace, shapes, lenient

    def honest(self, unknown: t.Unknown, state: CrashState) -> bool:
        """Whether ``unknown`` is the best answer that the files of ``state`` allow."""
        if self._lenient or self._shapes.cannot_tell(unknown, state.tree):
            return True
        self._late = self._late or Honesty(self._run, kill_states(self._run))
        return self._late.honest(unknown, state)


def live_step(recording: RawRecording) -> Step:
    """What the process that met the error did, as a step to show."""
    value = recording.value or {}
    raised = value.get("raised")
    names = ("error", "traceback", "stdout", "stderr")
    fields = {name: getattr(recording, name) for name in names}
    if raised is not None:
        fields["error"] = raised
    how = "raised" if raised is not None else recording.how
    return Step(step=LIVE, how=how, value=recording.value, left=recording.left, **fields)


def live_problems(reference: Reference, recording: RawRecording) -> Iterator[Problem]:
    """What was wrong in the process that met the error."""
    value = recording.value or {}
    if recording.how == "hang":
        yield Problem(kind="hang", summary="the run did not end after the error", step=LIVE)
        return
    if recording.left:
        text = f"after the error {len(recording.left)} processes were left running: {', '.join(recording.left[:3])}"
        yield Problem(kind="left-process", summary=text, step=LIVE)
    if not reference.program:
        yield from _call_problems(recording, value)
    elif recording.how == "returned":
        yield from _end_problems(reference, value)
    elif reference.kind == Commands.kind and not recording.stderr.strip():
        ended = "was ended by a signal" if recording.how == "signal" else "exited with a code other than 0"
        text = f"after the error the program {ended} and said nothing on standard error"
        yield Problem(kind="stuck", summary=text, step=LIVE, expected=(SAID,))


def _call_problems(recording: RawRecording, value: dict[str, Any]) -> Iterator[Problem]:
    if recording.how != "returned":
        text = f"the error ended the process by {recording.how} instead of reaching the caller. {recording.error}"
        yield Problem(kind="stuck", summary=text.strip(), step=LIVE, expected=("an exception",))
    elif value.get("again"):
        text = f"{value['what']}() raised {value['raised']}; once the error had gone it raised {value['again']}"
        if value["raised"] is None:
            text = f"{value['what']}() met an error and returned; afterwards {value['again']}"
        yield Problem(kind="stuck", summary=text, step=LIVE, expected=("the same call succeeds",))


def _end_problems(reference: Reference, value: dict[str, Any]) -> Iterator[Problem]:
    failed = value.get("check")
    if failed is not None:
        text = f"the run met an error and returned as if all were well: {failed['text']}"
        yield Problem(kind=failed["kind"], summary=text, step=LIVE)
    if reference.has_check or not reference.ended or canonical(value["end"]) == canonical(reference.end):
        return
    text = f"the run met an error and returned {shown(value['end'])}, the uncrashed one {shown(reference.end)}"
    yield Problem(kind="diverged", summary=text, step=LIVE, expected=("raise, or the uncrashed end",))


def judged(judge: Judge, reference: Reference, state: ErrorState, answer: Answer, live: RawRecording) -> Judgement:
    """The verdict on one state; ``live`` is the run that left it."""
    if "check_error" in (live.value or {}):
        return Judgement(state=state, verdict="unmeasured")
    last = state.done == len(state.trace.ops) and state.loss is None
    problems = live_problems(reference, live) if last else iter(())
    return with_problems(judge.judge(state, forgiven(reference, state, answer, live)), problems)


def with_problems(judgement: Judgement, more: Iterator[Problem]) -> Judgement:
    """The judgement with further problems, the gravest first."""
    problems = sorted([*more, *judgement.problems], key=lambda problem: gravity(problem.kind))
    if not problems or judgement.verdict == "unmeasured":
        return judgement
    return dataclasses.replace(judgement, verdict="violation", problems=tuple(problems))


def forgiven(reference: Reference, state: ErrorState, answer: Answer, live: RawRecording) -> Answer:
    """The answer of a Log without what a failed append left of events that have no key, before they came again.

    That may be any part of them: of what was given up after a failed fsync, a power loss keeps what pages it will.
    """
    raised_at = (live.value or {}).get("raised_at")
    if reference.kind != "Log" or raised_at is None or state.done < raised_at:
        return answer
    struck = next(op.n for op in state.trace.ops if isinstance(op, t.Refused))
    batches = reference.calls(state.done)
    number = sum(isinstance(op, t.Call) for op in state.trace.ops[:struck])
    if not number:
        return answer
    start = sum(len(batch) for batch in batches[: number - 1])
    batch = [canonical(event) for event in batches[number - 1]]
    behind = _repeated_behind(answer.steps[0], start, batch)
    steps = tuple(_without(step, behind or _repeated_before(step, start, batch), batch) for step in answer.steps)
    return dataclasses.replace(answer, steps=steps)


def _repeated_before(step: Step, start: int, batch: list[str]) -> slice | None:
    """Where a part of the failed batch stands, which begins anew behind it."""
    found, keyless = _events_of(step)
    for size in range(min(len(batch), len(found) - start), 0, -1):
        again = found[start + size : start + size + len(batch)]
        is_part = all(keyless[start : start + size]) and _is_part(found[start : start + size], batch)
        if is_part and again and again == batch[: len(again)]:
            return slice(start, start + size)
    return None


def _repeated_behind(first: Step, start: int, batch: list[str]) -> slice | None:
    """Where a part of the batch is left behind the whole of it: the first try came through, not all of the second."""
    found, keyless = _events_of(first)
    end = start + len(batch)
    rest = found[end:]
    is_part = all(keyless[end:]) and len(rest) <= len(batch) and _is_part(rest, batch)
    return slice(end, len(found)) if rest and is_part and found[start:end] == batch else None


def _events_of(step: Step) -> tuple[list[str], list[bool]]:
    """What was loaded, and of each event whether it has no key."""
    value = step.value or {}
    events = value.get("value")
    if not isinstance(events, list):
        return [], []
    keys = value.get("keys") or [None] * len(events)
    return [canonical(event) for event in events], [key is None for key in keys]


def _without(step: Step, left: slice | None, batch: list[str]) -> Step:
    """The step without the events of ``left``, which are of ``batch``; also of what it found after one more save."""
    found, _ = _events_of(step)
    if left is None or not found[left] or not _is_part(found[left], batch):
        return step
    value = step.value or {}
    kept = {**value, "value": _cut(value["value"], left)}
    if value.get("keys"):
        kept["keys"] = _cut(value["keys"], left)
    more = value.get("more")
    if more and "saved" in more:
        kept["more"] = {**more, "saved": _cut(more["saved"], left)}
    return dataclasses.replace(step, value=kept)


def _cut(items: list[Any], left: slice) -> list[Any]:
    return items[: left.start] + items[left.stop :]


def _is_part(some: list[str], batch: list[str]) -> bool:
    """Whether these are events of a batch, in their order, each at most once."""
    rest = iter(batch)
    return all(each in rest for each in some)  # "in" on an iterator goes on from the last one
