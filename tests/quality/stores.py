"""Small stores and logs with one planted fault each, beside correct twins.

Every function that is wrong says so; the tests name the kind that the lab must find. The module has
no dependency, so that it is imported in fresh processes by name or by value alike.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

from crashlab import Log, Store, Subject

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


WAITS_FOR_LOCK = Store(save_locked, load_waiting, timeout_s=0.3, values=[{"n": 1}])


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


def pay(lab: Any) -> str:
    """Wrong: pays, then notes it; killed between the two it pays again."""
    if not (lab.dir / "paid").exists():
        lab.effect("pay", yen=1000)
        save_atomic(lab.dir, "yes", "paid")
    return "paid"


def pay_keyed(lab: Any) -> str:
    """The same with a key: the bank knows it."""
    if not (lab.dir / "paid").exists():
        lab.effect("pay", key="order-7", yen=1000)
        save_atomic(lab.dir, "yes", "paid")
    return "paid"


def pay_marked(lab: Any) -> str:
    """Wrong the other way: notes it, then pays; killed between the two it never pays."""
    if not (lab.dir / "paid").exists():
        save_atomic(lab.dir, "yes", "paid")
        lab.effect("pay", yen=1000)
    return "paid"


def pay_unknown(lab: Any) -> str:
    """Wrong: says unknown whenever it finds anything, also where the files tell."""
    if any(lab.dir.iterdir()):
        lab.unknown("pay", yen=1000)
        return "unknown"
    save_atomic(lab.dir, "about to", "started")
    lab.effect("pay", yen=1000)
    save_atomic(lab.dir, "yes", "paid")
    lab.ack()
    return "paid"


def pay_honest(lab: Any) -> str:
    """Marks, pays, notes; between mark and note it asks a person."""
    if (lab.dir / "paid").exists():
        return "paid"
    if (lab.dir / "started").exists():
        lab.unknown("pay", yen=1000)
        return "waiting"
    save_atomic(lab.dir, "about to", "started")
    lab.ack()
    lab.effect("pay", yen=1000)
    save_atomic(lab.dir, "yes", "paid")
    lab.ack()
    return "paid"


PAYS_TWICE = Subject(pay)
PAYS_KEYED = Subject(pay_keyed)
NEVER_PAYS = Subject(pay_marked)
NEEDLESS_UNKNOWN = Subject(pay_unknown)
HONEST_UNKNOWN = Subject(pay_honest)


def refuse(lab: Any) -> str:
    """Wrong: refuses to resume whenever it finds anything."""
    if any(lab.dir.iterdir()):
        text = "there is something here; I do not dare"
        raise RuntimeError(text)
    return pay_keyed(lab)


REFUSES = Subject(refuse)


def stamped_end(lab: Any) -> dict[str, Any]:
    """Wrong: its end depends on how often it was started."""
    count = (load_strict(lab.dir, "count") or 0) + 1
    save_atomic(lab.dir, count, "count")
    return {"starts": count}


COUNTS_STARTS = Subject(stamped_end)
_memory: dict[str, str] = {}


def resume_from_memory(lab: Any) -> str:
    """Wrong: consumes its file and goes on from memory, which the next process has not."""
    path = lab.dir / "state"
    if path.exists():
        _memory["state"] = path.read_text()
        path.unlink()
    return _memory.get("state", '"kept"' if not (lab.dir / "other").exists() else "lost")


def run_many_steps(lab: Any) -> str:
    """Many saves, each whole, beside the one that matters."""
    save_atomic(lab.dir, "kept", "state")
    for n in range(10):
        save_atomic(lab.dir, n, "other")
    return '"kept"'


REMEMBERS = Subject(
    run_many_steps, lambda lab: resume_from_memory(lab) if any(lab.dir.iterdir()) else run_many_steps(lab)
)
_locks: list[Any] = []


def run_locked(lab: Any) -> str:
    """Holds an OS lock for life, as a lease does: the kernel frees it when the process dies."""
    import fcntl  # noqa: PLC0415 - Windows has none

    file = (lab.dir / "lock").open("w")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _locks.append(file)
    for n in range(10):
        save_atomic(lab.dir, n, "state")
    return "done"


LEASED = Subject(run_locked)

FOUND: dict[str, tuple[Store | Log | Subject, set[str]]] = {
    "in place": (IN_PLACE, {"lost"}),
    "half file read as nothing": (SILENT_RESET, {"silent-reset"}),
    "unlink before rename": (UNLINK_FIRST, {"silent-reset"}),
    "one value in two files": (TWO_FILES, {"torn"}),
    "temporary files counted": (COUNTS_TMP, {"lost"}),
    "load consumes": (CONSUMES, {"diverged"}),
    "lock file": (LOCK_FILE, {"stuck"}),
    "waits for a dead owner": (WAITS_FOR_LOCK, {"hang"}),
    "leaves a process": (LEAVES_PROCESS, {"left-process"}),
    "torn tail": (TORN_TAIL, {"lost"}),
    "glued tail": (GLUED_TAIL, {"lost"}),
    "bad lines skipped": (SKIPS_LINES, {"lost"}),
    "a keyed event stored twice": (NO_DEDUPE, {"duplicate-entry"}),
    "half a batch": (HALF_BATCHES, {"torn"}),
    "pays, then notes": (PAYS_TWICE, {"duplicate-effect"}),
    "notes, then pays": (NEVER_PAYS, {"missing-effect"}),
    "needless unknown": (NEEDLESS_UNKNOWN, {"needless-unknown"}),
    "refuses everything": (REFUSES, {"stuck"}),
    "remembers what it consumed": (REMEMBERS, {"diverged"}),
    "end counts starts": (COUNTS_STARTS, {"diverged"}),
}
"""Planted faults by what is wrong, with the kinds that must be among the findings."""

CLEAN: dict[str, Store | Log | Subject] = {
    "atomic": ATOMIC,
    "load raises on an empty directory": EMPTY_RAISES,
    "repaired log": REPAIRED_LOG,
    "keyed payment": PAYS_KEYED,
    "honest unknown": HONEST_UNKNOWN,
    "a lock held for life": LEASED,
}
"""Correct twins: negative controls."""
