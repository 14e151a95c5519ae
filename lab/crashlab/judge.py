"""The oracle: what a recovery may do on one crash state, and what it did.

Stated positively: a Store loads the last acked value or the one being saved; a Log loads every acked
event in order and at most a beginning of the batch being appended; a Subject reaches the uncrashed
end. Each effect is in the world as often as in the uncrashed run, or honestly unknown. Doing it
again changes nothing, and one more value is taken and found. Everything else has a kind of
:data:`crashlab.kinds.KINDS`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.crash.states import prefixes_of
from crashlab.damage_demands import DamageDemands
from crashlab.demands import WHOLE_BATCH, Problem, Reference, told_before, unknowns_of
from crashlab.effects import Effects
from crashlab.kinds import gravity
from crashlab.tree import File
from crashlab.values import apart, canonical, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from crashlab.crash.states import CrashState
    from crashlab.damage_demands import Said
    from crashlab.honesty import Honesty
    from crashlab.observation import Answer, Step
    from crashlab.report.model import Verdict
    from crashlab.subject import Policy


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict on one crash state; ``problems`` gravest first. ``undetectable``: nobody can see what is lost.

    ``redone``: nor that an effect was done again.
    """

    state: CrashState
    verdict: Verdict
    problems: tuple[Problem, ...] = ()
    undetectable: bool = False
    redone: bool = False

    @property
    def kind(self) -> str:
        """The gravest kind, or ""."""
        return self.problems[0].kind if self.problems else ""


