"""The uncrashed run: recorded twice, proved, and only then trusted.

Whatever makes a recording unfit to judge by (an unseen writer, two runs that differ, nothing written)
is found here, before any crash state is made. Each reason says what was seen and what to do next.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.agreement import difference, runs_differ
from crashlab.demands import Reference
from crashlab.errors import ToolMissing, UsageError
from crashlab.record.proof import replay_proof
from crashlab.record.strace.mapped import HOLD_US
from crashlab.record.strace.tool import available
from crashlab.recover.place import base_tree
from crashlab.report.model import Control, UnmeasuredReason
from crashlab.subject import PROGRAMS, Commands
from crashlab.values import canonical, shown

if TYPE_CHECKING:
    from crashlab.observation import RawRecording, Step
    from crashlab.recover.host import Host

CHILD_STARTED = "a child process was started"
"""How the recorder's note on a child begins; a child that wrote nothing does no harm."""

RECORDED_RUN_FACTOR = 6
"""The recorded run gets this many times the time limit of one recovery."""


LONGEST_HOLD_US = 32 * HOLD_US

HARMLESS = frozenset({"outside-write"})
"""Reasons against a pass that leave the trace itself true, so that violations can still be found."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recorded run and what is known of its fitness."""

    reference: Reference
    modules: tuple[str, ...] = ()
    controls: tuple[Control, ...] = ()
    unmeasured: tuple[UnmeasuredReason, ...] = ()
    notes: tuple[str, ...] = ()
    recorder: str = "python"
    raw: RawRecording | None = None

    @property
    def usable(self) -> bool:
        """Whether crash states of this trace mean anything: no verdict is better than a false alarm."""
        return all(reason.code in HARMLESS for reason in self.unmeasured)


def record_twice(host: Host, recorder: str = "auto") -> Recorded:
    """Record the workload twice and prove the first recording.

    ``recorder`` is ``python``, ``strace``, or ``auto``: strace where the other one could not see everything.
    Raises UsageError where the subject fails without any crash.
    """
    _check_limits(host.description)
    program = host.description["kind"] == Commands.kind
    if recorder == "python" and program:
        text = "the commands of a program can be recorded under strace only; leave out recorder='python'"
        raise UsageError(text)
    inside = None if program or recorder == "strace" else _twice(host, traced=False)
    if inside is not None and (recorder == "python" or not _was_blind(inside)):
        return inside
    try:
        available()
    except ToolMissing as error:
        return _without_strace(host, inside, error)
    outside = _twice(host, traced=True)
    if inside is None:
        return outside
    text = "recorded under strace, since not all that was written was written by Python code of one process."
    return replace(outside, notes=(text, *outside.notes))


def _was_blind(recorded: Recorded) -> bool:
    """Whether something was written, or may have been, that the recorder inside of Python cannot see."""
    unseen = any(reason.code == "unseen-writer" for reason in recorded.unmeasured)
    return unseen or any(text.startswith(CHILD_STARTED) for text in recorded.notes)


def _without_strace(host: Host, inside: Recorded | None, error: ToolMissing) -> Recorded:
    """What can be said where strace would be needed: what the other recorder saw, if that was all; else nothing."""
    if inside is not None:
        reasons = (
            replace(each, next=error.next) if each.code == "unseen-writer" else each for each in inside.unmeasured
        )
        return replace(inside, unmeasured=tuple(reasons))
    description = host.description
    empty = t.Trace(root=host.root, base=base_tree(), ops=())
    reference = Reference(kind=description["kind"], trace=empty, has_check=description["has_check"])
    reason = UnmeasuredReason(code="tool-missing", detail=f"{error.text}.", next=error.next)
    return Recorded(reference=reference, unmeasured=(reason,), recorder="strace")


