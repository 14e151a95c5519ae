"""Two live owners of one place: both append, both save, both act.

The lab stops one between two of its steps and lets the other one in. Every function that is wrong says so,
and where it was met.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import Log, Policy, Store, Subject
from tests.casebook.durable import read_json, replace_json
from tests.casebook.scenario import Scenario, scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from crashlab import Lab

    Event = dict[str, Any]

NUMBERS = (1, 20)
BATCHES = (["a"], ["b"])


class NotOwnerError(RuntimeError):
    """Somebody else is at work here."""


@contextlib.contextmanager
def held(directory: Path, *, wait: bool = True) -> Iterator[None]:
    """The lock of this place, which ends with its process. Raises NotOwnerError unless it may ``wait``."""
    with open(directory / "lock", "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            text = "another process holds the lock"
            raise NotOwnerError(text) from error
        yield


def publish(path: Path, text: str) -> None:
    """Right: a draft that nobody else has, then its name."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent)
    with open(descriptor, "w") as file:
        file.write(text)
    os.rename(draft, path)


# --- one file, two writers ----------------------------------------------------------------------------


def append_in_parts(directory: Path, words: list[str], *, parts: int, alone: bool = False) -> None:
    """Lines at the end of a log. Wrong in two ``parts`` unless ``alone``: the other's line comes between them.

    https://github.com/anthropics/claude-code/issues/81843
    """
    data = "".join(json.dumps(word) + "\n" for word in words).encode()
    with held(directory) if alone else contextlib.nullcontext():
        descriptor = os.open(directory / "log.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for part in (data,) if parts == 1 else (data[:2], data[2:]):
            os.write(descriptor, part)
        os.close(descriptor)


def load_strictly(directory: Path) -> list[str]:
    """Wrong beside a live writer: a line that is being written counts as damage.

    https://github.com/optuna/optuna/issues/5138
    """
    with contextlib.suppress(FileNotFoundError):
        return [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]
    return []


def load_whole(directory: Path) -> list[str]:
    """Right: what is behind the last line end is not there yet."""
    with contextlib.suppress(FileNotFoundError):
        return [json.loads(line) for line in (directory / "log.jsonl").read_text().rpartition("\n")[0].splitlines()]
    return []


def save_in_place(directory: Path, value: int) -> None:
    """Wrong: who looks in meanwhile meets half a file; https://github.com/joblib/joblib/issues/490."""
    (directory / "value.json").write_text(json.dumps(value))


def save_by_one_draft(directory: Path, value: int) -> None:
    """Wrong: the draft has one name for all writers; https://github.com/nvk/llm-wiki/issues/58."""
    with open(directory / "value.draft", "w") as file:
        file.write(json.dumps(value))
    os.rename(directory / "value.draft", directory / "value.json")


def save_by_own_draft(directory: Path, value: int) -> None:
    """Right."""
    publish(directory / "value.json", json.dumps(value))


def load_value(directory: Path) -> Any:
    """The number, or None where nothing was saved."""
    return read_json(directory / "value.json")


ONE_WRITER = Store(save_by_own_draft, load_value, values=NUMBERS)


# --- read, change, write ------------------------------------------------------------------------------


def add(directory: Path, words: list[str], *, alone: bool) -> None:
    """One list in one file. Wrong unless ``alone``: the mutex is per process, and the last rename wins.

    https://github.com/modelcontextprotocol/servers/issues/4797
    """
    with held(directory) if alone else contextlib.nullcontext():
        publish(directory / "words.json", json.dumps(words_of(directory) + words))


def add_in_place(directory: Path, words: list[str]) -> None:
    """Wrong: neither alone nor whole, and who meets half a file begins a new one.

    https://github.com/anthropics/claude-code/issues/29217
    """
    (directory / "words.json").write_text(json.dumps(words_or_none(directory) + words))


def words_of(directory: Path) -> list[str]:
    """The list."""
    return read_json(directory / "words.json") or []


def words_or_none(directory: Path) -> list[str]:
    """Wrong: a file that cannot be read is an empty one."""
    try:
        return words_of(directory)
    except ValueError:
        return []


ALONE = Log(partial(add, alone=True), words_of, values=BATCHES)


def grow(directory: Path, words: list[str], *, alone: bool) -> None:
    """Each entry names the one before it. Wrong unless ``alone``: two entries get the same one.

    https://github.com/anthropics/claude-code/issues/37739
    """
    with held(directory) if alone else contextlib.nullcontext():
        for word in words:
            entries = sorted(directory.glob("entry-*"))
            parent = read_json(entries[-1])["id"] if entries else None
            number = os.urandom(4).hex()
            entry = {"id": number, "parent": parent, "word": word}
            publish(directory / f"entry-{len(entries):02d}-{number}", json.dumps(entry))


def follow(directory: Path) -> list[str]:
    """The words from the newest entry back to the first: of two branches one."""
    entries = [read_json(path) for path in sorted(directory.glob("entry-*"))]
    by_id = {entry["id"]: entry for entry in entries}
    entry, words = (entries[-1] if entries else None), []
    while entry:
        words.append(entry["word"])
        entry = by_id.get(entry["parent"])
    return words[::-1]


# --- two owners at work -------------------------------------------------------------------------------


def work(lab: Lab) -> str:
    """Wrong with two: whoever resumes goes on with what the first one is still doing.

    https://github.com/anthropics/claude-code/issues/75761
    https://github.com/dbos-inc/dbos-transact-java/issues/491
    """
    if not read_json(lab.dir / "done.json"):
        lab.effect("deploy")
        replace_json(lab.dir / "done.json", value=True)
    return "done"


def work_alone(lab: Lab) -> str:
    """Right: who does not get the lock stays out, and says so."""
    with held(lab.dir, wait=False):
        return work(lab)


class Versioned:
    """A session with a version; each opening takes the next one, and a save of an older one must be refused."""

    def __init__(self, lab: Lab, *, number: Callable[[Path], int], reload: bool) -> None:
        self.directory, self.reload = lab.dir, reload
        self.version = number(lab.dir)
        publish(lab.dir / "version", json.dumps(self.version))

    def save(self, value: int) -> None:
        """Wrong with ``reload``: a stale writer takes the newer version and goes on.

        https://github.com/google/adk-python/issues/4751
        """
        current = read_json(self.directory / "version")
        if current != self.version and not self.reload:
            text = f"version {self.version} is over"
            raise NotOwnerError(text)
        self.version = current
        save_by_own_draft(self.directory, value)

    def load(self) -> Any:
        """What was saved last."""
        return load_value(self.directory)


def counted(directory: Path) -> int:
    """Right: one more than the last."""
    return (read_json(directory / "version") or 0) + 1


def by_the_clock(_: Path) -> int:
    """Wrong: two that come within one tick have one version. Here a tick is 300 years, so that they always do.

    Met the other way round too, as a stale writer that was none: https://github.com/google/adk-python/issues/917.
    """
    return int(time.time()) // 10**10


def versioned(number: Callable[[Path], int], *, reload: bool) -> Store:
    """The session, opened anew by each owner."""
    opened = partial(Versioned, number=number, reload=reload)
    return Store(Versioned.save, Versioned.load, open=opened, values=NUMBERS)


FENCED = Policy(refuse=True)
BY_COUNT = versioned(counted, reload=False)


SCENARIOS: dict[str, Scenario] = {
    "lines written in parts": scenario(
        Log(partial(append_in_parts, parts=2), load_whole, values=BATCHES),
        Log(partial(append_in_parts, parts=1), load_whole, values=BATCHES),
        "race",
        "lost",
    ),
    "a reader beside a writer": scenario(
        Log(partial(append_in_parts, parts=2, alone=True), load_strictly, values=BATCHES),
        Log(partial(append_in_parts, parts=2, alone=True), load_whole, values=BATCHES),
        "race",
        *("lost", "stuck"),
    ),
    "read while it is written": scenario(
        Store(save_in_place, load_value, values=NUMBERS), ONE_WRITER, "race", "lost", "stuck"
    ),
    "one draft for all": scenario(
        Store(save_by_one_draft, load_value, values=NUMBERS), ONE_WRITER, "race", "torn", "stuck"
    ),
    "the last rename wins": scenario(Log(partial(add, alone=False), words_of, values=BATCHES), ALONE, "race", "lost"),
    "half a file begins a new one": scenario(Log(add_in_place, words_or_none, values=BATCHES), ALONE, "race", "lost"),
    "two children of one parent": scenario(
        Log(partial(grow, alone=False), follow, values=BATCHES),
        Log(partial(grow, alone=True), follow, values=BATCHES),
        "race",
        "lost",
    ),
    "resumed while its owner lives": scenario(Subject(work), Subject(work_alone), "race", "duplicate-effect"),
    "a stale writer goes on": scenario(versioned(counted, reload=True), BY_COUNT, "race", "stale-write", race=FENCED),
    "a version by the clock": scenario(
        versioned(by_the_clock, reload=False), BY_COUNT, "race", "stale-write", race=FENCED
    ),
}
