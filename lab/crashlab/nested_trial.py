"""The fault ``recovery``: recoveries are recorded as runs of their own, and crashed again.

Chosen are crash states of the faults outside (kill and power, or the one of them that was asked for) that
recover well when nothing more happens; those that do not are findings already. They are picked by seed and
spread over the moments, until ``Budget.nested`` recoveries were met that change something: a recovery that
only reads cannot be caught half done, and is counted apart. Each of these is killed at every op and at
every page end inside a write, and loses power at each of its moments. With a quick budget these are
:data:`KILLS_EACH` kills and :data:`LOSSES_EACH` power losses of each recovery: half of them the first ones,
where it mends what the crash left, the others picked by seed. With a full budget they are all. A second
crash is one more step of the same kind: the states of the first recoveries are what is chosen from, to the
depth that was asked for, or until none is new.

What a state must fulfil is what the fault of its first crash demands.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crashlab.confirm import calls_at, kill_for_real, kill_traced_for_real, sample
from crashlab.crash.kill import kill_states
from crashlab.crash.nested import FAULT, first_of
from crashlab.errors import UsageError
from crashlab.nested_honesty import NestedHonesty
from crashlab.recoveries import Recoveries, acts
from crashlab.report.model import Control, FaultCount, UnmeasuredReason
from crashlab.rounds import Round

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from crashlab.confirm import Death
    from crashlab.crash.losses import Losses
    from crashlab.crash.nested import Recovery
    from crashlab.crash.states import CrashState
    from crashlab.demands import Reference
    from crashlab.faults import FaultRequest
    from crashlab.judge import Judgement
    from crashlab.observation import Answer
    from crashlab.recover.host import Host
    from crashlab.settings import Asked

KILLS_EACH, LOSSES_EACH = 40, 30
"""So many kills and so many power losses of one recovery are tried with a quick budget."""

LOSSES_AT_ONCE = 6
"""Of these at most so many at one moment."""

READ_FOR_ONE = 4
"""For each recovery that is wanted at most so many are recorded: the others turn out to change nothing."""

_OUTER = ("kill", "power")


@dataclass
class States:
    """Crash states in a list, as a source."""

    found: list[CrashState] = field(default_factory=list)

    def states(self) -> Iterator[CrashState]:
        """All of them."""
        return iter(self.found)

    def count(self, limit: int) -> int:
        """How many there are, up to ``limit``."""
        return min(len(self.found), limit)

    def one(self, state_id: str) -> CrashState:
        """The state of an id."""
        return next(state for state in self.found if state.id == state_id)


@dataclass
class Crashes:
    """The crashes of some recoveries, as a source: all kills, and all power losses or a choice of them."""

    recoveries: Sequence[Recovery]
    kinds: Sequence[str]
    seed: int
    whole: bool
    limit: int
    _picked: dict[int, list[CrashState]] = field(default_factory=dict)

    def states(self) -> Iterator[CrashState]:
        """Every state, equal ones included; one recovery after the other."""
        for recovery in self.recoveries:
            if "kill" in self.kinds:
                yield from self._kills(recovery)
            if "power" in self.kinds:
                yield from self._losses(recovery)

    def count(self, limit: int) -> int:
        """How many there are, equal ones included, up to ``limit``."""
        return min(limit, sum(self.extent(recovery)[1] for recovery in self.recoveries))

    def one(self, state_id: str) -> CrashState:
        """The state of an id. Raises UsageError where none of these recoveries leaves it."""
        outer, _, crash = state_id.rpartition("/")
        recovery = next(each for each in self.recoveries if each.outer.id == outer)
        return recovery.one(crash)

    def extent(self, recovery: Recovery) -> tuple[int, int]:
        """How many crash states a recovery has, at the least, and how many of them are tried."""
        kills = tried = 0
        if "kill" in self.kinds:
            kills = sum(1 for _ in recovery.kills())
            tried = kills if self.whole else min(kills, KILLS_EACH)
        if "power" not in self.kinds:
            return kills, tried
        losses = recovery.losses.count(self.limit)
        return kills + losses, tried + (losses if self.whole else len(self._chosen(recovery)))

    def _kills(self, recovery: Recovery) -> Iterable[CrashState]:
        if self.whole:
            return recovery.kills()
        states = list(recovery.kills())
        first, rest = states[: KILLS_EACH // 2], states[KILLS_EACH // 2 :]
        return first + self._chooser(recovery).sample(rest, min(len(rest), KILLS_EACH - len(first)))

    def _chooser(self, recovery: Recovery) -> random.Random:
        return random.Random(f"{self.seed} {recovery.outer.id}")  # noqa: S311 - a sample, no secret

    def _losses(self, recovery: Recovery) -> Iterable[CrashState]:
        if self.whole:
            return (recovery.lost(state) for state in recovery.losses.states())
        return self._chosen(recovery)

    def _chosen(self, recovery: Recovery) -> list[CrashState]:
        """All where they are few, else those of least and most at the first moments, and at others picked by seed."""
        if id(recovery) not in self._picked:
            losses = recovery.losses
            if losses.count(LOSSES_EACH + 1) <= LOSSES_EACH:
                self._picked[id(recovery)] = [recovery.lost(state) for state in losses.states()]
                return self._picked[id(recovery)]
            early = LOSSES_EACH // LOSSES_AT_ONCE // 2
            first, rest = losses.dones[:early], losses.dones[early:]
            self._chooser(recovery).shuffle(rest)
            found: dict[str, CrashState] = {}
            for done in first + rest:
                more = itertools.islice(losses.simplest([done]), min(LOSSES_AT_ONCE, LOSSES_EACH - len(found)))
                for state in map(recovery.lost, more):
                    found.setdefault(state.digest, state)
            self._picked[id(recovery)] = list(found.values())
        return self._picked[id(recovery)]


class NestedTrial:
    """Crashes of recoveries of one subject; afterwards ``rounds``, ``controls`` and ``unmeasured`` tell.

    ``losses`` are the power losses of the recorded run, if power is among the faults outside. ``earlier``
    are the verdicts of the states that these faults have left already, by digest.
    """

    def __init__(  # noqa: PLR0913 - the parts of one stage, each once
        self,
        host: Host,
        asked: Asked,
        reference: Reference,
        fault: FaultRequest,
        *,
        losses: Losses | None,
        earlier: Mapping[str, str],
    ) -> None:
        self._host, self._asked, self._reference, self._fault = host, asked, reference, fault
        self._losses, self._verdicts = losses, dict(earlier)
        self._started = time.monotonic()
        self._whole = asked.budget.cuts == "blocks"
        self._depth = int(fault.options.get("depth", "2" if self._whole else "1"))
        self._recoveries = Recoveries(
            host,
            reference,
            profiles=asked.profile,
            at="byte" if fault.options.get("cut") == "byte" else "page",
            bound=asked.bound,
            seed=asked.seed,
            sample=asked.sample,
            edges=asked.edges,
        )
        self._honesty = NestedHonesty(reference.trace, kill_states(reference.trace), losses)
        self._extents: list[tuple[int, int]] = []
        self._left_out = self._idle = self._failing = 0
        self.rounds: list[Round] = []
        self.crashed: list[Recovery] = []
        self._alive = ""
        self.controls: list[Control] = []
        self.unmeasured: list[UnmeasuredReason] = []

    def judge(self, progress: Callable[[str, int, int], None]) -> Iterator[tuple[Judgement, Answer]]:
        """Choose, record, crash, recover and judge, one depth after the other."""
        if self._asked.only is not None:
            state = self._recoveries.follow(self._asked.only)
            yield from self._tried(States([state]), first_of(state).fault, progress)
            self._close()
            return
        candidates = list(self._first_states())
        for depth in range(1, self._depth + 1):
            chosen = self._choice(candidates)
            yield from self._plainly(chosen, progress)
            recoveries = self._record(chosen, progress)
            candidates = []
            for fault in _OUTER:
                crashes = self._crashes([each for each in recoveries if first_of(each.outer).fault == fault])
                if not crashes.recoveries:
                    continue
                self._extents += [crashes.extent(recovery) for recovery in crashes.recoveries]
                yield from self._tried(crashes, fault, progress)
                if depth < self._depth:
                    candidates += self._new(crashes)
            if not candidates:
                break
        if self._asked.budget.real_kills:
            self._die(progress)
        self._close()

    # --- choosing ------------------------------------------------------------------------------

    @property
    def _kinds(self) -> tuple[str, ...]:
        """The crashes outside and inside: those of kill and power that were asked for, both where neither was."""
        return tuple(name for name in _OUTER if self._asked.asks(name)) or _OUTER

    def _first_states(self) -> Iterator[CrashState]:
        """Distinct states that one crash of the recorded run leaves."""
        seen: set[str] = set()
        sources: list[Iterable[CrashState]] = []
        if "kill" in self._kinds:
            sources.append(kill_states(self._reference.trace))
        if "power" in self._kinds and self._losses is not None:
            sources.append(self._losses.states() if self._whole else self._losses.simplest())
        for state in itertools.chain(*sources):
            if state.digest not in seen:
                seen.add(state.digest)
                yield state

    def _choice(self, candidates: list[CrashState]) -> list[CrashState]:
        """An order in which the faults outside and the moments take turns, cut where enough were tried."""
        chooser = random.Random(f"{self._asked.seed} recovery")  # noqa: S311 - a sample, no secret
        moments: dict[tuple[str, int], list[CrashState]] = {}
        for state in candidates:
            moments.setdefault((first_of(state).fault, state.done), []).append(state)
        by_fault: dict[str, list[list[CrashState]]] = {}
        for (fault, _), states in moments.items():
            chooser.shuffle(states)
            by_fault.setdefault(fault, []).append(states)
        orders = []
        for groups in by_fault.values():
            chooser.shuffle(groups)
            orders.append([state for turn in itertools.zip_longest(*groups) for state in turn if state is not None])
        turns = (state for turn in itertools.zip_longest(*orders) for state in turn if state is not None)
        chosen = list(itertools.islice(turns, self._asked.budget.nested * READ_FOR_ONE))
        self._left_out += len(candidates) - len(chosen)
        return chosen

    def _plainly(
        self, chosen: list[CrashState], progress: Callable[[str, int, int], None]
    ) -> Iterator[tuple[Judgement, Answer]]:
        """Recover without a second crash what no earlier fault has recovered yet."""
        for fault in _OUTER:
            fresh = [each for each in chosen if first_of(each).fault == fault and each.digest not in self._verdicts]
            if fresh:
                yield from self._tried(States(fresh), fault, progress)

    def _record(self, chosen: list[CrashState], progress: Callable[[str, int, int], None]) -> list[Recovery]:
        """Recoveries that change something, from states that recover well: no more than the budget allows."""
        budget = self._asked.budget
        found: list[Recovery] = []
        for position, state in enumerate(chosen):
            if len(found) >= budget.nested or self._is_late():
                self._left_out += len(chosen) - position
                break
            progress("record recoveries", len(found), min(budget.nested, len(chosen)))
            if self._verdicts.get(state.digest) != "consistent":
                self._failing += 1
                continue
            recovery = self._recoveries.recovery(state)
            if acts(recovery):
                found.append(recovery)
                self._honesty.know(recovery)
            else:
                self._idle += 1
        self.crashed += found
        return found

    def _crashes(self, recoveries: Sequence[Recovery]) -> Crashes:
        return Crashes(recoveries, self._kinds, self._asked.seed, self._whole, self._asked.budget.states)

    def _new(self, crashes: Crashes) -> list[CrashState]:
        """The states of these crashes that no earlier one left."""
        known = {recovery.outer.digest for recovery in self.crashed}
        fresh: dict[str, CrashState] = {}
        for state in crashes.states():
            if state.digest not in known:
                fresh.setdefault(state.digest, state)
        return list(fresh.values())

    # --- judging -------------------------------------------------------------------------------

    def _tried(
        self, source: States | Crashes, fault: str, progress: Callable[[str, int, int], None]
    ) -> Iterator[tuple[Judgement, Answer]]:
        """Judge all states of one source, as the fault outside demands it, with what is left of the budget."""
        policy = {FAULT: self._asked.policy.get(FAULT, self._asked.policy_of(fault))}
        budget = self._asked.budget
        used = sum(len(tried.judged) for tried in self.rounds)
        left = dataclasses.replace(budget, states=budget.states - used, time_s=budget.time_s - self._seconds)
        asked = dataclasses.replace(self._asked, policy=policy, budget=left)
        consistent = {digest for digest, verdict in self._verdicts.items() if verdict == "consistent"}
        tried = Round(
            self._host,
            asked,
            self._reference,
            self._fault,
            source=source,
            honesty=self._honesty,
            consistent=consistent,
        )
        self.rounds.append(tried)
        yield from tried.judge(lambda done, total: progress(FAULT, done, total))
        self._verdicts |= {digest: verdict for digest, (verdict, _) in tried.judged.items()}

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _is_late(self) -> bool:
        """Whether no time is left, so that the stated bound is not whole."""
        late = self._seconds > self._asked.budget.time_s
        if late:
            text = f"recovery: the budget of {self._asked.budget.time_s:g} s is used up while recoveries are recorded."
            self._doubt("bound", text, "Raise the budget: budget='full', or Budget(nested=…, time_s=…).")
        return late

    def _die(self, progress: Callable[[str, int, int], None]) -> None:
        """Kill some of the recoveries for real, and hold the directories against the computed ones."""
        chooser = random.Random(self._asked.seed)  # noqa: S311 - a reproducible sample, no secret
        count = min(len(self.crashed), max(1, self._asked.budget.real_kills // 2))
        died = wrong = 0
        for position, recovery in enumerate(chooser.sample(self.crashed, count)):
            progress("real kills", position, count)
            told = dataclasses.replace(recovery.trace, base=recovery.base, ops=recovery.told)
            points = sample(told, count=2, seed=self._asked.seed + position)
            for death in self._killed(recovery, points):
                died += 1
                if not death.difference:
                    continue
                wrong += 1
                text = f"{recovery.outer.id}/{death.state}: computed / real: {'; '.join(death.difference[:4])}"
                advice = "The lab is not to be believed here: please report this with the run folder."
                self._doubt("real-kill-disagrees", text, advice)
        if died:
            detail = f"{died - wrong} of {died} real kills during a recovery agree"
            self.controls.append(Control(control="real-kill", passed=not wrong, detail=detail))

    def _killed(self, recovery: Recovery, points: list[tuple[int, int]]) -> list[Death]:
        """One real death of this recovery; watched from outside, where a call of it stands at one of the points."""
        request, limit_s = self._recoveries.request(recovery.outer), self._recoveries.limit_s
        if not self._host.watches_from_outside:
            return kill_for_real(self._host, points[:1], timeout_s=limit_s, recovery=request)
        try:
            calls = calls_at(self._host.record(recovery=request, timeout_s=limit_s), points)
        except UsageError as error:
            self._alive = str(error)
            return []
        return kill_traced_for_real(self._host, calls, timeout_s=limit_s, recovery=request)

    # --- telling -------------------------------------------------------------------------------

    def _close(self) -> None:
        reasons = (reason for tried in self.rounds for reason in tried.unmeasured)
        # That some recovery comes to an end is known: only such ones are crashed again.
        self.unmeasured += [reason for reason in reasons if reason.code != "never-recovered"]
        self.unmeasured += self._recoveries.unmeasured

    def _doubt(self, code: str, detail: str, advice: str) -> None:
        self.unmeasured.append(UnmeasuredReason(code=code, detail=detail, next=advice))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen, and what could not be crashed again."""
        told = tuple(note for tried in self.rounds for note in tried.notes)
        if self._asked.only is not None:
            return told
        recorded = self._idle + len(self.crashed)
        notes = [f"recovery: {len(self.crashed)} recoveries were crashed again, {self._left_out:,} states not chosen."]
        if self._idle:
            idle = f"{self._idle} of {recorded}"
            notes.append(f"recovery wrote nothing in {idle} chosen states: there is nothing to crash in those.")
        if self._failing:
            failing = f"{self._failing} chosen states"
            notes.append(f"recovery: {failing} fail without a second crash, and were not crashed again.")
        if self._alive and not any(control.control == "real-kill" for control in self.controls):
            notes.append(f"no recovery was killed for real: {self._alive}")
        return (*notes, *told)

    def count(self) -> FaultCount:
        """The figures of all depths together."""
        counts = [tried.count() for tried in self.rounds]
        names = ("distinct", "inside", "judged", "known", "consistent", "refused", "violation", "unmeasured", "unknown")
        totals = {name: sum(getattr(each, name) for each in counts) for name in names}
        states, reached = (sum(extent[which] for extent in self._extents) for which in (0, 1))
        plain = sum(each.reached for each in counts) - reached
        first, before = 0, 0
        for each in counts:
            first = first or (before + each.first_violation if each.first_violation else 0)
            before += each.judged
        return FaultCount(
            fault=FAULT,
            points=len(self.crashed),
            states=states + max(plain, 0),
            reached=reached + max(plain, 0),
            skipped=states - reached + self._left_out,
            sampled=sum(tried for states, tried in self._extents if self._left_out or tried < states),
            first_violation=first,
            seconds=round(self._seconds, 3),
            **totals,
        )
