"""Lesson 6: the whole harness against every family, and six scenes that no single kill of a plain run shows."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.exhibit import Exhibit, expect, together
from crashcourse.pictures import Cell, Mark, Picture, matrix, timeline
from crashcourse.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashcourse.exhibit import Data

HOME = "longrun.capstone"
MOST_DEATHS, MANY = 6, 50
MODULES = {"one file, no lease": "longrun.capstone.naive_no_lease"}
"""Where a design is, if not with the others."""
PAGE = 88
"""Letters in a line of a page."""
SCENES = ("fresh", "poison", "race", "end", "question", "cap")
FAULT_OF = {
    "naive_wipes_ledger": "fresh",
    "naive_no_attempts": "poison",
    "one file, no lease": "race",
    "naive_cleanup_first": "end",
    "naive_waiting_lost": "question",
    "naive_cap_after_crash": "cap",
    "correct": "",
}


def measure(folder: Path) -> Data:
    """Every design in every scene."""
    tasks = [(name, scene) for name in FAULT_OF for scene in SCENES]

    def played(task: tuple[str, str]) -> dict[str, Any]:
        name, scene = task
        return _PLAYED[scene](Stage(folder / name / scene, MODULES.get(name, f"{HOME}.{name}"), "hasty"))

    found: dict[str, dict[str, Any]] = {name: {} for name in FAULT_OF}
    for (name, scene), seen in zip(tasks, together(played, tasks), strict=True):
        found[name][scene] = seen
    for name, fault in FAULT_OF.items():
        fallen = [scene for scene in SCENES if found[name][scene]["wrong"]]
        expect(fallen, [fault] if fault else [], f"the scenes to which {name} falls")
    return {"scenes": found}


def _replies(stage: Stage) -> int:
    return [ticket for ticket, _ in stage.world()["replies"]].count("T-101")


def _seen(stage: Stage, said: str, wrong: str, **more: int) -> dict[str, Any]:
    return {"said": said, "replies": _replies(stage), "wrong": wrong, **more}


def _said(said: dict[str, Any]) -> str:
    return str(said.get("error", said.get("status")))


# --- the scenes --------------------------------------------------------------------------------------


def _fresh(stage: Stage) -> dict[str, Any]:
    """Killed, and started plainly, as on the first day."""
    stage.start(kill_at="turn6.A+", turns=MANY)
    said = _said(stage.start(turns=MANY).said)
    return _seen(stage, said, "duplicate-effect" if _replies(stage) > 1 else "")


def _poison(stage: Stage) -> dict[str, Any]:
    """The model names a call that kills its process; started again after each death."""
    ended = stage.start(poison=True, turns=MANY)
    deaths = int(ended.killed)
    while ended.killed and deaths < MOST_DEATHS:
        ended = stage.resume(poison=True, turns=MANY)
        deaths += ended.killed
    said = "never ended" if ended.killed else _said(ended.said)
    return _seen(stage, said, "hang" if ended.killed else "", deaths=deaths)


def _race(stage: Stage) -> dict[str, Any]:
    """A second process resumes while the first one stands still in turn 5; then the first one goes on."""
    ended = stage.start(second_at="turn5.A+", turns=MANY)
    third = _said(stage.resume(turns=MANY).said)
    said = f"first {_said(ended.said)}, second {_said(ended.second)}, a third one {third}"
    return _seen(stage, said, "duplicate-effect" if _replies(stage) > 1 else "" if third == "done" else "stuck")


def _end(stage: Stage) -> dict[str, Any]:
    """Killed in the last save, its new file whole and without its name."""
    stage.start(kill_at="turn7.request.draft1+", turns=MANY)
    said = _said(stage.resume(turns=MANY).said)
    return _seen(stage, said, "" if said == "done" else "stuck")


def _question(stage: Stage) -> dict[str, Any]:
    """Killed right after the page, and once more before anyone was asked about it."""
    stage.start(kill_at="turn5.tool2.effect+", turns=MANY)
    unknown = [_unknown(stage)]
    stage.resume(kill_at="turn6.A+", turns=MANY)
    unknown.append(_unknown(stage))
    said = _said(stage.resume(turns=MANY).said)
    seen = _seen(stage, said, "" if said == "waiting" else "missing-effect")
    return {**seen, "pages": len(stage.world()["pages"]), "unknown": unknown}


def _unknown(stage: Stage) -> list[str]:
    """The acts whose last record says that nobody knows."""
    last = {record["key"]: record for record in stage.records()}
    return [record["tool"] for record in last.values() if record["outcome"] == "unknown"]


def _cap(stage: Stage) -> dict[str, Any]:
    """At most five turns; killed in the fourth."""
    stage.start(kill_at="turn4.A+", turns=5)
    said = stage.resume(turns=5).said
    return _seen(stage, _said(said), "guard-bypassed" if said["turns"] > 5 else "", turns=said["turns"])


_PLAYED: dict[str, Callable[[Stage], dict[str, Any]]] = {
    "fresh": _fresh,
    "poison": _poison,
    "race": _race,
    "end": _end,
    "question": _question,
    "cap": _cap,
}


# --- telling -----------------------------------------------------------------------------------------


def tell(data: Data) -> Iterator[str]:
    """What is printed."""
    yield str(_matrix(data))
    scenes = data["scenes"]
    for name, scene in FAULT_OF.items():
        if not scene:
            continue
        yield from textwrap.wrap(f"{scene}: {_document(scene)}", PAGE, subsequent_indent=" " * 6)
        for each in (name, "correct"):
            yield from _lines(each, scenes[each][scene])
    yield ""
    yield str(_timeline(data))


def _document(scene: str) -> str:
    text = _PLAYED[scene].__doc__ or ""
    return text[0].lower() + text[1:].rstrip(".")


def _lines(name: str, seen: dict[str, Any]) -> list[str]:
    """What came of one harness, in one line, or in two where one would be too long for a page."""
    more = [f"{seen[what]} {what}" for what in ("deaths", "turns") if what in seen]
    said, replies = ", ".join([seen["said"], *more]), f"replies to T-101: {seen['replies']}"
    line = f"  {name:21} {said}, {replies}"
    return [line] if len(line) <= PAGE else [f"  {name:21} {said},", f"  {'':21} {replies}"]


# --- drawing -----------------------------------------------------------------------------------------


def pictures(data: Data) -> dict[str, Picture]:
    """Designs against scenes, and the question that two deaths make."""
    return {"scenes": _matrix(data), "question": _timeline(data)}


def _matrix(data: Data) -> Picture:
    rows = {
        name: {
            scene: Cell("violation", seen["wrong"]) if seen["wrong"] else Cell("consistent")
            for scene, seen in row.items()
        }
        for name, row in data["scenes"].items()
    }
    return matrix("Seven harnesses, six scenes", SCENES, rows)


def _timeline(data: Data) -> Picture:
    wrong, seen = (data["scenes"][name]["question"] for name in ("naive_waiting_lost", "correct"))
    before, after = (", ".join(each) or "nothing" for each in seen["unknown"])
    marks = [
        Mark(
            1, "first process", f"killed at turn5.tool2.effect+; pages: {seen['pages']}, recorded as unknown: {before}"
        ),
        Mark(2, "second process", f"killed at turn6.A+; recorded as unknown: {after}"),
        Mark(3, "third process", "opens the directory"),
    ]
    left = [f"the third process, correct: {seen['said']}", f"naive_waiting_lost: {wrong['said']}"]
    return timeline("A question that must outlive two deaths", marks, crash=2, crash_text="killed again", left=left)


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures)

if __name__ == "__main__":
    sys.exit(exhibit.main())
