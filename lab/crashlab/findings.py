"""From judgements to findings: each distinct fault once, at its smallest state, ready to be read.

A fault is distinct by its kind and by the line of source that was running; faults of effects by the
effect. So a save that breaks in every turn is one finding, whose further states are listed as
``same``. Gravest kinds come first, then the earliest crash.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab import nested_finding
from crashlab import trace as t
from crashlab.crash.damage import KINDS
from crashlab.crash.marks import last_seen
from crashlab.crash.places import place_path
from crashlab.crash.states import prefixes_of
from crashlab.demands import effect_of, told_before, words
from crashlab.error_points import ErrorState
from crashlab.explain import Explanation, explain
from crashlab.explain_damage import damage_words, headline
from crashlab.explain_error import error_cause, error_line, error_place, error_size, explain_error
from crashlab.explain_loss import NOTHING_LOST, why_lost
from crashlab.explain_race import explain_race, race_line, race_place, race_size
from crashlab.explain_race import retold as both_told
from crashlab.kinds import gravity
from crashlab.protocols import pattern_at
from crashlab.race_points import RaceState
from crashlab.report import model
from crashlab.report.facts import changes_of
from crashlab.tree import Directory, File, type_name
from crashlab.values import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crashlab.barriers import Advice
    from crashlab.crash.losses import Losses
    from crashlab.crash.marks import Mark
    from crashlab.crash.places import Places
    from crashlab.crash.states import CrashState
    from crashlab.demands import Problem, Reference
    from crashlab.judge import Judgement
    from crashlab.observation import Answer, Step

SHOWN_OPS = 14
SAME_IDS = 50
ABOUT_EFFECTS = ("duplicate-effect", "missing-effect", "needless-unknown")
ABOUT_FILES = ("torn", "lost", "stuck", "silent-reset", "hole", "diverged")


@dataclass
class _Group:
    """One distinct fault: the state to show, with the answer there and how it was confirmed, and the ids of all."""

    judgement: Judgement
    answer: Answer
    sizes: dict[str, tuple[int, int]]
    confirmed: str | None = None
    profiles: tuple[str, ...] = ()

    def takes(self, judgement: Judgement, confirmed: str | None) -> bool:
        """Whether this state is the one to show: what came about for real first, then the smallest."""
        mine, other = self.judgement.state, judgement.state
        # Of two that are equally small the id decides: which of them was judged first is chance.
        here, there = (_size(other), _natural(other.id)), (_size(mine), _natural(mine.id))
        return (confirmed is None, here) < (self.confirmed is None, there)


class Findings:
    """Collects violations as they stream in, and keeps one state whole per distinct fault.

    ``site`` turns the line of an op into its call site. With it power losses of one cause are one finding per call
    site: where some findings are accepted, another function with the same fault must not hide among their ``same``.
    """

    def __init__(
        self, places: Places, losses: Losses | None = None, *, site: Callable[[str], str] | None = None
    ) -> None:
        self._places, self._losses, self._site = places, losses, site
        self._groups: dict[tuple[str, ...], _Group] = {}

    def add(self, judgement: Judgement, answer: Answer, *, confirmed: str | None = None) -> None:
        """Take one judged state; anything but a violation is left alone. ``confirmed``: it came about for real."""
        if judgement.verdict != "violation":
            return
        key = self._key(judgement)
        group = self._groups.setdefault(key, _Group(judgement, answer, {}, confirmed))
        group.sizes[judgement.state.id] = _size(judgement.state)
        if group.takes(judgement, confirmed):
            group.judgement, group.answer, group.confirmed = judgement, answer, confirmed

    def _key(self, judgement: Judgement) -> tuple[str, ...]:
        """What makes two states one finding. What one crash shows already is no finding of a second one."""
        kind, cause = judgement.kind, self._cause(judgement)
        if judgement.state.within is not None:
            for known in self._groups:
                if known[0] in ("kill", "power") and known[1:] == (kind, cause, *known[3:]):
                    return known
        return judgement.state.fault, kind, cause, *self._sites(judgement.state)

    def _sites(self, state: CrashState) -> list[str]:
        """Where the program was at the ops that a power loss took, each call site once; nothing without ``site``."""
        if self._site is None or state.fault != "power":
            return []
        return sorted({self._site(mark.op.at) for mark in self._marks(state).values() if mark.op.at})

    def _together(self) -> None:
        """A loss at the call sites of a smaller finding, and at more, is another case of that one."""
        sites = {key: set(self._sites(group.judgement.state)) for key, group in self._groups.items()}
        smallest_first = sorted(
            sites, key=lambda key: (len(sites[key]), _size(state := self._groups[key].judgement.state), state.id)
        )
        kept: list[tuple[str, ...]] = []
        for key in smallest_first:
            same = next((each for each in kept if each[:3] == key[:3] and sites[each] <= sites[key]), None)
            if same is None:
                kept.append(key)
            else:
                self._groups[same].sizes.update(self._groups.pop(key).sizes)

    def earliest(self) -> list[Judgement]:
        """Per kind of violation after a power loss, the one at the earliest moment."""
        shown: dict[str, Judgement] = {}
        for group in self._groups.values():
            judgement = group.judgement
            known = shown.get(judgement.kind)
            if judgement.state.fault == "power" and (known is None or judgement.state.done < known.state.done):
                shown[judgement.kind] = judgement
        return list(shown.values())

    def _cause(self, judgement: Judgement) -> str:
        """The effect that went wrong; else why power lost it, or the running line, or the place without its numbers."""
        if judgement.problems[0].effect:
            return judgement.problems[0].effect
        state = judgement.state
        if state.within is not None:
            return nested_finding.cause_of(judgement, self._marks(state), self._places)
        if isinstance(state, ErrorState):
            return error_cause(state)
        if isinstance(state, RaceState):
            return ""  # one fault of two owners shows at many ops
        if state.fault == "power":
            return why_lost(judgement, self._marks(state))
        if state.damage is not None:
            return state.damage.path
        line = state.trace.op(state.last_op).at if state.last_op else ""
        return line or re.sub(r"\d+", "#", self._places.of(state))

    def _place(self, state: CrashState) -> str:
        if isinstance(state, RaceState):
            return race_place(self._places, state)
        return error_place(self._places, state) if isinstance(state, ErrorState) else self._places.of(state)

    def _marks(self, state: CrashState) -> dict[int, Mark]:
        """What a power loss took; nothing for other faults."""
        if isinstance(state, ErrorState) and state.losses is not None and state.loss is not None:
            return state.losses.marks(state.loss)
        return nested_finding.marks_of(state, self._losses)

    def finish(
        self,
        reference: Reference,
        advice: Advice | None = None,
        *,
        judge: Callable[[CrashState, Answer], Judgement] | None = None,
    ) -> list[tuple[model.Finding, CrashState]]:
        """The findings, gravest kind first, then the earliest crash; each with its state.

        ``advice`` is what mends the power losses. With ``judge`` each of these is told with the fewest losses.
        """
        for group in self._groups.values():
            group.profiles = self._possible(group.judgement.state)
            if judge is not None:
                self._shrink(group, judge)
        if self._site is not None:
            self._together()
        ordered = sorted(
            self._groups.values(), key=lambda each: (gravity(each.judgement.kind), _size(each.judgement.state))
        )
        return [(self._finding(each, reference, advice), each.judgement.state) for each in ordered]

    def _shrink(self, group: _Group, judge: Callable[[CrashState, Answer], Judgement]) -> None:
        """Tell a power loss as one at an earlier moment, where it leaves the same and is the same violation there."""
        state = group.judgement.state
        if self._losses is None or state.recipe is None or state.within is not None:
            return
        least = judge(self._losses.least(state), group.answer)
        if (least.verdict, least.kind) == ("violation", group.judgement.kind):
            group.judgement = least

    def _finding(self, group: _Group, reference: Reference, advice: Advice | None) -> model.Finding:
        judgement, answer = group.judgement, group.answer
        state, problem = judgement.state, judgement.problems[0]
        marks = self._marks(state)
        explanation = _explanation(judgement)
        step = next((each for each in answer.steps if each.step == problem.step), answer.steps[0])
        others = ((size, _natural(state_id), state_id) for state_id, size in group.sizes.items())
        same = [state_id for _, _, state_id in sorted(others) if state_id != state.id]
        nested = state.within is not None
        why = why_lost(judgement, marks) if state.fault == "power" else explanation.why
        # Where a run goes another way and nothing was lost, no barrier is missing: the advice is that for a kill.
        is_kill = problem.kind == "diverged" and why == NOTHING_LOST
        finding = model.Finding(
            id=state.id,
            verdict="violation",
            kind=problem.kind,
            fault=state.fault,
            summary=problem.summary,
            place="" if nested else self._place(state),
            contract="RD" if problem.step in ("second", "third") else model.CONTRACT.get(problem.kind),
            profiles=group.profiles,
            ops=op_lines(state, effect=_effect_again(state, problem), marks=marks),
            fault_line=_fault_line(state),
            disk=disk_lines(state),
            changes=changes_of(state),
            observed=_observed(step),
            expected=problem.expected,
            effects=_effects(reference, state, answer),
            why=why,
            advice=(() if is_kill else _advice(state, problem.kind, advice)) or explanation.advice,
            same_count=len(same),
            same=tuple(same[:SAME_IDS]),
            digest=state.digest,
            confirmed=group.confirmed,
            replay=f"crashlab replay {shlex.quote(state.id)}",
        )
        if isinstance(state, RaceState):
            return both_told(finding, state, op_lines)
        return nested_finding.retold(finding, judgement, self._losses, self._places, op_lines) if nested else finding

    def _possible(self, state: CrashState) -> tuple[str, ...]:
        """The profiles that allow a power loss; a crash of a recovery has its own."""
        if isinstance(state, ErrorState) and state.losses is not None and state.loss is not None:
            return state.losses.possible(state.loss)
        if self._losses is None or state.recipe is None or state.within is not None:
            return ()
        return self._losses.possible(state)


def _explanation(judgement: Judgement) -> Explanation:
    state = judgement.state
    if isinstance(state, ErrorState):
        return explain_error(judgement, state)
    return explain_race(judgement, state) if isinstance(state, RaceState) else explain(judgement)


def _advice(state: CrashState, kind: str, advice: Advice | None) -> tuple[str, ...]:
    """What barriers do for a power loss. Where none helps, an effect that went wrong has advice of its own."""
    if state.fault != "power" or (kind in ABOUT_EFFECTS and (advice is None or not advice.sets)):
        return ()
    if advice is None:  # of one state alone, or where only a real disk failed, no barrier was tried
        computed = state.recipe is not None and state.within is None
        return (pattern_at(state),) if computed and kind in ABOUT_FILES else ()
    return advice.lines()


def _natural(state_id: str) -> list[str | int]:
    """An id as people sort it, 2 before 10: of equally small cases the same is told, in whatever order they come."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", state_id)]


