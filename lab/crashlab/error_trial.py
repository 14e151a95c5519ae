"""One subject under I/O errors: each error in a live run of its own, and what it left met by a fresh process.

Of each run these moments are judged: where the call raised, where it was acked, the end; of a Subject, which
may go on as if nothing were, the first ack and the first effect after the error, and the end. After a barrier
that failed the power fails too: what was given up stays out of every later barrier. Equal trees with equal
effects and acks are recovered once.

Not tried: a power loss in a *resumed* process after such a barrier, a live process that reads back what the
cache has dropped, and, where a run goes on for long, power losses between its second ack after the failure and its
end.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.asking import live_request
from crashlab.crash.losses import Losses
from crashlab.crash.states import Prefixes
from crashlab.demands import mend_check, tells_unknown
from crashlab.error_choice import Choice, choose
from crashlab.error_judge import LiveHonesty, Shapes, judged, live_problems, live_step
from crashlab.error_outside import demand_possible, missing, possible
from crashlab.error_points import FAILED_FSYNC, READ, ErrorPoint, ErrorState, parse, point_of, points
from crashlab.error_reads import ReadTrial
from crashlab.error_runs import live_runs
from crashlab.errors import UsageError
from crashlab.honesty import identity
from crashlab.judge import Judge
from crashlab.live.errors import ONCE
from crashlab.observation import readable
from crashlab.record.proof import replay_proof
from crashlab.reference import CHILD_STARTED, RECORDED_RUN_FACTOR
from crashlab.report.model import FaultCount, UnmeasuredReason
from crashlab.rounds import Spot
from crashlab.thinning import thinned
from crashlab.values import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from crashlab.demands import Reference
    from crashlab.error_points import Asking
    from crashlab.faults import FaultRequest
    from crashlab.judge import Judgement
    from crashlab.observation import Answer, RawRecording
    from crashlab.recover.host import Host
    from crashlab.settings import Asked

RUNS_AT_A_TIME = 32
"""So many runs are made before what they left is recovered: the trees of these are held in memory."""


@dataclass(frozen=True)
class _Met:
    """One moment of one run: its state, what it is judged by, and the run."""

    state: ErrorState
    reference: Reference
    live: RawRecording
    digest: str = ""


class ErrorTrial:
    """All errors of one trace; :meth:`judge` yields, afterwards ``unmeasured``, ``notes`` and :meth:`count` tell.

    ``judged`` and ``spots`` are those of :class:`crashlab.rounds.Round`, a spot being where the error struck.
    """

    def __init__(
        self,
        host: Host,
        asked: Asked,
        reference: Reference,
        fault: FaultRequest,
        *,
        origins: Sequence[tuple[int, str, int]] = (),
    ) -> None:
        self._host, self._asked, self._reference, self._fault = host, asked, reference, fault
        self._origins = origins
        self._timeout_s = float(host.description["timeout_s"])
        self._shapes = Shapes(reference.trace)
        self._policy = asked.policy_of("error")
        self._started = time.monotonic()
        self._seen: set[str] = set()
        self._alone: set[tuple[int, str]] = set()
        self._verdicts: Counter[str] = Counter()
        self._runs = self._sampled = self._states = self._unknown = 0
        self._cut_short = False
        self._first: tuple[int, float] | None = None
        self.judged: dict[str, tuple[str, str]] = {}
        self.spots: list[Spot] = []
        self.unmeasured: list[UnmeasuredReason] = []
        self.notes: list[str] = []

    def judge(self, progress: Callable[[int, int], None]) -> Iterator[tuple[Judgement, Answer]]:
        """Run under every error, recover what each left, and judge it, as long as the budget lasts."""
        only = self._asked.only
        asking = None if only is None else parse(only)
        if self._outside and (reason := missing()) is not None:
            self.unmeasured.append(reason)
            return
        chosen = self._points(only)
        yield from self._tried(chosen.bound, progress, asking)
        if self._cut_short:
            return
        before = self._runs
        yield from self._tried(chosen.sampled, progress, asking, beyond=True)
        self._sampled = self._runs - before
        self.notes += chosen.told(self._sampled)
        if self._asks_reads(only):
            reads = ReadTrial(self._host, self._asked, self._reference)
            for judgement, answer in reads.judge(progress, partial(self._is_used_up, beyond=False)):
                self._count(judgement, answer)
                yield judgement, answer
            self._runs += reads.runs
            self._states += reads.runs
            self.unmeasured += reads.unmeasured
            self.notes += reads.notes
        if not self._runs and not self.unmeasured:
            self._doubt("checker-failed", "no op of this run can give the errors asked for.", "Ask for other variants.")

    def _tried(
        self,
        points: Sequence[ErrorPoint],
        progress: Callable[[int, int], None],
        asking: Asking | None,
        *,
        beyond: bool = False,
    ) -> Iterator[tuple[Judgement, Answer]]:
        """Run under these errors and recover what each left; those ``beyond`` the bound may stay untried."""
        for position in range(0, len(points), RUNS_AT_A_TIME):
            met: list[_Met] = []
            some = points[position : position + RUNS_AT_A_TIME]
            # The lasting errors first: where one struck a single call only, the single error is the same run.
            for single in (False, True):
                alike = [point for point in some if (point.mode == ONCE) == single]
                left = self._left(alike, position, len(points), progress, beyond=beyond)
                limit_s = self._timeout_s * RECORDED_RUN_FACTOR
                for point, live in live_runs(self._host, left, expected=self._reference.end, timeout_s=limit_s):
                    moments = self._moments(point, live)
                    met += [each for each in moments if asking is None or _wanted(each.state, asking.loss)]
            yield from self._recovered(met)
            if self._cut_short:
                return

    def _left(
        self,
        points: Sequence[ErrorPoint],
        position: int,
        total: int,
        progress: Callable[[int, int], None],
        *,
        beyond: bool,
    ) -> Iterator[ErrorPoint]:
        """Those of ``points`` that no other error stands for, as long as the budget lasts."""
        for number, point in enumerate(points, position):
            self._cut_short = self._cut_short or self._is_used_up(number, total, beyond=beyond)
            if self._cut_short:
                return
            if (point.n, point.variant) not in self._alone:
                progress(number, total)
                yield point

    def _points(self, only: str | None) -> Choice:
        trace = self._reference.trace
        if only is None and self._outside:
            kept, self.notes[:0] = possible(points(trace, self._fault.variants), trace, self._origins)
            return choose(self._thinned(kept), trace, self._origins, self._asked)
        if only is None:
            kept, self.notes[:0] = possible(points(trace, self._fault.variants), trace, outside=False)
            return Choice(self._thinned(kept))
        asking = parse(only)
        if asking.is_read:
            return Choice([])
        point = point_of(trace, asking, only)
        demand_possible(point, self._origins if self._outside else ())
        return Choice([point])

    def _thinned(self, kept: Iterable[ErrorPoint]) -> list[ErrorPoint]:
        """Of the same error at ops of the same kind a part, where that was asked for."""
        every_one, trace = list(kept), self._reference.trace
        chosen = thinned(
            every_one,
            lambda point: (point.variant, point.mode, trace.op(point.n).KIND),
            every=self._asked.every,
            seed=self._asked.seed,
        )
        if len(chosen) < len(every_one):
            self.notes.append(f"error: a sample of {len(chosen)} of {len(every_one)} errors was tried.")
        return chosen

    @property
    def _outside(self) -> bool:
        """Whether the program is watched from outside."""
        return self._host.traced is not None

    def _asks_reads(self, only: str | None) -> bool:
        if only is not None:
            return parse(only).is_read
        return not self._fault.variants or READ in self._fault.variants

    # --- running -------------------------------------------------------------------------------

    def _moments(self, point: ErrorPoint, live: RawRecording) -> Iterator[_Met]:
        """The moments of one run under ``point`` that are worth a recovery, those that were met before left out."""
        self._runs += 1
        trace = t.Trace(root=live.root, base=live.base, ops=live.ops, threads=live.threads)
        struck = next((op.n for op in trace.ops if isinstance(op, t.Refused)), 0)
        if not struck:
            text = f"{point.id}: the run came to no such call this time, so no error struck it."
            self._doubt(
                "runs-differ", text, "Two runs must make the same calls: give the program fixed seeds and names."
            )
            return
        if sum(isinstance(op, t.Refused) for op in trace.ops) == 1:
            self._alone.add((point.n, point.variant))
        if hidden := self._hidden(trace, live):
            text = f"{point.id}: {hidden} (traced / real): no op of the run under the error explains it."
            advice = "Please report this with the run folder."
            if live.late:
                advice = "The machine is too busy to look at mapped files in time: run it when less runs beside it."
            self._doubt("unseen-writer", text, advice)
            return
        # A Subject's effects and end are those of the uncrashed run; a Store's values those that this run saved.
        is_subject = self._reference.program
        reference = self._reference if is_subject else replace(self._reference, trace=trace)
        prefixes = Prefixes(trace)
        for done in _dones(trace, live, struck, is_subject=is_subject):
            state = ErrorState(
                id=point.id, fault="error", trace=trace, tree=prefixes.tree(done), done=done, point=point
            )
            yield from self._new(_Met(state, reference, live))
        if point.variant == FAILED_FSYNC:
            for state in self._losses(point, trace, struck):
                yield from self._new(_Met(state, reference, live))

    def _hidden(self, trace: t.Trace, live: RawRecording) -> str:
        """What the ops of a run do not explain; from outside also what was seen of it by the way."""
        hidden = list(replay_proof(trace, live.last, self._reference.rebuilt))
        if self._outside:
            hidden += [text for text in live.unseen if not text.startswith(CHILD_STARTED)]
        return "; ".join(hidden[:3])

    def _losses(self, point: ErrorPoint, trace: t.Trace, struck: int) -> Iterator[ErrorState]:
        """What a power loss leaves after the barrier has failed: up to the second ack from there, and at the end."""
        asked = self._asked
        acks = [op.n for op in trace.ops[struck:] if isinstance(op, t.Ack)]
        until, last = acks[1] if len(acks) > 1 else len(trace.ops), len(trace.ops)
        losses = Losses(
            trace,
            asked.profiles,
            bound=asked.bound,
            seed=asked.seed,
            rebuilt=self._reference.rebuilt,
            sample=asked.sample,
            edges=asked.edges,
        )
        for loss in losses.states():
            if struck < loss.done <= until or loss.done == last:
                name = f"{point.id}/{loss.id}"
                yield ErrorState(
                    id=name,
                    fault="error",
                    trace=trace,
                    tree=loss.tree,
                    done=loss.done,
                    point=point,
                    loss=loss,
                    losses=losses,
                )

    def _new(self, met: _Met) -> Iterator[_Met]:
        """The moment, unless one that cannot be told from it was met before."""
        self._states += 1
        digest = _digest(met, self._reference)
        self.spots.append(Spot(digest, "error", met.state.point.n, cut=False))
        if digest not in self._seen:
            self._seen.add(digest)
            yield replace(met, digest=digest)

    # --- recovering ----------------------------------------------------------------------------

    def _recovered(self, met: list[_Met]) -> Iterator[tuple[Judgement, Answer]]:
        flying = {str(number): each for number, each in enumerate(met)}
        requests = (self._request(name, each.state) for name, each in flying.items())
        for raw in self._host.recover(requests):
            each = flying[raw.state]
            answer = readable(raw, each.state.trace.root)
            for step in answer.steps:
                if step.error.startswith("UsageError: "):
                    text = f"{step.error.removeprefix('UsageError: ')} (at {each.state.id})"
                    raise UsageError(text)
            honesty = LiveHonesty(each.state.trace, self._shapes)
            judgement = judged(
                Judge(each.reference, self._policy, honesty), each.reference, each.state, answer, each.live
            )
            self._count(judgement, answer)
            self.judged[each.digest] = judgement.verdict, judgement.kind
            yield judgement, replace(answer, steps=(*answer.steps, live_step(each.live)))

    def _request(self, name: str, state: ErrorState) -> dict[str, Any]:
        return live_request(name, state, self._reference, timeout_s=self._timeout_s)

    def _count(self, judgement: Judgement, answer: Answer) -> None:
        self._verdicts[judgement.verdict] += 1
        self._unknown += judgement.verdict == "consistent" and tells_unknown(answer)
        if judgement.verdict == "violation" and self._first is None:
            self._first = self._verdicts.total(), round(time.monotonic() - self._started, 3)
        if judgement.verdict == "unmeasured" and not any(each.code == "checker-failed" for each in self.unmeasured):
            text = f"check itself failed at {judgement.state.id}."
            self._doubt("checker-failed", text, mend_check(self._reference))

    def _is_used_up(self, number: int, total: int, *, beyond: bool) -> bool:
        budget = self._asked.budget
        if len(self._seen) < budget.states and time.monotonic() - self._started < budget.time_s:
            return False
        if beyond:
            return True
        bound = f"{budget.states} states and {budget.time_s:g} s"
        text = f"error: the budget of {bound} is used up after {number} of {total} errors."
        self._doubt("bound", text, "Raise the budget: budget='full', or Budget(states=…, time_s=…).")
        return True

    def _doubt(self, code: str, detail: str, advice: str) -> None:
        if sum(each.code == code for each in self.unmeasured) < 3:  # noqa: PLR2004 - more would tell no more
            self.unmeasured.append(UnmeasuredReason(code=code, detail=detail, next=advice))

    def count(self) -> FaultCount:
        """The figures for the report: ``points`` are live runs, ``states`` the moments of all of them.

        ``sampled`` are the runs beyond the stated bound.
        """
        first, first_s = self._first or (0, 0.0)
        return FaultCount(
            fault="error",
            points=self._runs,
            states=self._states,
            reached=self._states,
            sampled=self._sampled,
            distinct=self._verdicts.total(),
            judged=self._verdicts.total(),
            consistent=self._verdicts["consistent"],
            refused=self._verdicts["refused"],
            violation=self._verdicts["violation"],
            unmeasured=self._verdicts["unmeasured"],
            unknown=self._unknown,
            first_violation=first,
            first_violation_s=first_s,
            seconds=round(time.monotonic() - self._started, 3),
        )


def _wanted(state: ErrorState, loss: str) -> bool:
    return (state.loss.id if state.loss is not None else "") == loss


def _dones(trace: t.Trace, live: RawRecording, struck: int, *, is_subject: bool) -> list[int]:
    """After how many ops of this run to look, in order."""
    after = [op for op in trace.ops if op.n > struck]
    raised_at = (live.value or {}).get("raised_at")
    firsts = [next((op.n for op in after if isinstance(op, kind)), None) for kind in (t.Ack, t.Effect)]
    found = {len(trace.ops), *(each for each in firsts if each is not None)}
    if not is_subject and raised_at is not None:
        found.add(raised_at)
    return sorted(found)


def _digest(met: _Met, reference: Reference) -> str:
    """Equal for moments that no recovery and no judge can tell apart."""
    state, ops = met.state, met.state.trace.ops[: met.state.done]
    effects = [str(identity(op)) for op in ops if isinstance(op, t.Effect)]
    told = [canonical(op.value) for op in ops if isinstance(op, (t.Ack, t.Call))]
    last = state.done == len(state.trace.ops) and state.loss is None
    own = state.id if last and any(itertools.islice(live_problems(reference, met.live), 1)) else ""
    again = (met.live.value or {}).get("raised_at") is not None
    text = f"{state.tree.digest} {state.tree.times_set} {effects} {told} {own} {again}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
