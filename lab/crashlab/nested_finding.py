"""A finding at a crash of a recovery: the ops of each run up to its crash, and why the next one fails.

The ops of every run keep the numbers that they have in the id; what a later power loss took of an earlier
run stands behind the ops of that run.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash.nested import is_power, run_words
from crashlab.crash.places import Places, place_path
from crashlab.demands import effect_of
from crashlab.explain import Explanation
from crashlab.explain_loss import why_lost
from crashlab.tree import File

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashlab.crash.losses import Losses
    from crashlab.crash.marks import Mark
    from crashlab.crash.states import CrashState
    from crashlab.judge import Judgement
    from crashlab.report import model

    Lines = Callable[..., tuple[model.OpLine, ...]]

_PENDING = (
    "What a killed run had not synced was not yet on the disk: the recovery read it, went by it, and power took it.",
    ("On resume sync the files that were read, and their directory, before doing anything that goes by them.",),
)
_REPEATABLE = (
    "Let each step of recovery be one that may be done again: keep the old state until the new one is complete,",
    "in a temporary file that is synced and then renamed over it.",
)
TWO_NAMES = Explanation(
    "After the power loss both names of a rename are there, for one and the same file: recovery opened its old "
    "temporary file {path} anew, and so emptied the good one.",
    (
        "Remove a temporary file that is left over before writing a new one, or give each a fresh name and open it",
        'exclusively (mode "x").',
    ),
)
_AGAIN = "Recovery was at work when it died, and what it left is a state that the next recovery does not know."
_WHY: dict[str, tuple[str, tuple[str, ...]]] = {
    "duplicate-entry": (
        "Recovery had applied an entry and had not yet noted that, so the next one applies it again.",
        ("Make applying idempotent: save with the result the number of the last entry applied, in one step.",),
    ),
    "missing-effect": (
        "Something on disk says that the effect was done, and neither the run nor its recoveries did it.",
        ("Mark it as pending before and as done after, in recovery too; look a pending one up, or report it unknown.",),
    ),
    "hang": (
        "Recovery waits for something that died with the recovery before it.",
        ("Look for a lock file or a running mark that only a living process removes; use an OS lock instead.",),
    ),
    "needless-unknown": (
        "The files in this state tell whether the effect was done, in every run that leaves them.",
        ("Read the ledger, or the mark that the call has not started, before answering unknown.",),
    ),
}


def crashes_of(state: CrashState) -> list[CrashState]:
    """The state of each crash, the first one first."""
    return [state] if state.within is None else [*crashes_of(state.within.outer), state]


def alone(state: CrashState) -> CrashState:
    """The last crash of ``state`` as one of a run of its own: ops and places count from that run's first op."""
    recovery = state.within
    if recovery is None:
        return state
    trace = dataclasses.replace(recovery.trace, base=recovery.base, ops=recovery.told)
    fault, done = "power" if is_power(state) else "kill", state.done - recovery.start
    return dataclasses.replace(state, trace=trace, done=done, fault=fault, within=None)


def place_of(state: CrashState, places: Places) -> str:
    """The readable places of all its crashes: ``turn5.effect+/rename+``."""
    first, *later = crashes_of(state)
    return "/".join([places.of(first), *(Places(each.trace).of(each) for each in map(alone, later))])


def cause_of(judgement: Judgement, marks: dict[int, Mark], places: Places) -> str:
    """What makes two findings one: why power lost it, or the line of the recovery that was running."""
    state = judgement.state
    if is_power(state):
        return why_lost(judgement, marks)
    line = state.trace.op(state.last_op).at if state.last_op else ""
    return line or place_of(state, places)


def size_of(state: CrashState) -> tuple[int, int]:
    """What makes a case small: few crashes, each early, and kills rather than power losses."""
    crashes = crashes_of(state)
    early = sum(alone(each).last_op for each in crashes)
    return 1_000_000 * len(crashes) + early, sum(1_000 * is_power(each) + each.id.count(",") for each in crashes)