def _twice(host: Host, *, traced: bool) -> Recorded:
    description = host.description
    first = recorded(host, traced=traced)
    whole = t.Trace(root=first.root, base=first.base, ops=first.ops, threads=first.threads)
    trace = replace(whole, ops=_up_to(first.ops, description["stop_after_acks"]))
    reference = Reference(
        kind=description["kind"],
        trace=trace,
        end=(first.value or {}).get("end"),
        ended=first.how == "returned",
        has_check=description["has_check"],
        atomic=description["atomic"],
        rebuilt=tuple(description["rebuilt"]),
    )
    reasons, proof = fitness(first, whole, description, traced=traced)
    controls = [proof]
    if not any(reason.code in ("empty-trace", "time-limit") for reason in reasons):
        told = difference(first, recorded(host, traced=traced))
        controls.append(Control(control="runs-agree", passed=not told, detail=told))
        if told:
            reasons.append(runs_differ(told, first, description["kind"]))
    notes = _notes(first, description)
    return Recorded(
        reference=reference,
        modules=first.modules,
        controls=tuple(controls),
        unmeasured=tuple(reasons),
        notes=notes,
        recorder="strace" if traced else "python",
        raw=first,
    )


def fitness(
    first: RawRecording, whole: t.Trace, description: dict[str, Any], *, traced: bool
) -> tuple[list[UnmeasuredReason], Control]:
    """What makes one recording unfit to judge by, and the replay proof. ``whole`` is its trace.

    A run that was ended at its time limit may have died between a change and its telling, so that its last directory
    proves nothing against the recorder: the limit alone is told.
    """
    reasons = [*_unfit(first, description), *_outside(first)]
    differing = replay_proof(whole, first.last, description["rebuilt"])
    if first.how == "hang":
        return reasons, Control(control="replay-proof", passed=not differing, detail="; ".join(differing[:3]))
    hidden = tuple(text for text in first.unseen if not text.startswith(CHILD_STARTED))
    if differing:
        reasons.append(_unseen(differing, first.unseen, traced=traced))
    elif hidden:  # the ends agree, but a crash in between may show what no op explains
        reasons.append(_unseen(hidden, (), traced=traced))
    return reasons, Control(control="replay-proof", passed=not differing, detail="; ".join(differing[:3]))


def _up_to(ops: tuple[t.Op, ...], acks: int | None) -> tuple[t.Op, ...]:
    """The ops up to the last ack that is wanted: a program that is watched from outside dies a little later."""
    if acks is None:
        return ops
    last = [op.n for op in ops if isinstance(op, t.Ack)][acks - 1 : acks]
    return ops[: last[0]] if last else ops


def learn_nothing(recorded: Recorded, empty: Step, last: Step) -> Recorded:
    """Add what ``load`` gives on an empty directory, and whether the uncrashed values come back.

    ``empty`` and ``last`` are first steps of the recovery on the first and the last directory.
    """
    reference, controls, reasons = recorded.reference, list(recorded.controls), list(recorded.unmeasured)
    if reference.program:
        return recorded
    nothing, control, unusable = nothing_there(empty)
    controls.append(control)
    reasons += unusable
    saved = _saved(reference)
    came_back = last.how == "returned" and canonical((last.value or {})["value"]) == canonical(saved)
    found = shown((last.value or {}).get("value")) if last.how == "returned" else last.error or last.how
    controls.append(Control(control="round-trip", passed=came_back, detail="" if came_back else f"loaded {found}"))
    if "hang" in (empty.how, last.how):
        text = "load() did not return within its time limit, without any crash."
        advice = "Mend it, or raise timeout_s where it is only slow."
        reasons.append(UnmeasuredReason(code="time-limit", detail=text, next=advice))
    elif not came_back:
        text = f"saved {shown(saved)}, loaded {found} without any crash."
        reasons.append(UnmeasuredReason(code="round-trip", detail=text, next="Mend it, or say what counts: view=…."))
    return replace(
        recorded,
        reference=replace(reference, nothing=nothing),
        controls=tuple(controls),
        unmeasured=tuple(reasons),
    )


