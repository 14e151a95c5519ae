"""Findings of races in words: who ran when, why two owners break it, and what mends it.

Nothing here judges. Sources of the advice: open(2), rename(2), flock(2), and Kleppmann, "How to do distributed
locking" (2016), for the fence.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash.states import CrashState
from crashlab.demands import words
from crashlab.explain import Explanation
from crashlab.live.race import FIRST, SECOND
from crashlab.race_points import stretches

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.crash.places import Places
    from crashlab.judge import Judgement
    from crashlab.race_points import Race, RaceState
    from crashlab.report import model

    Lines = Callable[..., tuple[model.OpLine, ...]]

_OP = re.compile(r"\bop (\d+)\b")

_LEASE = (
    "Take an OS lock before reading anything and hold it for life (a kill frees it); raise an epoch when opening,",
    "read it again before each save, and raise where it has changed.",
)
_EFFECT = Explanation(
    "Both owners live and both do the work: nothing keeps the second one out, and nothing tells the first one.",
    (*_LEASE, "Give the effect a key as well: a fence stops the writer, a key stops the repetition."),
)
_STALE = Explanation(
    "The first owner does not ask whether it is still the owner, and writes over what the second one has done.",
    _LEASE,
)
_ONE_NAME = Explanation(
    "Both owners write one temporary file of one name: each empties, fills or renames the other one's.",
    (
        "Give each temporary file a name of its own (tempfile.mkstemp in the same directory, or O_EXCL with a random",
        "part): then the last rename wins, and each value stays whole.",
    ),
)
_IN_PLACE = Explanation(
    "A file is changed in place while another owner reads or writes it.",
    (
        "Write a temporary file with a name of its own, fsync it, rename it over the old one; a log: one write of the",
        "whole record to a file opened with O_APPEND. Or hold an OS lock from before reading until after writing.",
    ),
)
_UPDATE = Explanation(
    "One owner decides by what it has read before the other one wrote, and so undoes a change that was promised.",
    (
        "Hold an OS lock (flock) from before reading until after writing, or compare a version when writing and raise",
        "where it has changed. A log: open with O_APPEND, and never write at an offset that was worked out earlier.",
    ),
)
_BOTH_OUT = Explanation(
    "Each owner spoils what the other one needs, and both give up: nobody finishes the work.",
    ("Decide who owns before changing anything: the one that is refused must have changed nothing yet.",),
)
_HANG = Explanation(
    "An owner waits for something that the other one never gives back, though that one has ended.",
    ("Use an OS lock, which ends with its process, or look whether the owner in a lock file still lives.",),
)
_LEFT = Explanation("An owner left a process running.", ("End children before returning.",))
_OTHERWISE = Explanation(
    "With a second owner the run goes another way than alone.",
    ("Refuse with an error where somebody else is at work; a value says to the caller that all is well.",),
)
_BY_KIND = {
    "duplicate-effect": _EFFECT,
    "stale-write": _STALE,
    "hang": _HANG,
    "left-process": _LEFT,
    "diverged": _OTHERWISE,
    "lost": _UPDATE,
    "hole": _UPDATE,
    "duplicate-entry": _UPDATE,
}


def explain_race(judgement: Judgement, state: RaceState) -> Explanation:
    """Cause and advice for a violation with two owners."""
    kind, race = judgement.kind, state.race
    if kind in ("duplicate-effect", "stale-write", "hang", "left-process"):
        return _BY_KIND[kind]
    if _shares_a_temporary(race):
        return _ONE_NAME
    if kind == "stuck" and judgement.problems[0].summary.startswith("both owners"):
        return _BOTH_OUT
    if kind in ("torn", "stuck") or (kind == "lost" and "raised" in judgement.problems[0].summary):
        return _IN_PLACE
    return _BY_KIND.get(kind, _OTHERWISE)


def _shares_a_temporary(race: Race) -> bool:
    """Whether both wrote under one name that a rename then takes away."""
    written: dict[str, set[str]] = {FIRST: set(), SECOND: set()}
    renamed: set[str] = set()
    for who, op in zip(race.owners, race.trace.ops, strict=True):
        if isinstance(op, (t.Create, t.Write, t.Truncate)):
            written[who].add(op.path)
        elif isinstance(op, t.Rename):
            renamed.add(op.path)
    return bool(written[FIRST] & written[SECOND] & renamed)


def race_place(places: Places, state: RaceState) -> str:
    """Where in the uncrashed run the second owner entered."""
    return places.after(state.race.point.after)


def race_size(state: RaceState) -> tuple[int, int]:
    """What makes a case small: few switches, an early entry."""
    return state.race.point.after + 1_000_000 * bool(state.race.point.switch), state.race.point.switch


def race_line(state: RaceState) -> str:
    """What stands below the ops."""
    return "both have ended; a third process recovers" if state.race.second is not None else "the run has ended"


def retold(finding: model.Finding, state: RaceState, lines: Lines) -> model.Finding:
    """The finding with the ops of both owners, stretch by stretch, each with the number that its owner gave it."""
    race = state.race
    told: list[model.OpLine] = []
    numbers = _own_numbers(race)
    for run, (_, start, end) in enumerate(stretches(race)):
        segment = tuple(dataclasses.replace(op, n=number) for number, op in enumerate(race.trace.ops[start:end], 1))
        trace = dataclasses.replace(race.trace, ops=segment)
        alone = CrashState(id=state.id, fault="race", trace=trace, tree=state.tree, done=len(segment))
        # Where both ran at once each line says whose it is; else the line above the stretch does.
        both = len(set(race.owners[start:end])) > 1
        for line in lines(alone):
            thread = line.thread if both else 0
            told.append(dataclasses.replace(line, n=numbers[start + line.n - 1], run=run, thread=thread))
    effects = dataclasses.replace(finding.effects, observed=_observed(finding, race))
    named = [f"op {number} of the {who} owner" for number, who in zip(numbers, race.owners, strict=True)]
    disk = tuple(
        dataclasses.replace(line, state=_OP.sub(lambda found: named[int(found[1]) - 1], line.state))
        for line in finding.disk
    )
    crashes = tuple(_crossings(race))
    return dataclasses.replace(finding, ops=tuple(told), crashes=crashes, effects=effects, disk=disk)


def _own_numbers(race: Race) -> list[int]:
    """Each op's number among those of its owner."""
    made = {FIRST: 0, SECOND: 0}
    numbers = []
    for who in race.owners:
        made[who] += 1
        numbers.append(made[who])
    return numbers


def _observed(finding: model.Finding, race: Race) -> tuple[str, ...]:
    """Who did which effect."""
    done = [
        f"{who} owner: {words(op)}"
        for who, op in zip(race.owners, race.trace.ops, strict=True)
        if isinstance(op, t.Effect) and op.counted
    ]
    later = finding.effects.observed[len(done) :]
    return (*done, *later)


def _crossings(race: Race) -> list[str]:
    """What stands between the stretches."""
    told = ["the first owner stands still; a second one enters"]
    if race.waited == SECOND:
        return [*told, "the second owner waits; the first one goes on", "the second one goes on"]
    if race.point.switch:
        told.append("the second owner stands still; the first one goes on")
        told.append(f"the first owner {'waits' if race.waited else 'has ended'}; the second goes on")
        return [*told, "the first one goes on"] if race.waited else told
    return [*told, "the second owner has ended; the first one goes on"]
