"""Subjects that try the pipeline's own manners: mistakes, odd runs, hostile content."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from crashlab import Log, Store, Subject, Violation

if TYPE_CHECKING:
    from pathlib import Path


def save(directory: Path, value: Any) -> None:
    """Write a temporary file, rename it."""
    (directory / "v.tmp").write_text(json.dumps(value))
    (directory / "v.tmp").rename(directory / "v.json")


def load(directory: Path) -> Any:
    """The value, or None."""
    path = directory / "v.json"
    return json.loads(path.read_text()) if path.exists() else None


STORE = Store(save, load)
SMALL = Store(save, load, values=[{"n": 1}, {"n": 2}])


def save_durably(directory: Path, value: Any) -> None:
    """The same, with both barriers: the file before the rename, its directory after it."""
    with (directory / "v.tmp").open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    (directory / "v.tmp").rename(directory / "v.json")
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


DURABLE = Store(save_durably, load)
DURABLE_SMALL = Store(save_durably, load, values=[{"n": 1}, {"n": 2}])


def save_shouting(directory: Path, value: Any) -> None:
    """Raises on the second value."""
    if value["n"] == 2:
        text = "I do not like two"
        raise ValueError(text)
    save(directory, value)


RAISES = Store(save_shouting, load)
SWAPPED = Store(lambda value, path: path.write_text(json.dumps(value)), load)
NEVER_ENDS = Subject(lambda _lab: threading.Event().wait(), timeout_s=0.1)
NEVER_ENDS_SOON = Subject(lambda _lab: threading.Event().wait(), timeout_s=60)
EMPTY_TRACE = Subject(lambda _lab: "nothing done")


def write_outside(lab: Any) -> str:
    """Writes beside its directory too."""
    save(lab.dir, 1)
    with open(os.environ["WRITE_OUTSIDE"], "a") as file:
        file.write("x")
    return "done"


OUTSIDE = Subject(write_outside)


def differ(lab: Any) -> dict[str, Any]:
    """Ends otherwise each time."""
    save(lab.dir, 1)
    return {"n": 1, "run_id": random.random()}  # noqa: S311 - two runs must differ, no secret


DIFFERS = Subject(differ)
DIFFERS_VIEWED = Subject(differ, view=lambda end: {"n": end["n"]})


def write_by_child(lab: Any) -> str:
    """Another program writes; the recorder in Python cannot see it."""
    subprocess.run([sys.executable, "-c", "open('child.txt', 'w').write('hi')"], cwd=lab.dir, check=True)
    return "done"


UNSEEN = Subject(write_by_child)


def write_by_passing_child(lab: Any) -> str:
    """A child writes a file that is gone before the end: no op explains what a crash in between finds."""
    save(lab.dir, 1)
    passing = lab.dir / "passing.txt"
    subprocess.run([sys.executable, "-c", f"open({str(passing)!r}, 'w').write('hi')"], check=True)
    passing.unlink()
    return "done"


UNSEEN_PASSING = Subject(write_by_passing_child)


def save_one(lab: Any) -> str:
    """One save."""
    save(lab.dir, 1)
    return "done"


def start_a_quiet_child(lab: Any) -> str:
    """A child that writes nothing."""
    subprocess.run(["true"], check=True)
    return save_one(lab)


QUIET_CHILD = Subject(start_a_quiet_child)
READS_ANSWERS = Subject(save_one, lambda lab: lab.expected)


def break_after_a_crash(lab: Any, end: str) -> None:
    """A check with a mistake of its own, which only a crash brings to light."""
    if end == "other":
        raise KeyError(end)
    assert lab.acked is not None


BREAKING_CHECK = Subject(save_one, lambda _lab: "other", check=break_after_a_crash)


def replace_check() -> Subject:
    """The subject that acks, without its check."""
    return Subject(run_once, lambda lab: "done" if load(lab.dir) else run_once(lab))


ODD_KIND = Subject(save_one, lambda _lab: "other", check=lambda _lab, end: complain(end))


def complain(end: str) -> None:
    """Raises a kind that nobody knows."""
    if end == "other":
        text = "odd"
        raise Violation(text, kind="duplicate-efect")


FORGETS_TUPLES = Store(save, load, values=[{"xy": (1, 2)}])


def end_with_object(lab: Any) -> object:
    """An end without a JSON form."""
    save(lab.dir, 1)
    return object()


NO_JSON = Subject(end_with_object)
CHECK_FAILS = Subject(lambda lab: save(lab.dir, 1), check=lambda _lab, _end: False)
CHECK_ODD = Subject(
    lambda lab: save(lab.dir, 1),
    check=lambda _lab, _end: "fine",  # type: ignore[arg-type, return-value]  # the mistake is what is tried
)


def run_once(lab: Any) -> str:
    """Saves; a good resume finds it."""
    save(lab.dir, {"n": 1})
    lab.ack(1)
    return "done"


def demand(lab: Any, end: str) -> None:
    """Complains of every crash after the ack, with a kind of its own."""
    if lab.acked and lab.expected != "done":
        text = "expected end was not told"
        raise AssertionError(text)
    if lab.acked and end != "done":
        text = f"ended with {end}"
        raise Violation(text, kind="guard-bypassed")


CHECKED = Subject(run_once, lambda lab: "done" if load(lab.dir) else "fresh", check=demand)
CHECKED_BAD = Subject(run_once, lambda _lab: "resumed oddly", check=demand)


async def save_async(directory: Path, value: Any) -> None:
    """The same through an event loop and a thread."""
    await asyncio.to_thread(save, directory, value)


async def load_async(directory: Path) -> Any:
    """The same through an event loop."""
    await asyncio.sleep(0)
    return load(directory)


ASYNC = Store(save_async, load_async, values=[{"n": 1}])


class Handle:
    """A store with an open file, as classes have it."""

    def __init__(self, directory: Path) -> None:
        """Open."""
        self.directory = directory
        self.closed = False

    def save(self, value: Any) -> None:
        """Save."""
        assert not self.closed
        save(self.directory, value)

    def load(self) -> Any:
        """Load."""
        return load(self.directory)

    def close(self) -> None:
        """Close."""
        self.closed = True


CLASS = Store(Handle.save, Handle.load, open=lambda lab: Handle(lab.dir), close=Handle.close, values=[{"n": 1}])


def serve(lab: Any) -> None:
    """A program without end: a thread that saves and acks for ever."""

    def saver() -> None:
        for n in itertools.count(1):
            save(lab.dir, {"n": n})
            lab.ack(n)

    threading.Thread(target=saver, daemon=True).start()
    time.sleep(60)


def keeps_acked(lab: Any, end: int) -> None:
    """At least the last acked number."""
    assert end >= max(lab.acked, default=0), f"acked {lab.acked[-1]}, found {end}"


ENDLESS_UNCHECKED = Subject(serve, lambda _lab: None, stop_after_acks=2)
SERVICE = Subject(serve, lambda lab: (load(lab.dir) or {"n": 0})["n"], check=keeps_acked, stop_after_acks=3)
FORGETFUL_SERVICE = Subject(serve, lambda _lab: 0, check=keeps_acked, stop_after_acks=3)


def hostile(lab: Any) -> str:
    """Names and bytes that terminals and parsers choke on."""
    for name in (b"\xff\xfe", b"line\nbreak", b"[bold]red", b"\x1b[31mred", "caf\u00e9".encode(), b"-rf"):
        with open(os.path.join(os.fsencode(lab.dir), name), "wb") as file:
            file.write(b"\x00\x1b[2J\xff")
    lab.effect("mail", to="\x1b[31mada\n[bold]")
    return "\x1b[2J"


HOSTILE = Subject(hostile, lambda _lab: "other", view=lambda end: end)


def everywhere(lab: Any) -> None:
    """HOME and TMPDIR are traced too; the files are the end."""
    import tempfile  # noqa: PLC0415 - it must find the TMPDIR of the lab

    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
        file.flush()
    with open(os.path.expanduser("~/.rc"), "w") as file:
        file.write(str(lab.dir))
    save(lab.dir, {"home": os.environ["HOME"]})


EVERYWHERE = Subject(everywhere)


def append(directory: Path, events: list[Any]) -> None:
    """Append what is not there by key, a torn tail cut off before."""
    path = directory / "log"
    data = path.read_bytes() if path.exists() else b""
    if not data.endswith(b"\n"):
        os.truncate(path, data.rfind(b"\n") + 1) if data else None
    known = {event["id"] for event in read(directory)}
    with path.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events if event["id"] not in known)


def read(directory: Path) -> list[Any]:
    """Whole lines."""
    path = directory / "log"
    return [json.loads(line) for line in path.read_text().rpartition("\n")[0].splitlines()] if path.exists() else []


KEYED_LOG = Log(append, read, values=[[{"id": 1}], [{"id": 2}, {"id": 3}]], key=lambda event: event["id"])
NOT_A_SUBJECT = {"save": save}
