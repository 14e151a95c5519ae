"""The lab's checks of itself on every subject: real deaths, fresh interpreters, the pinned path.

Each gives a :class:`Control` for the report and, where it failed, the reasons why the result is
unmeasured. Those that belong to the recording (replay proof, two runs, round trip) stand in
:mod:`crashlab.reference`.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab.confirm import calls_at, kill_for_real, kill_traced_for_real, sample
from crashlab.errors import UsageError
from crashlab.report.model import Control, UnmeasuredReason
from crashlab.values import canonical, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crashlab import trace as t
    from crashlab.observation import Answer, RawRecording
    from crashlab.recover.host import Host

FRESH_SAMPLE = 2
"""Into how many parts the trace is cut; at each cut a state is recovered once more in a fresh interpreter."""

_SHOWN_CHARACTERS = 200
_REPORT_IT = "The lab is not to be believed here: please report this with the run folder."


@dataclass(frozen=True, slots=True)
class Controlled:
    """What one or more controls came to."""

    controls: tuple[Control, ...] = ()
    unmeasured: tuple[UnmeasuredReason, ...] = ()
    notes: tuple[str, ...] = ()


def real_kills(  # noqa: PLR0913 - all but two by keyword
    host: Host,
    trace: t.Trace,
    *,
    count: int,
    seed: int,
    timeout_s: float,
    progress: Callable[[int, int], None],
    traced: RawRecording | None = None,
) -> Controlled:
    """Kill a seeded sample of real processes and hold each directory against the computed one.

    ``traced`` is the recording of a run that is watched from outside.
    """
    if count == 0:
        return Controlled()
    points = sample(trace, count=count, seed=seed)
    if traced is None:
        deaths = kill_for_real(host, points, timeout_s=timeout_s, progress=lambda done: progress(done, len(points)))
    else:
        try:
            calls = calls_at(traced, points)
        except UsageError as error:
            return Controlled(notes=(f"no process was killed for real: {error}",))
        deaths = kill_traced_for_real(
            host, calls, timeout_s=timeout_s, progress=lambda done: progress(done, len(calls))
        )
        if not deaths:
            return Controlled(notes=("no process was killed for real: in these runs it made its calls otherwise.",))
    wrong = [death for death in deaths if death.difference]
    detail = f"{len(deaths) - len(wrong)} of {len(deaths)} real kills agree"
    reasons = tuple(
        UnmeasuredReason(
            code="real-kill-disagrees",
            detail=f"{death.state}: computed / real: {'; '.join(death.difference[:4])}",
            next=_REPORT_IT,
        )
        for death in wrong[:3]
    )
    return Controlled((Control(control="real-kill", passed=not wrong, detail=detail),), reasons)


def fresh_interpreters(host: Host, trace: t.Trace, request: Callable[[str], dict[str, Any]]) -> Controlled:
    """A few states in forked processes and in fresh interpreters: forking must not change the outcome.

    ``request(state id)`` makes the request of one first step. Also sees that both were at the
    recorded path.
    """
    last = len(trace.ops)
    ids = sorted({f"kill@{(position * last) // FRESH_SAMPLE}" for position in range(1, FRESH_SAMPLE)})
    forked = {answer.state: answer for answer in host.recover(request(state_id) for state_id in ids)}
    fresh = {answer.state: answer for answer in host.recover_fresh([request(state_id) for state_id in ids])}
    pinned = _pinned([*forked.values(), *fresh.values()], trace.root, host.pinned)
    if host.mode == "interpreter":
        return pinned
    odd = [each for each in ids if canonical(_outcome(forked[each])) != canonical(_outcome(fresh[each]))]
    control = Control(control="fresh-interpreter", passed=not odd, detail=f"{len(ids) - len(odd)} of {len(ids)} agree")
    reasons = tuple(_differs(state_id, forked[state_id], fresh[state_id]) for state_id in odd[:1])
    return Controlled((control, *pinned.controls), (*reasons, *pinned.unmeasured))


def _outcome(answer: Answer) -> list[Any]:
    return [[step.how, step.error, step.value] for step in answer.steps]


def _differs(state_id: str, forked: Answer, fresh: Answer) -> UnmeasuredReason:
    both = " / ".join(shown(_outcome(answer), limit=_SHOWN_CHARACTERS) for answer in (forked, fresh))
    return UnmeasuredReason(
        code="checker-failed",
        detail=f"recovery of {state_id} came out otherwise in a forked process than in a fresh interpreter: {both}.",
        next="State at import time is the likely cause: open files and connections inside the callables.",
    )


def _pinned(answers: Sequence[Answer], root: str, how: str) -> Controlled:
    """Whether every recovery that returned was at the absolute path of the recording."""
    seen = {step.value["dir"] for answer in answers for step in answer.steps if step.value is not None}
    odd = seen - {posixpath.join(root, "dir")}
    control = Control(control="pinned-path", passed=not odd, detail=how)
    if not odd:
        return Controlled((control,))
    text = f"recorded at {root}, recovered at {', '.join(sorted(odd))}"
    return Controlled((control,), (UnmeasuredReason(code="checker-failed", detail=text, next=_REPORT_IT),))
