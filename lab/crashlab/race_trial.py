"""One subject with a second live owner, which enters after every op of the first, in real processes.

First the second owner enters after each op and runs to its end while the first stands still; that is always whole.
Then both are stopped in turn: for each such place, after each op that the second owner made there, the first goes on
to its end before the second does. Of these interleavings all are run where ``Budget.sample`` has room for them, else a
seeded sample. What both have left is met by a third, fresh process, as after a crash; equal outcomes are met once.

Not tried: more than one owner beside the first, three and more switches, stops inside a call, a kill or a power loss
on top, and programs that are watched from outside.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.asking import live_request
from crashlab.crash.states import Prefixes
from crashlab.demands import tells_unknown
from crashlab.error_judge import LiveHonesty, Shapes
from crashlab.errors import UsageError
from crashlab.honesty import identity
from crashlab.live.race import FIRST
from crashlab.observation import readable
from crashlab.race_judge import SPOILED, RaceJudge, owner_steps
from crashlab.race_points import OwnerEnd, Race, RacePoint, RaceState, parse, race_of, state_of_race
from crashlab.reference import RECORDED_RUN_FACTOR
from crashlab.report.model import FaultCount, UnmeasuredReason
from crashlab.thinning import least, thinned
from crashlab.values import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashlab.demands import Reference
    from crashlab.judge import Judgement
    from crashlab.observation import Answer
    from crashlab.recover.host import Host
    from crashlab.settings import Asked

HANGS_AT_MOST = 3
"""After so many races that did not end the others are left out: each would take its whole time limit."""
RACES_AT_A_TIME = 16
"""So many races are run before what they left is recovered."""
FROM_OUTSIDE = "a second owner is let into Python code that is recorded from inside; this run was watched from outside."


class RaceTrial:
    """All races of one trace; :meth:`judge` yields, afterwards ``unmeasured``, ``notes`` and :meth:`count` tell."""

    def __init__(self, host: Host, asked: Asked, reference: Reference) -> None:
        self._host, self._asked, self._reference = host, asked, reference
        self._timeout_s = float(host.description["timeout_s"])
        self._policy = asked.policy_of("race")
        self._honesty = LiveHonesty(reference.trace, Shapes(reference.trace), lenient=True)
        self._started = time.monotonic()
        self._seen: set[str] = set()
        self._made: dict[int, int] = {}
        self._verdicts: Counter[str] = Counter()
        self._races = self._both = self._unknown = 0
        self._switched = self._left_out = self._passed_over = self._hangs = 0
        self._first: tuple[int, float] | None = None
        self.unmeasured: list[UnmeasuredReason] = []
        self.notes: list[str] = []

    def judge(self, progress: Callable[[int, int], None]) -> Iterator[tuple[Judgement, Answer]]:
        """Let a second owner in everywhere, and judge what both have left, as long as the budget lasts."""
        if self._host.watches_from_outside:
            self._from_outside()
            return
        if self._asked.only is not None:
            yield from self._run([parse(self._asked.only, self._reference.trace)], progress)
            return
        places, every = range(len(self._reference.trace.ops) + 1), self._asked.every
        chosen = thinned(places, lambda after: after // every, every=every, seed=self._asked.seed)
        whole = [RacePoint(after) for after in chosen]
        self._passed_over = len(places) - len(whole)
        yield from self._run(whole, progress)
        if self._hangs >= HANGS_AT_MOST:
            self.notes.append(f"race: {self._hangs} races did not end; the others were left out.")
            return
        if self._races < len(whole):
            bound = f"{self._asked.budget.states} states and {self._asked.budget.time_s:g} s"
            text = f"race: the budget of {bound} is used up after {self._races} of {len(whole)} races."
            self._doubt("bound", text, "Raise the budget: budget='full', or Budget(states=…, time_s=…).")
            return
        pairs = self._switches()
        yield from self._run(pairs, progress)
        self._switched = self._races - len(whole)
        self._left_out += len(pairs) - self._switched
        self._tell()

    def _from_outside(self) -> None:
        """Where every fault was asked for it is enough to say so; where this one was named, nothing was measured."""
        if self._asked.names("race") or self._asked.only is not None:
            advice = "Leave race out of the faults, or record with recorder='python' if its own code does all writes."
            self._doubt("tool-missing", f"race: {FROM_OUTSIDE}", advice)
        else:
            self.notes.append(f"race was not tried: {FROM_OUTSIDE}")

    def _switches(self) -> list[RacePoint]:
        """The interleavings in which the second owner is stopped too: all, or a seeded sample of them."""
        pairs = [RacePoint(after, switch) for after, made in self._made.items() for switch in range(1, made + 1)]
        room = least(self._asked.budget.sample, self._asked.every)
        if len(pairs) <= room:
            return pairs
        self._left_out = len(pairs) - room
        return sorted(random.Random(self._asked.seed).sample(pairs, room))  # noqa: S311 - a sample, no secret

    def _tell(self) -> None:
        if self._passed_over:
            places = len(self._made) + self._passed_over
            self.notes.append(f"race: of {places:,} places a second owner entered at a sample of {len(self._made):,}.")
        if self._left_out:
            total = self._left_out + self._switched
            self.notes.append(
                f"race: of {total:,} interleavings in which both owners are stopped, {self._switched:,} were tried."
            )
        if self._both:
            self.notes.append(
                f"race: in {self._both:,} of {self._verdicts.total():,} different outcomes neither owner was refused "
                "and both came to their end; what they left was right. A lease would keep the second one out."
            )

    # --- running -------------------------------------------------------------------------------

    def _run(self, points: list[RacePoint], progress: Callable[[int, int], None]) -> Iterator[tuple[Judgement, Answer]]:
        """These races, as far as the budget goes."""
        for position in range(0, len(points), RACES_AT_A_TIME):
            met: list[RaceState] = []
            for number, point in enumerate(points[position : position + RACES_AT_A_TIME], position):
                if self._is_used_up() or self._hangs >= HANGS_AT_MOST:
                    break
                progress(number, len(points))
                met += self._race(point)
            yield from self._recovered(met)

    def _race(self, point: RacePoint) -> Iterator[RaceState]:
        """What one race left, unless that was met before."""
        told = self._host.race(
            after=point.after,
            switch=point.switch or None,
            nothing=self._reference.nothing.get("error"),
            timeout_s=self._timeout_s,
            limit_s=self._timeout_s * RECORDED_RUN_FACTOR,
        )
        self._hangs += any(owner["how"] == "hang" for owner in told["owners"])
        race = race_of(point, self._host.root, told, self._reference.rebuilt)
        self._races += 1
        for owner in (race.first, race.second):
            if owner is not None and owner.said.startswith("UsageError: "):
                text = f"{owner.said.removeprefix('UsageError: ')} (at {point.id})"
                raise UsageError(text)
        if race.reached != point.after:
            found = "ended before" if race.reached is None else f"came to {race.reached}"
            text = f"{point.id}: the first owner was to be stopped after op {point.after} and {found}."
            advice = "Two runs must make the same calls: give the program fixed seeds and names."
            self._doubt("runs-differ", text, advice)
            return
        if not point.switch:
            made = race.ended_second_at
            self._made[point.after] = 0 if made is None else made - race.turns[1][1]
        digest = self._digest(race)
        if digest not in self._seen:
            self._seen.add(digest)
            yield state_of_race(race)

    def _digest(self, race: Race) -> str:
        """Equal for races that no third process and no judge can tell apart."""
        outside = [(line["who"], line.get("mark"), _gist(line)) for line in race.record]
        ends = [_end_gist(owner) for owner in (race.first, race.second)]
        text = f"{race.last.digest} {race.last.times_set} {outside} {ends}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    # --- recovering ----------------------------------------------------------------------------

    def _recovered(self, met: list[RaceState]) -> Iterator[tuple[Judgement, Answer]]:
        flying = {str(number): each for number, each in enumerate(met)}
        requests = (self._request(name, each) for name, each in flying.items())
        for raw in list(self._host.recover(requests)):  # all of them: blaming a stale writer asks for one more
            state = flying[raw.state]
            answer = readable(raw, state.trace.root)
            for step in answer.steps:
                if step.error.startswith("UsageError: "):
                    text = f"{step.error.removeprefix('UsageError: ')} (at {state.id})"
                    raise UsageError(text)
            judgement = self._blamed(self._judge().ruling(state, answer), state)
            self._count(judgement, state.race)
            self._unknown += judgement.verdict == "consistent" and tells_unknown(answer)
            yield judgement, replace(answer, steps=(*answer.steps, *owner_steps(state.race)))

    def _judge(self) -> RaceJudge:
        about = self._host.description
        return RaceJudge(
            self._reference,
            self._policy,
            self._honesty,
            opens=about["opens"],
            keyed=about["keyed"],
            ends=about["stop_after_acks"] is not None,
        )

    def _request(self, name: str, state: RaceState) -> dict[str, Any]:
        return live_request(name, state, self._reference, timeout_s=self._timeout_s)

    def _blamed(self, judgement: Judgement, state: RaceState) -> Judgement:
        """A Subject that was right when the second owner had ended, and is wrong after the first one's further changes:
        then it was a stale writer that broke it."""
        race, first = state.race, judgement.problems[:1]
        at = race.ended_second_at
        if not first or first[0].step != "first" or first[0].kind not in SPOILED or not self._reference.program:
            return judgement
        taken_over = at is not None and race.proved and race.second is not None and race.second.how == "returned"
        changed = at is not None and any(isinstance(op, t.FileOp) for op in race.trace.ops[at:])
        if not taken_over or not changed:
            return judgement
        assert at is not None
        before = replace(state, tree=Prefixes(race.trace).tree(at), done=at)
        (raw,) = self._host.recover(iter([self._request("0", before)]))
        if self._judge().judge(before, readable(raw, race.trace.root)).verdict != "consistent":
            return judgement
        summary = f"the first owner wrote after the second one had taken over and ended: {first[0].summary}"
        problem = replace(first[0], kind="stale-write", summary=summary)
        return replace(judgement, problems=(problem, *judgement.problems[1:]))

    # --- counting ------------------------------------------------------------------------------

    def _count(self, judgement: Judgement, race: Race) -> None:
        self._verdicts[judgement.verdict] += 1
        if judgement.verdict == "violation" and self._first is None:
            self._first = self._verdicts.total(), round(time.monotonic() - self._started, 3)
        if judgement.verdict == "consistent" and self._reference.program and _both_acted(race):
            self._both += 1
        if judgement.verdict == "unmeasured" and not any(each.code == "checker-failed" for each in self.unmeasured):
            text = f"check itself failed at {judgement.state.id}."
            self._doubt("checker-failed", text, "Mend the check: it must raise AssertionError or Violation, or return.")

    def _is_used_up(self) -> bool:
        budget = self._asked.budget
        return self._races >= budget.states or time.monotonic() - self._started >= budget.time_s

    def _doubt(self, code: str, detail: str, advice: str) -> None:
        if sum(each.code == code for each in self.unmeasured) < 3:  # noqa: PLR2004 - more would tell no more
            self.unmeasured.append(UnmeasuredReason(code=code, detail=detail, next=advice))

    def count(self) -> FaultCount:
        """The figures for the report: ``points`` are the ops after which the second owner entered."""
        first, first_s = self._first or (0, 0.0)
        return FaultCount(
            fault="race",
            points=len(self._made) or self._races,
            states=self._races + self._left_out + self._passed_over,
            reached=self._races,
            skipped=self._left_out + self._passed_over,
            sampled=self._switched if self._left_out else 0,
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


def _gist(line: dict[str, Any]) -> str:
    if "mark" in line:
        return ""
    op = t.op_from_json(line["op"])
    if isinstance(op, t.Effect):
        return f"{identity(op)} {op.counted}"
    if isinstance(op, t.Unknown):
        return f"{op.name} {op.key} {canonical(op.detail)}"
    return f"{op.KIND} {canonical(getattr(op, 'value', None))}"


def _end_gist(owner: OwnerEnd | None) -> str:
    if owner is None:
        return ""
    value = {name: part for name, part in (owner.value or {}).items() if name != "raised"}
    return f"{owner.how} {canonical(value)} {bool(owner.said)} {owner.what} {bool(owner.left)} {owner.killed}"


def _both_acted(race: Race) -> bool:
    """Whether both changed files or did something outside side by side, and neither waited for the other."""
    if race.waited:
        return False
    start = race.turns[1][1] if len(race.turns) > 1 else 0
    acts = [isinstance(op, (t.FileOp, t.Effect)) for op in race.trace.ops]
    later = {who for who, acts_too in zip(race.owners[start:], acts[start:], strict=True) if acts_too}
    return len(later) > 1 and FIRST in later and any(acts[:start])
