"""One path through several crashes: save, crash, recover, save again, in the order that the values give.

Where a ``Store`` or ``Log`` has a :class:`~crashlab.subject.Crash` among its values, the lab does not try every
state but follows one path. The values up to the crash are saved in a recorded run; of the states that the
crash may leave there one is picked; the subject recovers from it, three times as always, and is judged. Then a
new run goes on from that state: it opens, loads, and saves the next values, recorded again. After a kill what
the dead run had not synced is still pending, so that a later power loss may take it; after a power loss it is
not (:mod:`crashlab.crash.nested`, which also composes the ids). What the last run leaves is judged as well.

A path stops at its first violation. Before that counts, the values are saved once more without any crash:
what is wrong then already is no fault of the crash.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.asking import met
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.nested import is_power
from crashlab.crash.picks import fewest_first, latest_first, picked
from crashlab.crash.states import prefixes_of
from crashlab.demands import Problem, Reference
from crashlab.errors import ToolMissing, UsageError
from crashlab.honesty import Honesty
from crashlab.judge import Judge, Judgement
from crashlab.kept_host import KeptHost, Memory
from crashlab.observation import Answer, Step, readable, same
from crashlab.record.strace.tool import available
from crashlab.recover.host import ISOLATED, WARM
from crashlab.recover.place import base_tree
from crashlab.recoveries import Recoveries
from crashlab.reference import CHILD_STARTED, HARMLESS, fitness, nothing_there, recorded
from crashlab.report import model
from crashlab.rounds import COMPARED_EVERY, COMPARED_FIRST, USAGE
from crashlab.values import canonical, shown
from crashlab.workload import GO_ON, RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from crashlab.crash.kill import Cut
    from crashlab.crash.nested import Recovery
    from crashlab.crash.states import CrashState
    from crashlab.observation import RawRecording
    from crashlab.settings import Asked
    from crashlab.subject import Crash

STEPS = ("first", "second", "third")
LIVE = "live"

BOUND = 8
"""Of a cut with at most so many variants all may be picked, of a larger one its core: a path is cheap, not whole."""


class InDoubt(Honesty):
    """A path knows no state but its own, so that every unknown may be the best answer."""

    def __init__(self) -> None:
        """Nothing is known."""

    def honest(self, _unknown: t.Unknown, _state: CrashState) -> bool:
        """Always."""
        return True


def on_path(state: CrashState, reference: Reference) -> tuple[CrashState, Reference]:
    """A state after several crashes, to be judged by all that was told before it, and what it is judged by."""
    return dataclasses.replace(state, within=None), dataclasses.replace(reference, trace=state.trace)


def _digest(*parts: str) -> str:
    """A short name for what these texts say together."""
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


@dataclass
class Leg:
    """One run of the path: what it saved, and the crash that ended it with what recovery made of that.

    ``values`` are those that the run was given, as they are; the calls of its trace hold what ``view`` shows of them.
    """

    trace: t.Trace
    ran: t.Trace
    within: Recovery | None
    losses: Losses
    at: Cut = "page"
    state: CrashState | None = None
    answer: Answer | None = None
    values: tuple[Any, ...] = ()

    def kills(self) -> Iterator[CrashState]:
        """Every state that a kill of this run leaves."""
        return kill_states(self.trace, at=self.at) if self.within is None else self.within.kills()

    def pick(self, fault: str, pick: int) -> CrashState:
        """One of the states that a kill or a power loss of this run leaves."""
        if fault == "kill":
            return picked(latest_first(self.kills()), pick)
        state = picked(fewest_first(self.losses), pick).make()
        return state if self.within is None else self.within.lost(state)

    def one(self, crash: str) -> CrashState:
        """The state that the last part of an id names. Raises UsageError where there is none."""
        if self.within is not None:
            return self.within.one(crash)
        if crash.startswith("power"):
            return self.losses.one(crash)
        from crashlab.crash.sources import Kills  # noqa: PLC0415 - one state by its id

        return Kills(self.trace, self.at).one(crash)


class _Runs(Recoveries):
    """Recordings of runs that go on after a crash."""

    step: dict[str, Any]

    def request(self, outer: CrashState) -> dict[str, Any]:
        """What :meth:`Host.record` needs to go on from ``outer``."""
        return {**met(outer), "step": self.step, "expected": None}

    def go_on(self, outer: CrashState, step: dict[str, Any]) -> tuple[Recovery, RawRecording]:
        """Record such a run."""
        self.step = step
        recovery = self.recovery(outer)
        assert self.latest is not None, "nothing is stored, so it was recorded"
        return recovery, self.latest


@dataclass
class Path:
    """Follows one path of the subject of ``kept``. ``carry`` says what a step has to tell of some values.

    Give it values and crashes one after the other, and :meth:`look` at the end. Once something was
    ``found``, or there are reasons against a pass, nothing more is tried.
    """

    kept: KeptHost
    asked: Asked
    carry: Callable[[Sequence[Any]], dict[str, Any]]
    found: tuple[Judgement, Answer] | None = None
    legs: list[Leg] = field(default_factory=list)
    controls: list[model.Control] = field(default_factory=list)
    unmeasured: list[model.UnmeasuredReason] = field(default_factory=list)
    judged: list[tuple[str, model.Verdict]] = field(default_factory=list)
    modules: tuple[str, ...] = ()
    values: list[Any] = field(default_factory=list)
    _own: list[Any] = field(default_factory=list)
    _leg: Leg | None = None
    _looked: Leg | None = None
    _runs: _Runs | None = None
    _refused: bool = False
    _past: str = ""
    _name: str = ""

    # --- what is asked of it -------------------------------------------------------------------

    def is_over(self) -> bool:
        """Whether nothing more is tried."""
        unfit = any(reason.code not in HARMLESS for reason in self.unmeasured)
        return self.found is not None or unfit or self._refused

    def save(self, value: Any) -> None:
        """One more value, or batch, in the run at hand."""
        self._own.append(value)
        self.values.append(value)
        self._leg = self._looked = None

    def crash(self, crash: Crash) -> None:
        """Crash the run at hand, recover, judge; what is saved from here on goes on from there."""
        if (leg := self._recorded()) is None:
            return
        state = self._picked(leg, crash)
        answer = self._judge(state, "power" if is_power(state) else "kill")
        self.legs.append(dataclasses.replace(leg, state=state, answer=answer, values=tuple(self._own)))
        self._leg = self._looked = None
        self._own, self._past = [], _digest(self._name, repr(crash))

    def look(self) -> None:
        """Judge what is there at the end of the run at hand, which goes on afterwards."""
        if self._looked is not None or (self.legs and not self._own):
            return  # the recovery from the last crash was judged, and nothing came after it
        if (leg := self._recorded()) is None:
            return
        state = leg.one(f"kill@{len(leg.ran.ops)}")
        self._looked = dataclasses.replace(leg, state=state, values=tuple(self._own))
        self._looked.answer = self._judge(state, "kill")

    def told(self) -> list[Leg]:
        """All runs so far that came to a state."""
        return [*self.legs, *([self._looked] if self._looked is not None else [])]

    @property
    def first(self) -> Leg:
        """The first run."""
        told = self.told()
        leg = told[0] if told else self._leg
        assert leg is not None, "a path begins with a run"
        return leg

    def reference(self, trace: t.Trace) -> Reference:
        """What is demanded of the states of ``trace``, which holds all that was told before."""
        description = self.kept.host.description
        return Reference(
            kind=description["kind"],
            trace=trace,
            atomic=description["atomic"],
            nothing=self.kept.nothing,
            rebuilt=tuple(description["rebuilt"]),
        )

    # --- recording -----------------------------------------------------------------------------

    def _recorded(self) -> Leg | None:
        """The run at hand, recorded if it has not been; None where there is nothing to go by."""
        if self.is_over():
            return None
        if self._leg is not None:
            return self._leg
        asked = self.asked
        past = self._past or canonical([asked.profile, asked.seed, self._at])
        self._name = _digest(past, canonical(self.carry(self._own)))
        if (known := self.kept.runs.get(self._name)) is not None:
            self._leg, controls, self.modules = known
            self.controls = list(controls)
            return self._leg
        self._leg = self._next_run(self.legs[-1]) if self.legs else self._first_run()
        if self.is_over():
            return None
        if not self.unmeasured:
            self.kept.runs.put(self._name, (self._leg, tuple(self.controls), self.modules))
        return self._leg

    def _first_run(self) -> Leg:
        host = self.kept.host
        traced = host.traced is not None or self.asked.recorder == "strace"
        raw, trace = self._run_once(traced=traced)
        blind = any(reason.code == "unseen-writer" for reason in self.unmeasured)
        if (blind or any(text.startswith(CHILD_STARTED) for text in raw.unseen)) and not traced:
            raw, trace = self._under_strace(raw, trace)
        self.modules = raw.modules
        if not self.is_over():
            self._learn()
        return Leg(trace, trace, None, self._losses(trace), self._at)

    def _run_once(self, *, traced: bool) -> tuple[RawRecording, t.Trace]:
        """The values without a crash."""
        way: dict[str, Any] = {"tree": base_tree().to_json(), "effects": [], "acked": [], "expected": None}
        step = {"step": RUN, **self.carry(self.values)}
        try:
            raw = recorded(self.kept.host, traced=traced, recovery={**way, "step": step})
        except UsageError:
            self.kept.refused = True
            raise
        trace = t.Trace(root=raw.root, base=raw.base, ops=raw.ops, threads=raw.threads)
        reasons, proof = fitness(raw, trace, self.kept.host.description, traced=traced)
        self.controls = [proof]
        self.unmeasured = [each for each in reasons if self.values or each.code not in ("empty-trace", "no-ack")]
        return raw, trace

    def _under_strace(self, raw: RawRecording, trace: t.Trace) -> tuple[RawRecording, t.Trace]:
        """The run once more, seen from outside, where that is wanted and possible."""
        if self.asked.recorder == "python":
            return raw, trace
        try:
            available()
        except ToolMissing as error:
            self.unmeasured = [dataclasses.replace(each, next=error.next) for each in self.unmeasured]
            return raw, trace
        return self._run_once(traced=True)

    def _next_run(self, before: Leg) -> Leg:
        assert before.state is not None, "the run before this one has crashed"
        if self._runs is None:
            bounds: dict[str, Any] = {"bound": BOUND, "seed": self.asked.seed, "sample": 0, "edges": True}
            first = self.reference(self.legs[0].trace)
            self._runs = _Runs(self.kept.host, first, profiles=self.asked.profile, at=self._at, **bounds)
        step = {"step": GO_ON, "nothing": self.kept.nothing.get("error"), **self.carry(self._own)}
        recovery, raw = self._runs.go_on(before.state, step)
        ran = t.Trace(root=raw.root, base=raw.base, ops=raw.ops)
        leg = Leg(recovery.trace, ran, recovery, recovery.losses)
        if not self._broke_off(leg, raw):
            self.unmeasured += [each for each in self._runs.unmeasured if each not in self.unmeasured]
        return leg

    def _broke_off(self, leg: Leg, raw: RawRecording) -> bool:
        """Whether the run did not come to its end because a call failed, which it must not after a good recovery."""
        if raw.error.startswith(USAGE):
            raise UsageError(raw.error.removeprefix(USAGE))
        call = next((op for op in reversed(raw.ops) if isinstance(op, (t.Call, t.Ack))), None)
        if raw.how == "returned" or not isinstance(call, t.Call) or call.name == t.LOAD:
            return False
        what = {"hang": "did not end", "raised": f"raised {raw.error}"}.get(raw.how, f"ended the process {raw.error}")
        summary = f"recovery returned; then {call.name}({shown(call.value)}) {what}"
        problem = Problem(kind="hang" if raw.how == "hang" else "stuck", summary=summary, step=LIVE)
        state = leg.one(f"kill@{len(raw.ops)}")
        step = Step(
            step=LIVE, how=raw.how, error=raw.error, traceback=raw.traceback, stdout=raw.stdout, stderr=raw.stderr
        )
        answer = readable(Answer(state=state.id, steps=(step,)), leg.trace.root)
        self._looked = dataclasses.replace(leg, state=state, answer=answer, values=tuple(self._own))
        self.judged.append((state.fault, "violation"))
        self._convict(Judgement(state=state, verdict="violation", problems=(problem,)), answer)
        return True

    @property
    def _at(self) -> Cut:
        """Where a kill cuts a write."""
        return "byte" if any(fault.options.get("cut") == "byte" for fault in self.asked.faults) else "page"

    def _losses(self, trace: t.Trace) -> Losses:
        asked, rebuilt = self.asked, tuple(self.kept.host.description["rebuilt"])
        options: dict[str, Any] = {"bound": BOUND, "seed": asked.seed, "sample": 0, "edges": True}
        return Losses(trace, asked.profiles, rebuilt=rebuilt, **options)

    def _picked(self, leg: Leg, crash: Crash) -> CrashState:
        fault = crash.at.rpartition("/")[2]
        return leg.one(fault) if "@" in fault else leg.pick(fault, crash.pick)

    # --- judging -------------------------------------------------------------------------------

    def _learn(self) -> None:
        """What ``load`` gives on an empty directory: found out once for each host."""
        kept = self.kept
        if not kept.prepared:
            nothing = t.Trace(root=kept.host.root, base=base_tree(), ops=())
            kept.host.prepare(nothing, modules=self.modules)
            empty = self._asked(prefixes_of(nothing).killed(0), ("first",)).steps[0]
            kept.nothing, control, kept.unusable = nothing_there(empty)
            kept.controls, kept.prepared = [control], True
        self.controls += kept.controls
        self.unmeasured += kept.unusable

    def _judge(self, state: CrashState, fault: str) -> Answer:
        """Recover from ``state``, three times, and judge that by all that was told before."""
        flat, reference = on_path(state, self.reference(state.trace))
        judge = Judge(reference, self.asked.policy_of(fault), InDoubt())
        name = f"{self._name} {state.id}"
        answer: Answer | None = self.kept.answers.get(name)
        if answer is None:
            answer = self._answered(judge, flat, state)
            self.kept.answers.put(name, answer)
        judgement = judge.judge(flat, answer)
        self.judged.append((fault, judgement.verdict))
        self._refused, self.kept.failing = judgement.verdict == "refused", judgement.verdict == "violation"
        if judgement.verdict == "violation":
            self._convict(dataclasses.replace(judgement, state=state), answer)
        return answer

    def _answered(self, judge: Judge, flat: CrashState, state: CrashState) -> Answer:
        """What recovery does on ``state``: in a process that many states share, if nothing is wrong there."""
        answer = self._asked(state, STEPS, together=self.kept.host.mode == WARM and not self.kept.failing)
        judgement = judge.judge(flat, answer)
        if answer.compared:
            shared = judge.judge(flat, dataclasses.replace(answer, steps=answer.compared))
            alike = answer.left_same and same(answer.steps, answer.compared) and shared.verdict == judgement.verdict
            self._trust(alike=alike)
        if judgement.verdict != "consistent" and answer.shared:
            answer = self._asked(state, STEPS)
            self._trust(alike=judge.judge(flat, answer).verdict != "consistent")
        return answer

    def _trust(self, *, alike: bool) -> None:
        """Where one process saw a state otherwise than a new one, no state shares one any more."""
        if not alike:
            self.kept.host.mode = ISOLATED
            self.kept.answers = Memory()

    def _asked(self, state: CrashState, steps: Sequence[str], *, together: bool = False) -> Answer:
        """What the subject does on ``state``."""
        nothing, values = self.kept.nothing.get("error"), self.carry(self.values)
        forms = [{"step": step, "nothing": nothing, **values} for step in steps]
        timeout_s = float(self.kept.host.description["timeout_s"])
        request = {"state": state.id, "done": 0, **met(state), "steps": forms, "timeout_s": timeout_s}
        if together:
            self.kept.recovered += 1
            compared = self.kept.recovered <= COMPARED_FIRST or int(state.digest[:8], 16) % COMPARED_EVERY == 0
            request |= {"warm": True, "compared": compared}
        (answer,) = self.kept.host.recover(iter([request]))
        answer = readable(answer, state.trace.root)
        for step in answer.steps:
            if step.error.startswith(USAGE):
                text = f"{step.error.removeprefix(USAGE)} (at {state.id})"
                raise UsageError(text)
        return answer

    def _convict(self, judgement: Judgement, answer: Answer) -> None:
        """Take a violation for one, if the values come back where nothing crashes; those that did are known."""
        unknown = [key for key in self._keys(judgement.state) if key not in self.kept.come_back]
        if unknown and not self._come_back():
            return
        self.controls.append(model.Control(control="round-trip", passed=True))
        self.found = judgement, answer

    def _keys(self, state: CrashState) -> list[str]:
        """What must come back: each value of a Store, of a Log the whole list."""
        forms = [op.value for op in state.trace.ops if isinstance(op, t.Call) and op.name != t.LOAD]
        log = self.kept.host.description["kind"] == "Log"
        return [canonical(forms)] if log else [canonical([form]) for form in forms]

    def _come_back(self) -> bool:
        """Save all values once more without a crash, and load each after its call; a Log at its end."""
        controls, reasons = self.controls, self.unmeasured
        _, trace = self._run_once(traced=self.kept.host.traced is not None)
        self.controls = controls
        self.unmeasured = reasons + [each for each in self.unmeasured if each not in reasons]
        log = self.kept.host.description["kind"] == "Log"
        calls = [op for op in trace.ops if isinstance(op, t.Call)]
        ends = [*(op.n - 1 for op in calls[1:]), len(trace.ops)]  # each call has returned, and the next not begun
        for end in ends[-1:] if log else ends:
            values = self.reference(trace).calls(end)
            key = canonical(values if log else values[-1:])
            if key in self.kept.come_back or not values:
                continue
            saved = [event for batch in values for event in batch] if log else values[-1]
            step = self._asked(prefixes_of(trace).killed(end), ("first",)).steps[0]
            if step.how != "returned" or canonical((step.value or {})["value"]) != canonical(saved):
                self._no_round_trip(saved, step)
                return False
            self.kept.come_back.add(key)
        return True

    def _no_round_trip(self, saved: Any, step: Step) -> None:
        loaded = shown((step.value or {}).get("value")) if step.how == "returned" else step.error or step.how
        text = f"saved {shown(saved)}, loaded {loaded} without any crash."
        self.controls.append(model.Control(control="round-trip", passed=False, detail=f"loaded {loaded}"))
        reason = model.UnmeasuredReason(code="round-trip", detail=text, next="Mend it, or say what counts: view=….")
        self.unmeasured.append(reason)
