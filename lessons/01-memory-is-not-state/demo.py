"""Lesson 1: an agent is killed after its first reply. What is left, what is gone, and what a rerun does again."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.exhibit import Exhibit, expect
from crashcourse.pictures import Mark, Picture, Rung, ladder, timeline
from crashcourse.stage import Stage
from longrun.memory import naive_memory_only, naive_notes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashcourse.exhibit import Data

KILL_AT = "turn5.tool1.effect+"
MODULES = {"memory_only": naive_memory_only, "notes": naive_notes}
RUNGS = ("turn4.tool1.effect+", "turn4.B+", "turn5.request+", KILL_AT)

LINE = "work done\n"
PROGRAMS = {
    "written, then an error": f"f = open(path, 'w'); f.write({LINE!r}); raise SystemExit(1)",
    "written, then killed": f"f = open(path, 'w'); f.write({LINE!r}); os.kill(os.getpid(), 9)",
    "written and flushed, then killed": f"f = open(path, 'w'); f.write({LINE!r}); f.flush(); os.kill(os.getpid(), 9)",
    "killed, to be written in finally": (
        f"f = open(path, 'w')\ntry: os.kill(os.getpid(), 9)\nfinally: f.write({LINE!r}); f.flush()"
    ),
}
"""How a program wrote one line before it ended, by name; each is run."""


def measure(folder: Path) -> Data:
    """Four small programs, two agents that are killed and run again, and what they knew on the way."""
    return {
        "programs": {name: _program(code, folder / "line.txt") for name, code in PROGRAMS.items()},
        "agents": {name: _agent(name, folder / name) for name in MODULES},
        "places": _places(folder / "whole"),
        "rungs": [_rung(place, folder / place) for place in RUNGS],
    }


def _program(code: str, path: Path) -> dict[str, Any]:
    """Its exit status, as a shell shows it, and how many bytes of its line are in the file."""
    path.unlink(missing_ok=True)
    whole = f"import os\npath = {str(path)!r}\n{code}"
    status = subprocess.run([sys.executable, "-c", whole], check=False).returncode
    found = {"exit": 128 - status if status < 0 else status, "bytes": path.stat().st_size}
    survives = "SystemExit" in code or "flush(); os" in code
    expect(found["bytes"], len(LINE) if survives else 0, f"bytes left by {code!r}")
    return found


def _agent(name: str, folder: Path) -> dict[str, Any]:
    """Killed, looked at, run again, looked at."""
    stage = Stage(folder, f"longrun.memory.naive_{name}")
    death = stage.start(kill_at=KILL_AT)
    loaded = MODULES[name].load(folder / "agent")
    known = stage.memory()
    found: dict[str, Any] = {
        "exit": death.exit,
        "files": sorted(stage.files()),
        "knew": known,
        "can load": {
            "messages": len(loaded.messages) if loaded else 0,
            "turns": loaded.turns if loaded else 0,
            "tokens": loaded.tokens_used if loaded else 0,
            "open calls": [call.name for call in loaded.pending_tool_use] if loaded else [],
        },
        "requests": [stage.requests()],
        "world": [_counts(stage)],
    }
    found["end"] = stage.resume().said
    found["requests"].append(stage.requests())
    found["world"].append(_counts(stage))
    expect(found["world"][1]["replies to T-101"], 2, f"replies after a rerun of {name}")
    expect(found["world"][1]["cases for T-101"], 1 + (name == "memory_only"), f"cases after a rerun of {name}")
    forgotten = found["requests"][1] - found["end"]["requests"]
    expect(forgotten, found["requests"][0], f"requests that {name} has forgotten")
    return found


def _counts(stage: Stage) -> dict[str, int]:
    world = stage.world()
    replies = Counter(ticket for ticket, _ in world["replies"])
    return {
        "labels": len(world["labels"]),
        "cases for T-101": world["cases"].count("T-101"),
        "replies to T-101": replies["T-101"],
        "pages for T-101": world["pages"].count("T-101"),
        "replies to T-102": replies["T-102"],
    }


def _places(folder: Path) -> list[str]:
    """What an uncrashed run comes by: its requests, its acts, its notes."""
    stage = Stage(folder, "longrun.memory.naive_notes")
    stage.start()
    return [place[:-1] for place in stage.places() if place.endswith("+")]


def _rung(place: str, folder: Path) -> dict[str, Any]:
    """What process, disk and world know at one place, since it is killed there."""
    stage = Stage(folder, "longrun.memory.naive_notes")
    stage.start(kill_at=place)
    lines = stage.read("NOTES.md").splitlines()[1:] if stage.files() else []
    return {"place": place, "knew": stage.memory(), "noted": len(lines), "world": _counts(stage)}


# --- telling -----------------------------------------------------------------------------------------


def tell(data: Data) -> Iterator[str]:
    """What is printed."""
    yield "A program writes one line to a file, and ends. What is in the file?"
    for name, found in data["programs"].items():
        yield f"  {name:34} exit {found['exit']:3}  {found['bytes']:2} of {len(LINE)} bytes"
    for name, found in data["agents"].items():
        yield ""
        yield f"{name}: killed at {KILL_AT}, exit {found['exit']}"
        yield f"  files left    {', '.join(found['files']) or 'none'}"
        for what, knew in found["knew"].items():
            yield f"  {what:13} {_words(knew):34} from the files: {_words(found['can load'][what])}"
        yield f"  {'run again':22} before  after"
        for what in found["world"][0]:
            yield f"    {what:20} {found['world'][0][what]:6}  {found['world'][1][what]:5}"
        yield f"    {'requests answered':20} {found['requests'][0]:6}  {found['requests'][1]:5}"
        yield f"    {'requests it counts':20}         {found['end']['requests']:5}"
    yield ""
    yield str(_ladder(data))
    yield str(_timeline(data))


def _words(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)


# --- drawing -----------------------------------------------------------------------------------------


def pictures(data: Data) -> dict[str, Picture]:
    """What each place knows at four instants, and the run with its kill."""
    return {"ladder": _ladder(data), "timeline": _timeline(data)}


def _ladder(data: Data) -> Picture:
    rungs = [
        Rung(
            each["place"],
            f"{each['knew']['messages']} messages, {_calls(each['knew']['open calls'])}",
            f"{each['noted']} notes",
            _seen(each["world"]),
            dies=each["place"] == KILL_AT,
        )
        for each in data["rungs"]
    ]
    last, found = data["rungs"][-1], data["agents"]["notes"]["can load"]
    after = Rung(
        "the next process",
        f"{found['messages']} message, {_calls(found['open calls'])}",
        f"{last['noted']} notes",
        _seen(last["world"]),
    )
    return ladder("Who knows what, when the agent with notes is killed", [*rungs, after])


def _calls(names: list[str]) -> str:
    return "1 open call" if len(names) == 1 else f"{len(names)} open calls"


def _seen(world: dict[str, int]) -> str:
    replies = world["replies to T-101"]
    return f"{world['cases for T-101']} case, {replies} {'reply' if replies == 1 else 'replies'}"


def _timeline(data: Data) -> Picture:
    lanes = {"request": "requests", "effect": "acts", "B": "notes", "E": "notes"}
    marks = [Mark(at, lanes[place.rpartition(".")[2]], place) for at, place in enumerate(data["places"], start=1)]
    crash = data["places"].index(KILL_AT[:-1]) + 1
    notes = data["agents"]["notes"]
    gone = [f"{what}: {_words(knew)}" for what, knew in notes["knew"].items()]
    left = [
        ", ".join(notes["files"]),
        f"in the world: {notes['world'][0]['labels']} labels, {_seen(notes['world'][0])}",
    ]
    text = f"killed at {KILL_AT}"
    return timeline("A run of the agent with notes", marks, crash=crash, crash_text=text, left=left, gone=gone)


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures)

if __name__ == "__main__":
    sys.exit(exhibit.main())
