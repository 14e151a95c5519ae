"""Logs of which a part was cut, glued, dropped or skipped, and readers that made the best of it.

Every function that is wrong says so, and where it was met. All events are made up.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import Log, Subject, Violation
from tests.casebook.durable import append_lines, read_lines, sync, whole, write_all
from tests.casebook.scenario import Scenario, scenario

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Lab

Event = dict[str, Any]
LONG = ([{"seq": 0, "text": "a" * 5000}], [{"seq": 1}])
SHORT = ([{"seq": 0}], [{"seq": 1}], [{"seq": 2}])
NAME = "log.jsonl"


class DamagedError(Exception):
    """A line before the last is not what was written."""


def append(directory: Path, events: list[Event]) -> None:
    """Right."""
    append_lines(directory / NAME, events)


def load(directory: Path) -> list[Event]:
    """Right: all lines that have an end."""
    return read_lines(directory / NAME)


WIDE = tuple([{"seq": number, "text": "a" * 600}] for number in range(3))
"""Each event reaches over a sector of 512 bytes, so that damage meets one in the middle."""
RIGHT_LONG, RIGHT_SHORT = Log(append, load, values=LONG), Log(append, load, values=SHORT)


def append_to_any_end(directory: Path, events: list[Event]) -> None:
    """Wrong: does not look whether the last line has its end; measured on a released agent library."""
    descriptor = os.open(directory / NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        write_all(descriptor, b"".join(json.dumps(event).encode() + b"\n" for event in events))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync(directory)


def append_again(directory: Path, events: list[Event]) -> None:
    """Wrong: a write that took a part is made again from its beginning, on the same line.

    https://github.com/openai/codex/issues/24425
    https://github.com/github/copilot-cli/issues/4098
    """
    data = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    descriptor = os.open(directory / NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        if os.write(descriptor, data) != len(data):
            write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync(directory)


def append_regardless(directory: Path, events: list[Event]) -> None:
    """Wrong: an append that failed is dropped, and the session goes on in memory.

    https://github.com/openai/codex/issues/35385
    A batch of the middle, and the history has a hole: measured on a released agent library.
    """
    with contextlib.suppress(OSError):
        append(directory, events)


# --- readers ------------------------------------------------------------------------------------------


def sealed(event: Event) -> Event:
    """An event with a sum over it."""
    return {"event": event, "sum": zlib.crc32(json.dumps(event).encode())}


def append_sealed(directory: Path, events: list[Event]) -> None:
    """Right: each line can be told from a damaged one."""
    append_lines(directory / NAME, [sealed(event) for event in events])


def opened(line: bytes) -> Event | None:
    """The event of a line; None for a damaged one."""
    try:
        found = json.loads(line)
        return found["event"] if line == json.dumps(sealed(found["event"])).encode() else None
    except (ValueError, TypeError, KeyError):
        return None


def load_until_bad(directory: Path) -> list[Event]:
    """Wrong: what follows the first bad line is gone without a word.

    https://github.com/anthropics/claude-code/issues/50347
    """
    events = []
    for line in whole(directory / NAME).splitlines():
        if (event := opened(line)) is None:
            break
        events.append(event)
    return events


def load_or_refuse(directory: Path) -> list[Event]:
    """Right: a bad line that has an end was promised, so it is damage."""
    lines = whole(directory / NAME).splitlines()
    events = [event for line in lines if (event := opened(line)) is not None]
    if len(events) < len(lines):
        text = f"{NAME}: {len(lines) - len(events)} of {len(lines)} lines are damaged"
        raise DamagedError(text)
    return events


def load_or_begin(directory: Path) -> list[Event]:
    """Wrong: a session that cannot be read is a new one; https://github.com/google-gemini/gemini-cli/issues/18593."""
    try:
        return load_or_refuse(directory)
    except DamagedError:
        return []


