"""Reads that fail in the recovery: a failed read is never "nothing there".

The recovery runs on a state of the uncrashed run while its reads fail from the first, the second, … on. It
must say so, or do without what it could not read; then, with the error gone, a fresh process must find all as it was.
A Store or Log is met at its end, a Subject at its end and at a few moments before.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.crash.states import Prefixes, no_such_op
from crashlab.demands import Problem
from crashlab.error_judge import LiveHonesty, Shapes, with_problems
from crashlab.error_points import READ, ErrorPoint, ErrorState, parse
from crashlab.errors import UsageError
from crashlab.judge import Judge
from crashlab.observation import readable
from crashlab.report.model import UnmeasuredReason
from crashlab.thinning import thinned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashlab.demands import Reference
    from crashlab.judge import Judgement
    from crashlab.observation import Answer, Step
    from crashlab.recover.host import Host
    from crashlab.settings import Asked

MOMENTS = 6
"""At so many moments of a Subject its recovery meets failing reads."""

FAILING = "failing"
"""The name of the step whose reads fail."""


class ReadTrial:
    """The failing reads of one trace; afterwards ``runs``, ``unmeasured`` and ``notes`` tell."""

    def __init__(self, host: Host, asked: Asked, reference: Reference) -> None:
        self._host, self._asked, self._reference = host, asked, reference
        self._timeout_s = float(host.description["timeout_s"])
        self._policy, self._shapes = asked.policy_of("error"), Shapes(reference.trace)
        self._prefixes = Prefixes(reference.trace)
        self.runs = 0
        self.unmeasured: list[UnmeasuredReason] = []
        self._passed_over = 0

    def judge(
        self, progress: Callable[[int, int], None], is_used_up: Callable[[int, int], bool]
    ) -> Iterator[tuple[Judgement, Answer]]:
        """Fail each read of the recovery at each moment that is looked at, and judge, as long as the budget lasts."""
        states = self._states()
        flying = {str(number): state for number, state in enumerate(states)}
        left = takewhile(lambda name: not is_used_up(int(name), len(states)), flying)
        for raw in self._host.recover(self._request(name, flying[name]) for name in left):
            self.runs += 1
            progress(self.runs, len(states))
            state, answer = flying[raw.state], readable(raw, self._reference.trace.root)
            yield self._judged(state, answer), answer

    @property
    def notes(self) -> list[str]:
        """What was left out, and why."""
        if not self._passed_over:
            return []
        moments = f"{self._passed_over} moment{'' if self._passed_over == 1 else 's'}"
        return [f"error: at {moments} no read was made to fail, since the program fails there when it is just killed."]

    def _states(self) -> list[ErrorState]:
        if self._asked.only is not None:
            return [self._one(self._asked.only)]
        counts = self._counts(self._moments())
        if not any(counts.values()) and not self._reference.program:
            text = "no read of the recovery was seen, so none could fail: something else than Python reads."
            advice = "This version fails reads of Python code only: leave out error:EIO-read."
            self.unmeasured.append(UnmeasuredReason(code="checker-failed", detail=text, next=advice))
        reads = [(done, n) for done in sorted(counts) for n in range(1, counts[done] + 1)]
        some = thinned(reads, lambda read: read[0], every=self._asked.every, seed=self._asked.seed)
        return [self._state(done, n) for done, n in some]

    def _one(self, state_id: str) -> ErrorState:
        asking = parse(state_id)
        done = self._last if asking.base is None else asking.base
        if done > self._last:
            raise no_such_op(self._reference.trace, state_id, done)
        (count,) = self._counts([done]).values()
        if not 1 <= asking.n <= count:
            text = f"no read {asking.n} in this recovery ({count} reads, from 1 on): {state_id} is of another program"
            raise UsageError(text)
        return self._state(done, asking.n)

    def _counts(self, moments: list[int]) -> dict[int, int]:
        """How often recovery reads at each moment."""
        dones = {str(done): done for done in moments}
        answers = self._host.recover(self._dry(name, done) for name, done in dones.items())
        return {
            dones[raw.state]: int((raw.steps[0].value or {}).get("reads", 0))
            for raw in answers
            if not self._fails_anyway(dones[raw.state], raw)
        }

    def _fails_anyway(self, done: int, raw: Answer) -> bool:
        """Whether a program killed at that moment breaks a promise with no read failing: that is no fault of reads."""
        if done == self._last or self._asked.only is not None:
            return False
        state, answer = self._state(done, 1), readable(raw, self._reference.trace.root)
        alone = replace(answer, steps=(replace(answer.steps[0], step="first"),))
        self._passed_over += (fails := self._judge().judge(state, alone).verdict == "violation")
        return fails

    @property
    def _last(self) -> int:
        return len(self._reference.trace.ops)

    def _moments(self) -> list[int]:
        if not self._reference.program:
            return [self._last]
        told = [op.n for op in self._reference.trace.ops if isinstance(op, (t.Ack, t.SavePoint, t.Effect))]
        told = told or [op.n for op in self._reference.trace.ops if isinstance(op, t.FileOp)]
        return sorted({*told[:: max(1, -(-len(told) // (MOMENTS - 1)))], self._last})

    def _state(self, done: int, n: int) -> ErrorState:
        name = f"error@r{n}:{READ}"
        return ErrorState(
            id=name if done == self._last else f"kill@{done}/{name}",
            fault="error",
            trace=self._reference.trace,
            tree=self._prefixes.tree(done),
            done=done,
            point=ErrorPoint(n=done, variant=READ, kind="read"),
            read=n,
        )

    def _dry(self, name: str, done: int) -> dict[str, Any]:
        form = {"step": FAILING, "nothing": self._reference.nothing.get("error"), "reads": 0}
        return self._addressed(name, done, [form])

    def _request(self, name: str, state: ErrorState) -> dict[str, Any]:
        steps = ["first", "second"] if self._reference.program else ["first", "second", "third"]
        nothing = self._reference.nothing.get("error")
        failing = {"step": FAILING, "nothing": nothing, "reads": state.read, "go_on": True}
        return self._addressed(name, state.done, [failing, *({"step": each, "nothing": nothing} for each in steps)])

    def _addressed(self, name: str, done: int, steps: list[dict[str, Any]]) -> dict[str, Any]:
        tree = self._prefixes.tree(done).to_json()
        return {"state": name, "tree": tree, "done": done, "steps": steps, "timeout_s": self._timeout_s}

    # --- judging -------------------------------------------------------------------------------

    def _judge(self, *, lenient: bool = False) -> Judge:
        honesty = LiveHonesty(self._reference.trace, self._shapes, lenient=lenient)
        return Judge(self._reference, self._policy, honesty)

    def _judged(self, state: ErrorState, answer: Answer) -> Judgement:
        failing, *rest = answer.steps
        for step in answer.steps:
            if step.error.startswith("UsageError: "):
                text = f"{step.error.removeprefix('UsageError: ')} (at {state.id})"
                raise UsageError(text)
        if failing.how == "returned" and not (failing.value or {}).get("failed"):
            text = f"{state.id}: the recovery came to no such read this time."
            advice = "A recovery must read the same each time: give the program fixed seeds."
            self.unmeasured.append(UnmeasuredReason(code="runs-differ", detail=text, next=advice))
        # What it did outside while its reads failed was done: it counts with what is done afterwards.
        first = replace(rest[0], events=(*failing.events, *rest[0].events))
        went_on = bool(failing.destroyed or failing.aside or failing.events)
        judgement = self._judge(lenient=went_on).judge(state, replace(answer, steps=(first, *rest[1:])))
        return with_problems(judgement, self._failing_problems(state, failing, answer))

    def _failing_problems(self, state: ErrorState, failing: Step, answer: Answer) -> Iterator[Problem]:
        value = failing.value or {}
        if failing.how == "hang":
            yield Problem(kind="hang", summary="recovery whose reads failed did not end", step=FAILING)
        elif failing.how == "returned" and (value.get("nothing") or self._says_nothing(state, value)):
            text = f"read {state.read} failed with EIO; load() took that for nothing there"
            yield Problem(kind="silent-reset", summary=text, step=FAILING, expected=("an exception",))
        elif failing.how == "returned":
            alone = self._judge().judge(state, replace(answer, steps=(replace(failing, step="first"),)))
            for problem in alone.problems:
                text = f"read {state.read} failed with EIO; {problem.summary}"
                yield replace(problem, summary=text, step=FAILING)

    def _says_nothing(self, state: ErrorState, value: dict[str, Any]) -> bool:
        acked = not self._reference.program and self._reference.acked(state.done)
        return bool(acked) and self._reference.nothing == {"value": value["value"]} and self._last_is_something(state)

    def _last_is_something(self, state: ErrorState) -> bool:
        calls = self._reference.calls(state.done)
        wanted = [event for batch in calls for event in batch] if self._reference.kind == "Log" else calls[-1]
        return self._reference.nothing != {"value": wanted}
