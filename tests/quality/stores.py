"""Small stores and logs with one planted fault each, beside correct twins.

Every function that is wrong says so; the tests name the kind that the lab must find. The module has
no dependency, so that it is imported in fresh processes by name or by value alike.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from crashlab import Log, Store

if TYPE_CHECKING:
    from pathlib import Path


def _dirsync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def save_atomic(directory: Path, value: Any, name: str = "value.json") -> None:
    """Temporary file, fsync, rename, fsync of the directory."""
    temporary = directory / f"{name}.tmp"
    with temporary.open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(directory / name)
    _dirsync(directory)


def load_strict(directory: Path, name: str = "value.json") -> Any:
    """The value, or None where nothing was saved."""
    path = directory / name
    return json.loads(path.read_text()) if path.exists() else None


ATOMIC = Store(save_atomic, load_strict)
EMPTY_RAISES = Store(save_atomic, lambda directory: json.loads((directory / "value.json").read_text()))


def save_in_place(directory: Path, value: Any) -> None:
    """Wrong: empties the good file before the new one is whole."""
    (directory / "value.json").write_text(json.dumps(value))


IN_PLACE = Store(save_in_place, load_strict)


def load_or_none(directory: Path) -> Any:
    """Wrong: takes a half file for nothing there."""
    try:
        return load_strict(directory)
    except ValueError:
        return None


SILENT_RESET = Store(save_in_place, load_or_none)


def save_unlink_first(directory: Path, value: Any) -> None:
    """Wrong: for a moment there is neither the old file nor the new one."""
    temporary = directory / "value.tmp"
    temporary.write_text(json.dumps(value))
    (directory / "value.json").unlink(missing_ok=True)
    temporary.rename(directory / "value.json")


UNLINK_FIRST = Store(save_unlink_first, load_strict)


def save_in_two_files(directory: Path, value: Any) -> None:
    """Wrong: one value in two files, each replaced atomically, together not."""
    save_atomic(directory, value.get("n"), "n.json")
    save_atomic(directory, value.get("text"), "text.json")


def load_from_two_files(directory: Path) -> Any:
    """The halves together."""
    if not (directory / "text.json").exists():
        return None
    halves = {"n": load_strict(directory, "n.json"), "text": load_strict(directory, "text.json")}
    return {name: half for name, half in halves.items() if half is not None}


TWO_FILES = Store(save_in_two_files, load_from_two_files)


def load_newest(directory: Path) -> Any:
    """Wrong: counts temporary files among the saved ones."""
    files = sorted(directory.iterdir(), key=lambda path: (path.suffix == ".tmp", path.name))
    return json.loads(files[-1].read_text()) if files else None


COUNTS_TMP = Store(save_atomic, load_newest)


def load_and_consume(directory: Path) -> Any:
    """Wrong: the second recovery finds nothing."""
    value = load_strict(directory)
    (directory / "value.json").unlink(missing_ok=True)
    return value


CONSUMES = Store(save_atomic, load_and_consume)


def save_locked(directory: Path, value: Any) -> None:
    """Wrong: a lock file outlives the process that made it."""
    lock = directory / "lock"
    descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    save_atomic(directory, value)
    os.close(descriptor)
    lock.unlink()


LOCK_FILE = Store(save_locked, load_strict)


def load_waiting(directory: Path) -> Any:
    """Wrong: waits for the end of a save whose process is dead."""
    while (directory / "lock").exists():
        time.sleep(0.01)
    return load_strict(directory)


WAITS_FOR_LOCK = Store(save_locked, load_waiting, timeout_s=1.5, values=[{"n": 1}])


def load_with_helper(directory: Path) -> Any:
    """Wrong: starts a process and forgets it."""
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    return load_strict(directory)


LEAVES_PROCESS = Store(save_atomic, load_with_helper, values=[{"n": 1}])


def append_lines(directory: Path, events: list[Any]) -> None:
    """Appends and syncs; knows nothing of a torn tail."""
    with (directory / "log.jsonl").open("a") as file:
        file.write("".join(json.dumps(event) + "\n" for event in events))
        file.flush()
        os.fsync(file.fileno())


def read_lines(directory: Path) -> list[Any]:
    """Every line; raises on a torn one."""
    path = directory / "log.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


TORN_TAIL = Log(append_lines, read_lines)


def read_whole_lines(directory: Path) -> list[Any]:
    """The lines that have an end."""
    path = directory / "log.jsonl"
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


GLUED_TAIL = Log(append_lines, read_whole_lines)


def read_skipping(directory: Path) -> list[Any]:
    """Wrong together with the append: skips bad lines, also in the middle."""
    path = directory / "log.jsonl"
    events = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events


SKIPS_LINES = Log(append_lines, read_skipping)


def append_repaired(directory: Path, events: list[Any]) -> None:
    """Cuts a torn tail off before it appends."""
    path = directory / "log.jsonl"
    if path.exists():
        data = path.read_bytes()
        if not data.endswith(b"\n") and data:
            os.truncate(path, data.rfind(b"\n") + 1)
    append_lines(directory, events)


REPAIRED_LOG = Log(append_repaired, read_whole_lines)
HALF_BATCHES = Log(append_repaired, read_whole_lines, atomic=True)


NO_DEDUPE = Log(append_repaired, read_whole_lines, key=lambda event: event["seq"])


def save_and_ack(lab: Any, value: Any) -> None:
    """Acks by itself too, a moment before it returns."""
    save_atomic(lab.dir, value)
    lab.ack(value)


def save_and_tell(lab: Any, value: Any) -> None:
    """Tells the outside world after each save."""
    save_atomic(lab.dir, value)
    lab.effect("saved", key=json.dumps(value), n=value.get("n", 0))


OWN_ACK = Store(save_and_ack, lambda lab: load_strict(lab.dir), open=lambda lab: lab)
TELLS = Store(save_and_tell, lambda lab: load_strict(lab.dir), open=lambda lab: lab)


def append_in_order(directory: Path, events: list[Any]) -> None:
    """Refuses what does not continue the log."""
    length = len(read_whole_lines(directory))
    for event in events:
        if event["seq"] != length:
            text = f"out of order: {event['seq']} after {length} events"
            raise ValueError(text)
        length += 1
    append_repaired(directory, events)


def iterate_lines(directory: Path) -> Any:
    """Gives one event after the other."""
    yield from read_whole_lines(directory)


STRICT_ORDER = Log(append_in_order, read_whole_lines)
GENERATOR = Log(append_repaired, iterate_lines)


def load_or_exit(directory: Path) -> Any:
    """Leaves the program where there is nothing."""
    path = directory / "value.json"
    if not path.exists():
        sys.exit("no checkpoint")
    return json.loads(path.read_text())


EXITS_ON_EMPTY = Store(save_atomic, load_or_exit)