class Judge:
    """Judges the answers on the states of one trace under one policy.

    ``said`` is what recovery says of the files before they are damaged, per moment.
    """

    def __init__(
        self, reference: Reference, policy: Policy, honesty: Honesty, *, said: Mapping[int, Said] | None = None
    ) -> None:
        self._reference = reference
        self._policy = policy
        self._honesty = honesty
        self._effects = Effects(reference, policy, honesty)
        self._damage = DamageDemands(reference, said, refuse=bool(policy.refuse))

    def judge(self, state: CrashState, answer: Answer) -> Judgement:
        """The verdict on ``state``, given what recovery did there."""
        if not answer.steps or any("check_error" in (step.value or {}) for step in answer.steps):
            return Judgement(state=state, verdict="unmeasured")
        if state.damage is not None:
            ruling = self._damage.rule(state, answer, lambda then: self._sorted(then, answer))
            return Judgement(state=state, **ruling._asdict())
        problems = self._sorted(state, answer)
        if not problems:
            return Judgement(state=state, verdict="consistent")
        if self._policy.refuse and answer.steps[0].loud:
            graver = tuple(problem for problem in problems if problem.kind not in ("stuck", "lost"))
            return Judgement(
                state=state, verdict="violation" if graver else "refused", problems=graver or tuple(problems)
            )
        return Judgement(state=state, verdict="violation", problems=tuple(problems))

    def _sorted(self, state: CrashState, answer: Answer) -> list[Problem]:
        return sorted(_causes(self._problems(state, answer)), key=lambda problem: gravity(problem.kind))

    def _problems(self, state: CrashState, answer: Answer) -> Iterator[Problem]:
        steps = {step.step: step for step in answer.steps}
        for step in answer.steps:
            yield from _process_problems(step)
        first = steps["first"]
        if first.how != "returned":
            yield from self._refusals(state, first)
        elif self._reference.program:
            yield from self._end_problems(state, first)
        else:
            yield from self._value_problems(state, first)
        if first.how == "returned":
            yield from self._again_problems(first, steps.get("second"), steps.get("third"))
        elif first.aside and state.damage is not None and (second := steps.get("second")) is not None:
            yield from self._aside_problems(state, first, second)
        yield from self._effects.problems(state, answer)

    # --- one outcome ---------------------------------------------------------------------------

    def _refusals(self, state: CrashState, step: Step) -> Iterator[Problem]:
        store = not self._reference.program
        acked = self._reference.acked(state.ran) if store else 0
        what = "load()" if store else "resume"
        did = f"{what} raised {step.error}" if step.how == "raised" else f"{what} {_ending(step)}"
        if files := self._evidence_destroyed(state, step):
            yield Problem(
                kind="evidence-destroyed", summary=f"{did}, and changed {files}", expected=("files untouched",)
            )
        if step.how == "hang":
            return
        if store and acked:
            last = shown(self._reference.calls(state.ran)[acked - 1])
            yield Problem(kind="lost", summary=f"{last} was acked; {did}", expected=self._promised(state))
        elif store:
            flying = self._reference.calls(state.ran)
            expected = ("nothing there", *(shown(value) for value in flying[-1:]))
            yield Problem(kind="stuck", summary=f"{did}, though nothing was acked", expected=expected)
        else:
            yield Problem(kind="stuck", summary=did, expected=("resume, and the uncrashed end",))

    def _promised(self, state: CrashState) -> tuple[str, ...]:
        """What a load may give after an ack: what was acked, or that and what was being saved."""
        calls, acked = self._reference.calls(state.ran), self._reference.acked(state.ran)
        if self._reference.kind == "Log":
            events, flying = sum(map(len, calls[:acked])), calls[acked:]
            more = ", alone or followed by the batch being appended" if flying else ""
            return (f"{_count(events, 'acked event')}{more}",)
        return tuple(shown(value) for value in calls[acked - 1 :])

    def _evidence_destroyed(self, state: CrashState, step: Step) -> str:
        """Files that a refusal changed: not one that a working resume was about to replace, nor its temporary files."""
        if self._policy.evidence != "keep" or step.how == "hang":
            return ""
        if self._reference.program and not self._policy.refuse:
            return ""  # it did not refuse, it went on and failed: that is stuck
        if state.damage is not None:  # the other files may change as they always do
            return ", ".join(path.removeprefix("dir/") for path in step.destroyed if path in state.damage.paths)
        renamed = {op.path for op in state.trace.ops if isinstance(op, (t.Rename, t.Unlink))}
        return ", ".join(path.removeprefix("dir/") for path in step.destroyed if path not in renamed)

    def _aside_problems(self, state: CrashState, first: Step, second: Step) -> Iterator[Problem]:
        """What the next recovery makes of it that a refusal has moved the damaged files out of the way."""
        raised = (second.value or {}).get("raised")
        if second.how != "returned" or raised not in (None, self._reference.nothing.get("text")):
            return  # it refuses again
        name = ", ".join(path.removeprefix("dir/") for path in first.aside)
        found = self._end_problems if self._reference.program else self._value_problems
        for problem in found(state, second):
            summary = f"it refused once and moved {name} aside; then: {problem.summary}"
            yield replace(problem, summary=summary, step="second")

    def _end_problems(self, state: CrashState, step: Step) -> Iterator[Problem]:
        value = step.value or {}
        failed = value.get("check")
        if failed is not None:
            yield Problem(kind=failed["kind"], summary=failed["text"])
        if self._reference.has_check or not self._reference.ended:
            return
        if canonical(value["end"]) == canonical(self._reference.end):
            return
        if told_before(self._reference, state) or any(self._honesty.honest(each, state) for each in unknowns_of(step)):
            return  # a person must decide now: the end waits for them
        summary = f"resumed to {shown(value['end'])}, the uncrashed run ended with {shown(self._reference.end)}"
        yield Problem(kind="diverged", summary=summary, expected=(shown(self._reference.end),))

    def _value_problems(self, state: CrashState, step: Step) -> Iterator[Problem]:
        value = step.value or {}
        if self._reference.kind == "Log":
            yield from self._log_problems(state, value)
        else:
            yield from self._store_problems(state, value)

    def _store_problems(self, state: CrashState, value: dict[str, Any]) -> Iterator[Problem]:
        started = [canonical(form) for form in self._reference.calls(state.ran)]
        acked = self._reference.acked(state.ran)
        found = canonical(value["value"])
        nothing = value.get("nothing", False) or self._reference.nothing == {"value": value["value"]}
        if nothing and (not acked or self._policy.acked == "prefix"):
            return
        allowed = started[0 if self._policy.acked == "prefix" else max(acked - 1, 0) :]
        if found in allowed and not value.get("nothing"):
            return
        last = shown(self._reference.calls(state.ran)[acked - 1]) if acked else "nothing there"
        expected = (last, *([shown(self._reference.calls(state.ran)[-1])] if len(started) > acked else []))
        beside = self._reference.calls(state.ran)[acked - 1] if acked else None
        said = "returned nothing there" if nothing else f"returned {apart(beside, value['value'])}"
        if "raised" in value:
            kind, said = "lost", f"raised {value['raised']}"
        elif nothing:
            kind = "silent-reset" if self._kept_file(state) else "lost"
        elif found in started[:acked]:
            kind = "lost"
        else:
            kind = "torn"
        summary = f"{last} was acked; load() {said}" if acked else f"load() {said}, never saved"
        yield Problem(kind=kind, summary=summary, expected=expected)

    def _log_problems(self, state: CrashState, value: dict[str, Any]) -> Iterator[Problem]:
        batches = self._reference.calls(state.ran)
        whole = self._reference.acked(state.ran)
        acked = [canonical(event) for batch in batches[:whole] for event in batch]
        flying = [canonical(event) for batch in batches[whole:] for event in batch]
        found = [canonical(event) for event in value["value"] or []]
        wanted = acked + flying
        if found == wanted[: len(found)] and len(found) >= len(acked):
            whole_batches = accumulate((len(batch) for batch in batches[whole:]), initial=len(acked))
            if self._reference.atomic and len(found) not in whole_batches:
                summary = f"{len(found) - len(acked)} of {len(flying)} events of one atomic batch are there"
                yield Problem(kind="torn", summary=summary, expected=(WHOLE_BATCH,))
            return
        expected = self._promised(state)
        kind = _log_kind(found, acked, wanted)
        if kind == "lost" and not found and self._kept_file(state):
            kind = "silent-reset"
        yield Problem(kind=kind, summary=_log_summary(found, acked), expected=expected)

    def _kept_file(self, state: CrashState) -> bool:
        """Whether a name that led to something at the last ack still leads to a file: nothing is read out of damage."""
        last = max((op.n for op in state.acks), default=0)
        before = prefixes_of(state.trace).tree(last)
        kept = {path for path, _, node in before.walk("dir") if isinstance(node, File) and node.content.size}
        return any(path in kept and isinstance(node, File) for path, _, node in state.tree.walk("dir"))

    # --- again ---------------------------------------------------------------------------------

    def _again_problems(self, first: Step, second: Step | None, third: Step | None) -> Iterator[Problem]:
        if second is None:
            return
        if second.how != "returned":
            summary = f"the second recovery {_ending(second)}, the first returned"
            yield Problem(kind="diverged", summary=summary, step="second")
            return
        yield from self._second_problems(first.value or {}, second)
        more = (second.value or {}).get("more")
        if more is None:
            return
        if "error" in more:
            yield Problem(kind="stuck", summary=f"after recovery one more save raised {more['error']}", step="second")
        elif third is not None:
            yield from _more_problems(more["saved"], third)

    def _second_problems(self, first: dict[str, Any], second: Step) -> Iterator[Problem]:
        key = "end" if self._reference.program else "value"
        again = second.value or {}
        failed = again.get("check")
        if failed is not None and first.get("check") is None:
            text = f"recovered again: {failed['text']}"
            yield Problem(kind=failed["kind"], summary=text, step="second")
        elif not self._reference.has_check and canonical(first[key]) != canonical(again[key]):
            summary = f"recovered twice: first {shown(first[key])}, then {shown(again[key])}"
            yield Problem(kind="diverged", summary=summary, step="second")


