"""Sessions and what surrounds them: an index, a lock, a buffer, a folder of their own, the list of them all.

Every function that is wrong says so, and where it was met. All events are made up.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from functools import partial
from typing import TYPE_CHECKING

from crashlab import Log, Policy, Subject, Violation
from tests.casebook.durable import append_lines, read_json, read_lines, replace_json, sync
from tests.casebook.logs import LONG, NAME, RIGHT_SHORT, SHORT, Event, append, load
from tests.casebook.scenario import Scenario, scenario

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Lab

EXACT = Policy(refuse=False)


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
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        append(directory, events)


class Buffered:
    """A writer that keeps what it got until it is closed, as a program does that flushes at its end."""

    def __init__(self, lab: Lab) -> None:
        self.directory = lab.dir
        self.waiting: list[Event] = []

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
        text = f"not listed: {sorted(missing)}"
        raise Violation(text, kind="hole")


TELLS = Subject(keep_three, partial(list_all, bad="tell"), check=check_listed)


SCENARIOS: dict[str, Scenario] = {
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
        TELLS,
        "damage:zeros,damage:empty",
        "stuck",
        damage=EXACT,
    ),
    "a bad session is not listed": scenario(
        Subject(keep_three, partial(list_all, bad="drop"), check=check_listed),
        TELLS,
        "damage:zeros,damage:empty",
        "accepted-damage",
        damage=EXACT,
    ),
}
