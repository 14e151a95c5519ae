"""Caches and formats: what can be had again must not stop the work, and what was written must be read back.

The lab damages a cache at rest, and demands that the work comes to its end all the same. Every function that
is wrong says so, and where it was met.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import Policy, Subject, Violation
from tests.casebook.durable import read_json, replace_json, replace_text
from tests.casebook.scenario import Scenario, scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from crashlab import Lab

FETCHED = ["one", "two"]
"""What the far side always answers."""


# --- a cache in a file --------------------------------------------------------------------------------


def look_up(lab: Lab, *, on_damage: Callable[[Path], None]) -> list[str]:
    """The names from the cache, or fetched and put there; ``on_damage`` is called where it cannot be read."""
    path = lab.dir / "names.json"
    try:
        names = read_json(path)
    except ValueError:
        on_damage(path)
        names = None
    if names is None:
        replace_json(path, names := FETCHED)
    return names


def fail(path: Path) -> None:
    """Wrong: what could be fetched again ends the work; https://github.com/pypa/pip/issues/11985."""
    text = f"cannot read {path.name}"
    raise RuntimeError(text)


def clear_through_it(path: Path) -> None:
    """Wrong: to clear the cache, it asks the damaged file what there is to clear.

    https://github.com/requests-cache/requests-cache/issues/339
    """
    for _ in json.loads(path.read_text()):
        path.unlink()


def forget(path: Path) -> None:
    """Right: damage is a miss."""
    path.unlink()


def ask_if_changed(lab: Lab, *, sealed: bool) -> list[str]:
    """A body and the tag under which it was sent; the far side says "unchanged" for a tag that it knows.

    Wrong unless ``sealed``: the tag is whole, the body is not, and never fetched again.
    https://github.com/conda/conda/issues/7190
    """
    path, body = lab.dir / "body.json", json.dumps(FETCHED)
    tag = f"v1-{zlib.crc32(body.encode())}" if sealed else "v1"
    try:
        head, _, stored = path.read_text().partition("\n")
    except FileNotFoundError:
        head, stored = "", ""
    intact = not sealed or head == f"v1-{zlib.crc32(stored.encode())}"
    if head != tag or not intact:
        with path.open("w") as file:
            file.write(tag + "\n")
            file.flush()
            file.write(body)
        stored = body
    return json.loads(stored)


# --- a cache in a database ----------------------------------------------------------------------------


def tag_files(lab: Lab, *, fall_back: bool) -> list[str]:
    """The tags of some files, from a cache database. Wrong unless ``fall_back``: its damage ends the work.

    https://github.com/Aider-AI/aider/issues/1767
    https://github.com/grantjenks/python-diskcache/issues/67
    """
    path = lab.dir / "tags.db"
    try:
        return tags_of(path)
    except sqlite3.DatabaseError:
        if not fall_back:
            raise
    for each in lab.dir.glob("tags.db*"):
        each.unlink()
    return tags_of(path)


def tags_of(path: Path) -> list[str]:
    """The tags that the database holds; a new one gets them first."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        if database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            text = "the integrity check failed"
            raise sqlite3.DatabaseError(text)
        database.execute("CREATE TABLE IF NOT EXISTS tags (name TEXT PRIMARY KEY)")
        database.executemany("INSERT OR IGNORE INTO tags VALUES (?)", [(each,) for each in FETCHED])
        database.commit()
        return [name for (name,) in database.execute("SELECT name FROM tags ORDER BY name")]


# --- formats ------------------------------------------------------------------------------------------

FIRST, LAST = 99_999, 100_001


def write_events(lab: Lab, *, by: str, digits: str) -> int:
    """Events in files of their own, numbered with at least five digits.

    Wrong where the reader wants exactly five: the events from 100,000 on are never read back.
    https://github.com/OpenHands/software-agent-sdk/issues/3926
    """
    numbers = [
        int(found[1]) for path in lab.dir.iterdir() if (found := re.fullmatch(rf"event-(\d{digits})", path.name))
    ]
    for number in range(max(numbers, default=FIRST - 1) + 1, LAST + 1):
        replace_text(lab.dir / f"event-{number:05d}", by)
        lab.ack(number)
    return LAST


def check_events(lab: Lab, _: int) -> None:
    """What was acked by the run is the run's still."""
    for number in lab.acked:
        if (lab.dir / f"event-{number}").read_text() != "run":
            text = f"event {number} was written anew"
            raise Violation(text, kind="lost")


def described(digits: str) -> Subject:
    """A writer, and a reader of so many digits."""
    return Subject(
        partial(write_events, by="run", digits=digits),
        partial(write_events, by="resume", digits=digits),
        check=check_events,
    )


def run_and_upgrade(lab: Lab) -> int:
    """An old program saves; the new one, which also counts what it may spend, goes on from it."""
    replace_json(lab.dir / "state.json", {"version": 1, "step": 1})
    replace_json(lab.dir / "state.json", {"version": 2, "step": 2, "budget": 9})
    return 9


def restore(lab: Lab, *, keep_defaults: bool) -> int:
    """The new program opens what it finds. Wrong unless ``keep_defaults``: the fields that are new are gone.

    https://github.com/crewAIInc/crewAI/issues/6706
    """
    state: dict[str, Any] = {"version": 2, "step": 0, "budget": 9}
    stored = read_json(lab.dir / "state.json")
    if stored is None:
        return run_and_upgrade(lab)
    if not keep_defaults:
        state.clear()
    state.update(stored)
    return int(state["budget"])


EXACT = Policy(refuse=False)


def cached(on_damage: Callable[[Path], None]) -> Subject:
    """A program with a cache."""
    return Subject(partial(look_up, on_damage=on_damage))


FORGETS = cached(forget)


SCENARIOS: dict[str, Scenario] = {
    "a damaged cache ends the work": scenario(
        cached(fail), FORGETS, "damage:empty,damage:zeros,damage:truncate", "stuck", damage=EXACT
    ),
    "cleared through what is damaged": scenario(
        cached(clear_through_it), FORGETS, "damage:empty,damage:zeros,damage:truncate", "stuck", damage=EXACT
    ),
    "a good tag on a bad body": scenario(
        Subject(partial(ask_if_changed, sealed=False)), Subject(partial(ask_if_changed, sealed=True)), "kill", "stuck"
    ),
    "a damaged cache database": scenario(
        Subject(partial(tag_files, fall_back=False)),
        Subject(partial(tag_files, fall_back=True)),
        "damage:zeros",
        "stuck",
        damage=EXACT,
    ),
    "one digit more": scenario(described("{5}"), described("{5,}"), "kill", "lost"),
    "fields of a newer version": scenario(
        Subject(run_and_upgrade, partial(restore, keep_defaults=False)),
        Subject(run_and_upgrade, partial(restore, keep_defaults=True)),
        "kill",
        "stuck",
    ),
}