def nothing_there(empty: Step) -> tuple[dict[str, Any], Control, list[UnmeasuredReason]]:
    """What ``load`` gives on an empty directory, as a reference has it; the control; why it is of no use, if so."""
    nothing: dict[str, Any] = (
        {"value": (empty.value or {})["value"]}
        if empty.how == "returned"
        else {"error": empty.error.split(":")[0], "text": empty.error}
    )
    usable = empty.how in ("returned", "raised") or empty.error.startswith("SystemExit")
    detail = f"load() on an empty directory {empty.how}: {shown(nothing)}"
    control = Control(control="empty-load", passed=usable, detail=detail)
    if usable:
        return nothing, control, []
    text = f"load() on an empty directory {empty.how}: {empty.error or 'no answer'}"
    advice = "Let load return None, an empty value, or raise, where nothing was saved yet."
    return nothing, control, [UnmeasuredReason(code="checker-failed", detail=text, next=advice)]


def _saved(reference: Reference) -> Any:
    calls = reference.calls(len(reference.trace.ops))
    if reference.kind == "Log":
        return [event for batch in calls for event in batch]
    return calls[-1] if calls else None


def recorded(host: Host, *, traced: bool, recovery: dict[str, Any] | None = None) -> RawRecording:
    """One run that ended as it should, or one step instead as ``recovery`` has it. Raises UsageError otherwise."""
    description = host.description
    limit_s = description["timeout_s"] * RECORDED_RUN_FACTOR
    if traced and host.traced is None:
        host.traced = {}
    recording = host.record(timeout_s=limit_s, recovery=recovery)
    if recording.mapped or recording.late or (traced and _ended_inside(recording, description)):
        recording = _held(host, limit_s, recovery)
    stopped = description["stop_after_acks"] is not None and recording.how == "signal"
    if recording.how == "hang":
        return recording
    if recording.how != "returned" and not stopped:
        raise UsageError(failed(recording, description["kind"]))
    value = recording.value or {}
    if "usage" in value:
        raise UsageError(value["usage"])
    if "view_failed" in value:
        text = f"view failed without any crash: {value['view_failed']}"
        raise UsageError(text)
    if value.get("check") is not None:
        text = f"check failed without any crash: {value['check']['text']}. Mend the check or the program first."
        raise UsageError(text)
    return recording


def _held(host: Host, limit_s: float, recovery: dict[str, Any] | None) -> RawRecording:
    """The run once more, every call held for a while at its entry.

    What was stored into mapped files is looked at meanwhile; and a program that is ended at an ack stands there.
    """
    hold_us = HOLD_US
    while True:
        host.traced = {"hold_us": hold_us}
        recording = host.record(timeout_s=limit_s, recovery=recovery)
        unfit = recording.late or _ended_inside(recording, host.description)
        if not unfit or hold_us >= LONGEST_HOLD_US:
            return recording
        hold_us *= 2


def _ended_inside(recording: RawRecording, description: dict[str, Any]) -> bool:
    """Whether a program that was ended at an ack has died inside calls, whose changes nobody has told."""
    if description["stop_after_acks"] is None or recording.how != "signal":
        return False
    trace = t.Trace(root=recording.root, base=recording.base, ops=recording.ops, threads=recording.threads)
    unseen = any(not text.startswith(CHILD_STARTED) for text in recording.unseen)
    return unseen or bool(replay_proof(trace, recording.last, description["rebuilt"]))


def _check_limits(description: dict[str, Any]) -> None:
    acks, timeout_s = description["stop_after_acks"], description["timeout_s"]
    if not 0 < timeout_s < math.inf:
        text = f"timeout_s is {timeout_s:g}; expected a number of seconds above 0"
        raise UsageError(text)
    if acks is None:
        return
    if acks < 1:
        text = f"stop_after_acks is {acks}; expected a number from 1 on"
        raise UsageError(text)
    if description["kind"] in PROGRAMS and not description["has_check"]:
        text = "stop_after_acks cuts the run before its end, so there is no end to compare: pass check=… as well"
        raise UsageError(text)


_OURS = "UsageError: "


