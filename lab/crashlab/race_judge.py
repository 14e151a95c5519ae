"""The oracle of a race: one owner stays out, or the other is refused aloud; effects once; nobody's value is spoiled.

What both left is recovered by a third, fresh process and judged as after a kill. This module adds what two owners
change in that:

* A Store must give one owner's whole value, by :mod:`crashlab.race_history` one that may be the last; a Log every
  acked event of both. What the second owner loads on entering is held against the same rule.
* An owner may be refused, by an error of its own, where it is one: a Subject, a Store or Log with ``open``, or one
  under ``Policy(refuse=True)``. A bare ``save`` and ``load`` have no owner to refuse: an error of theirs is wrong.
* Where both are refused nobody goes on: that is ``stuck``.
* ``stale-write``: the older owner changed something after the newer one had taken over, and something broke by it.
  For a Subject: the files were right when the second owner had ended, and are wrong when the first has. For a Store
  or Log with declared owners, ``Policy(refuse=True)``: a call of the older owner that began after an ack of the newer
  one was acked. A call that was under way is excused: that no lease protects between its check and the change is its
  stated limit.

Two owners of a Subject that both come to the right end, with each effect done once, broke nothing: a note counts them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.demands import Problem
from crashlab.judge import Judge, Judgement
from crashlab.kinds import gravity
from crashlab.live.race import FIRST, SECOND
from crashlab.observation import Answer, Step
from crashlab.race_history import History
from crashlab.values import canonical, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab.crash.states import CrashState
    from crashlab.demands import Reference
    from crashlab.honesty import Honesty
    from crashlab.race_points import OwnerEnd, Race, RaceState
    from crashlab.subject import Policy

OWNERS = "owners"
STEPS = {FIRST: "first-owner", SECOND: "second-owner"}
"""What an owner did, beside the steps of the recovery."""
NAMES = {FIRST: "the first owner", SECOND: "the second owner"}
SPOILED = ("diverged", "stuck", "lost", "torn", "hole", "silent-reset")
"""Kinds of what a third process finds wrong: they may be the doing of a stale writer."""


class RaceJudge(Judge):
    """Judges what a third process finds after two owners; :meth:`ruling` adds what the two did themselves.

    ``opens``, ``keyed`` and ``ends`` are of the subject: whether it has an ``open``, whether its events have keys,
    whether the lab itself kills its run at an ack.
    """

    def __init__(  # noqa: PLR0913 - all but three by keyword
        self, reference: Reference, policy: Policy, honesty: Honesty, *, opens: bool, keyed: bool, ends: bool
    ) -> None:
        # The third process is alone: no refusal of an owner allows it to refuse.
        super().__init__(reference, dataclasses.replace(policy, refuse=False), honesty)
        self._opens, self._keyed, self._ends = opens, keyed, ends
        self._declared = bool(policy.refuse)
        self._history = History(())

    def ruling(self, state: RaceState, answer: Answer) -> Judgement:
        """The verdict on what the third process found, and on both owners."""
        race = state.race
        self._history = History(race.record)
        told = [op for line in race.record if "op" in line and isinstance(op := t.op_from_json(line["op"]), t.Unknown)]
        own = Step(step=OWNERS, how="returned", events=tuple(told))
        judgement = self.judge(state, dataclasses.replace(answer, steps=(*answer.steps, own)))
        if judgement.verdict == "unmeasured":
            return judgement
        more = [*self._owner_problems(race), *self._stale(race)]
        problems = sorted([*more, *judgement.problems], key=lambda problem: gravity(problem.kind))
        if problems:
            return Judgement(state=state, verdict="violation", problems=tuple(problems))
        refused = any(owner is not None and owner.said for owner in (race.first, race.second))
        return Judgement(state=state, verdict="refused" if refused else "consistent")

    # --- the two owners --------------------------------------------------------------------------

    @property
    def _may_refuse(self) -> bool:
        return self._reference.program or self._opens or self._declared

    def _owner_problems(self, race: Race) -> Iterator[Problem]:
        owners = [owner for owner in (race.first, race.second) if owner is not None]
        for owner in owners:
            yield from self._one_owner(owner)
        refused = [owner for owner in owners if owner.said]
        if self._may_refuse and len(refused) == len(owners) > 1:
            said = "; ".join(f"{NAMES[owner.who]} raised {owner.said}" for owner in refused)
            expected = ("one of the two goes on",)
            yield Problem(
                kind="stuck", summary=f"both owners were refused: {said}", step=STEPS[SECOND], expected=expected
            )
        elif not self._may_refuse:
            for owner in refused:
                yield self._error_problem(owner)
        if race.second is not None:
            yield from self._loaded_problems(race.second)

    def _one_owner(self, owner: OwnerEnd) -> Iterator[Problem]:
        name = NAMES[owner.who]
        if owner.left:
            text = f"{name} left {len(owner.left)} processes running: {', '.join(owner.left[:3])}"
            yield Problem(kind="left-process", summary=text, step=STEPS[owner.who])
        if owner.how == "hang":
            yield Problem(
                kind="hang", summary=f"{name} did not end, though nothing held it back", step=STEPS[owner.who]
            )
        elif owner.how == "returned":
            yield from self._returned(owner)
        elif not owner.said and not self._is_killed(owner):
            ended = "died by a signal" if owner.how == "signal" else f"ended without a word. {owner.error}"
            expected = ("an error that says who else is there",)
            yield Problem(kind="stuck", summary=f"{name} {ended}".strip(), step=STEPS[owner.who], expected=expected)

    def _is_killed(self, owner: OwnerEnd) -> bool:
        """By the other owner, or by the lab at an ack: neither is the program's own failing."""
        return owner.killed or (self._ends and owner.who == FIRST and owner.how == "signal")

    def _returned(self, owner: OwnerEnd) -> Iterator[Problem]:
        """An owner that says it is done, with another end than that of the uncrashed run."""
        reference = self._reference
        if not reference.program or reference.has_check or not reference.ended or self._waits_for_a_person():
            return
        end = (owner.value or {}).get("end")
        if canonical(end) != canonical(reference.end):
            summary = f"{NAMES[owner.who]} returned {shown(end)}, the uncrashed run {shown(reference.end)}"
            expected = ("raise, or the uncrashed end",)
            yield Problem(kind="diverged", summary=summary, step=STEPS[owner.who], expected=expected)

    def _waits_for_a_person(self) -> bool:
        return bool(self._unknowns)

    def _error_problem(self, owner: OwnerEnd) -> Problem:
        kind = "lost" if owner.what == "load" and self._history.any_acked(self._history.loading[0]) else "stuck"
        summary = f"{owner.what or 'it'}() of {NAMES[owner.who]} raised {owner.said} because of the other one"
        return Problem(
            kind=kind, summary=summary, step=STEPS[owner.who], expected=("one owner's whole value, and no error",)
        )

    def _loaded_problems(self, second: OwnerEnd) -> Iterator[Problem]:
        """What the second owner loaded on entering."""
        loaded = (second.value or {}).get("loaded")
        if loaded is not None:
            problem = self._value_problem(loaded, *self._history.loading)
            if problem is not None:
                summary = f"on entering, the second owner's {problem.summary}"
                yield dataclasses.replace(problem, summary=summary, step=STEPS[SECOND])

    def _stale(self, race: Race) -> Iterator[Problem]:
        if not self._declared or self._reference.program or race.second is None:
            return
        call = self._history.stale(opens=self._opens)
        if call is not None:
            name = "append" if self._reference.kind == "Log" else "save"
            summary = f"{name}({shown(call.value)}) of the first owner was acked, after the second one had taken over"
            expected = ("a loud refusal, as from a lease that was lost",)
            yield Problem(kind="stale-write", summary=summary, step=STEPS[FIRST], expected=expected)

    # --- what the third process found ----------------------------------------------------------

    def _problems(self, state: CrashState, answer: Answer) -> Iterator[Problem]:
        self._unknowns = [op for step in answer.steps for op in step.events if isinstance(op, t.Unknown)]
        yield from super()._problems(state, answer)

    def _end_problems(self, state: CrashState, step: Step) -> Iterator[Problem]:
        failed = (step.value or {}).get("check")
        if failed is not None or not self._waits_for_a_person():
            yield from super()._end_problems(state, step)

    def _refusals(self, state: CrashState, step: Step) -> Iterator[Problem]:
        if self._reference.program:
            yield from super()._refusals(state, step)
        elif step.how != "hang":
            said = f"raised {step.error}" if step.how == "raised" else f"ended by {step.how}"
            kind = "lost" if self._history.any_acked() else "stuck"
            yield Problem(kind=kind, summary=f"after both, load() {said}", expected=("one owner's whole value",))

    def _value_problems(self, _state: CrashState, step: Step) -> Iterator[Problem]:
        problem = self._value_problem(step.value or {})
        if problem is not None:
            yield problem

    def _value_problem(
        self, value: dict[str, Any], start: float = float("inf"), end: float = float("inf")
    ) -> Problem | None:
        if self._reference.kind == "Log":
            return self._log_problem(value, end)
        history = self._history
        nothing = value.get("nothing", False) or self._reference.nothing == {"value": value["value"]}
        found, allowed = canonical(value["value"]), history.allowed(start, end)
        if found in allowed and not value.get("nothing"):
            return None
        if nothing and not history.any_acked(start):
            return None
        if self._policy.acked == "prefix" and (nothing or found in history.known()):
            return None
        if "raised" in value:
            kind, said = "lost", f"raised {value['raised']}"
        elif nothing:
            kind, said = "lost", "returned nothing there"
        else:
            kind, said = "lost" if found in history.known() else "torn", f"returned {shown(value['value'])}"
        expected = tuple(shown(call.value) for call in history.calls if canonical(call.value) in allowed)[-3:]
        promised = history.promised()
        lead = f"{shown(promised[-1].value)} was acked last; " if promised and start == float("inf") else ""
        return Problem(kind=kind, summary=f"{lead}load() {said}", expected=expected)

    def _log_problem(self, value: dict[str, Any], until: float) -> Problem | None:
        wrong = self._history.log_problem(
            value["value"] or [], keyed=self._keyed, atomic=self._reference.atomic, until=until
        )
        if wrong is None:
            return None
        kind, words = wrong
        return Problem(kind=kind, summary=f"load(): {words}", expected=("every acked event of both owners, each once",))


def owner_steps(race: Race) -> tuple[Step, ...]:
    """What each owner did, as steps to show."""
    return tuple(_step(owner) for owner in (race.first, race.second) if owner is not None)


def _step(owner: OwnerEnd) -> Step:
    how: Any = "raised" if owner.said else owner.how
    return Step(
        step=STEPS[owner.who],
        how=how,
        value=None if owner.value is None else dict(owner.value),
        error=owner.said or owner.error,
        traceback=owner.traceback,
        stdout=owner.stdout,
        stderr=owner.stderr,
        left=owner.left,
    )
