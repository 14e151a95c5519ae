"""Lesson 7: two processes and one log, three readers of one damage, and one outcome per call."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.exhibit import Exhibit, expect, together
from crashcourse.log_stage import LogStage, conduct_of, world_in
from crashcourse.pictures import Cell, Picture, Rung, bars, ladder, matrix
from crashlab import Budget, explore
from longrun.eventlog.agent import LogAgent
from longrun.eventlog.errors import InvalidEvent, LogDamaged
from longrun.eventlog.events import Note, ToolResult
from longrun.eventlog.opening import Opening, open_log
from longrun.eventlog.project import messages
from longrun.eventlog.segments import MARK_NAME, segment_path, session_directory
from longrun.eventlog.subjects import other_requests
from longrun.eventlog.sweep import sweep
from longrun.fake_api import FakeApi
from longrun.loop import TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashcourse.exhibit import Data
    from longrun.eventlog.record import Record

CORRECT = "longrun.eventlog.conduct"
READERS = ("naive_skip_bad_line", "naive_cut_after_turn_end", "correct")
DAMAGES = ("torn tail", "bit in the answer", "bit in the call", "line gone")
DESIGNS = ("naive_late_barrier", "naive_all_not_started", "naive_rerun_unknown", "naive_drop_turn", "correct")
AROUND_THE_PAGE = ("page_oncall-", "page_oncall+", "turn1.step5.tool2.result")
LADDER = ("turn1.step5.tool1.result", *AROUND_THE_PAGE, "send_reply-", "send_reply+")
LAB = {
    "naive_glue_tail": ("longrun.eventlog.subjects:single", "kill"),
    "naive_memory_first": ("longrun.eventlog.subjects:single", "error:ENOSPC"),
    "naive_no_fsync": ("longrun.eventlog.subjects:agent_hasty", "power"),
}
LITTLE = Budget(real_kills=1, subset=1, violations=1, sample=0)
SWEPT = ("cut", "removed", "doubled", "exchanged", "newer")


def module_of(name: str) -> str:
    """Where a design lies."""
    return CORRECT if name == "correct" else f"longrun.eventlog.{name}"


def measure(folder: Path) -> Data:
    """All that the lesson shows."""
    return {
        "handover": _handover(folder / "handover"),
        "readers": _readers(folder),
        "glued": {name: _glued(folder / f"glued {name}", name) for name in ("naive_glue_tail", "correct")},
        "outcomes": together(lambda place: _outcome(folder / f"outcome {place}", place), LADDER),
        "designs": _designs(folder),
        "once": _once(folder / "once"),
        "swept": _swept(folder),
        "lab": {name: _lab(name, folder / "runs") for name in LAB},
    }


# --- two processes ---------------------------------------------------------------------------------


def _handover(folder: Path) -> dict[str, Any]:
    """A dies when the result of its first call is durable; B shares nothing with it but the folder."""
    stage = LogStage(folder)
    death = stage.run(kill_at="ask2", writer="A")
    of_a, before = stage.path.read_bytes(), messages(stage.found().records)
    end = stage.run(writer="B")
    records = stage.found().records
    count = len(of_a.splitlines())
    expect(stage.path.read_bytes()[: len(of_a)], of_a, "the bytes of A, when B has worked")
    after = messages(records)
    expect(after[: len(before) - 1], before[:-1], "what B says to the model, of what A knew")
    expect(other_requests(records), [], "requests that cannot be made again")
    ends = [[record.data["turn"], record.data["reason"]] for record in records if record.type == "turn/end"]
    expect(ends, [[1, "interrupted"], [2, "completed"]], "the ends of the turns")
    return {
        "exit": death.exit,
        "a": [_shown(record) for record in records[:count]],
        "b": [_shown(record) for record in records[count : count + 5]],
        "rest": len(records) - count - 5,
        "status": end.said["status"],
        "requests": sum(record.type == "model/call" for record in records),
        "ends": ends,
    }


def _shown(record: Record) -> list[Any]:
    data = record.data
    words = {
        "writer/start": data.get("reason"),
        "turn/end": f"{data.get('reason')}, synthetic" if data.get("synthetic") else data.get("reason"),
        "tool/call": data.get("name"),
        "tool/result": data.get("outcome"),
    }
    return [record.seq, record.type, str(words.get(record.type) or "")]


# --- readers -----------------------------------------------------------------------------------------


def _readers(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """One session, killed right after its page; damaged in four ways, and opened by three readers."""
    dead = LogStage(folder / "dead")
    dead.run(kill_at="page_oncall+")
    tasks = [(reader, damage) for reader in READERS for damage in DAMAGES]

    def read(task: tuple[str, str]) -> dict[str, Any]:
        reader, damage = task
        stage = dead.copy(folder / f"read {reader} {damage}", module_of(reader))
        stage.path.write_bytes(_damaged(dead, damage))
        said = stage.run().said
        world = stage.world()
        end = said.get("error", said.get("status"))
        return {"end": end, "pages": len(world["pages"])}

    found: dict[str, dict[str, dict[str, Any]]] = {reader: {} for reader in READERS}
    for (reader, damage), end in zip(tasks, together(read, tasks), strict=True):
        found[reader][damage] = end
    words = {name: [_read_cell(damage, end).word for damage, end in row.items()] for name, row in found.items()}
    expect(words["correct"], ["ok", "refused", "refused", "refused"], "the correct reader")
    expect(words["naive_skip_bad_line"], ["ok", "V answer 400", "V 2 pages", "V believed"], "the lenient reader")
    expect(words["naive_cut_after_turn_end"], ["V 2 pages"] * len(DAMAGES), "the reader without promises")
    return found


def _damaged(dead: LogStage, damage: str) -> bytes:
    """The bytes of the log with one damage. All its lines are promised; half a line more is not."""
    records = dead.found().records
    lines = dead.path.read_bytes().splitlines(keepends=True)
    last = {record.type: record.seq for record in records}
    match damage:
        case "torn tail":
            return b"".join(lines) + lines[-1][: len(lines[-1]) // 2]
        case "bit in the answer":
            lines[last["assistant/message"]] = _flipped(lines[last["assistant/message"]])
        case "bit in the call":
            lines[last["tool/call"]] = _flipped(lines[last["tool/call"]])
        case _:
            del lines[last["tool/result"]]
    return b"".join(lines)


def _flipped(line: bytes) -> bytes:
    at = len(line) // 2
    return line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]


def _glued(folder: Path, name: str) -> dict[str, Any]:
    """Half a record is left behind; the next process appends a record, and promises it."""
    folder.mkdir()
    how = Opening(design=conduct_of(module_of(name)).design, writer="w", clock=lambda: 0)
    with open_log(folder, "s", how) as log:
        log.append(Note(note={"n": 0}))
    path = segment_path(session_directory(folder, "s"), 0)
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines()[-1][:40])
    with open_log(folder, "s", how) as log:
        log.append(Note(note={"n": 1}))
        log.barrier()
    try:
        with open_log(folder, "s", how) as log:
            end = f"notes: {sum(record.type == 'note' for record in log.records)}"
    except LogDamaged as damage:
        end = f"LogDamaged ({damage.kind})"
    expect(end, "notes: 2" if name == "correct" else "LogDamaged (bad-line)", f"{name} behind half a record")
    kept = sorted(each.name for each in path.parent.glob("torn-*"))
    return {"end": end, "kept": kept, "lines": len(path.read_bytes().splitlines())}


def _swept(folder: Path) -> dict[str, dict[str, int]]:
    """Every cut, and each line removed, doubled, exchanged or of a newer program, in a short log; who believes what."""
    with open_log(folder / "short", "s", Opening(writer="w", clock=lambda: 0)) as log:
        for n in range(2):
            log.append(Note(note={"n": n}))
            log.barrier()
    directory = session_directory(folder / "short", "s")
    data, mark = segment_path(directory, 0).read_bytes(), (directory / MARK_NAME).read_bytes()
    found = {}
    for name in ("correct", "naive_no_seq_check", "naive_cut_after_turn_end", "naive_newer_is_broken"):
        reader = conduct_of(module_of(name)).design.reader
        counts = sweep(folder / f"swept {name}", data, mark, reader, SWEPT)
        found[name] = dict(sorted(counts.items()))
    expect(sorted(found["correct"]), ["refused", "same"], "what the correct reader makes of damages")
    return found


# --- one outcome -------------------------------------------------------------------------------------


def _outcome(folder: Path, place: str) -> dict[str, Any]:
    """What lies there after a kill, and what the repair says of the call that is looked at."""
    stage = LogStage(folder)
    stage.run(kill_at=place)
    tool, what = ("send_reply", "replies") if place.startswith("send_reply") else ("page_oncall", "pages")
    done = len(stage.world()[what])
    records = stage.found().records
    call = next(
        block["id"]
        for record in records
        if record.type == "assistant/message"
        for block in record.data["content"]
        if block["type"] == "tool_use" and block["name"] == tool
    )
    has = [record.type for record in records if record.data.get("call_id") == call]
    stage.run()
    result = next(
        record for record in stage.found().records if record.type == "tool/result" and record.data["call_id"] == call
    )
    by = "B" if result.seq >= len(records) else "A"
    return {"place": place, "what": what, "has": has, "done": done, "outcome": result.data["outcome"], "by": by}


def _designs(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Pages where a run is killed around its page, per design, with the hasty model."""
    tasks = [(name, place) for name in DESIGNS for place in AROUND_THE_PAGE]

    def pages(task: tuple[str, str]) -> dict[str, Any]:
        name, place = task
        stage = LogStage(folder / f"design {name} {place}", module_of(name))
        stage.run(kill_at=place)
        said = stage.run().said
        return {
            "end": said.get("error", said.get("status")),
            "pages": len(stage.world()["pages"]),
            "unknown": said.get("unknown", []),
        }

    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in DESIGNS}
    for (name, place), end in zip(tasks, together(pages, tasks), strict=True):
        found[name][place] = end
    wrong = {name for name in DESIGNS if any(end["pages"] > 1 for end in found[name].values())}
    expect(wrong, set(DESIGNS) - {"correct"}, "designs that page twice")
    return found


