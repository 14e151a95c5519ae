"""Exercise 1.1: ten things of an agent that keeps notes, and what became of each when it was killed.

The agent is :mod:`longrun.memory.naive_notes`. It is really killed; what is left is looked for in the files of the
directory that was left, and in the lab's record of what was done to the world before.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from crashcourse.desk import inbox_seed
from crashcourse.explain import Table, answers, judged, stage
from crashcourse.judging import failed
from crashcourse.result import Shown
from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.tree import File
from longrun.files import TEMPORARY_SUFFIX
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.memory import naive_notes
from longrun.subjects import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crashcourse.explain import Stage
    from crashcourse.judging import Bench
    from crashcourse.result import Outcome
    from crashlab.observation import RawRecording

CRASH = "turn5.tool1.effect+"
KINDS = ("outside", "notes", "conversation", "execution")
PLACES = ("world", "disk", "process")
FATES = ("alive", "gone")
NOWHERE = "nowhere"
WORLD = "world/"
_KEYS = ("kind", "place", "fate", "evidence")


@dataclass(frozen=True)
class Item:
    """Something that may be lost: an act of that name, or words by which it is known in a file.

    ``{ticket}`` stands for the ticket of the outage. Numbers and ids that a program keeps for itself are known by
    the name under which a file would have to hold them.
    """

    act: str = ""
    words: str = ""


ITEMS: Mapping[str, Item] = {
    "reply": Item(act="send_reply"),
    "reply_note": Item(words=r"^- send_reply {ticket}:"),
    "case": Item(act="open_case"),
    "case_note": Item(words=r"^- open_case {ticket}:"),
    "labels": Item(act="set_label"),
    "times_noted": Item(words=r"^# Notes, written \d+ times"),
    "analysis": Item(words=r"Outages need a case\."),
    "plan": Item(words=r"Now the people\."),
    "turns": Item(words=r"\bturns\b"),
    "open_calls": Item(words=r"\bpending_tool_use\b"),
}


@dataclass(frozen=True)
class Found:
    """Where a thing is: the place, and the path at which it can be read."""

    place: Literal["world", "disk", "process"]
    evidence: str = NOWHERE

    @property
    def fate(self) -> str:
        """Alive is what somebody can still read once the process is dead."""
        return "gone" if self.place == "process" else "alive"


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    try:
        form = answers(bench.file, [*ITEMS, "witness"])
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    seed = inbox_seed(bench.seed, same=True)
    (ticket, *_) = make_inbox(seed, body_bytes=0)
    subject = describe(naive_notes.HARNESS, name="notes", seed=seed, body_bytes=SHORT_BODY_BYTES)
    with stage(replace(subject, view=None, check=None)) as scene:  # the conversation itself is wanted, not its digest
        (state,) = scene.places[CRASH]
        left = scene.killed(state)
        truth = {name: found(item, left, ticket.ticket) for name, item in ITEMS.items()}
        kinds = {name: kind(item, scene, ticket.ticket) for name, item in ITEMS.items()}
        parts: dict[str, Mapping[str, Callable[[], Shown | str | None]]] = {
            "kinds": {name: partial(_kind, form, name, kinds[name], truth[name]) for name in ITEMS},
            "fate": {name: partial(_fate, form, name, truth[name]) for name in ITEMS},
            "evidence": {name: partial(_evidence, form, name, truth[name]) for name in ITEMS},
            "witness": {"witness": partial(_witness, form, scene, truth, ticket.ticket)},
        }
        return [judged(case, work) for case, work in parts.items() if bench.wants(case)]


# --- what is true ---------------------------------------------------------------------------------


def found(item: Item, left: RawRecording, ticket: str) -> Found:
    """Where ``item`` is after a crash: in the world, in a file, or nowhere any more."""
    if item.act:
        done = any(isinstance(op, t.Effect) and op.name == item.act for op in left.ops)
        return Found("world", f"{WORLD}{item.act}") if done else Found("process")
    for path, _, node in left.last.walk("dir"):
        if (
            isinstance(node, File)
            and not path.endswith(TEMPORARY_SUFFIX)
            and known(item, node.content.read().decode(errors="replace"), ticket)
        ):
            return Found("disk", path.removeprefix("dir/"))
    return Found("process")


def kind(item: Item, scene: Stage, ticket: str) -> str:
    """What ``item`` is, by the record of the run without a crash that holds it."""
    if any(isinstance(op, t.Effect) and op.name == item.act for op in scene.trace.ops):
        return "outside"
    raw = scene.recorded.raw
    assert raw is not None
    if found(item, raw, ticket).place == "disk":
        return "notes"
    said = map(json.dumps, scene.end["transcript"])
    return "conversation" if any(known(item, text, ticket) for text in said) else "execution"


def known(item: Item, text: str, ticket: str) -> bool:
    """Whether ``text`` holds what ``item`` is known by."""
    return bool(item.words) and re.search(item.words.replace("{ticket}", ticket), text, re.MULTILINE) is not None


# --- what was answered ----------------------------------------------------------------------------


def _kind(form: Mapping[str, Any], name: str, right: str, truth: Found) -> Shown | None:
    table = Table.of(form, name, _KEYS)
    kind_said, place_said = table.text("kind", KINDS), table.text("place", PLACES)
    if place_said != truth.place:
        return _told(name, "the place where it is at the moment of the kill", f"place = {place_said}")
    if kind_said != right:
        return _told(name, "the first of the four kinds that fits; the place is right", f"kind = {kind_said}")
    return None


def _fate(form: Mapping[str, Any], name: str, truth: Found) -> Shown | None:
    said = Table.of(form, name, _KEYS).text("fate", FATES)
    if said == truth.fate:
        return None
    where = (
        f"can be read at {truth.evidence}" if truth.fate == "alive" else "is in no file and in no record of the world"
    )
    return _told(name, f"after the kill it {where}", said)


def _evidence(form: Mapping[str, Any], name: str, truth: Found) -> Shown | None:
    said = Table.of(form, name, _KEYS).text("evidence")
    if said == truth.evidence:
        return None
    return _told(name, "the path at which it can be read then, or nowhere", f"{said}, which does not hold it then")


def _witness(form: Mapping[str, Any], scene: Stage, truth: Mapping[str, Found], ticket: str) -> Shown | None:
    table = Table.of(form, "witness", ("point", "item"))
    name, state = table.text("item", list(ITEMS)), scene.at(table)
    there = found(ITEMS[name], scene.killed(state), ticket)
    if there.fate != truth[name].fate:
        return None
    return _told("witness", f"{name} has another fate than at {CRASH}", f"killed at {state.id}, it is {there.fate} too")


def _told(name: str, expected: str, said: str) -> Shown:
    return Shown(kind="wrong-answer", crash_point=name, expected=expected, found=said)