def failed(recording: RawRecording, kind: str) -> str:
    """Why an uncrashed run is none, in words."""
    what = {"Store": "save", "Log": "append"}.get(kind, "run")
    places = [line.strip() for line in recording.traceback.splitlines() if line.startswith('  File "')]
    own = [place for place in places if os.path.dirname(__file__) not in place] or places  # no frames of the recorder
    where = f" ({own[-1]})" if own else ""
    by_the_lab = bool(places) and os.path.dirname(__file__) in places[-1]
    if recording.how == "raised" and by_the_lab and recording.error.startswith(_OURS):
        return recording.error.removeprefix(_OURS)  # the lab's own words, and nothing of the user's has raised
    if recording.how == "raised":
        calls = sum(isinstance(op, t.Call) for op in recording.ops)
        when = f"on call {calls} of {what}, before any crash" if calls else f"in {what}, before any crash"
        text = f"the uncrashed run raised {recording.error}, {when}{where}."
        if kind not in PROGRAMS and recording.error.startswith(("TypeError", "AttributeError")):
            text += (
                f" {what} is called as {what}(dir, value); if your function takes (value, path): "
                f'{what}=lambda dir, value: {what}_checkpoint(value, dir / "checkpoint.json").'
            )
        return text
    return (
        f"the uncrashed run ended by {recording.how} instead of returning. {recording.error} {recording.stderr[-500:]}"
    )


def _unfit(recording: RawRecording, description: dict[str, Any]) -> list[UnmeasuredReason]:
    if recording.how == "hang":
        limit = description["timeout_s"] * RECORDED_RUN_FACTOR
        text = f"the recorded run did not end in {limit:g} s."
        advice = "If it has no end, ack its saves and pass stop_after_acks=5; if it is slow, raise timeout_s."
        return [UnmeasuredReason(code="time-limit", detail=text, next=advice)]
    changes = [op for op in recording.ops if not isinstance(op, t.EVENTS)]
    if not changes and recording.base.digest == recording.last.digest:
        where = f"; the program wrote {', '.join(recording.outside_writes[:3])}" if recording.outside_writes else ""
        text = f"nothing was written under lab.dir{where}."
        advice = 'Put its path under lab.dir, or its variable into env={"APP_HOME": "{dir}"}.'
        return [UnmeasuredReason(code="empty-trace", detail=text, next=advice)]
    if not any(isinstance(op, (t.Ack, t.Effect)) for op in recording.ops) and description["kind"] not in PROGRAMS:
        return [
            UnmeasuredReason(code="no-ack", detail="nothing was ever acked.", next="Give the subject values to save.")
        ]
    return []


def _outside(recording: RawRecording) -> list[UnmeasuredReason]:
    if not recording.outside_writes:
        return []
    text = f"the workload wrote outside its directory: {', '.join(recording.outside_writes[:5])}."
    advice = "Move these files under lab.dir, or list them in outside=[…] if they do not matter."
    return [UnmeasuredReason(code="outside-write", detail=text, next=advice)]


def _unseen(differing: tuple[str, ...], unseen: tuple[str, ...], *, traced: bool) -> UnmeasuredReason:
    text = f"{'; '.join(differing[:3])} (traced / real): no op explains it."
    if unseen:
        text += f" Seen by the way: {'; '.join(unseen[:3])}."
    advice = "The recorder in Python sees only what Python code of that process writes; recorder='strace' sees more."
    if traced:
        advice = (
            "Write these files by calls that strace shows with their bytes, such as write and rename, in the program."
        )
    return UnmeasuredReason(code="unseen-writer", detail=text, next=advice)


def _notes(recording: RawRecording, description: dict[str, Any]) -> tuple[str, ...]:
    notes = []
    if children := [text for text in recording.unseen if text.startswith(CHILD_STARTED)]:
        notes.append(f"{children[0]}: what a child writes and removes again before the end of the run is not seen.")
    if recording.threads > 1:
        notes.append(
            f"{recording.threads} threads wrote: their ops were serialised, so this is one interleaving of many."
        )
    if description["stop_after_acks"] is not None and recording.how == "returned":
        notes.append(f"the run ended by itself before its {description['stop_after_acks']} acks (stop_after_acks).")
    acks = sum(isinstance(op, t.Ack) for op in recording.ops)
    if acks and description["kind"] in PROGRAMS and not description["has_check"]:
        notes.append(
            f"{acks} acks were told and not checked, only the end was: give check=… or --check to compare them."
        )
    if recording.left:
        notes.append(f"the uncrashed run left processes running, which were ended: {', '.join(recording.left[:3])}")
    return tuple(notes)
