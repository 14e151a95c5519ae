"""Effects after a crash: each in the world as often as in the uncrashed run, or honestly unknown.

What was done before the crash counts, whatever the disk lost. An honest unknown excuses one
occurrence of what it speaks of, and, as long as the program does not claim to be finished, what comes
after it: a person must decide first.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.demands import Problem, Reference, told_before, unknowns_of, words
from crashlab.honesty import Honesty, Identity, identity, matches
from crashlab.values import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab.crash.states import CrashState
    from crashlab.observation import Answer
    from crashlab.subject import Policy


class Effects:
    """Judges the effects of one trace."""

    def __init__(self, reference: Reference, policy: Policy, honesty: Honesty) -> None:
        self._reference, self._policy, self._honesty = reference, policy, honesty
        self._order = [op for op in reference.trace.ops if isinstance(op, t.Effect) and op.counted]
        self._identities = {op.n: identity(op) for op in self._order}
        self._expected = Counter(self._identities.values())

    def problems(self, state: CrashState, answer: Answer) -> Iterator[Problem]:
        """Duplicate and missing effects, and unknowns that the files contradict."""
        order, expected = self._order, self._expected
        # A Store takes one more value in later steps: what that does outside is not the recovery's doing.
        judged = answer.steps if self._reference.program else answer.steps[:1]
        before = [(self._identity(op), op) for op in state.effects if op.counted]
        events = (op for step in judged for op in step.events if isinstance(op, t.Effect) and op.counted)
        done = [*before, *((identity(op), op) for op in events)]
        observed = Counter(each for each, _ in done)
        unknowns = [unknown for step in answer.steps for unknown in unknowns_of(step)]
        honest = [unknown for unknown in unknowns if self._honesty.honest(unknown, state)]
        for unknown in unknowns:
            if unknown not in honest:
                yield Problem(
                    kind="needless-unknown", summary=f"{words(unknown)} reported unknown where the files tell"
                )
        for each, count in observed.items():
            if count > expected[each] and self._policy.effects != "at-least-once":
                named = words(next(op for known, op in done if known == each))
                summary = f"{named} done {_times(count)}, expected {expected[each]}"
                yield Problem(
                    kind="duplicate-effect", summary=summary, effect=each[0], expected=("once; or lab.unknown(…)",)
                )
        # Where a recovery died, its report was judged with the state that it met.
        excuses = [*told_before(self._reference, state), *honest]
        yield from self._missing_problems(answer, order, observed, excuses)

    def _identity(self, op: t.Effect) -> Identity:
        """The identity of an effect, looked up where the recorded run did it and no recovery."""
        recorded = self._reference.trace.ops
        return self._identities[op.n] if op.n <= len(recorded) and recorded[op.n - 1] is op else identity(op)

    def _missing_problems(
        self, answer: Answer, order: list[t.Effect], observed: Counter[Identity], honest: list[t.Unknown]
    ) -> Iterator[Problem]:
        first = answer.steps[0]
        demanded = self._reference.program and self._reference.ended and first.how == "returned"
        if self._policy.effects == "at-most-once" or not demanded:
            return
        # With the end of the uncrashed run it claims to be finished: nothing waits for a person.
        finished = canonical((first.value or {}).get("end")) == canonical(self._reference.end)
        unused, waiting = list(honest), False
        left = Counter(observed)
        for op in order:
            waiting = waiting or any(matches(unknown, op) for unknown in honest)
            each = self._identities[op.n]
            if left[each]:
                left[each] -= 1
                continue
            excuse = next((unknown for unknown in unused if matches(unknown, op)), None)
            if excuse is not None:
                unused.remove(excuse)  # one report excuses one occurrence
            elif not waiting or finished:
                count = self._expected[each]
                summary = f"{words(op)} done {_times(observed[each])}, expected {count}"
                expected = (f"{count} in the uncrashed run",)
                yield Problem(kind="missing-effect", summary=summary, effect=op.name, expected=expected)
                return


def _times(count: int) -> str:
    return {0: "0 times", 1: "once", 2: "2 times"}.get(count, f"{count} times")
