"""What may be made of damaged files: a loud refusal that keeps them, or exactly the truth.

The rules, for a recovery on files that were damaged at rest:

* It raised, or ended with an error: that is allowed, if every file still has the bytes that it met
  (else ``evidence-destroyed``). It may have moved the damaged file aside, bytes and all; then the next
  recovery must refuse as well, or tell the truth: one that begins anew is ``silent-reset``. What ``load``
  raises on an empty directory too, with the same words, is no refusal: it says "nothing there", and the
  caller starts anew.
* It returned the truth, or an equal meaning of it: consistent.
* It returned something that was never saved: ``accepted-damage``. It said "nothing there" while the
  damaged bytes lay there: ``silent-reset``. It returned an older value: ``lost``.
* Records of a log can be checked one by one, so a bad one must not hide its good neighbours silently:
  left out without a word is ``hole`` or ``lost``. Left out and *said* is right: with words on stdout or
  stderr that the recovery of the undamaged files does not say; so is raising after the good ones.
* Nobody can be asked to see what cannot be seen. If the directory is one that a kill leaves at an
  earlier moment (an older version of all there is), or the only damage is a bad end of a file that
  was being appended to (no append after it is whole, and all else lies as it did then), a reader that
  goes by that earlier moment is right. Such states are *undetectable*, and counted. Where another file
  keeps a mark of what was promised, the directory is of no earlier moment, and the loss counts.
* A program is measured by its end and by its effects. A wrong end after damage to bytes is
  ``accepted-damage``, or ``silent-reset`` if it began anew. A whole older file may cost it saves, which
  are counted as undetectable, but never an effect: done twice is ``duplicate-effect``.
* Where a directory was put back and is, as a whole, one that the run itself once had, only the world
  knows what was done since. It knows an effect by its key: one with a key that is done twice was given
  another key. One without is counted as undetectable, and the report says how often.

After damage "I do not know" is never needless: what could tell may be what is damaged.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from crashlab import trace as t
from crashlab.crash.states import prefixes_of
from crashlab.honesty import identity
from crashlab.kinds import gravity
from crashlab.tree import File
from crashlab.values import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from crashlab.crash.states import CrashState
    from crashlab.demands import Problem, Reference
    from crashlab.observation import Answer, Step
    from crashlab.report.model import Verdict
    from crashlab.tree import Node, Tree

Said = frozenset[str]
"""Lines of output, without their numbers."""

NO_REFUSAL = ("lost", "stuck")
"""What a plain refusal is under a fault that does not allow it."""

_WRONG_END = ("diverged", "invalid-transcript", "missing-effect", "duplicate-effect", "lost", "torn", "hole", "stuck")
_OF_NO_WEIGHT = ("lost", "diverged")
_NUMBERS = re.compile(r"[0-9]+")


class Ruling(NamedTuple):
    """A verdict, its reasons, and whether nobody could have seen what is wrong; ``redone``: an effect done again."""

    verdict: Verdict
    problems: tuple[Problem, ...] = ()
    undetectable: bool = False
    redone: bool = False


class DamageDemands:
    """Rules on the damaged states of one trace.

    ``said`` is what recovery says of the undamaged files, per moment; ``refuse`` whether a refusal is allowed.
    """

    def __init__(self, reference: Reference, said: Mapping[int, Said] | None = None, *, refuse: bool = True) -> None:
        self._reference, self._refuse = reference, refuse
        self._said = said or {}
        self._moments = Moments(reference.trace)

    def rule(self, state: CrashState, answer: Answer, problems_of: Callable[[CrashState], list[Problem]]) -> Ruling:
        """The verdict, where ``problems_of`` tells what would be wrong without any damage."""
        first = answer.steps[0]
        if first.how != "returned":
            return self._on_refusal(first, problems_of(state))
        problems = [each for each in problems_of(state) if not _refused_to_save(each)]
        if not problems:
            return Ruling("consistent")
        raised = (first.value or {}).get("raised")
        # What load raises on an empty directory, but for another reason.
        if self._refuse and raised is not None and raised != self._reference.nothing.get("text"):
            return Ruling("refused", tuple(problems))
        if self._reference.program:
            return self._on_end(state, answer, problems)
        at = self._moments.alike(state)
        if at is not None:
            then = [each for each in problems_of(dataclasses.replace(state, done=at)) if not _refused_to_save(each)]
            if not then:
                return Ruling("consistent", undetectable=True)
        missing = state.damage is not None and state.damage.kind == "missing"
        if self._refuse and missing and raised is not None:  # told in the words of an empty directory, and truly
            return Ruling("refused", tuple(problems))
        if self._refuse and self._left_out_and_said(state, first) and all(each.step == "first" for each in problems):
            return Ruling("refused", tuple(problems))
        return Ruling("violation", _by_gravity(_renamed(each, reset=raised is not None) for each in problems))

    def _on_refusal(self, first: Step, problems: list[Problem]) -> Ruling:
        problems = [each for each in problems if each.kind != "needless-unknown"]
        if not self._refuse or not first.loud:
            return Ruling("violation", tuple(problems))
        graver = tuple(each for each in problems if each.kind not in NO_REFUSAL or each.step == "second")
        if graver:
            return Ruling("violation", graver)
        return Ruling("refused", tuple(problems))

    def _on_end(self, state: CrashState, answer: Answer, problems: list[Problem]) -> Ruling:
        assert state.damage is not None, "only damaged states come here"
        problems = [each for each in problems if each.kind != "needless-unknown"]
        if state.damage.of_age:
            heavy = [each for each in problems if each.kind not in _OF_NO_WEIGHT]
            if state.damage.kind == "restore" and heavy and self._moments.was(state.tree):
                heavy = [each for each in heavy if not self._is_unknown_outside(each)]
            if not heavy:
                redone = any(each.kind not in _OF_NO_WEIGHT for each in problems)
                return Ruling("consistent", undetectable=bool(problems), redone=redone)
            return Ruling("violation", _by_gravity(heavy))
        if not problems:
            return Ruling("consistent")
        kind = "silent-reset" if self._began_anew(answer) else "accepted-damage"
        worst = problems[0]
        if worst.kind in _WRONG_END and worst.step == "first":
            did = "began anew" if kind == "silent-reset" else "took it for good"
            text = f"{_file(state)} is damaged ({state.damage.kind}), resume {did}: {worst.summary}"
            problems[0] = dataclasses.replace(worst, kind=kind, summary=text, effect="")
        return Ruling("violation", _by_gravity(problems))

    def _is_unknown_outside(self, problem: Problem) -> bool:
        """Whether an effect was done again that the world knows by no key."""
        done = [op for op in self._reference.trace.ops if isinstance(op, t.Effect) and op.name == problem.effect]
        return problem.kind == "duplicate-effect" and not all(op.key for op in done)

    def _began_anew(self, answer: Answer) -> bool:
        """Whether the recovery did the first effect of the run, or tried to, as if nothing had been done yet.

        An effect that the run does many times, such as a request to one server, tells no beginning.
        """
        done = [op for op in self._reference.trace.ops if isinstance(op, t.Effect)]
        times = Counter(identity(op) for op in done)
        often = {each for each, count in times.items() if count > 1} if 1 in times.values() else set()
        first = next((op for op in done if identity(op) not in often), None)
        acts = [op for op in answer.steps[0].events if isinstance(op, t.Effect) and identity(op) not in often]
        return first is not None and bool(acts) and identity(acts[0]) == identity(first)

    # --- loud, though it returned ----------------------------------------------------------------

    def _left_out_and_said(self, state: CrashState, first: Step) -> bool:
        """Whether a log gave nothing but acked events, in order, and said that this is not all."""
        if self._reference.kind != "Log" or not lines_of(first) - self._said.get(state.done, frozenset()):
            return False
        acked = self._reference.calls(state.done)[: self._reference.acked(state.done)]
        wanted = iter([canonical(event) for batch in acked for event in batch])
        found = (first.value or {}).get("value") or []
        return all(canonical(event) in wanted for event in found)  # "in" on an iterator goes on from the last one


def lines_of(step: Step) -> Said:
    """What a step said, without numbers: times and counts differ from run to run."""
    lines = (step.stdout + "\n" + step.stderr).splitlines()
    return frozenset(text for line in lines if (text := _NUMBERS.sub("#", line).strip()))


def _refused_to_save(problem: Problem) -> bool:
    """One more save was refused, after the truth had come back: loud, and so allowed."""
    return problem.step == "second" and problem.kind == "stuck"


def _renamed(problem: Problem, *, reset: bool) -> Problem:
    """A value that was never saved is damage that was taken for good; one that is gone may be taken for none."""
    if problem.step != "first" or problem.kind not in ("torn", "lost"):
        return problem
    if problem.kind == "lost":
        return dataclasses.replace(problem, kind="silent-reset") if reset else problem
    return dataclasses.replace(problem, kind="accepted-damage")


def _by_gravity(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: gravity(problem.kind)))


def _file(state: CrashState) -> str:
    assert state.damage is not None, "only damaged states come here"
    return state.damage.path.rpartition("/")[2]


# --- what cannot be seen -----------------------------------------------------------------------------


class Moments:
    """Earlier moments of one trace that a damaged directory cannot be told from."""

    def __init__(self, trace: t.Trace) -> None:
        self._trace = trace
        self._rest: dict[tuple[int, str], str] = {}

    def alike(self, state: CrashState) -> int | None:
        """The latest moment, not after that of the damage, at which a crash leaves what looks the same; or None."""
        assert state.damage is not None, "only damaged states come here"
        path, tree = state.damage.path, state.tree
        node, rest = tree.node(path), _without(tree, path)
        prefixes, seen = prefixes_of(self._trace), None
        for at in range(state.done, -1, -1):
            before = prefixes.tree(at)
            if before is seen or self._rest_of(at, before, path) != rest:
                continue
            seen = before
            if _same(before.node(path), node) or self._is_bad_end(state, at, before.node(path), node):
                return at
        return None

    def was(self, tree: Tree) -> bool:
        """Whether the run itself had all of this directory at some moment."""
        prefixes = prefixes_of(self._trace)
        return any(prefixes.tree(n).digest == tree.digest for n in range(len(self._trace.ops) + 1))

    def _rest_of(self, at: int, tree: Tree, path: str) -> str:
        if (at, path) not in self._rest:
            self._rest[at, path] = _without(tree, path)
        return self._rest[at, path]

    def _is_bad_end(self, state: CrashState, at: int, before: Node | None, node: Node | None) -> bool:
        """Whether a file is as at ``at`` but for a bad end: only appends came since, none after the first is whole."""
        assert state.damage is not None, "only damaged states come here"
        prefixes, path = prefixes_of(self._trace), state.damage.path
        if not isinstance(before, File) or not isinstance(node, File):
            return False
        tree = prefixes.tree(state.done)
        true = tree.node(path)
        if not isinstance(true, File) or prefixes.tree(at).lookup(path) != tree.lookup(path):
            return False
        good, found, written = before.content.read(), node.content.read(), true.content.read()
        if not (found.startswith(good) and written.startswith(good)):
            return False
        ends = [len(good), *self._ends_of_acks(at, state.done, path), len(written)]
        later = pairwise(ends[1:])  # the first append after it may be the bad one
        return not any(_is_whole(found, written, start, end) for start, end in later)

    def _ends_of_acks(self, at: int, done: int, path: str) -> list[int]:
        """How long the file was at each ack after ``at``."""
        prefixes = prefixes_of(self._trace)
        acks = [op.n for op in self._trace.ops[at:done] if isinstance(op, t.Ack)]
        nodes = [prefixes.tree(n).node(path) for n in acks]
        return [node.content.size for node in nodes if isinstance(node, File)]


def _is_whole(found: bytes, written: bytes, start: int, end: int) -> bool:
    """Whether an append is there as it was written; after a damaged byte its first line has no beginning."""
    if found[start - 1 : start] != written[start - 1 : start]:
        start = (written.find(b"\n", start, end) + 1) or end
    return start < end and found[start:end] == written[start:end]


def _without(tree: Tree, path: str) -> str:
    return tree.without(path).digest


def _same(one: Node | None, other: Node | None) -> bool:
    if isinstance(one, File) and isinstance(other, File):
        return one.content == other.content and one.mode == other.mode
    return one is None and other is None
