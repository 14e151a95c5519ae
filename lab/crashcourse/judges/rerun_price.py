"""Exercise 1.2: what it costs to run an agent again that saves nothing: acts that are done twice, answers paid twice.

The agent is :mod:`longrun.memory.naive_memory_only`. It is really killed where the learner says; then it is run again
in a process of its own, and both runs' acts and requests are counted by the lab's own record.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from crashcourse.desk import inbox_seed
from crashcourse.explain import Table, answers, judged, stage
from crashcourse.judging import failed
from crashcourse.result import Shown
from crashlab import trace as t
from crashlab.errors import LabError, UsageError
from crashlab.values import canonical
from longrun.fake_api import usage_of
from longrun.inbox import SHORT_BODY_BYTES
from longrun.memory import naive_memory_only
from longrun.subjects import REQUEST, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from crashcourse.explain import Stage
    from crashcourse.judging import Bench
    from crashcourse.result import Outcome
    from crashlab.crash.states import CrashState

POINTS = ("zero", "one", "most")
_KEYS = ("point", "turns_paid_twice")
Acts = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Price:
    """What a rerun after one crash costs. ``tokens`` are those of the answers that were paid before, and again."""

    point: str
    acts_before: int
    twice: Acts
    turns: tuple[int, ...]
    tokens: int

    @property
    def duplicates(self) -> int:
        """How many acts the world has more than it should have."""
        return self.twice.total()

    def words(self) -> str:
        """The duplicates, for people."""
        names = Counter(name for (name, _), times in self.twice.items() for _ in range(times))
        told = ", ".join(f"{count} {name}" for name, count in names.items())
        return f"killed at {self.point} and run again: {self.duplicates} acts done twice{f' ({told})' if told else ''}"


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    try:
        form = answers(bench.file, POINTS)
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    seed = inbox_seed(bench.seed, same=True)
    subject = describe(naive_memory_only.HARNESS, name="memory only", seed=seed, body_bytes=SHORT_BODY_BYTES)
    with stage(replace(subject, view=None, check=None)) as scene:
        priced: dict[str, Price] = {}

        def price_of(name: str) -> Price:
            if name not in priced:
                priced[name] = price(scene, scene.at(Table.of(form, name, _KEYS)))
            return priced[name]

        most = price(scene, scene.places[f"kill@{len(scene.trace.ops)}"][0]).duplicates
        parts: dict[str, Mapping[str, Callable[[], Shown | str | None]]] = {
            "zero": {"zero": lambda: _zero(price_of("zero"))},
            "one": {"one": lambda: _as_many(price_of("one"), 1, "just one act is done twice")},
            "most": {"most": lambda: _as_many(price_of("most"), most, "as many acts are done twice as ever can be")},
            "tokens": {name: partial(_tokens, form, name, price_of) for name in POINTS},
        }
        return [judged(case, work) for case, work in parts.items() if bench.wants(case)]


# --- what is true ---------------------------------------------------------------------------------


def price(scene: Stage, state: CrashState) -> Price:
    """What it costs to crash there and to run again. Raises LabError where the rerun fails."""
    before = scene.killed(state).ops
    again = scene.recovered(state)
    if again.how != "returned":
        text = f"{state.id}: the rerun did not come to its end: {again.how} {again.error}"
        raise LabError(text)
    right, done = acts(scene.trace.ops), acts(before) + acts(again.events)
    turns = _requests(before)
    prices = costs(scene.end["transcript"])
    return Price(
        point=state.id,
        acts_before=acts(before).total(),
        twice=done - right,
        turns=tuple(range(1, turns + 1)),
        tokens=sum(prices[:turns]),
    )


def acts(ops: Iterable[t.Op]) -> Acts:
    """What was done to the world: each act by its name and details, whatever its key."""
    return Counter(
        (op.name, canonical(op.detail)) for op in ops if isinstance(op, t.Effect) and op.counted and op.name != REQUEST
    )


def _requests(ops: Iterable[t.Op]) -> int:
    return sum(isinstance(op, t.Effect) and op.name == REQUEST for op in ops)


def costs(transcript: list[dict[str, Any]]) -> list[int]:
    """What each answer of a conversation has cost, in tokens, by the server's own reckoning."""
    said = (at for at, message in enumerate(transcript) if message["role"] == "assistant")
    return [sum(usage_of(transcript[:at], transcript[at]["content"]).values()) for at in said]


# --- what was answered ----------------------------------------------------------------------------


def _zero(found: Price) -> Shown | None:
    if not found.acts_before:
        wanted = "a point by which something was done to the world, and nothing of it is done twice"
        return _told("zero", wanted, f"at {found.point} nothing was done yet: there is nothing to repeat")
    return _as_many(found, 0, "nothing is done twice")


def _as_many(found: Price, wanted: int, text: str) -> Shown | None:
    if found.duplicates == wanted:
        return None
    return _told({0: "zero", 1: "one"}.get(wanted, "most"), text, found.words())


def _tokens(form: Mapping[str, Any], name: str, price_of: Callable[[str], Price]) -> Shown | None:
    found = price_of(name)
    said = Table.of(form, name, _KEYS).numbers("turns_paid_twice", most=100)
    if tuple(said) == found.turns:
        return None
    text = f"turns {', '.join(map(str, said)) or 'none'}; both runs together pay {found.tokens:,} tokens twice"
    return _told(name, "the turns whose answers were paid before the crash, and are paid again", text)


def _told(name: str, expected: str, said: str) -> Shown:
    return Shown(kind="wrong-answer", crash_point=name, expected=expected, found=said)