def _size(state: CrashState) -> tuple[int, int]:
    """What makes a case small: an early crash, then a short cut, or few losses.

    The crash first: held against each other on the planted losses, the fewest losses at any moment mostly lie later,
    so that twice as many ops had to be shown, and were lost no less plainly.
    """
    if state.within is not None:
        return nested_finding.size_of(state)
    if isinstance(state, ErrorState):
        return error_size(state)
    if isinstance(state, RaceState):
        return race_size(state)
    if state.fault == "power":
        return state.last_op, _lost(state)
    if state.damage is not None:
        return state.last_op, KINDS.index(state.damage.kind)
    return state.last_op, state.cut_bytes or 0


def _lost(state: CrashState) -> int:
    """How many losses the id of a power loss names: ``power@9-3,5..6,8..`` those of ops 3, 5, 6, 8 and 9."""
    _, _, named = state.id.partition("-")
    if named == "all":
        return 1_000_000
    ranges = re.findall(r"(?:^|,)(\d+)\.\.(\d*)", named)
    further = sum(int(last or state.last_op) - int(first) for first, last in ranges)
    return (named.count(",") + 1) * bool(named) + further


def _fault_line(state: CrashState) -> str:
    if isinstance(state, ErrorState):
        return error_line(state)
    if isinstance(state, RaceState):
        return race_line(state)
    if state.fault == "power":
        return "power loss"
    if state.damage is not None:
        return f"at rest: {headline(state.damage)}"
    return "killed" if state.cut_bytes is None else f"killed inside op {state.last_op}"


