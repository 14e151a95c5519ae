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

from crashlab import Log, Policy, Subject, Violation
from tests.casebook.durable import append_lines, read_json, read_lines, replace_json, sync, whole, write_all
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
    events = [opened(line) for line in lines]
    if None in events:
        text = f"{NAME}: line {events.index(None) + 1} of {len(lines)} is damaged"
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
        raise Violation(f"sent: {end}", kind="invalid-transcript")
    assert end == told(list(TALK)) or end[-1].endswith("damaged"), end


# --- side files, lists, locks -------------------------------------------------------------------------


def append_indexed(directory: Path, events: list[Event]) -> None:
    """The log is forced, the index that leads to it is not."""
    append(directory, events)
    (directory / "index.json").write_text(json.dumps({"events": len(load(directory))}))


def load_by_index(directory: Path) -> list[Event]:
    """Wrong: without its index the log is not found; https://github.com/anthropics/claude-code/issues/79941."""
    index = read_json(directory / "index.json") or {"events": 0}
    return load(directory)[: index["events"]]


def load_deriving(directory: Path) -> list[Event]:
    """Right: the log is the truth, the index is made of it anew."""
    events = load(directory)
    (directory / "index.json").write_text(json.dumps({"events": len(events)}))
    return events


def append_in_two_steps(directory: Path, events: list[Event]) -> None:
    """Wrong: the entries are stored, then what lists them; the second may fail, and only a logger hears of it.

    https://github.com/openai/openai-agents-python/issues/3348
    """
    append(directory, events)
    with contextlib.suppress(OSError):
        append_lines(directory / "listed.jsonl", [{"seq": event["seq"]} for event in events])


def load_listed(directory: Path) -> list[Event]:
    """The entries that are listed."""
    listed = {each["seq"] for each in read_lines(directory / "listed.jsonl")}
    return [event for event in load(directory) if event["seq"] in listed]