def _once(folder: Path) -> dict[str, Any]:
    """A session is repaired once, however often it is opened; and a call has one outcome, whoever wants to add one."""
    stage = LogStage(folder / "repaired")
    stage.run(kill_at="page_oncall+")
    opened = []
    for _ in range(3):
        before = len(stage.found().records)
        with open_log(stage.root, "s", Opening(writer="B", clock=lambda: 0)) as log:
            opened.append([record.type for record in log.records[before:]])
    expect([len(added) for added in opened[1:]], [1, 1], "what the second and the third opening add")
    other = LogStage(folder / "refused")
    other.root.mkdir(parents=True)
    refused: list[str] = []
    with open_log(other.root, "s", Opening(writer="w", clock=lambda: 0)) as log:

        def told(place: str, _promised: object) -> None:
            """The page has its result, and the turn goes on: one more result for the same call."""
            if place == AROUND_THE_PAGE[-1]:
                result = log.records[-1].data
                try:
                    log.append(ToolResult(**{**result, "outcome": "failed"}))
                except InvalidEvent as error:
                    refused.append(str(error).replace(result["call_id"], "toolu_*"))

        LogAgent(log, FakeApi("hasty"), world_in(other.folder), told=told).triage(TASK)
    expect(len(refused), 1, "second outcomes that are refused")
    return {"opened": opened, "refused": refused[0]}