def retold(
    finding: model.Finding, judgement: Judgement, losses: Losses | None, places: Places, lines: Lines
) -> model.Finding:
    """The finding with the ops of all runs, its place and its cause. ``lines`` makes the lines of one run."""
    state = judgement.state
    crashes = crashes_of(state)
    doing = _run_of_effect(judgement) if finding.kind == "duplicate-effect" else None
    ops: list[model.OpLine] = []
    for run, crash in enumerate(crashes):
        marks = dict(_marks_of_run(crashes, run, losses))
        effect = effect_of(alone(crash), judgement.problems[0])
        told = lines(alone(crash), effect=effect.n if run == doing and effect is not None else 0, marks=marks)
        ops += (dataclasses.replace(line, run=run) for line in told)
    faults = [_fault_line(alone(crash)) for crash in crashes]
    within = state.within
    pending = within is not None and any(within.run_of(n)[0] < within.depth for n in marks_of(state, losses))
    why, advice = _PENDING if pending else _why(judgement, doing)
    return dataclasses.replace(
        finding,
        place=place_of(state, places),
        ops=tuple(ops),
        crashes=tuple(f"{fault}{_during(run, len(faults))}; then recovery" for run, fault in enumerate(faults[:-1])),
        fault_line=f"{faults[-1]}{_during(len(faults) - 1, len(faults))}",
        profiles=_profiles(crashes, losses),
        why=f"{why_lost(judgement, marks_of(state, losses))} {why}" if is_power(state) else why,
        advice=advice,
    )


def marks_of(state: CrashState, losses: Losses | None) -> dict[int, Mark]:
    """What the last crash took, if it was a power loss; ``losses`` are those of the recorded run."""
    if state.recipe is None:
        return {}
    own = losses if state.within is None else state.within.losses
    return own.marks(state) if own is not None else {}


def _marks_of_run(crashes: list[CrashState], run: int, losses: Losses | None) -> Iterator[tuple[int, Mark]]:
    """What any of the crashes took of the ops of one run, by their numbers there."""
    for crash in crashes[run:]:
        for n, mark in marks_of(crash, losses).items():
            whose, number = (0, n) if crash.within is None else crash.within.run_of(n)
            if whose == run:
                yield number, mark


def _run_of_effect(judgement: Judgement) -> int | None:
    """The run that did the doubled effect last."""
    crashes = enumerate(map(alone, crashes_of(judgement.state)))
    return max((run for run, each in crashes if effect_of(each, judgement.problems[0]) is not None), default=None)


def _fault_line(state: CrashState) -> str:
    if state.fault == "power":
        return "power loss"
    return "killed" if state.cut_bytes is None else f"killed inside op {state.last_op}"


def _during(run: int, crashes: int) -> str:
    return f" during {run_words(run, crashes - 1).removeprefix('the ')}" if run else ""


def _profiles(crashes: list[CrashState], losses: Losses | None) -> tuple[str, ...]:
    """The file systems on which all of these power losses may come about."""
    allowed: list[tuple[str, ...]] = []
    for crash in crashes:
        own = losses if crash.within is None else crash.within.losses
        if crash.recipe is not None and own is not None:
            allowed.append(own.possible(crash))
    return tuple(name for name in allowed[0] if all(name in each for each in allowed)) if allowed else ()


def _why(judgement: Judgement, doing: int | None) -> tuple[str, tuple[str, ...]]:
    kind = judgement.kind
    if path := written_through(judgement.state):
        return TWO_NAMES.why.format(path=path), TWO_NAMES.advice
    if kind == "duplicate-effect":
        return _duplicate(doing)
    if kind in _WHY:
        return _WHY[kind]
    if judgement.problems[0].step in ("second", "third"):
        return (
            "What a recovery that died left behind makes two recoveries after it differ, or spoils the next save.",
            _REPEATABLE,
        )
    if kind in ("lost", "stuck", "silent-reset", "torn", "hole"):
        return "Recovery takes the old state away before the new one is complete; it died in between.", _REPEATABLE
    return _AGAIN, _REPEATABLE


def written_through(state: CrashState) -> str:
    """A name through which a recovery changed a file that the crash before had left under another name too."""
    for crash in crashes_of(state)[1:]:
        recovery = crash.within
        assert recovery is not None, "only the first crash is none of a recovery"
        names = Counter(inode for _, inode, node in recovery.base.walk() if isinstance(node, File))
        for op in alone(crash).trace.ops[: alone(crash).last_op]:
            if isinstance(op, (t.Write, t.Truncate)) and names[op.inode] > 1:
                return place_path(op.path)
    return ""


def _duplicate(doing: int | None) -> tuple[str, tuple[str, ...]]:
    who = "Recovery" if doing else "The first run"
    return (
        f"{who} did the effect and died before anything on disk said so; the next recovery does it again.",
        (
            "Make the pending call durable before the effect, in recovery too. After a crash do not run a pending",
            "call: look it up, or report it unknown. Or give it a key.",
        ),
    )