def _causes(problems: Iterable[Problem]) -> list[Problem]:
    """The problems without mere consequences: another end and missing effects follow from some of them.

    After a needless unknown a person decides; with a transcript that the model's server refuses nothing goes on.
    """
    found = list(problems)
    if any(problem.kind in ("needless-unknown", "invalid-transcript") for problem in found):
        return [problem for problem in found if problem.kind not in ("diverged", "missing-effect")]
    return found


def _process_problems(step: Step) -> Iterator[Problem]:
    if step.how == "hang":
        yield Problem(kind="hang", summary=f"recovery ({step.step}) did not end within its time limit", step=step.step)
    if step.left:
        left = _count(len(step.left), "process", "processes")
        summary = f"recovery ({step.step}) left {left} running: {', '.join(step.left[:3])}"
        yield Problem(kind="left-process", summary=summary, step=step.step)


def _more_problems(saved: Any, third: Step) -> Iterator[Problem]:
    value = (third.value or {}).get("value")
    if third.how != "returned":
        summary = f"after recovery one more value was saved; then load() {_ending(third)}"
        yield Problem(kind="lost", summary=summary, step="third", expected=(shown(saved),))
    elif canonical(value) != canonical(saved):
        summary = f"after recovery {shown(saved)} was saved; then load() returned {apart(saved, value)}"
        if isinstance(saved, list) and isinstance(value, list):
            there = f"then load() returned {_count(len(value), 'event')}: {apart(saved, value)}"
            summary = f"after recovery one more append, so {_count(len(saved), 'event')}: {shown(saved)}; {there}"
        twice = isinstance(saved, list) and isinstance(value, list) and _repeats(value, saved)
        kind = "duplicate-entry" if twice else "lost"
        yield Problem(kind=kind, summary=summary, step="third", expected=(shown(saved),))


def _repeats(found: list[Any], wanted: list[Any]) -> bool:
    """Whether all that was wanted is there, and some of it more than once."""
    more, less = Counter(map(canonical, found)), Counter(map(canonical, wanted))
    return not less - more and set(more) == set(less)


def _log_kind(found: list[str], acked: list[str], wanted: list[str]) -> str:
    if set(found) - set(wanted):
        return "torn"
    if Counter(found) - Counter(wanted):
        return "duplicate-entry"
    return "lost" if found == acked[: len(found)] else "hole"


def _log_summary(found: list[str], acked: list[str]) -> str:
    promised = _count(len(acked), "event was", "events were")
    same = next((i for i, pair in enumerate(zip(found, acked, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        return f"{promised} acked; load() returned {len(found)}"
    return f"{promised} acked; load() returned {len(found)}, other than acked from number {same + 1} on"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _ending(step: Step) -> str:
    match step.how:
        case "raised":
            return f"raised {step.error}"
        case "signal":
            return f"died by signal {step.signal}"
        case "hang":
            return "did not end"
    return f"ended with exit code {step.exit_code}" + (f": {step.error}" if step.error else "")