def append_rewriting(directory: Path, events: list[Event]) -> None:
    """Wrong: to append it writes what it could read, and the new; where it could read nothing, only that.

    https://github.com/anthropics/claude-code/issues/56649
    """
    lines = [json.dumps(sealed(event)) + "\n" for event in load_or_begin(directory) + events]
    (directory / "draft").write_text("".join(lines))
    sync(directory / "draft")
    (directory / "draft").replace(directory / NAME)
    sync(directory)


def load_none_on_error(directory: Path) -> list[Event]:
    """Wrong: a log that cannot be read now counts as one that never was.

    https://github.com/xorbitsai/xagent/issues/978
    """
    try:
        return load(directory)
    except OSError:
        return []


REFUSES = Log(append_sealed, load_or_refuse, values=WIDE)


# --- a line that is gone, and one that needs it -------------------------------------------------------

TALK = (
    {"kind": "user", "text": "look into it"},
    {"kind": "call", "id": "t1"},
    {"kind": "result", "id": "t1"},
    {"kind": "say", "text": "nothing there"},
)


def talk(lab: Lab) -> list[str]:
    """A session with a call and its result."""
    for event in TALK[len(load_or_refuse(lab.dir)) :]:
        append_sealed(lab.dir, [event])
    return told(list(TALK))


def told(events: list[Event]) -> list[str]:
    """The session as a request would hold it."""
    return [f"{event['kind']} {event.get('id', '')}".strip() for event in events]


def resume_skipping(lab: Lab, *, orphans: bool) -> list[str]:
    """Skips lines that are damaged. Wrong with ``orphans``: a result stays whose call was on such a line.

    https://github.com/anthropics/claude-code/issues/14132
    """
    lines = whole(lab.dir / NAME).splitlines()
    good = [event for line in lines if (event := opened(line)) is not None]
    if len(good) == len(lines):
        return talk(lab)
    calls = {each["id"] for each in good if each["kind"] == "call"}
    answered = {each["id"] for each in good if each["kind"] == "result"}
    kept = good if orphans else [each for each in good if each.get("id") is None or each["id"] in calls & answered]
    return [*told(kept), f"{len(lines) - len(good)} lines are damaged"]


def check_pairs(_: Lab, end: list[str]) -> None:
    """Each result has its call, each call its result; and what is missing is told."""
    if end.count("result t1") != end.count("call t1"):
        text = f"sent: {end}"
        raise Violation(text, kind="invalid-transcript")
    assert end == told(list(TALK)) or end[-1].endswith("damaged"), end


SCENARIOS: dict[str, Scenario] = {
    "an append to half a line": scenario(Log(append_to_any_end, load, values=LONG), RIGHT_LONG, "kill", "lost"),
    "a write made again": scenario(Log(append_again, load, values=SHORT), RIGHT_SHORT, "error:short-write", "lost"),
    "memory ahead of the disk": scenario(
        Log(append_regardless, load, values=SHORT), RIGHT_SHORT, "error:ENOSPC", "lost"
    ),
    "a reader that stops at damage": scenario(
        Log(append_sealed, load_until_bad, values=WIDE), REFUSES, "damage:garbage", "lost", "silent-reset"
    ),
    "a damaged session is a new one": scenario(
        Log(append_sealed, load_or_begin, values=WIDE), REFUSES, "damage:garbage", "silent-reset"
    ),
    "opened, and written anew": scenario(
        Log(append_rewriting, load_or_begin, values=SHORT),
        Log(append_sealed, load_or_refuse, values=SHORT),
        "damage:zeros",
        *("lost", "silent-reset"),
    ),
    "an error read as nothing": scenario(
        Log(append, load_none_on_error, values=SHORT), RIGHT_SHORT, "error:EIO-read", "silent-reset"
    ),
    "a result without its call": scenario(
        Subject(talk, partial(resume_skipping, orphans=True), check=check_pairs),
        Subject(talk, partial(resume_skipping, orphans=False), check=check_pairs),
        "damage:bit",
        "accepted-damage",
    ),
}