def op_lines(
    state: CrashState, *, effect: int = 0, marks: Mapping[int, Mark] | None = None
) -> tuple[model.OpLine, ...]:
    """The last ops before the crash, the cut one and the lost ones noted."""
    ops, lost = state.trace.ops[: state.last_op], marks or {}
    directories = _directories(state.trace)
    telling = min([*lost, *([effect] if effect else [])], default=len(ops) + 4)
    first = max(0, min(len(ops) - SHOWN_OPS, telling - 4))
    lines = []
    for op in ops[first:] if len(ops) - first <= 2 * SHOWN_OPS else (*ops[first : first + 8], *ops[-SHOWN_OPS:]):
        note, remark = None, ""
        if state.cut_bytes is not None and op.n == state.last_op:
            assert isinstance(op, t.Write)
            note, remark = "cut", f"cut after {_bytes(state.cut_bytes)}{_page_end(op, state.cut_bytes)}"
        elif op.n in lost:
            note, remark = "lost", lost[op.n].words
        elif isinstance(op, t.Refused):
            remark = "takes only a part" if op.error == "short" else f"fails with {op.error}"
        elif op.n == effect:
            remark = "done; recovery does it again"
        lines.append(
            model.OpLine(
                n=op.n,
                op=op.KIND.replace("-", " "),
                text=op_text(op, directories),
                path=getattr(op, "path", ""),
                to=getattr(op, "to", ""),
                at=op.at,
                bytes=len(op.data) if isinstance(op, t.Write) else None,
                note=note,
                remark=remark,
                thread=op.thread,
            )
        )
    return tuple(lines)


