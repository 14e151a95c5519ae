"""Agents that send letters and write down how far they came. What sends is handed in, so they know no test lab."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import TYPE_CHECKING, Any

from tests.use_cases.files import put, take

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READERS = ("grace", "edsger")


class Mailer:
    """Writes to each reader in turn.

    ``send(reader)`` does it; ``ask(reader)`` says what became of a letter that was begun and never noted:
    a receipt, or None where nobody knows. ``note`` is told before and after each letter.
    """

    def __init__(self, folder: Path, send: Callable[[str], str], note: Callable[[str], Any]) -> None:
        self.file, self.send, self.note = folder / "progress.json", send, note

    def run(self, ask: Callable[[str], str | None] | None = None) -> dict[str, Any]:
        """All letters, or those that are still to be written. With ``ask`` a begun letter is not begun again."""
        progress = take(self.file) or {"sent": {}, "begun": None}
        if ask and progress["begun"]:
            reader = progress["begun"]
            progress = {"sent": {**progress["sent"], reader: ask(reader)}, "begun": None}
            put(self.file, progress)
        for reader in READERS:
            if reader in progress["sent"]:
                continue
            put(self.file, {**progress, "begun": reader})
            self.note(f"about to write to {reader}")
            progress = {"sent": {**progress["sent"], reader: self.send(reader)}, "begun": None}
            put(self.file, progress)
            self.note(f"wrote to {reader}")
        return {"readers": sorted(progress["sent"])}


def with_key(lab: Any) -> Any:
    """The letterbox knows each letter by a key, so sending again sends nothing."""
    return Mailer(lab.dir, lambda to: lab.effect("letter", key=f"letter-{to}", to=to), lab.save_point).run()


def without_key(lab: Any) -> Any:
    """Wrong: no key, and what was begun is begun again."""
    return Mailer(lab.dir, lambda to: lab.effect("letter", to=to), lab.save_point).run()


def honest(lab: Any) -> Any:
    """No key, so what was begun is given to a person."""
    return Mailer(lab.dir, lambda to: lab.effect("letter", to=to), lab.save_point).run(
        ask=lambda to: lab.unknown("letter", to=to)
    )


# --- coroutines -----------------------------------------------------------------------------------------------


async def fetch_all(lab: Any) -> Any:
    """Two tasks, each with a file of its own; what is there is not fetched again."""

    async def fetch(page: str) -> None:
        if take(lab.dir / f"{page}.json") is None:
            await asyncio.sleep(0)
            put(lab.dir / f"{page}.json", {"page": page, "words": len(page)})

    async with asyncio.TaskGroup() as group:
        for page in ("index", "contents"):
            group.create_task(fetch(page))
    return sorted(path.name for path in lab.dir.glob("*.json"))


async def fetch_all_in_place(lab: Any) -> Any:
    """Wrong: a file that is there counts as fetched, and is there before it is filled."""

    async def fetch(page: str) -> None:
        path = lab.dir / f"{page}.txt"
        if not path.exists():
            await asyncio.sleep(0)
            path.write_text(page)

    async with asyncio.TaskGroup() as group:
        for page in ("index", "contents"):
            group.create_task(fetch(page))
    return {path.name: path.read_text() for path in sorted(lab.dir.glob("*.txt"))}


# --- ends that are never the same, absolute paths, an environment ---------------------------------------------------


def stamped(lab: Any) -> Any:
    """Its end holds a name and a time that no other run has."""
    total = take(lab.dir / "total.json")
    if total is None:
        total = 6 * 7
        put(lab.dir / "total.json", total)
    return {"run": uuid.uuid4().hex, "ended": time.time(), "total": total}


def by_absolute_path(lab: Any) -> Any:
    """Writes down the whole path of its file, and follows it when it resumes."""
    if take(lab.dir / "where.json") is None:
        put(lab.dir / "answer.json", "by the door")
        put(lab.dir / "where.json", str(lab.dir / "answer.json"))
    where = take(lab.dir / "where.json")
    with open(where, encoding="utf-8") as file:
        return file.read()


def at_a_fixed_place(_: Any) -> Any:
    """Keeps its state in ``$MAILER_HOME`` and its log in ``$MAILER_LOG``, as it does in production."""
    import os  # noqa: PLC0415 - read where the program runs
    from pathlib import Path  # noqa: PLC0415 - the same

    home = Path(os.environ["MAILER_HOME"])
    home.mkdir(exist_ok=True)
    with open(os.environ["MAILER_LOG"], "a", encoding="utf-8") as log:
        log.write("started\n")
    put(home / "zone.json", os.environ["TZ"])
    return take(home / "zone.json")
