"""All crash states of one fault, each distinct one recovered and judged once.

A ``Store`` or ``Log`` gets three processes per state: recover; recover again and take one more value;
find that value. A ``Subject`` gets one process that resumes twice, which costs half; but a program
that keeps something in memory may behave otherwise there. So every sixteenth state is resumed again in
a process of its own, and so is every state whose verdict is not consistent, before it counts. Where
a process of its own finds what the shared one hid, every state is judged anew that way.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from crashlab.crash.kill import cut_points, kill_states
from crashlab.crash.states import CrashState, state_of
from crashlab.demands import unknowns_of
from crashlab.errors import UsageError
from crashlab.honesty import Honesty
from crashlab.judge import Judge
from crashlab.observation import readable, unfolded
from crashlab.report import model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashlab.crash.kill import Cut
    from crashlab.demands import Reference
    from crashlab.faults import FaultRequest
    from crashlab.judge import Judgement
    from crashlab.observation import Answer
    from crashlab.recover.host import Host
    from crashlab.settings import Asked

USAGE = "UsageError: "
OWN_PROCESS_EVERY = 16
"""Every so many states of a Subject are resumed again in a process of their own."""


def request(state_id: str, reference: Reference, *, timeout_s: float, together: bool = False) -> dict[str, Any]:
    """What a worker is asked for one state: all steps, each in its own process unless ``together``."""
    steps = ["first", "second"] if reference.kind == "Subject" else ["first", "second", "third"]
    nothing = reference.nothing.get("error")
    forms: list[dict[str, Any]] = [{"step": step, "nothing": nothing} for step in steps]
    if together and reference.kind == "Subject":
        forms = [{"step": "first", "nothing": nothing, "again": True}]
    return {"state": state_id, "steps": forms, "timeout_s": timeout_s}


class Round:
    """One fault on one trace. ``judged`` maps the digest of each state to its verdict and kind."""

    def __init__(self, host: Host, asked: Asked, reference: Reference, fault: FaultRequest) -> None:
        self._host, self._asked, self._reference, self._fault = host, asked, reference, fault
        self._trace = reference.trace
        self._timeout_s = float(host.description["timeout_s"])
        self._judge = Judge(reference, asked.policy_of(fault.name), Honesty(self._trace, kill_states(self._trace)))
        self._started = time.monotonic()
        self._points = self._states = self._inside = 0
        self._distinct: set[str] = set()
        self._unasked = 0
        self._cut_short = ""
        self._together = True
        self.judged: dict[str, tuple[str, str]] = {}
        self.unmeasured: list[model.UnmeasuredReason] = []
        self.notes: list[str] = []

    def states(self) -> Iterator[CrashState]:
        """Every state of this fault, equal ones included; the one asked for with ``only``."""
        at: Cut = "byte" if self._fault.options.get("cut") == "byte" else "page"
        if self._asked.only is None:
            return kill_states(self._trace, at=at)
        state = state_of(self._trace, self._asked.only)
        if state.cut_bytes is not None and state.cut_bytes not in cut_points(self._trace.op(state.last_op), at=at):
            text = f"{state.id}: a kill cuts writes at page ends only; for any byte ask for faults='kill[cut=byte]'"
            raise UsageError(text)
        return iter([state])

    def judge(self, progress: Callable[[int, int], None]) -> Iterator[tuple[Judgement, Answer]]:
        """Recover and judge every distinct state, as long as the budget lasts."""
        total = len({state.digest for state in self.states()})
        doubtful: list[str] = []
        hidden = False
        for done, raw in enumerate(self._host.recover(self._requests()), start=1):
            judgement, answer = self._judged(raw)
            if judgement.verdict == "violation" and _resumed_twice(raw):
                doubtful.append(raw.state)
                self._together = self._together and judgement.problems[0].step != "second"
            else:
                hidden = hidden or _only_again(judgement)
                yield self._settled(judgement, answer), answer
            progress(done, total)
        for raw in self._host.recover(self._alone(None if hidden else doubtful)):
            judgement, answer = self._judged(raw)
            if hidden or judgement.verdict == "consistent":
                self._note_memory(raw.state)
            yield self._settled(judgement, answer), answer
        self._look_for_gaps(total)

    def _alone(self, state_ids: list[str] | None) -> Iterator[dict[str, Any]]:
        """Requests in processes of their own: for these states, or for all that had been judged together."""
        if self._reference.kind != "Subject":
            return
        if state_ids is None:
            seen: set[str] = set()
            for state in self.states():
                if state.digest not in seen and len(seen) % OWN_PROCESS_EVERY and state.digest in self._distinct:
                    yield request(state.id, self._reference, timeout_s=self._timeout_s)
                seen.add(state.digest)
            return
        for state_id in state_ids:
            yield request(state_id, self._reference, timeout_s=self._timeout_s)

    def _note_memory(self, state_id: str) -> None:
        if not self.notes:
            self.notes.append(
                f"resumed twice in one process, {state_id} comes out otherwise than in two: "
                "something stays in memory. Such states were judged by processes of their own."
            )

    def _judged(self, raw: Answer) -> tuple[Judgement, Answer]:
        answer = readable(unfolded(raw), self._trace.root)
        for step in answer.steps:
            if step.error.startswith(USAGE):
                text = f"{step.error.removeprefix(USAGE)} (at {raw.state})"
                raise UsageError(text)
        judgement = self._judge.judge(state_of(self._trace, raw.state), answer)
        if judgement.verdict == "unmeasured":
            self._check_failed(answer)
        return judgement, answer

    def _check_failed(self, answer: Answer) -> None:
        errors = [step.value["check_error"] for step in answer.steps if step.value and "check_error" in step.value]
        if errors and not any(reason.code == "checker-failed" for reason in self.unmeasured):
            text = f"check itself failed at {answer.state}: {errors[0]}"
            self._doubt("checker-failed", text, "Mend the check: it must raise AssertionError or Violation, or return.")

    def _settled(self, judgement: Judgement, answer: Answer) -> Judgement:
        if judgement.verdict == "consistent" and any(unknowns_of(step) for step in answer.steps):
            self._unasked += not self._reference.has_check
        self.judged[judgement.state.digest] = judgement.verdict, judgement.kind
        return judgement

    def _requests(self) -> Iterator[dict[str, Any]]:
        """One request per distinct state, as long as the budget lasts."""
        budget = self._asked.budget
        for state in self.states():
            self._states += 1
            self._points += state.cut_bytes is None
            if state.digest in self._distinct:
                continue
            if len(self._distinct) >= budget.states:
                self._cut_short = f"the budget of {budget.states} states is used up"
                return
            if time.monotonic() - self._started > budget.time_s:
                self._cut_short = f"the budget of {budget.time_s:g} s is used up"
                return
            together = self._together and len(self._distinct) % OWN_PROCESS_EVERY != 0
            self._distinct.add(state.digest)
            self._inside += state.cut_bytes is not None
            yield request(state.id, self._reference, timeout_s=self._timeout_s, together=together)

    def _look_for_gaps(self, total: int) -> None:
        """What is missing to a whole result is a reason against a pass."""
        name = self._fault.name
        if self._cut_short:
            text = f"{name}: {self._cut_short}, {len(self.judged)} of {total} states judged."
            self._doubt("bound", text, "Raise the budget: budget='full', or Budget(states=…, time_s=…).")
        if missing := len(self._distinct) - len(self.judged):
            text = f"{name}: {missing} states were sent to recovery and never answered."
            self._doubt("checker-failed", text, "Please report this: the lab lost them.")
        if self._unasked:
            self.notes.append(
                f"in {self._unasked} states the end was not compared, since recovery reported an effect unknown: "
                "give check=… to say what must hold then."
            )
        verdicts = [verdict for verdict, _ in self.judged.values()]
        if len(verdicts) > 1 and "consistent" not in verdicts:
            text = "no state recovered at all, not even those without a loss."
            self._doubt("never-recovered", text, "Mend the recovery without a crash first.")

    def _doubt(self, code: str, detail: str, advice: str) -> None:
        self.unmeasured.append(model.UnmeasuredReason(code=code, detail=detail, next=advice))

    def count(self) -> model.FaultCount:
        """The figures of this fault for the report."""
        verdicts = Counter(verdict for verdict, _ in self.judged.values())
        return model.FaultCount(
            fault=self._fault.name,
            points=self._points,
            states=self._states,
            distinct=len(self._distinct),
            inside=self._inside,
            judged=len(self.judged),
            consistent=verdicts["consistent"],
            refused=verdicts["refused"],
            violation=verdicts["violation"],
            unmeasured=verdicts["unmeasured"],
            seconds=round(time.monotonic() - self._started, 3),
        )


def _only_again(judgement: Judgement) -> bool:
    """A violation that only the second recovery, in a process of its own, brought to light."""
    return judgement.verdict == "violation" and all(problem.step != "first" for problem in judgement.problems)


def _resumed_twice(raw: Answer) -> bool:
    return raw.steps[0].value is not None and "again" in raw.steps[0].value
