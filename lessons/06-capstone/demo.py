"""Lesson 6: the whole harness against every family, and six scenes that no single kill of a plain run shows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.desk import Desk
from crashcourse.exhibit import Exhibit, expect, together
from crashcourse.pictures import Cell, Mark, Picture, matrix, timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashcourse.exhibit import Data

HOME = "longrun.capstone"
MOST_DEATHS, MANY = 6, 50
SCENES = ("fresh", "poison", "race", "end", "question", "cap")
FAULT_OF = {
    "naive_wipes_ledger": "fresh",
    "naive_no_attempts": "poison",
    "naive_no_lease": "race",
    "naive_cleanup_first": "end",
    "naive_waiting_lost": "question",
    "naive_cap_after_crash": "cap",
    "correct": "",
}
TWO_DEATHS = ("poison", "question")
"""The scenes in which one crash is not enough."""


def measure(folder: Path) -> Data:
    """Every design in every scene."""
    tasks = [(name, scene) for name in FAULT_OF for scene in SCENES]

    def played(task: tuple[str, str]) -> dict[str, Any]:
        name, scene = task
        return _PLAYED[scene](Desk(folder / name / scene, f"{HOME}.{name}", "hasty"))

    found: dict[str, dict[str, Any]] = {name: {} for name in FAULT_OF}
    for (name, scene), seen in zip(tasks, together(played, tasks), strict=True):
        found[name][scene] = seen
    for name, fault in FAULT_OF.items():
        fallen = [scene for scene in SCENES if found[name][scene]["wrong"]]
        expect(fallen, [fault] if fault else [], f"the scenes to which {name} falls")
    return {"scenes": found}


def _replies(desk: Desk) -> int:
    return [ticket for ticket, _ in desk.world()["replies"]].count("T-101")


def _seen(desk: Desk, said: str, wrong: str, **more: int) -> dict[str, Any]:
    return {"said": said, "replies": _replies(desk), "wrong": wrong, **more}


def _said(said: dict[str, Any]) -> str:
    return str(said.get("error", said.get("status")))


# --- the scenes --------------------------------------------------------------------------------------


def _fresh(desk: Desk) -> dict[str, Any]:
    """Killed, and started plainly, as on the first day."""
    desk.start(kill_at="turn6.A+", turns=MANY)
    said = _said(desk.start(turns=MANY).said)
    return _seen(desk, said, "duplicate-effect" if _replies(desk) > 1 else "")


def _poison(desk: Desk) -> dict[str, Any]:
    """The model names a call that kills its process; started again after each death."""
    ended = desk.start(poison=True, turns=MANY)
    deaths = int(ended.killed)
    while ended.killed and deaths < MOST_DEATHS:
        ended = desk.resume(poison=True, turns=MANY)
        deaths += ended.killed
    said = "never ended" if ended.killed else _said(ended.said)
    return _seen(desk, said, "hang" if ended.killed else "", deaths=deaths)


def _race(desk: Desk) -> dict[str, Any]:
    """A second process resumes while the first one is about to send its reply."""
    ended = desk.start(second_at="turn5.tool1.effect-", turns=MANY)
    said = f"first {_said(ended.said)}, second {_said(ended.second)}"
    return _seen(desk, said, "duplicate-effect" if _replies(desk) > 1 else "")


def _end(desk: Desk) -> dict[str, Any]:
    """Killed in the last save, its new file whole and without its name."""
    desk.start(kill_at="turn7.request.draft1+", turns=MANY)
    said = _said(desk.resume(turns=MANY).said)
    return _seen(desk, said, "duplicate-effect" if _replies(desk) > 1 else "")


def _question(desk: Desk) -> dict[str, Any]:
    """Killed right after the page, and once more before anyone was asked about it."""
    desk.start(kill_at="turn5.tool2.effect+", turns=MANY)
    desk.resume(kill_at="turn6.A+", turns=MANY)
    said = _said(desk.resume(turns=MANY).said)
    return _seen(desk, said, "" if said == "waiting" else "missing-effect")


def _cap(desk: Desk) -> dict[str, Any]:
    """At most five turns; killed in the fourth."""
    desk.start(kill_at="turn4.A+", turns=5)
    said = desk.resume(turns=5).said
    return _seen(desk, _said(said), "guard-bypassed" if said["turns"] > 5 else "", turns=said["turns"])


_PLAYED: dict[str, Callable[[Desk], dict[str, Any]]] = {
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
        yield f"{scene}: {_document(scene)}"
        for each in (name, "correct"):
            yield f"  {each:21} {_line(scenes[each][scene])}"
    yield ""
    yield str(_timeline(data))


def _document(scene: str) -> str:
    text = _PLAYED[scene].__doc__ or ""
    return text[0].lower() + text[1:].rstrip(".")


def _line(seen: dict[str, Any]) -> str:
    more = [f"{seen[what]} {what}" for what in ("deaths", "turns") if what in seen]
    return ", ".join([seen["said"], *more, f"replies to T-101: {seen['replies']}"])


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
    wrong, right = (data["scenes"][name]["question"]["said"] for name in ("naive_waiting_lost", "correct"))
    marks = [
        Mark(1, "first process", "page_oncall rings; nothing says so yet; killed"),
        Mark(2, "second process", "records: unknown, a person must say"),
        Mark(3, "second process", "goes on, writes the report; killed before it has asked"),
        Mark(4, "third process", "opens the directory"),
    ]
    left = [f"correct: {right}, it asks", f"naive_waiting_lost: {wrong}, nobody is asked"]
    return timeline("A question that must outlive two deaths", marks, crash=3, crash_text="killed again", left=left)


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures)

if __name__ == "__main__":
    sys.exit(exhibit.main())