# --- the lab -----------------------------------------------------------------------------------------


def _lab(name: str, runs: Path) -> dict[str, str]:
    """What crashlab says of a naive log, and of the correct one under the same faults."""
    twin, faults = LAB[name]
    report = explore(f"longrun.eventlog.{name}:subject", faults=faults, budget=LITTLE, out=runs)
    expect(report.verdict, "violation", f"{name} under {faults}")
    correct = explore(twin, faults=faults, budget=LITTLE, out=runs)
    expect(correct.verdict, "consistent", f"the correct log under {faults}")
    return {"faults": faults, "kind": report.findings[0].kind, "correct": correct.verdict}


# --- telling -----------------------------------------------------------------------------------------


def tell(data: Data) -> Iterator[str]:
    """What is printed."""
    yield from _tell_handover(data["handover"])
    yield str(_matrix_of_readers(data))
    yield "Half a record is left; the next one is appended, promised, and read:"
    for name, found in data["glued"].items():
        kept = f"  kept apart: {', '.join(found['kept'])}" if found["kept"] else ""
        yield f"  {name:16} {found['end']}{kept}"
    yield ""
    yield str(_bars(data))
    yield str(_ladder(data))
    yield str(_matrix_of_designs(data))
    yield from _tell_once(data["once"])
    yield "\nWhat crashlab says:"
    for name, found in data["lab"].items():
        yield f"  {name:19} {found['faults']:13} violation  {found['kind']:17} correct: {found['correct']}"