def _effect_again(state: CrashState, problem: Problem) -> int:
    """The op that recovery did again, where that is what is wrong; 0 for none."""
    found = effect_of(state, problem) if problem.kind == "duplicate-effect" else None
    return found.n if found is not None else 0


def _page_end(op: t.Write, cut_bytes: int) -> str:
    return " (page end)" if (op.offset + cut_bytes) % 4096 == 0 else ""


def op_text(op: t.Op, directories: frozenset[int] = frozenset()) -> str:
    """One op in words, without number and kind: ``checkpoint.tmp  182 bytes at 0``."""
    match op:
        case t.Call():
            return f"load() gave {shown(op.value)}" if op.name == t.LOAD else f"{op.name}({shown(op.value)})"
        case t.Write():
            return f"{place_path(op.path)}  {_bytes(len(op.data))} at {op.offset:,}"
        case t.Truncate() | t.Allocate():
            return f"{place_path(op.path)}  to {_bytes(op.size)}"
        case t.Rename():
            return f"{place_path(op.path)} -> {place_path(op.to)}"
        case t.Fsync():
            slash = "/" if op.inode in directories and op.path != "dir" else ""
            return f"{place_path(op.path)}{slash}" + ("  data only" if op.data_only else "") + ("  failed" * op.failed)
        case t.Effect() | t.Unknown():
            return words(op) + ("" if not isinstance(op, t.Effect) or op.counted else "  (key known: nothing done)")
        case t.Ack():
            return shown(op.value)
        case t.SavePoint() | t.Refused():
            return op.name if isinstance(op, t.SavePoint) else op.call
        case t.FileOp():
            return place_path(op.path)
    return ""