def append_locked(directory: Path, events: list[Event]) -> None:
    """Wrong: a lock file that says nothing of its owner outlives it.

    https://github.com/github/copilot-cli/issues/2927
    """
    lock = os.open(directory / "lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    append(directory, events)
    os.close(lock)
    (directory / "lock").unlink()


def append_held(directory: Path, events: list[Event]) -> None:
    """Right: the kernel frees this lock when its owner dies."""
    import fcntl  # noqa: PLC0415 - Windows has none

    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        append(directory, events)


class Buffered:
    """A writer that keeps what it got until it is closed, as a program does that flushes at its end."""

    def __init__(self, lab: Lab) -> None:
        self.directory, self.waiting = lab.dir, []

    def append(self, events: list[Event]) -> None:
        """Wrong: nothing is written yet; stopped right after the last input, nothing ever is.

        https://github.com/anthropics/claude-code/issues/31613
        """
        self.waiting += events

    def load(self) -> list[Event]:
        """What is there, and what waits."""
        return load(self.directory) + self.waiting

    def close(self) -> None:
        """Write it all."""
        append(self.directory, self.waiting)


class Mirrored:
    """A session that runs in a folder of its own; its log goes to the store when it is closed.

    Wrong: a folder that a killed session left is never looked at; measured on a released agent library.
    """

    def __init__(self, lab: Lab) -> None:
        self.directory = lab.dir
        self.own = self.directory / f"resume-{len(self.folders())}"

    def folders(self) -> list[Path]:
        """Folders of sessions, the oldest first."""
        return sorted(self.directory.glob("resume-*"))

    def stored(self) -> list[Path]:
        """The logs of the store, the oldest first."""
        return sorted(self.directory.glob("stored-*.jsonl"))

    def append(self, events: list[Event]) -> None:
        """Saved in the folder."""
        self.own.mkdir(exist_ok=True)
        append(self.own, events)

    def take_over(self, folder: Path) -> None:
        """The log goes to the store whole, then the folder goes."""
        if (folder / NAME).exists():
            (folder / NAME).rename(self.directory / f"stored-{len(self.stored())}.jsonl")
        folder.rmdir()

    def close(self) -> None:
        """Cleaning up is the last thing that is done."""
        if self.own.exists():
            self.take_over(self.own)

    def load(self) -> list[Event]:
        """What the store has, and this session."""
        return [event for path in self.stored() for event in read_lines(path)] + load(self.own)


class Swept(Mirrored):
    """Right: what a killed session left is taken over first."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        for folder in self.folders():
            self.take_over(folder)
        self.own = self.directory / "resume-0"


def import_lines(lab: Lab, *, careful: bool) -> int:
    """A local session is written, then taken into the store in batches of one. Wrong unless ``careful``.

    A torn last line stops it after the first batches, and a second try stores these again: measured on a
    released agent library.
    """
    local = lab.dir / "local.jsonl"
    if not (lab.dir / "written").exists():
        local.write_text("".join(json.dumps(event) + "\n" for batch in LONG[::-1] for event in batch))
        sync(local)
        replace_json(lab.dir / "written", value=True)
    if (lab.dir / "done").exists():
        return read_json(lab.dir / "done")
    store = lab.dir / "store"
    store.mkdir(exist_ok=True)
    for event in read_lines(local) if careful else map(json.loads, local.read_text().splitlines()):
        if not careful or event not in load(store):
            append(store, [event])
    replace_json(lab.dir / "done", len(load(store)))
    return len(load(store))


# --- lists of sessions --------------------------------------------------------------------------------


def keep_three(lab: Lab) -> list[str]:
    """Three sessions, each in a file of its own."""
    for number in range(3):
        replace_json(lab.dir / f"{number}.json", {"said": "hello"})
    return ["0", "1", "2"]


def list_all(lab: Lab, *, bad: str) -> list[str]:
    """The sessions. ``bad`` says what becomes of one that cannot be read; wrong are ``raise`` and ``drop``.

    The first bad one ends the list: https://github.com/anomalyco/opencode/issues/10904
    A bad one is left out: https://github.com/anthropics/claude-code/issues/76059
    """
    listed = []
    for path in sorted(lab.dir.glob("*.json")):
        try:
            read_json(path)["said"]
        except (ValueError, TypeError, KeyError):
            if bad == "raise":
                raise
            if bad == "tell":
                listed.append(f"{path.stem} (damaged)")
        else:
            listed.append(path.stem)
    return listed


def check_listed(lab: Lab, end: list[str]) -> None:
    """Every session is in the list, in whatever state it is."""
    missing = {path.stem for path in lab.dir.glob("*.json")} - {each.split()[0] for each in end}
    if missing:
        raise Violation(f"not listed: {sorted(missing)}", kind="hole")


EXACT = Policy(refuse=False)


SCENARIOS: dict[str, Scenario] = {
    "an append to half a line": scenario(
        Log(append_to_any_end, load, values=LONG), RIGHT_LONG, "kill", "lost"
    ),
    "a write made again": scenario(Log(append_again, load, values=SHORT), RIGHT_SHORT, "error:short-write", "lost"),
    "memory ahead of the disk": scenario(
        Log(append_regardless, load, values=SHORT), RIGHT_SHORT, "error:ENOSPC", "lost"
    ),
    "a reader that stops at damage": scenario(
        Log(append_sealed, load_until_bad, values=SHORT),
        Log(append_sealed, load_or_refuse, values=SHORT),
        "damage:bit",
        *("lost", "silent-reset"),
    ),
    "a damaged session is a new one": scenario(
        Log(append_sealed, load_or_begin, values=SHORT),
        Log(append_sealed, load_or_refuse, values=SHORT),
        "damage:bit",
        "silent-reset",
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
    "an index in front of the log": scenario(
        Log(append_indexed, load_by_index, values=SHORT[:2]),
        Log(append_indexed, load_deriving, values=SHORT[:2]),
        "power",
        *("lost", "silent-reset", "duplicate-entry", "stuck"),
    ),
    "two transactions for one entry": scenario(
        Log(append_in_two_steps, load_listed, values=SHORT), RIGHT_SHORT, "error:ENOSPC", "lost", "silent-reset"
    ),
    "a lock without an owner": scenario(
        Log(append_locked, load, values=SHORT), Log(append_held, load, values=SHORT), "kill", "stuck"
    ),
    "flushed at the end only": scenario(
        Log(Buffered.append, Buffered.load, open=Buffered, close=Buffered.close, values=SHORT),
        RIGHT_SHORT,
        "kill",
        "lost",
    ),
    "a folder left by a killed session": scenario(
        Log(Mirrored.append, Mirrored.load, open=Mirrored, close=Mirrored.close, values=SHORT),
        Log(Swept.append, Swept.load, open=Swept, close=Swept.close, values=SHORT),
        "kill",
        "silent-reset",
    ),
    "an import that is not repeatable": scenario(
        Subject(partial(import_lines, careful=False)), Subject(partial(import_lines, careful=True)), "kill", "diverged"
    ),
    "one bad session hides all": scenario(
        Subject(keep_three, partial(list_all, bad="raise"), check=check_listed),
        Subject(keep_three, partial(list_all, bad="tell"), check=check_listed),
        "damage:zeros,damage:empty",
        "stuck",
        damage=EXACT,
    ),
    "a bad session is not listed": scenario(
        Subject(keep_three, partial(list_all, bad="drop"), check=check_listed),
        Subject(keep_three, partial(list_all, bad="tell"), check=check_listed),
        "damage:zeros,damage:empty",
        "accepted-damage",
        damage=EXACT,
    ),
}