def _tell_handover(found: dict[str, Any]) -> Iterator[str]:
    yield f"A, exit {found['exit']}, has left:"
    yield from _rows(found["a"])
    yield "B opens the session, and goes on:"
    yield from _rows(found["b"])
    yield f"  and {found['rest']} more; turn 2 is {found['ends'][1][1]}"
    yield f"Requests that can be made again, byte for byte, from the log: {found['requests']} of {found['requests']}"
    yield ""


def _rows(rows: list[list[Any]]) -> Iterator[str]:
    for seq, kind, words in rows:
        yield f"  {seq:3} {kind:18} {words}".rstrip()


def _tell_once(found: dict[str, Any]) -> Iterator[str]:
    yield "Opened three times after one kill, this was added:"
    for n, added in enumerate(found["opened"], 1):
        yield f"  {n}: {', '.join(added)}"
    yield "A second outcome for a call that has one:"
    yield from textwrap.wrap(found["refused"], 84, initial_indent="  ", subsequent_indent="  ")


# --- drawing -----------------------------------------------------------------------------------------


def pictures(data: Data) -> dict[str, Picture]:
    """Readers, damages believed, outcomes, and designs."""
    return {
        "readers": _matrix_of_readers(data),
        "swept": _bars(data),
        "outcomes": _ladder(data),
        "designs": _matrix_of_designs(data),
    }


def _matrix_of_readers(data: Data) -> Picture:
    rows = {
        name: {damage: _read_cell(damage, end) for damage, end in row.items()} for name, row in data["readers"].items()
    }
    return matrix("One page was sent; the log is damaged, and read", list(DAMAGES), rows)


def _read_cell(damage: str, end: dict[str, Any]) -> Cell:
    """Half a line that was promised to nobody is to be passed over, and anything else to be refused."""
    if end["end"] == "LogDamaged":
        return Cell("refused")
    if end["pages"] != 1:
        return Cell("violation", f"{end['pages']} pages")
    if end["end"] != "completed":
        return Cell("violation", "answer 400" if end["end"] == "ApiError" else end["end"])
    return Cell("consistent") if damage == "torn tail" else Cell("violation", "believed")


def _matrix_of_designs(data: Data) -> Picture:
    rows = {
        name: {_place(place): _page_cell(end) for place, end in row.items()} for name, row in data["designs"].items()
    }
    return matrix("Killed around one page: how often does it ring?", [_place(each) for each in AROUND_THE_PAGE], rows)


def _place(place: str) -> str:
    return {"page_oncall-": "before it", "page_oncall+": "after it"}.get(place, "result kept")


def _page_cell(end: dict[str, Any]) -> Cell:
    if end["end"] != "completed":
        return Cell("violation", end["end"])
    return Cell("violation", f"{end['pages']} pages") if end["pages"] > 1 else Cell("consistent")


def _ladder(data: Data) -> Picture:
    rungs = [
        Rung(
            each["place"],
            ", ".join(each["has"]) or "nothing of this call",
            f"{each['what']}: {each['done']}",
            f"{each['outcome']} ({each['by']})",
        )
        for each in data["outcomes"]
    ]
    return ladder(
        "Killed at six places: one outcome each", rungs, heads=("the log has", "the world", "the outcome (by)")
    )


def _bars(data: Data) -> Picture:
    counts = {
        name: sum(count for kind, count in found.items() if kind not in ("same", "refused"))
        for name, found in data["swept"].items()
    }
    total = sum(data["swept"]["correct"].values())
    return bars(
        "Changed logs that are believed",
        counts,
        unit=f"of {total} changes to a log of four lines: read as a sound log that says something else",
        bad=[name for name in counts if name != "correct"],
    )


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures)

if __name__ == "__main__":
    sys.exit(exhibit.main())