def _bytes(number: int) -> str:
    return f"{number:,} byte{'' if number == 1 else 's'}"


def disk_lines(state: CrashState) -> tuple[model.DiskLine, ...]:
    """The surviving files, with the op at which each last changed, in words."""
    lines = []
    for path, inode, node in state.tree.walk():
        if isinstance(node, Directory) and path in ("dir", "home", "tmp"):
            continue
        size = node.content.size if isinstance(node, File) else 0
        digest = node.content.digest[:12] if isinstance(node, File) else ""
        words_of = _content_words(state, inode, node) if isinstance(node, File) else ""
        if state.cut_bytes is not None and inode == getattr(state.trace.op(state.last_op), "inode", None):
            words_of = f"cut inside {op_words(state, state.last_op)}"
        lines.append(
            model.DiskLine(path=place_path(path), type=type_name(node), bytes=size, digest=digest, state=words_of)
        )
    return tuple(lines)


def _content_words(state: CrashState, inode: int, file: File) -> str:
    """Since when the file has been like this: ``as at op 6``; or what it is instead."""
    if state.damage is not None and (told := damage_words(state, inode)):
        return told
    seen = last_seen(state.trace, inode, file.content, state.done) if file.content.size else 0
    if seen is None:
        blank = file.content.size and not any(file.content.read())
        return "all zeros" if blank else "as no op left it"
    return f"as at {op_words(state, seen)}" if seen else ""


def op_words(state: CrashState, n: int) -> str:
    """One op by its number: ``op 6``, or ``op 6 of the run`` where a recovery has such an op too."""
    return f"op {n}" if state.within is None else state.within.op_words(n)


def _observed(step: Step) -> model.Observed:
    value = step.value or {}
    if "raised" in value:  # what load raises on an empty directory: "nothing there", in its own words
        error = str(value["raised"])
        return model.Observed(how="raised", error=error, stdout=step.stdout, stderr=step.stderr, step=step.step)
    shown_value = value.get("end", value.get("value"))
    failed = (value.get("more") or {}).get("error", "")
    error = step.error or (f"then one more save raised {failed}" if failed else "")
    return model.Observed(
        how=step.how, value=shown_value, error=error, stdout=step.stdout, stderr=step.stderr, step=step.step
    )


def _effects(reference: Reference, state: CrashState, answer: Answer) -> model.Effects:
    expected = tuple(words(op) for op in reference.trace.ops if isinstance(op, t.Effect) and op.counted)
    later = [op for step in answer.steps for op in step.events if isinstance(op, (t.Effect, t.Unknown))]
    start = len(state.effects) if state.within is None else len(state.within.outer.effects)
    observed = [f"before the crash: {words(op)}" for op in state.effects[:start] if op.counted]
    observed += [f"recovery that died: {words(op)}" for op in state.effects[start:] if op.counted]
    observed += [f"recovery that died reported unknown: {words(op)}" for op in told_before(reference, state)]
    for op in later:
        if isinstance(op, t.Unknown):
            observed.append(f"recovery reported unknown: {words(op)}")
        elif op.counted:
            observed.append(f"recovery: {words(op)}")
    return model.Effects(expected=expected, observed=tuple(observed))


def _directories(trace: t.Trace) -> frozenset[int]:
    made = {op.inode for op in trace.ops if isinstance(op, t.MakeDirectory)}
    return frozenset(
        made | {inode for inode, node in prefixes_of(trace).tree(0).nodes.items() if isinstance(node, Directory)}
    )
