"""Lesson 3: one directory resumed three ways, what a server says to a broken transcript, and a second death."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.exhibit import Exhibit, expect, together
from crashcourse.pictures import Picture, Rung, ladder, tree
from crashcourse.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashcourse.exhibit import Data

CORRECT = "longrun.checkpoint.correct"
AFTER_REPLY, AFTER_READS = "turn5.tool1.effect+", "turn2.A+"
WAYS = {"drop the call": "naive_drop_call", "run it again": "naive_rerun_all", "answer unknown": "correct"}
REPLY_PLACES = ("turn5.A+", "turn5.tool1.S+", AFTER_REPLY, "turn5.tool1.ledger+", "turn5.B+")


def _module(name: str) -> str:
    return CORRECT if name == "correct" else f"longrun.resume.{name}"


def measure(folder: Path) -> Data:
    """All that the lesson shows, each in a folder of its own."""
    parts: dict[str, Callable[[Path], Any]] = {
        "ways": lambda place: _ways(place, AFTER_REPLY),
        "ways of reads": lambda place: _ways(place, AFTER_READS),
        "rungs": lambda place: [_rung(place / each, each) for each in REPLY_PLACES],
        "refused": _refused,
        "counted": _counted,
        "damaged": _damaged,
        "twice": _twice,
    }
    return dict(zip(parts, together(lambda name: parts[name](folder / name), parts), strict=True))


def _ways(folder: Path, place: str) -> dict[str, Any]:
    """One run, killed at ``place``; three copies of it, each resumed by another harness."""
    dead = Stage(folder / "dead", CORRECT)
    dead.start(kill_at=place)
    found = {}
    for way, name in WAYS.items():
        stage = dead.copy(folder / way, _module(name))
        end = stage.resume().said
        replies = [ticket for ticket, _ in stage.world()["replies"]]
        found[way] = {
            "status": end["status"],
            "replies": [replies.count("T-101"), replies.count("T-102")],
            "requests": stage.requests(),
        }
        wrong = place == AFTER_REPLY and name != "correct"
        expect(found[way]["replies"], [1 + wrong, 1], f"replies to T-101 and T-102, way: {way}, killed at {place}")
    return found


def _rung(folder: Path, place: str) -> dict[str, Any]:
    """What the files say of the first reply where the run is killed at ``place``, and what a resume makes of it."""
    stage = Stage(folder, CORRECT)
    stage.start(kill_at=place)
    saved = stage.checkpoint()
    call = next(iter(saved["pending_tool_use"]), None)
    told = [each["outcome"] for each in stage.records() if call and each["key"] == call["key"]]
    sent = len(stage.world()["replies"])
    stage.resume()
    replies = [ticket for ticket, _ in stage.world()["replies"]].count("T-101")
    answer = _answer(stage.checkpoint()["messages"])
    expect(replies, 1, f"replies to T-101 after {place}")
    started = "no open call" if call is None else "open, begun" if call["started"] else "open, not begun"
    return {"place": place, "call": started, "ledger": told, "sent": sent, "answer": answer}


def _answer(messages: list[dict[str, Any]]) -> str:
    """The first words of what the model was told about its first reply."""
    wanted = ""
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_use" and block["name"] == "send_reply" and not wanted:
                wanted = block["id"]
            if block["type"] == "tool_result" and block["tool_use_id"] == wanted:
                return str(block["content"]).partition(":")[0]
    return "nothing"


# --- what servers and counters say -------------------------------------------------------------------


def _refused(folder: Path) -> dict[str, str]:
    """What the server says to the transcripts of three harnesses that were killed with calls open, or had ended."""
    found = {}
    for name in ("naive_save_before_push", "naive_first_call_only", "naive_no_end"):
        stage = Stage(folder / name, _module(name))
        stage.start(**({} if name == "naive_no_end" else {"kill_at": AFTER_READS}))
        said = stage.resume().said
        expect(said.get("error"), "ApiError", f"what became of {name}")
        found[name] = _plain(str(said["text"]))
    return found


def _plain(text: str) -> str:
    """The text without the ids, which are new at every request."""
    return re.sub(r"toolu_\w+", "toolu_*", text)


def _counted(folder: Path) -> dict[str, Any]:
    """Turns by the checkpoint, after four kills in a row, each just after an answer was saved."""
    found = {}
    for name in ("naive_late_turn", "correct"):
        stage = Stage(folder / name, _module(name))
        stage.start(kill_at="turn1.A+")
        for turn in (2, 3, 4):
            stage.resume(kill_at=f"turn{turn}.A+")
        saved = stage.checkpoint()
        said = sum(message["role"] == "assistant" for message in saved["messages"])
        found[name] = {"turns": saved["turns"], "answers": said}
    expect(found["correct"], {"turns": 4, "answers": 4}, "turns of the correct one")
    expect(found["naive_late_turn"], {"turns": 0, "answers": 4}, "turns of naive_late_turn")
    return found


def _damaged(folder: Path) -> dict[str, Any]:
    """One byte of the checkpoint is changed; two harnesses open it."""
    dead = Stage(folder / "dead", CORRECT)
    dead.start(kill_at="turn6.A+")
    path = folder / "dead" / "agent" / "checkpoint.json"
    data = path.read_bytes()
    path.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    found: dict[str, Any] = {"before": dead.files()}
    for name in ("naive_reset_on_error", "correct"):
        stage = dead.copy(folder / name, _module(name))
        said = stage.resume().said
        replies = [ticket for ticket, _ in stage.world()["replies"]].count("T-101")
        found[name] = {"said": said.get("error", said.get("status")), "files": stage.files(), "replies": replies}
    expect((found["correct"]["said"], found["correct"]["files"]), ("Damaged", found["before"]), "the correct one")
    expect((found["naive_reset_on_error"]["said"], found["naive_reset_on_error"]["replies"]), ("done", 2), "the reset")
    return found


def _twice(folder: Path) -> dict[str, Any]:
    """Killed, and the recovery killed too."""
    found: dict[str, Any] = {}
    for name, second in (("naive_two_outcomes", "turn5.tool1.B+"), ("naive_unsaved_reconcile", "turn6.request+")):
        for module in (name, "correct"):
            stage = Stage(folder / name / module, _module(module))
            stage.start(kill_at=AFTER_REPLY)
            place = "turn5.tool1.ledger+" if (module, name) == ("correct", "naive_two_outcomes") else second
            stage.resume(kill_at=place)
            said = stage.resume().said
            found[f"{name} {module}"] = {
                "second": place,
                "said": str(said.get("error", said.get("status"))),
                "text": _plain(str(said.get("text", ""))),
                "counted": said.get("requests", 0),
                "answered": stage.requests(),
            }
    expect(found["naive_two_outcomes naive_two_outcomes"]["said"], "ApiError", "two outcomes")
    late = found["naive_unsaved_reconcile naive_unsaved_reconcile"]
    expect(late["answered"] - late["counted"], 1, "requests that naive_unsaved_reconcile does not count")
    for name in ("naive_two_outcomes", "naive_unsaved_reconcile"):
        right = found[f"{name} correct"]
        expect((right["said"], right["answered"] - right["counted"]), ("done", 0), "the correct one, killed twice")
    return found


# --- telling -----------------------------------------------------------------------------------------


def tell(data: Data) -> Iterator[str]:
    """What is printed."""
    for place, ways in ((AFTER_REPLY, data["ways"]), (AFTER_READS, data["ways of reads"])):
        yield f"killed at {place}, the same directory resumed three ways"
        yield f"  {'':16} replies to T-101  to T-102  requests"
        for way, found in ways.items():
            yield f"  {way:16} {found['replies'][0]:16}  {found['replies'][1]:8}  {found['requests']:8}"
        yield ""
    yield str(_ladder(data))
    yield "What the server says to a transcript that a resume has broken:"
    for name, text in data["refused"].items():
        yield f"  {name}:"
        yield from _wrapped(text)
    yield "\nKilled four times, each time just after an answer was saved:"
    for name, found in data["counted"].items():
        yield f"  {name:16} {found['answers']} answers in the transcript, {found['turns']} turns counted"
    yield ""
    yield str(_tree(data))
    for name in ("naive_reset_on_error", "correct"):
        found = data["damaged"][name]
        yield f"  {name:21} {found['said']:8} replies to T-101: {found['replies']}"
    yield "\nKilled, and killed again while it recovers:"
    for name, found in data["twice"].items():
        module = name.split()[1]
        more = found["text"] or f"{found['answered']} requests answered, {found['counted']} counted"
        yield f"  {module:24} at {AFTER_REPLY}, then {found['second']}: {found['said']}"
        yield from _wrapped(more)


def _wrapped(text: str) -> list[str]:
    """A long text in lines that stand on a narrow page."""
    return textwrap.wrap(text, 84, initial_indent=" " * 4, subsequent_indent=" " * 4, break_on_hyphens=False)


# --- drawing -----------------------------------------------------------------------------------------


def pictures(data: Data) -> dict[str, Picture]:
    """What is known of one reply at five instants, and what two harnesses make of a damaged file."""
    return {"ladder": _ladder(data), "damaged": _tree(data)}


def _ladder(data: Data) -> Picture:
    rungs = [
        Rung(
            each["place"],
            f"{each['call']}{', ledger: ' + each['ledger'][0] if each['ledger'] else ''}",
            "sent" if each["sent"] else "not sent",
            each["answer"],
        )
        for each in data["rungs"]
    ]
    heads = ("the files say", "the world says", "the model is told")
    return ladder("One reply: five places to die, and what a resume makes of each", rungs, heads=heads)


def _tree(data: Data) -> Picture:
    found = data["damaged"]
    before, after = (
        {name: f"{size:,} bytes" for name, size in files.items()}
        for files in (found["before"], found["naive_reset_on_error"]["files"])
    )
    notes = [f"naive_reset_on_error: {found['naive_reset_on_error']['said']}", f"correct: {found['correct']['said']}"]
    heads = ("one byte changed", "after the reset")
    return tree(
        "A checkpoint with one wrong byte, and a resume that clears it away", before, after, heads=heads, notes=notes
    )


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures)

if __name__ == "__main__":
    sys.exit(exhibit.main())
