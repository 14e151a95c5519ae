"""Lesson 4: a kind model hides a broken harness, a ledger that is asked, and what stays unknown whatever one does."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.exhibit import Exhibit, expect, together
from crashcourse.pictures import Cell, Picture, Rung, bars, ladder, matrix
from crashcourse.stage import Stage
from crashlab import Budget, explore
from longrun.inbox import make_inbox
from longrun.personas import PERSONAS
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashcourse.exhibit import Data
    from crashlab import Report
    from longrun.personas import Persona

BEFORE_REPLY, AFTER_REPLY = "turn5.tool1.effect-", "turn5.tool1.effect+"
DESIGNS = {
    "lesson 3's harness": "longrun.resume.without_ledger",
    "naive_id_key": "longrun.effects.naive_id_key",
    "naive_time_key": "longrun.effects.naive_time_key",
    "naive_no_gate": "longrun.effects.naive_no_gate",
    "naive_record_first": "longrun.effects.naive_record_first",
    "correct": "longrun.effects.correct",
}
KIND_HIDES = ("lesson 3's harness", "naive_id_key", "naive_time_key", "naive_no_gate")
WINDOWS = {
    "correct": "longrun.effects.correct",
    "naive_no_started": "longrun.effects.naive_no_started",
    "naive_record_at_b": "longrun.effects.naive_record_at_b",
    "lesson 3's harness": "longrun.resume.without_ledger",
}
PAGE_PLACES = ("turn5.tool2.S+", "turn5.tool2.effect-", "turn5.tool2.effect+", "turn5.tool2.ledger+")
LITTLE = Budget(real_kills=1, subset=1, violations=1, sample=0)


def measure(folder: Path) -> Data:
    """All that the lesson shows."""
    return {
        "repeated": _repeated(folder / "repeated"),
        "designs": _designs(folder / "designs"),
        "rungs": together(lambda place: _rung(folder / f"rung {place}", place), PAGE_PLACES),
        "unknown": {name: _unknown(module, folder / f"unknown {name}") for name, module in WINDOWS.items()},
        "full": {name: _full(folder / f"full {name}", name) for name in ("naive_error_after_success", "correct")},
        "power": _power(folder / "runs"),
        "damaged": _damaged(folder / "damaged"),
        "kept": {name: _kept(folder / f"kept {name}", name) for name in ("naive_object_result", "correct")},
    }


def _repeated(folder: Path) -> dict[str, list[int]]:
    """How much of a thing is in the world after one call, and after the same call once more."""
    folder.mkdir()
    world, found = World(FileOutside(folder / "world.jsonl"), make_inbox()), {}
    calls: dict[str, tuple[Any, str]] = {
        "set_label": (lambda: world.set_label(ticket="T-101", label="outage"), "labels"),
        "open_case, one key": (lambda: world.open_case(key="k", ticket="T-101", title="down"), "cases"),
        "send_reply": (lambda: world.send_reply(ticket="T-101", text="Hello.", refund_yen=0), "replies"),
    }
    for name, (call, what) in calls.items():
        counts = []
        for _ in range(2):
            call()
            counts.append(len(world.view()[what]))
        found[name] = counts
    expect(found, {"set_label": [1, 1], "open_case, one key": [1, 1], "send_reply": [1, 2]}, "calls made twice")
    return found


def _designs(folder: Path) -> dict[str, dict[str, list[int]]]:
    """Replies to T-101 where a run is killed just before or just after its reply, per design and persona."""
    tasks = [
        (name, persona, place) for name in DESIGNS for persona in PERSONAS for place in (BEFORE_REPLY, AFTER_REPLY)
    ]

    def replies(task: tuple[str, Persona, str]) -> int:
        name, persona, place = task
        stage = Stage(folder / " ".join(task), DESIGNS[name], persona)
        stage.start(kill_at=place)
        stage.resume()
        return [ticket for ticket, _ in stage.world()["replies"]].count("T-101")

    found: dict[str, dict[str, list[int]]] = {name: {persona: [] for persona in PERSONAS} for name in DESIGNS}
    for (name, persona, _), count in zip(tasks, together(replies, tasks), strict=True):
        found[name][persona].append(count)
    for name in DESIGNS:
        lost = name == "naive_record_first"
        expect(found[name]["careful"], [0, 1] if lost else [1, 1], f"replies of {name} with the careful model")
        hasty = [0, 1] if lost else [1, 1 + (name in KIND_HIDES)]
        expect(found[name]["hasty"], hasty, f"replies of {name} with the hasty model")
    return found


# --- what stays unknown ------------------------------------------------------------------------------


def _rung(folder: Path, place: str) -> dict[str, Any]:
    """The files and the world where a run is killed around its page, and how the resumed run ends."""
    stage = Stage(folder, DESIGNS["correct"], "hasty")
    stage.start(kill_at=place)
    found: dict[str, Any] = {"place": place, "files": stage.fingerprint(), "pages": len(stage.world()["pages"])}
    end = stage.resume().said
    return {
        **found,
        "status": end["status"],
        "unknown": end["unknown"],
        "pages at the end": len(stage.world()["pages"]),
    }


def _unknown(module: str, folder: Path) -> dict[str, int]:
    """Of all named places of turn 5, at how many a kill leaves a question for a person."""
    whole = Stage(folder / "whole", module, "hasty")
    whole.start()
    places = [place for place in whole.places() if place.startswith("turn5.") and "request" not in place]

    def ends_open(place: str) -> bool:
        stage = Stage(folder / place, module, "hasty")
        stage.start(kill_at=place)
        return bool(stage.resume().said["status"] == "waiting")

    return {"places": len(places), "open": sum(together(ends_open, places))}


# --- disks ---------------------------------------------------------------------------------------------


def _full(folder: Path, name: str) -> dict[str, Any]:
    """The reply is out, and the record of it meets a full disk."""
    stage = Stage(folder, f"longrun.effects.{name}", "hasty")
    first = stage.start(full_at=AFTER_REPLY).said
    second = stage.resume().said
    replies = [ticket for ticket, _ in stage.world()["replies"]].count("T-101")
    expect(replies, 1 + (name != "correct"), f"replies of {name} where the disk is full")
    return {
        "first": str(first.get("error", first.get("status"))),
        "then": str(second.get("error", second.get("status"))),
        "replies": replies,
    }


def _power(runs: Path) -> dict[str, dict[str, str]]:
    """The power goes right after an act; everything that no barrier forced is lost."""
    found = {}
    for name, effect in (("naive_lazy_mark", "send_reply"), ("naive_unsynced_ledger", "page_oncall")):
        for module in (name, "correct"):
            subject = f"longrun.effects.{module}:subject"
            known = _one(subject, "kill@1", runs)
            n = next(each.n for each in known.moments if each.op == "effect" and each.text.startswith(effect))
            # All is lost that may be; with the correct one nothing may, and the state has no other name.
            report = _one(subject, f"power@{n}" if module == "correct" else f"power@{n}-all", runs)
            kind = report.findings[0].kind if report.findings else report.verdict
            found[f"{name} {module}"] = {"after": effect, "verdict": report.verdict, "kind": kind}
        expect(found[f"{name} correct"]["verdict"], "consistent", f"the correct one where {name} is wrong")
    expect(found["naive_lazy_mark naive_lazy_mark"]["kind"], "duplicate-effect", "the lazy mark")
    expect(found["naive_unsynced_ledger naive_unsynced_ledger"]["kind"], "stuck", "the unsynced ledger")
    return found


def _one(subject: str, state: str, runs: Path) -> Report:
    faults = state.partition("@")[0]
    return explore(subject, faults=faults, only=state, profile="xfs", budget=LITTLE, out=runs)


def _damaged(folder: Path) -> dict[str, Any]:
    """The ledger loses its content while nothing runs; two harnesses open what is left."""
    dead = Stage(folder / "dead", DESIGNS["correct"], "hasty")
    dead.start(kill_at="turn6.tool1.S+")
    found: dict[str, Any] = {"before": len(dead.records())}
    (folder / "dead" / "agent" / "effects.jsonl").write_bytes(b"")
    for name in ("naive_blank_on_damage", "correct"):
        stage = dead.copy(folder / name, f"longrun.effects.{name}")
        said = stage.resume().said
        found[name] = {"said": str(said.get("error", said.get("status"))), "records": len(stage.records())}
    expect(found["correct"], {"said": "Damaged", "records": 0}, "the correct one with an empty ledger")
    expect(found["naive_blank_on_damage"]["said"], "done", "the one that takes it for blank")
    return found


def _kept(folder: Path, name: str) -> dict[str, str]:
    """A run that is killed when the result of its reply is in the ledger, and resumed with that result."""
    stage = Stage(folder, f"longrun.effects.{name}", "hasty")
    stage.start(kill_at="turn5.tool1.ledger+")
    said = stage.resume().said
    end = str(said.get("error", said.get("status")))
    expect(end, "done" if name == "correct" else "ApiError", f"what became of a result in the ledger of {name}")
    return {"said": end, "text": re.sub(r"toolu_\w+", "toolu_*", str(said.get("text", "")))}


# --- telling -----------------------------------------------------------------------------------------


def tell(data: Data) -> Iterator[str]:
    """What is printed."""
    yield "The same call once, and once more: how much is in the world?"
    for name, (once, twice) in data["repeated"].items():
        yield f"  {name:18} {once}  {twice}  {'the same' if once == twice else 'one more'}"
    yield ""
    yield str(_matrix(data))
    yield str(_ladder(data))
    yield str(_bars(data))
    yield "The reply is out, and there is no room for its record:"
    for name, found in data["full"].items():
        yield f"  {name:25} {found['first']:8} started again: {found['then']:6} replies to T-101: {found['replies']}"
    yield "\nThe power goes right after an act:"
    for name, found in data["power"].items():
        yield f"  {name.split()[1]:25} after {found['after']:12} {found['verdict']:11} {_kind(found)}".rstrip()
    damaged = data["damaged"]
    yield f"\nThe ledger had {damaged['before']} records and is empty now:"
    for name in ("naive_blank_on_damage", "correct"):
        yield f"  {name:25} {damaged[name]['said']:8} records: {damaged[name]['records']}"
    yield "\nKilled when the result is in the ledger, and resumed with it:"
    for name, found in data["kept"].items():
        yield f"  {name:25} {found['said']}"
        yield from textwrap.wrap(found["text"], 84, initial_indent=" " * 4, subsequent_indent=" " * 4)


def _kind(found: dict[str, str]) -> str:
    return found["kind"] if found["kind"] != found["verdict"] else ""


# --- drawing -----------------------------------------------------------------------------------------


def pictures(data: Data) -> dict[str, Picture]:
    """Personas against designs, what is known of one page, and how much stays unknown."""
    return {"personas": _matrix(data), "ladder": _ladder(data), "unknown": _bars(data)}


def _matrix(data: Data) -> Picture:
    rows = {
        name: {f"{persona} model": _cell(counts) for persona, counts in row.items()}
        for name, row in data["designs"].items()
    }
    return matrix("Killed around one reply: how often does it go out?", [f"{each} model" for each in PERSONAS], rows)


def _cell(counts: list[int]) -> Cell:
    wrong = [count for count in counts if count != 1]
    return Cell("violation", f"{wrong[0]} replies") if wrong else Cell("consistent")


def _ladder(data: Data) -> Picture:
    names = {each["files"]: "" for each in data["rungs"]}
    letters = dict(zip(names, "ABCD", strict=False))
    rungs = [
        Rung(
            each["place"],
            f"directory {letters[each['files']]}",
            f"{each['pages']} {'page' if each['pages'] == 1 else 'pages'}",
            each["status"] + (f": {', '.join(each['unknown'])}?" if each["unknown"] else ""),
        )
        for each in data["rungs"]
    ]
    return ladder(
        "One page: killed at four places, and two directories", rungs, heads=("the files", "the world", "the end")
    )


def _bars(data: Data) -> Picture:
    counts = {name: found["open"] for name, found in data["unknown"].items()}
    most = data["unknown"]["correct"]["places"]
    unit = f"places of turn 5, of {most}, where a kill leaves a question for a person"
    return bars("What stays unknown", counts, unit=unit, bad=[name for name in counts if name != "correct"])


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures)

if __name__ == "__main__":
    sys.exit(exhibit.main())
