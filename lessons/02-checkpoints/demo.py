"""Lesson 2: each way to save held against each fault, one save call by call, and saves that come too late."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.exhibit import Exhibit, expect
from crashcourse.pictures import Cell, Mark, Picture, Rung, ladder, matrix, timeline
from crashcourse.pictures.matrix import cells_of
from crashcourse.savers import Load, saver, split
from crashcourse.stage import Stage
from crashcourse.steps import joined, seen, steps_of
from crashlab import Budget, explore
from longrun.checkpoint import naive_cut_stream
from longrun.fake_api import FakeApi
from longrun.inbox import make_inbox
from longrun.loop import Agent
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashcourse.exhibit import Data
    from crashlab import Report

FAULTS = ("kill", "power", "error", "damage", "race")
ASKED = "kill,power,error:ENOSPC,damage:bit,race"
BRIEF = Budget(real_kills=1, sample=0)
FALLS = {
    "naive_in_place": ("kill", "power", "error", "race"),
    "naive_no_fsync": ("power",),
    "naive_no_dirsync": ("power",),
    "naive_fixed_tmp": ("race",),
    "naive_swallow_enospc": ("error",),
    "naive_no_checksum": ("damage",),
    "naive_none_on_error": ("damage",),
    "correct": (),
}
HOME = "longrun.checkpoint"
AFTER_REPLY = "turn5.tool1.effect+"


def measure(folder: Path) -> Data:
    """The matrix, the steps of a save, and four runs of the whole agent."""
    reports = {name: _explored(name, folder) for name in FALLS}
    for name, report in reports.items():
        fallen = tuple(count.fault for count in report.faults if count.violation)
        expect(sorted(fallen), sorted(FALLS[name]), f"the faults to which {name} falls")
        expect([each.code for each in report.unmeasured], [], f"what was not measured of {name}")
    data: Data = {
        "matrix": {
            name: {fault: [cell.verdict, cell.kind] for fault, cell in cells_of(report).items()}
            for name, report in reports.items()
        },
        "steps": {
            name: _steps(name, reports[name])
            for name in ("correct", "naive_in_place", "naive_no_fsync", "naive_no_dirsync")
        },
        "lost": _lost(reports["naive_no_fsync"]),
        "beside": {name: _beside(name, folder) for name in ("naive_fsync_wrong_file", "naive_fsync_after_rename")},
        "late": _late(folder),
        "tokens": {name: _tokens(name, folder) for name in ("naive_tokens_after_b", "correct")},
        "cut stream": _cut_stream(folder),
        "split": {str(size): _split(size, folder) for size in (6_000, 70_000)},
    }
    tokens = data["tokens"]
    expect(max(tokens, key=lambda name: tokens[name]), "correct", "who counts the most tokens")
    return data


def _explored(name: str, folder: Path) -> Report:
    return explore(saver(f"{HOME}.{name}"), faults=ASKED, profile="xfs", budget=BRIEF, out=folder / "runs")


def _beside(name: str, folder: Path) -> dict[str, list[str]]:
    """What kills and losses of power make of a save that has its fsync in another place."""
    report = explore(saver(f"{HOME}.{name}"), faults="kill,power", profile="xfs", budget=BRIEF, out=folder / "runs")
    fallen = [count.fault for count in report.faults if count.violation]
    expect(fallen, ["power"], f"the faults to which {name} falls")
    return {fault: [cell.verdict, cell.kind] for fault, cell in cells_of(report).items()}


def _split(text_bytes: int, folder: Path) -> str:
    report = explore(split(text_bytes=text_bytes), faults="kill", budget=BRIEF, out=folder / "runs")
    expect(report.verdict, "violation" if text_bytes > 65_536 else "consistent", f"a save of {text_bytes} letters")
    return report.verdict


def _steps(name: str, report: Report) -> list[list[Any]]:
    steps = steps_of(report, seen(Load(f"{HOME}.{name}")), profile="xfs")
    return [[each.after, list(each.kill), list(each.power)] for each in steps]


def _lost(report: Report) -> dict[str, Any]:
    """The smallest power loss of the design without fsync: its ops, what is on the disk, what was said."""
    finding = next(each for each in report.findings if each.fault == "power" and each.kind == "stuck")
    ops: list[tuple[str, str, bool]] = [
        (op.op, op.text if op.path else "", op.note == "lost") for op in finding.ops if op.op != "call"
    ]
    expect([op for op, _, lost in ops if lost], ["write"], "what the power loss took")
    return {
        "id": finding.id,
        "ops": [[op, _plain(text), lost] for op, text, lost in ops],
        "disk": [f"{_plain(line.path)}  {line.bytes} bytes" for line in finding.disk],
        "recovery": finding.observed.error.partition(":")[0],
    }


def _plain(text: str) -> str:
    """A temporary name without what makes it unique."""
    return " ".join("checkpoint.json.*.tmp" if each.endswith(".tmp") else each for each in text.split())


# --- saves that come too late ----------------------------------------------------------------------


def _late(folder: Path) -> dict[str, Any]:
    """What three harnesses that save well, but late, know after a kill, beside what the world and the server know."""
    found: dict[str, Any] = {}
    for name, place in (("naive_b_only", AFTER_REPLY), ("naive_late_first_save", "turn1.request+")):
        for module in (name, "correct"):
            stage = Stage(folder / f"{name}-{module}", f"{HOME}.{module}")
            stage.start(kill_at=place)
            end = stage.resume().said
            replies = [ticket for ticket, _ in stage.world()["replies"]]
            found[f"{name} {module}"] = {
                "place": place,
                "replies to T-101": replies.count("T-101"),
                "requests counted": end["requests"],
                "requests answered": stage.requests(),
            }
    expect(found["naive_b_only naive_b_only"]["replies to T-101"], 2, "replies of b_only")
    expect(found["naive_b_only correct"]["replies to T-101"], 1, "replies of the correct one")
    late = found["naive_late_first_save naive_late_first_save"]
    expect(late["requests answered"] - late["requests counted"], 1, "requests that nobody counted")
    right = found["naive_late_first_save correct"]
    expect(right["requests answered"] - right["requests counted"], 0, "requests that the correct one missed")
    stage = Stage(folder / "whole", f"{HOME}.correct")
    stage.start()
    found["saves"] = [
        place[:-1] for place in stage.places() if place[:-1].rpartition(".")[2] in ("R", "A", "S", "B", "E")
    ]
    return found


def _tokens(name: str, folder: Path) -> int:
    """The tokens that a run counts which was killed just after its second answer was saved, and resumed."""
    stage = Stage(folder / f"tokens {name}", f"{HOME}.{name}")
    stage.start(kill_at="turn2.A+")
    return int(stage.resume().said["tokens"])


def _cut_stream(folder: Path) -> dict[str, Any]:
    """The refund that is paid where the answer that names it is cut behind its second digit."""
    world = World(FileOutside(folder / "cut.jsonl"), make_inbox())
    (folder / "cut").mkdir()
    Agent(folder / "cut", naive_cut_stream.HARNESS, FakeApi(knobs=naive_cut_stream.CUT), world).start()
    refunds = [yen for ticket, yen in world.view()["replies"] if ticket == "T-102"]
    expect(refunds[:1], [10], "the refund for T-102")
    return {"refunds": refunds}


# --- telling -----------------------------------------------------------------------------------------


def tell(data: Data) -> Iterator[str]:
    """What is printed."""
    yield str(_matrix(data))
    yield "One save of each design, stopped after each of its calls. What does the next reader find?"
    for name, steps in data["steps"].items():
        yield f"\n{name:26} {'killed':24} power lost"
        for after, kill, power in steps:
            yield f"  {after:24} {joined(kill):24} {joined(power)}"
    yield "\nThe same five calls, the fsync of the file in another place:"
    for name, row in data["beside"].items():
        yield f"  {name:25} kill {Cell(*row['kill']).word:4} power {Cell(*row['power']).word}"
    lost = data["lost"]
    yield f"\nnaive_no_fsync, {lost['id']}: {'; '.join(lost['disk'])}; load raised {lost['recovery']}"
    yield "\nThe save points of one whole run:"
    yield from _wrapped(data["late"]["saves"])
    for name in ("naive_b_only", "naive_late_first_save"):
        wrong, right = data["late"][f"{name} {name}"], data["late"][f"{name} correct"]
        what = "replies to T-101" if name == "naive_b_only" else "requests answered"
        of = "" if name == "naive_b_only" else f", counted {wrong['requests counted']}"
        of_right = "" if name == "naive_b_only" else f", counted {right['requests counted']}"
        yield f"\n{name}, killed at {wrong['place']}, resumed: {what} {wrong[what]}{of}"
        yield f"correct, killed at the same place, resumed: {what} {right[what]}{of_right}"
    yield "\nKilled at turn2.A+, resumed: tokens counted at the end"
    for name, tokens in data["tokens"].items():
        yield f"  {name:21} {tokens:5}"
    yield f"\nnaive_cut_stream, an answer that is cut: refund for T-102 {data['cut stream']['refunds'][0]} yen"
    yield ""
    for size, verdict in data["split"].items():
        yield f"one bug more, killed everywhere in a save of {size} letters: {verdict}"


def _wrapped(saves: list[str]) -> Iterator[str]:
    lines: dict[str, list[str]] = {}
    for place in saves:
        turn, _, point = place.partition(".")
        around = "end" if turn == "E" else "start"
        lines.setdefault(turn if point else around, []).append(point or turn)
    for turn, points in lines.items():
        yield f"  {turn:6} {' '.join(points)}"


# --- drawing -----------------------------------------------------------------------------------------


def pictures(data: Data) -> dict[str, Picture]:
    """The matrix, a save in five calls, and the save without fsync when the power goes."""
    return {"matrix": _matrix(data), "five-calls": _five_calls(data), "no-fsync": _no_fsync(data)}


def _matrix(data: Data) -> Picture:
    rows = {name: {fault: Cell(*cell) for fault, cell in row.items()} for name, row in data["matrix"].items()}
    return matrix("Eight ways to save, five ways to fail", FAULTS, rows)


def _five_calls(data: Data) -> Picture:
    rungs = [
        Rung(after, "has returned" if "returned" in after else "is saving", joined(kill), joined(power))
        for after, kill, power in data["steps"]["correct"]
    ]
    return ladder(
        "A save in five calls, stopped after each", rungs, heads=("the process", "after a kill", "after power loss")
    )


def _no_fsync(data: Data) -> Picture:
    lost = data["lost"]
    marks = [Mark(at, "calls", f"{op} {text}".strip(), gone) for at, (op, text, gone) in enumerate(lost["ops"], 1)]
    left = [*lost["disk"], f"load raises {lost['recovery']}"]
    return timeline(
        "A save without fsync, and the power goes", marks, crash=len(marks), crash_text="power loss", left=left
    )


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures)

if __name__ == "__main__":
    sys.exit(exhibit.main())
