"""Lesson 5: back to turn 4, a crash, and which point the next process wakes in; forks, and what neither can unsend."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.exhibit import Exhibit, expect, together
from crashcourse.pictures import Mark, Picture, Point, point_tree, timeline
from crashcourse.stage import Stage
from longrun.loop import TASK
from longrun.messages import user
from longrun.protocol import Checkpoint
from longrun.rewind import correct, naive_three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashcourse.exhibit import Data

HOME = "longrun.rewind"
BACK_TO, KILL_AT, FORK = 4, "turn5.A+", "other"
DESIGNS = ("correct", "naive_cuts_ledger", "naive_blank_fork_ledger", "naive_refunds_tokens", "naive_overwrites_points")
DRAFTS = {"naive_counts_tmp": "turn5.request.draft1+", "naive_head_file": "turn5.request.draft2+"}


def measure(folder: Path) -> Data:
    """All that the lesson shows, each in a folder of its own."""
    names = ("correct", "naive_old_future")
    designs = together(lambda name: _through(folder / f"through {name}", name), DESIGNS)
    return {
        "woken": dict(zip(names, together(lambda name: _woken(folder / f"woken {name}", name), names), strict=True)),
        "designs": dict(zip(DESIGNS, designs, strict=True)),
        "drafts": {name: _drafts(folder / name, name, place) for name, place in DRAFTS.items()},
        "numbers": _numbers(folder / "numbers"),
    }


def _stage(folder: Path, name: str) -> Stage:
    return Stage(folder, f"{HOME}.{name}", "hasty")


def _woken(folder: Path, name: str) -> dict[str, Any]:
    """Run to the end, go back, go on, die in the first turn of the new line; and where the next process wakes."""
    stage = _stage(folder, name)
    stage.start()
    stage.rewind(BACK_TO, go_on=True, kill_at=KILL_AT)
    points, asked = _rows(stage.points()), stage.requests()
    head = stage.head()
    assert head is not None
    end = stage.resume().said
    requests = stage.requests() - asked
    wakes = 7 if name == "naive_old_future" else 5
    expect(head.turns, wakes, f"the turn in which {name} wakes")
    expect(requests > 0, name == "correct", f"whether {name} goes on")
    return {
        "head": {"seq": head.seq, "line": head.timeline, "turn": head.turns, "status": head.status},
        "requests": requests,
        "end": {"status": end["status"], "turns": end["turns"]},
        "points": points,
    }


def _rows(points: Sequence[Checkpoint]) -> list[list[Any]]:
    """Of each turn of each line the last point: number, the point before the turn, line, turn."""
    rows, of_point = [], dict[int, int]()
    for (line, turn), group in groupby(points, key=lambda point: (point.timeline, point.turns)):
        members = list(group)
        rows.append([members[-1].seq, of_point.get(members[0].parent or 0, 0), line, turn])
        of_point |= {point.seq: members[-1].seq for point in members}
    return rows


def _through(folder: Path, name: str) -> dict[str, Any]:
    """Run, go back, run, fork, run the fork."""
    stage = _stage(folder, name)
    stage.start()
    before, tokens = [point.seq for point in stage.points()], stage.points()[-1].tokens_used
    after_rewind = stage.rewind(BACK_TO).said["tokens"]
    kept = len({point.seq for point in stage.points() if point.timeline == "main"} & set(before))
    stage.resume()
    replies = [_replies(stage)]
    stage.fork(FORK, BACK_TO)
    stage.resume(line=FORK)
    replies.append(_replies(stage))
    found: dict[str, Any] = {
        "tokens": [tokens, after_rewind],
        "points": [len(before), kept],
        "replies": replies,
        "lines": [_rows(stage.points()), _rows(stage.points(FORK))] if name == "correct" else [],
        "forked from": stage.points(FORK)[0].parent if name == "correct" else 0,
    }
    expect(replies[0], 1 + (name == "naive_cuts_ledger"), f"replies of {name} after a rewind")
    expect(replies[1] > replies[0], name == "naive_blank_fork_ledger", f"whether the fork of {name} writes again")
    expect(after_rewind < tokens, name == "naive_refunds_tokens", f"whether tokens fall with {name}")
    expect(kept < len(before), name == "naive_overwrites_points", f"whether points are gone with {name}")
    return found


def _replies(stage: Stage) -> int:
    return [ticket for ticket, _ in stage.world()["replies"]].count("T-101")


def _drafts(folder: Path, name: str, place: str) -> dict[str, dict[str, list[str]]]:
    """Killed in the middle of a save: what the next two processes say."""
    found = {}
    for module in (name, "correct"):
        stage = _stage(folder / module, module)
        # The correct one has no second file to write: it is killed in the save that it has.
        stage.start(kill_at=place if module == name else "turn5.request.draft1+")
        said = [stage.resume().said for _ in range(2)]
        found[module] = {"said": [str(each.get("error", each.get("status"))) for each in said]}
    expect(found["correct"]["said"], ["done", "done"], "the correct one, killed in a save")
    expect("done" in found[name]["said"], False, f"whether {name} recovers")  # noqa: FBT003 - an expected value
    return found


def _numbers(folder: Path) -> dict[str, int]:
    """A run that has come to its thousandth point, and what is taken for its head."""
    folder.mkdir()
    first = Checkpoint(run_id="run-1", task=TASK, messages=(user(TASK),), seq=999, requests_started=1)
    for point in (first, replace(first, seq=1000, parent=999)):
        correct.HARNESS.save(folder, point)
    heads = {
        name: ways.harness.load(folder)
        for name, ways in (("correct", correct.WAYS), ("naive_three_digits", naive_three_digits.WAYS))
    }
    found = {name: head.seq for name, head in heads.items() if head is not None}
    expect(found, {"correct": 1000, "naive_three_digits": 999}, "the head of points 999 and 1000")
    return found


# --- telling -----------------------------------------------------------------------------------------


def tell(data: Data) -> Iterator[str]:
    """What is printed."""
    yield f"Run to the end, back to turn {BACK_TO}, on, killed at {KILL_AT}, started again:"
    for name, found in data["woken"].items():
        head = found["head"]
        more = f"asks {found['requests']} times more, ends in turn {found['end']['turns']}"
        where = f"turn {head['turn']} of {head['line']}, point {head['seq']}, {head['status']}"
        yield f"  {name:17} wakes in {where}"
        yield f"  {'':17} {more}"
    yield ""
    yield str(_woken_tree(data))
    yield str(_timeline(data))
    yield f"Run, back to turn {BACK_TO}, run, fork at turn {BACK_TO}, run the fork:"
    yield f"  {'':24} {'tokens before, after':20}   {'points of main':14}   replies, with fork"
    for name, found in data["designs"].items():
        tokens, points, replies = (
            "  ".join(f"{each:5}" for each in found[what]) for what in ("tokens", "points", "replies")
        )
        yield f"  {name:24} {tokens:20}   {points:14}   {replies}"
    yield "\nKilled in the middle of a save, started twice:"
    for name, both in data["drafts"].items():
        for module, found in both.items():
            at = DRAFTS[name] if module == name else "turn5.request.draft1+"
            yield f"  {module:17} at {at}: {', then '.join(found['said'])}"
    yield "\nPoints 999 and 1000 are there. The head:"
    for name, seq in data["numbers"].items():
        yield f"  {name:18} {seq:4}"
    yield ""
    yield str(_tree(data))


# --- drawing -----------------------------------------------------------------------------------------


def pictures(data: Data) -> dict[str, Picture]:
    """The points after a rewind and a kill, the same in time, and all lines of a run with a fork."""
    return {"woken": _woken_tree(data), "timeline": _timeline(data), "lines": _tree(data)}


def _points(rows: Sequence[Sequence[Any]], shift: int = 0) -> list[Point]:
    return [
        Point(seq + shift, parent + shift if parent else 0, line, f"turn {turn}") for seq, parent, line, turn in rows
    ]


def _woken_tree(data: Data) -> Picture:
    right, wrong = data["woken"]["correct"], data["woken"]["naive_old_future"]["head"]["seq"]
    title = f"Back to turn {BACK_TO}, then a kill: which point is the head?"
    return point_tree(title, _points(right["points"]), heads=[right["head"]["seq"]], wrong=wrong)


def _timeline(data: Data) -> Picture:
    rows = data["woken"]["correct"]["points"]
    marks = [Mark(at, line, f"turn {turn}, point {seq}") for at, (seq, _, line, turn) in enumerate(rows, start=1)]
    head = data["woken"]["correct"]["head"]
    left = [f"every point that is shown; the newest is {head['seq']}, turn {head['turn']} of {head['line']}"]
    return timeline("The same in time", marks, crash=len(marks), crash_text=f"killed at {KILL_AT}", left=left)


def _tree(data: Data) -> Picture:
    main, fork = data["designs"]["correct"]["lines"]
    target = next(seq for seq, *_ in main if seq >= data["designs"]["correct"]["forked from"])
    # A fork counts on from its target in a folder of its own, so its numbers are those of main once more.
    shift = main[-1][0]
    told = [
        Point(seq + shift, parent + shift if parent else target, line, f"turn {turn}", name=f"{seq}")
        for seq, parent, line, turn in fork
    ]
    heads = [main[-1][0], told[-1].seq]
    return point_tree(
        "A run that went back once, and a fork: three lines, two heads", [*_points(main), *told], heads=heads
    )


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures)

if __name__ == "__main__":
    sys.exit(exhibit.main())
