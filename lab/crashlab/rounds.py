"""All crash states of one fault, each distinct one recovered and judged once.

A recovery has steps: a ``Store`` or ``Log`` recovers; recovers again and takes one more value; finds that
value. A ``Subject`` resumes twice. Each step belongs into a process of its own, which costs more than the step
itself. So one process takes the steps of many states, as long as they return or raise and leave no trace in it
(:mod:`crashlab.recover.warm`); a state whose verdict is not consistent then is recovered again in processes
of its own before it counts, a refusal too, although it may be allowed, and so are the first states and every so many
of the others, to be compared. Where one differs, something stays in memory: all states are judged by processes of
their own then, and the report says so.

A state that came out consistent under an earlier fault with the same demands is not recovered again:
equal trees with equal effects and acks cannot be told apart.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from crashlab.asking import request
from crashlab.crash.damages import Damages
from crashlab.crash.losses import Losses
from crashlab.crash.nested import first_of
from crashlab.demands import mend_check, tells_unknown
from crashlab.errors import UsageError
from crashlab.judge import Judge
from crashlab.observation import readable, same, unfolded
from crashlab.recover.host import ISOLATED, WARM
from crashlab.report import model
from crashlab.subject import Commands

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from crashlab.crash.sources import Source
    from crashlab.crash.states import CrashState
    from crashlab.damage_twins import Twins
    from crashlab.demands import Reference
    from crashlab.faults import FaultRequest
    from crashlab.honesty import Honesty
    from crashlab.judge import Judgement
    from crashlab.observation import Answer
    from crashlab.recover.host import Host
    from crashlab.settings import Asked

USAGE = "UsageError: "
BELIEVED = ("consistent",)
"""Verdicts that stand without a process of their own. A state may be refused for what another has left in memory."""
COMPARED_FIRST, COMPARED_EVERY = 8, 32
"""The first so many states, and of the others one in so many, by digest, are recovered both ways and compared."""

MOMENTS_IN_DEPTH, FAILING_IN_PASSING, MOMENTS_AT_ALL = 8, 2, 32
"""After the failing states of so many full moments, so many are enough at each further one; then none."""


HANGS_AT_MOST = 3
"""After so many recoveries that did not end the other states are left out: each would take its whole time limit."""


TRIED_FOR_SMALLER = 40
"""So many states are recovered more, to show a fault at an earlier moment than it was first met."""


class Spot(NamedTuple):
    """Where a state stands in the trace of the run, for the crash matrix: of a crash of a recovery, its first crash."""

    digest: str
    fault: str
    done: int
    cut: bool


class Round:
    """One fault on one trace. ``judged`` maps the digest of each state to its verdict and kind, ``failing``
    the digest of each recipe of a power loss to whether it is a violation; ``left_out`` counts states that
    were not tried since enough had failed at their moment.

    ``consistent`` are digests of states that came out consistent under another fault with the same
    demands: they are not recovered again.
    """

    def __init__(  # noqa: PLR0913 - the parts of one stage, each once
        self,
        host: Host,
        asked: Asked,
        reference: Reference,
        fault: FaultRequest,
        *,
        source: Source,
        honesty: Honesty,
        consistent: Collection[str] = (),
        twins: Twins | None = None,
    ) -> None:
        self._host, self._asked, self._reference, self._fault = host, asked, reference, fault
        self._source, self._consistent = source, consistent
        self._trace = reference.trace
        self._timeout_s = float(host.description["timeout_s"])
        self._judge = Judge(reference, asked.policy_of(fault.name), honesty, said=twins.said if twins else None)
        self._started = time.monotonic()
        self._points = self._inside = self._unasked = self._known = self._undetectable = self._redone = 0
        self._unknown: set[str] = set()
        self.left_out = 0
        self._failed: Counter[int] = Counter()
        self._first: tuple[int, float] | None = None
        self._distinct: set[str] = set()
        self._flying: dict[str, CrashState] = {}
        self._cut_short = ""
        self._unbelieved = self._warm = self._standing = self._hangs = 0
        self._doubtful: list[tuple[CrashState, str]] = []
        self._asked_again: dict[str, str] = {}
        self._shared: dict[str, bool] = {}
        self.judged: dict[str, tuple[str, str]] = {}
        self.failing: dict[int, bool] = {}
        self.spots: list[Spot] = []
        self.unmeasured: list[model.UnmeasuredReason] = []
        self.notes: list[str] = []

    @property
    def fault(self) -> str:
        """The name of the fault."""
        return self._fault.name

    def states(self) -> Iterator[CrashState]:
        """Every state of this fault, equal ones included; the one asked for with ``only``."""
        return self._source.states() if self._asked.only is None else iter([self._source.one(self._asked.only)])

    def judge(self, progress: Callable[[int, int], None]) -> Iterator[tuple[Judgement, Answer]]:
        """Recover and judge every distinct state, as long as the budget lasts."""
        total = 1 if self._asked.only is not None else self._source.count(self._asked.budget.states)
        for done, raw in enumerate(self._host.recover(self._requests()), start=1):
            judgement, answer = self._judged(raw)
            self._believe(judgement, raw)
            if judgement.verdict == "violation":
                self._first = self._first or (done, round(time.monotonic() - self._started, 3))
                self._failed[judgement.state.done] += self._fault.name == "power"
            self._shared[judgement.state.digest] = raw.shared
            if raw.compared and not self._agrees(raw, judgement):
                self._distrust(raw.state)
            if judgement.verdict not in BELIEVED and (raw.shared or _resumed_twice(raw)):
                self._doubtful.append((judgement.state, judgement.verdict))
            else:
                yield self._settled(judgement, answer), answer
            progress(done, total)
        said = {state.id: verdict for state, verdict in self._doubtful}
        rest, self._doubtful = self._doubtful, []
        for raw in self._host.recover(self._request(state, together=False) for state, _ in rest):
            judgement, answer = self._judged(raw)
            if judgement.verdict != said[raw.state]:
                self._distrust(raw.state)
            self._shared[judgement.state.digest] = False
            yield self._settled(judgement, answer), answer
        for raw in self._host.recover(self._request(state, together=False) for state in self._judged_together()):
            judgement, answer = self._judged(raw)
            yield self._settled(judgement, answer), answer
        self._look_for_gaps(total)

    def _believe(self, judgement: Judgement, raw: Answer) -> None:
        """Count what stands against the subject already, from processes of its own; hangs are that expensive."""
        state = judgement.state
        said = self._asked_again.pop(state.digest, "")
        if said not in ("", judgement.verdict):
            self._distrust(raw.state)
        self._unbelieved += not said and judgement.verdict not in BELIEVED
        if not raw.shared and not _resumed_twice(raw):
            self._standing += judgement.verdict == "violation"
            self._hangs += judgement.kind == "hang"

    @property
    def _is_lost(self) -> bool:
        """Whether enough stands against the subject under this fault."""
        limit = self._asked.budget.lost
        return self._hangs >= HANGS_AT_MOST or (limit is not None and self._standing >= limit)

    def again(self, state: CrashState, answer: Answer) -> Judgement:
        """The judgement on an answer, had it come from this state."""
        return self._judge.judge(state, answer)

    def fails(self, state: CrashState) -> bool:
        """Whether one more state is a violation, in processes of its own; it is counted nowhere."""
        request = self._request(state, together=False)
        return any(self._judged(raw)[0].verdict == "violation" for raw in self._host.recover(iter([request])))

    def smaller(self, than: CrashState, kind: str, losses: Losses) -> Iterator[tuple[Judgement, Answer]]:
        """A violation of the same kind at an earlier moment, if one is among the first that were not tried."""
        tried = 0
        for state in losses.simplest():
            if state.done >= than.done or tried >= TRIED_FOR_SMALLER:
                return
            if state.digest in self._distinct:
                continue
            tried += 1
            request = self._request(state, together=False)
            for raw in self._host.recover(iter([request])):
                judgement, answer = self._judged(raw)
                if judgement.verdict == "violation" and judgement.kind == kind:
                    yield judgement, answer
                    return

    def _judged_together(self) -> Iterator[CrashState]:
        """Where one process cannot be trusted with many states: those that have had no other yet."""
        for state in self.states() if self._host.mode != WARM else ():
            if self._shared.pop(state.digest, False):
                yield state

    def _request(self, state: CrashState, *, together: bool) -> dict[str, Any]:
        self._flying[state.id] = state
        asked = request(state, self._reference, timeout_s=self._timeout_s, together=together)
        if "warm" in asked:
            self._warm += 1
            asked["compared"] = self._warm <= COMPARED_FIRST or int(state.digest[:8], 16) % COMPARED_EVERY == 0
        return asked

    def _agrees(self, raw: Answer, judgement: Judgement) -> bool:
        """Whether the process that many states share saw the same, and would have been judged the same."""
        shared = self._judge.judge(judgement.state, dataclasses.replace(raw, steps=raw.compared))
        saw_same = raw.left_same and same(raw.steps, raw.compared)
        return saw_same and (shared.verdict, shared.kind) == (judgement.verdict, judgement.kind)

    def _distrust(self, state_id: str) -> None:
        """From now on, under every fault, and for all states so far: processes of their own.

        A command is always a new process: what it does otherwise the second time lies in its files, or in chance.
        """
        if self._host.mode == WARM and self._reference.kind != Commands.kind:
            self._host.mode = ISOLATED
            self.notes.append(
                f"recovered in a process that had recovered before, {state_id} comes out otherwise than in a new one: "
                "something stays in memory. So every state was judged by processes of its own."
            )

    def _judged(self, raw: Answer) -> tuple[Judgement, Answer]:
        answer = readable(unfolded(raw), self._trace.root)
        for step in answer.steps:
            if step.error.startswith(USAGE):
                text = f"{step.error.removeprefix(USAGE)} (at {raw.state})"
                raise UsageError(text)
        judgement = self._judge.judge(self._flying.pop(raw.state), answer)
        if judgement.verdict == "unmeasured":
            self._check_failed(answer)
        return judgement, answer

    def _check_failed(self, answer: Answer) -> None:
        errors = [step.value["check_error"] for step in answer.steps if step.value and "check_error" in step.value]
        if errors and not any(reason.code == "checker-failed" for reason in self.unmeasured):
            text = f"check itself failed at {answer.state}: {errors[0]}"
            self._doubt("checker-failed", text, mend_check(self._reference))

    def _settled(self, judgement: Judgement, answer: Answer) -> Judgement:
        if judgement.verdict == "consistent" and tells_unknown(answer):
            self._unasked += not self._reference.has_check
            self._unknown.add(judgement.state.digest)
        self._undetectable += judgement.undetectable
        self._redone += judgement.redone
        self.judged[judgement.state.digest] = judgement.verdict, judgement.kind
        self._remember(judgement.state, failed=judgement.verdict == "violation")
        return judgement

    def _remember(self, state: CrashState, *, failed: bool) -> None:
        if state.recipe is not None:
            self.failing[state.recipe.digest] = failed

    def _requests(self) -> Iterator[dict[str, Any]]:
        """One request per distinct state, as long as the budget lasts."""
        for state in self.states():
            self._points += state.cut_bytes is None
            self.spots.append(Spot(state.digest, state.fault, first_of(state).done, state.cut_bytes is not None))
            if state.digest in self._distinct:
                continue
            if self._is_used_up():
                return
            if self._is_enough(state.done):
                self.left_out += 1
                continue
            while self._asked.budget.lost is not None and self._doubtful:
                doubtful, said = self._doubtful.pop(0)
                self._asked_again[doubtful.digest] = said
                yield self._request(doubtful, together=False)
            if self._is_lost:
                self.left_out += 1
                continue
            self._distinct.add(state.digest)
            self._inside += state.cut_bytes is not None
            if state.digest in self._consistent:
                self._known += 1
                self.judged[state.digest] = "consistent", ""
                self._remember(state, failed=False)
            else:
                yield self._request(state, together=self._is_shared)

    def _is_used_up(self) -> bool:
        budget = self._asked.budget
        if len(self._distinct) >= budget.states:
            self._cut_short = f"the budget of {budget.states} states is used up"
        elif time.monotonic() - self._started > budget.time_s:
            self._cut_short = f"the budget of {budget.time_s:g} s is used up"
        return bool(self._cut_short)

    @property
    def _is_shared(self) -> bool:
        """Whether one process takes many states; a process of its own, where most fail and need it anyway."""
        return self._reference.kind == Commands.kind or (self._host.mode == WARM and not self._mostly_fails)

    @property
    def _mostly_fails(self) -> bool:
        """Whether most states were not believed at once, refusals as well as violations."""
        return self._unbelieved > max(len(self.judged) // 2, FAILING_IN_PASSING)

    def _is_enough(self, moment: int) -> bool:
        """Whether so many states of a moment failed that its others would tell no more; fewer, once many have."""
        limit, failed = self._asked.budget.violations, self._failed.total()
        if failed >= limit * MOMENTS_IN_DEPTH:
            limit = min(limit, FAILING_IN_PASSING)
        return self._failed[moment] >= limit or failed >= self._asked.budget.violations * MOMENTS_AT_ALL

    def _look_for_gaps(self, total: int) -> None:
        """What is missing to a whole result is a reason against a pass."""
        name = self._fault.name
        if self._cut_short:
            text = f"{name}: {self._cut_short}, {len(self.judged)} of {total} states judged."
            self._doubt("bound", text, "Raise the budget: budget='full', or Budget(states=…, time_s=…).")
        if not self.spots and name == "damage":
            text = f"{self._fault}: these files have nothing that can be damaged so, and no state was judged."
            self._doubt("bound", text, "Ask for other faults, or give a workload that leaves more files or records.")
        if missing := len(self._distinct) - len(self.judged):
            text = f"{name}: {missing} states were sent to recovery and never answered."
            self._doubt("checker-failed", text, "Please report this: the lab lost them.")
        if self._unasked:
            self.notes.append(
                f"in {self._unasked} states the end was not compared, since recovery reported an effect unknown: "
                "give check=… to say what must hold then."
            )
        if self.left_out and self._is_lost:
            found = f"{self._hangs} recoveries had not ended" if self._hangs >= HANGS_AT_MOST else "enough had failed"
            self.notes.append(f"{name}: {self.left_out:,} states were left out, since {found}.")
        elif self.left_out:
            self.notes.append(
                f"power: {self.left_out:,} states were left out at moments where others had failed already; "
                "budget='full' tries them all."
            )
        if self._undetectable:
            self.notes.append(
                f"undetectable: {self._undetectable:,} damaged states look like sound files of an earlier moment, so "
                "what they lost counts as nobody's fault. Only a mark of what was promised, kept elsewhere, would tell."
            )
        if self._redone:
            self.notes.append(
                f"undetectable: in {self._redone:,} of these a whole directory was put back that the run once had, and "
                "an effect without a key was done again. With a key that stays the same the outside would know it."
            )
        verdicts = [verdict for verdict, _ in self.judged.values()]
        # Of damage every state may be refused: there the undamaged twin tells whether anything recovers.
        if name != "damage" and len(verdicts) > 1 and "consistent" not in verdicts:
            text = "no state recovered at all, not even those without a loss."
            self._doubt("never-recovered", text, "Mend the recovery without a crash first.")

    def _doubt(self, code: str, detail: str, advice: str) -> None:
        self.unmeasured.append(model.UnmeasuredReason(code=code, detail=detail, next=advice))

    def count(self) -> model.FaultCount:
        """The figures of this fault for the report."""
        verdicts = Counter(verdict for verdict, _ in self.judged.values())
        return model.FaultCount(
            fault=self._fault.name,
            distinct=len(self._distinct),
            inside=self._inside,
            judged=len(self.judged),
            known=self._known,
            consistent=verdicts["consistent"],
            refused=verdicts["refused"],
            violation=verdicts["violation"],
            unmeasured=verdicts["unmeasured"],
            unknown=len(self._unknown),
            first_violation=self._first[0] + self._known if self._first else 0,
            first_violation_s=self._first[1] if self._first else 0.0,
            seconds=round(time.monotonic() - self._started, 3),
            **self._extent(),
        )

    def _extent(self) -> dict[str, int]:
        """How many places, states in the model, states reached and left out."""
        if self._asked.only is None and isinstance(self._source, Damages):
            extent = self._source.extent()
            return {**extent._asdict(), "states": extent.reached + extent.skipped}
        if self._asked.only is not None or not isinstance(self._source, Losses):
            return {"points": self._points, "states": len(self.spots), "reached": len(self.spots)}
        counts = self._source.counts
        return {
            "points": self._source.moments,
            "states": counts.states + counts.skipped_cuts,  # of a cut that was left out one state at least
            "reached": counts.reached,
            "skipped": counts.skipped + counts.skipped_cuts,
            "sampled": counts.sampled,
        }


def _resumed_twice(raw: Answer) -> bool:
    return raw.steps[0].value is not None and "again" in raw.steps[0].value
