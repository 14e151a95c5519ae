"""Lesson 7, second part: a tree in the log, and what two simpler ways to keep a session cannot tell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.exhibit import Exhibit, expect, together
from crashcourse.log_stage import LEVELS, LogStage, world_in
from crashcourse.pictures import Picture, Point, point_tree
from longrun.eventlog.agent import LogAgent
from longrun.eventlog.opening import Opening, inspect, open_log
from longrun.eventlog.project import effects, messages, ui
from longrun.eventlog.tree import branch, fork
from longrun.fake_api import FakeApi

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashcourse.exhibit import Data
    from longrun.eventlog.log import EventLog
    from longrun.eventlog.record import Record

CORRECT = "longrun.eventlog.conduct"
PLACES = ("send_reply+", "page_oncall-", "page_oncall+", "ask6")
BACK_TO_STEP = 3


def measure(folder: Path) -> Data:
    """All that this part shows."""
    return {"tree": _tree(folder / "tree"), "levels": _levels(folder)}


# --- the tree ----------------------------------------------------------------------------------------


def _tree(folder: Path) -> dict[str, Any]:
    """A whole session goes back, takes another way, and is forked: what is in the log, and what is in the world."""
    stage = LogStage(folder)
    stage.run()
    world, first = world_in(folder), len(stage.found().records)
    with open_log(stage.root, "s", Opening(writer="B", clock=lambda: 0)) as log:
        target = _last_result(log.records, BACK_TO_STEP)
        moved = branch(log, target)
        status = LogAgent(log, FakeApi("hasty"), world).turn("Go on from here.")
        found = {"points": _points(log, moved), "leaf": log.grammar.leaf}
        rows = ui(log.records)
        shown, every, acts = len(messages(log.records)), len(rows), len(effects(log.records))
        abandoned = sum("abandoned" in row.marks for row in rows)
        with fork(log.records, target, stage.root, "fork", Opening(writer="B", clock=lambda: 0)) as other:
            LogAgent(other, FakeApi("hasty"), world).turn("Go on from here.")
    with open_log(stage.root, "s", Opening(writer="C", clock=lambda: 0)) as log:
        expect(log.grammar.leaf, found["leaf"], "the leaf after a restart")
    replies = [ticket for ticket, _ in world_in(folder).view()["replies"]].count("T-101")
    expect(replies, 1, "replies with a branch and a fork")
    return {
        **found,
        "first": first,
        "target": target,
        "moved": moved,
        "status": status,
        "messages": shown,
        "rows": every,
        "abandoned": abandoned,
        "acts": acts,
        "replies": replies,
        "pages": len(world_in(folder).view()["pages"]),
        "fork": len(inspect(stage.root, "fork").records),
    }


def _last_result(records: Sequence[Record], step: int) -> int:
    return max(each.seq for each in records if each.type == "tool/result" and each.data["step"] == step)


def _points(log: EventLog, moved: int) -> list[list[Any]]:
    """What was said, a point per message: results of one answer are one."""
    points: list[list[Any]] = []
    at: dict[int, int] = {}
    for record in log.records:
        if record.type not in ("user/message", "assistant/message", "tool/result"):
            continue
        line = "first way" if record.seq < moved else "second way"
        parent = -1 if record.parent is None else record.parent
        if record.type == "tool/result" and points and points[-1][3] == "results" and at.get(parent) == points[-1][0]:
            at[record.seq] = points[-1][0]
            points[-1][4] = record.seq
            continue
        text = {"user/message": "user", "assistant/message": "answer", "tool/result": "results"}[record.type]
        at[record.seq] = len(points) + 1
        points.append([len(points) + 1, at.get(parent, 0), line, text, record.seq])
    return points


# --- three levels ------------------------------------------------------------------------------------


def _levels(folder: Path) -> dict[str, Any]:
    """One workload in three ways: what an act's outcome is after the same kills, and what a branch costs."""
    names = [*LEVELS, "log"]
    tasks = [(name, place) for name in names for place in PLACES]

    def end(task: tuple[str, str]) -> dict[str, Any]:
        name, place = task
        stage = LogStage(folder / f"level {name} {place}", CORRECT if name == "log" else name)
        stage.run(kill_at=place)
        said, world = stage.run().said, stage.world()
        replies = [ticket for ticket, _ in world["replies"]].count("T-101")
        return {"unknown": bool(said["unknown"]), "pages": len(world["pages"]), "replies": replies}

    found: dict[str, Any] = {name: {"ends": {}} for name in names}
    for (name, place), ended in zip(tasks, together(end, tasks), strict=True):
        found[name]["ends"][place] = ended
        expect((ended["replies"], ended["pages"] <= 1), (1, True), f"acts of {name} killed at {place}")
    for name in names:
        found[name]["branch"] = _branched(folder / f"level {name} ask6", name)
    return found


def _branched(folder: Path, name: str) -> int:
    """How many bytes it takes to go on from the tenth thing that was said."""
    stage = LogStage(folder)
    if name in LEVELS:
        before = _bytes(stage.root)
        LEVELS[name](stage.root).branch(10)
        return _bytes(stage.root) - before
    with open_log(stage.root, "s", Opening(writer="B", clock=lambda: 0)) as log:
        before = stage.path.stat().st_size
        branch(log, _last_result(log.records, BACK_TO_STEP))
        return stage.path.stat().st_size - before


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


# --- telling and drawing -----------------------------------------------------------------------------


def tell(data: Data) -> Iterator[str]:
    """What is printed."""
    yield from _tell_tree(data)
    yield from _tell_levels(data["levels"])


def _tell_tree(data: Data) -> Iterator[str]:
    found = data["tree"]
    yield str(_tree_picture(data))
    yield f"  messages for the model:  {found['messages']:3}"
    yield f"  rows for a person:       {found['rows']:3}, of which {found['abandoned']} on the way that was left"
    yield f"  acts, on both ways:      {found['acts']:3}"
    yield f"  in the world, after a fork too: replies to T-101: {found['replies']}, pages: {found['pages']}"
    yield ""


def _tell_levels(found: dict[str, Any]) -> Iterator[str]:
    yield "One workload, killed at four places:"
    yield f"  {'':10}{'asks a person at':36} a branch costs"
    for name, level in found.items():
        places = [place for place, end in level["ends"].items() if end["unknown"]]
        yield f"  {name:9} {', '.join(places):40} {level['branch']:5} bytes"


def pictures(data: Data) -> dict[str, Picture]:
    """The tree."""
    return {"tree": _tree_picture(data)}


def _tree_picture(data: Data) -> Picture:
    found = data["tree"]
    points = [Point(n, parent, line, text, str(seq)) for n, parent, line, text, seq in found["points"]]
    return point_tree("One log, two ways", points, heads=[points[-1].seq])


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures, kept_in="tree.json")

if __name__ == "__main__":
    sys.exit(exhibit.main())
