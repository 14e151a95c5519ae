"""Exercise 4.1: the nature of each tool, and two crashes that no directory tells apart.

The nature is measured: each tool is used twice, and the world's record is looked at before, between and after. Whether
two crash points leave the same directory, and another world, is read from the states of one recorded run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from crashcourse.desk import inbox_seed
from crashcourse.explain import Table, answers, judged, stage
from crashcourse.judging import failed
from crashcourse.result import Shown
from crashlab.crash.kill import kill_states
from crashlab.errors import UsageError
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.messages import canonical
from longrun.resume import correct, without_ledger
from longrun.subjects import REQUEST, describe
from longrun.tools import TOOLS
from longrun.world import FileEffect, World

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from crashcourse.explain import Stage
    from crashcourse.judging import Bench
    from crashcourse.result import Outcome
    from crashlab.crash.states import CrashState
    from longrun.harness import Harness
    from longrun.inbox import Ticket

NATURES = ("read-only", "idempotent", "non-idempotent")
SETTINGS = ("no_case_keys", "same_reply_once", "label_history")
"""What can be otherwise in the world: it ignores the key of a case; its mail service drops a reply that is the very
same as an earlier one; it keeps each label that is set as a line of its own."""
NONE = "none"
PROTOCOLS: Mapping[str, Harness] = {"v1": without_ledger.HARNESS, "v2": correct.HARNESS}
_INPUTS: Mapping[type, Any] = {str: "words", int: 1000}


@dataclass(eq=False)
class Remembered:
    """The outside world, in memory. ``setting`` is one of :data:`SETTINGS`, or empty."""

    setting: str = ""
    effects: list[FileEffect] = field(default_factory=list)

    def records(self, name: str | None = None) -> list[FileEffect]:
        """Effects of that name, or all of them, oldest first."""
        return [each for each in self.effects if name in (None, each.name)]

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """Do it and return the receipt; an effect with a known key is done once."""
        if (self.setting, name) in (("no_case_keys", "open_case"), ("label_history", "set_label")):
            key = None
        elif (self.setting, name) == ("same_reply_once", "send_reply"):
            key = canonical(detail)
        known = key is not None and any((each.name, each.key) == (name, key) for each in self.effects)
        self.effects.append(FileEffect(name, key, detail, f"{name}-{len(self.effects)}", counted=not known))
        return self.effects[-1].receipt


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    try:
        form = answers(bench.file, ["nature", "flip", *PROTOCOLS])
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    seed = inbox_seed(bench.seed, same=True)
    inbox = make_inbox(seed, body_bytes=SHORT_BODY_BYTES)
    found = []
    if bench.wants("nature"):
        found.append(judged("nature", {name: partial(_nature, form, inbox, name) for name in TOOLS}))
    if bench.wants("flip"):
        found.append(judged("flip", {"flip": partial(_flip, form, inbox)}))
    for protocol, harness in PROTOCOLS.items():
        if bench.wants(f"same.{protocol}"):
            subject = describe(harness, name=protocol, persona="hasty", seed=seed, body_bytes=SHORT_BODY_BYTES)
            with stage(subject) as scene:
                found.append(judged(f"same.{protocol}", {protocol: partial(_same, form, scene, protocol)}))
    return found


def nature_of(name: str, inbox: tuple[Ticket, ...], setting: str = "") -> str:
    """The nature of a tool as the world shows it: it is used twice, under one key and with one input."""
    outside, tool = Remembered(setting), TOOLS[name]
    given = {key: inbox[0].ticket if key == "ticket" else _INPUTS[kind] for key, kind in tool.fields.items()}
    changes = []
    for _ in range(2):
        before = sum(each.counted for each in outside.effects)
        tool.run(World(outside, inbox), given, "the same key")
        changes.append(sum(each.counted for each in outside.effects) > before)
    return NATURES[sum(changes)]


def world_of(state: CrashState) -> Counter[tuple[str, str]]:
    """What was done to the world before a crash; a request to the model is no act."""
    return Counter((op.name, canonical(op.detail)) for op in state.effects if op.counted and op.name != REQUEST)


def pairs(states: Iterable[CrashState]) -> bool:
    """Whether two of these leave the same directory, and another world."""
    worlds: dict[str, Counter[tuple[str, str]]] = {}
    return any(worlds.setdefault(each.tree.digest, world_of(each)) != world_of(each) for each in states)


def _nature(form: Mapping[str, Any], inbox: tuple[Ticket, ...], name: str) -> Shown | None:
    said = Table.of(form, "nature", tuple(TOOLS)).text(name, NATURES)
    there = nature_of(name, inbox)
    times = {"read-only": "no time", "idempotent": "the first time alone", "non-idempotent": "both times"}[there]
    return None if said == there else _told(name, f"used twice, it changes the world {times}", said)


def _flip(form: Mapping[str, Any], inbox: tuple[Ticket, ...]) -> Shown | None:
    table = Table.of(form, "flip", ("setting", "tool", "becomes"))
    setting, name = table.text("setting", SETTINGS), table.text("tool", tuple(TOOLS))
    becomes, before, there = table.text("becomes", NATURES), nature_of(name, inbox), nature_of(name, inbox, setting)
    if there == before:
        return _told("flip", "another nature than without the setting", f"{name} is {there} with {setting}, too")
    return None if becomes == there else _told("flip", f"{name} used twice in that world", becomes)


def _same(form: Mapping[str, Any], scene: Stage, protocol: str) -> Shown | None:
    table = Table.of(form, protocol, ("one", "other"))
    if NONE in (table.text("one"), table.text("other")):
        there = pairs(kill_states(scene.trace))
        return _told(protocol, "two points with one directory and two worlds; there are some", NONE) if there else None
    one, other = scene.at(table, "one"), scene.at(table, "other")
    if one.tree.digest != other.tree.digest:
        return _told(protocol, "one directory", f"{one.id} and {other.id} leave two that differ")
    if world_of(one) == world_of(other):
        return _told(protocol, "two worlds", f"at {one.id} and {other.id} the same was done to the world")
    return None


def _told(name: str, expected: str, said: str) -> Shown:
    return Shown(kind="wrong-answer", crash_point=name, expected=expected, found=said)
