"""Stores, logs and programs for damage at rest: one planted fault each, beside correct twins.

Every function that is wrong says so; the tests name the kind that the lab must find.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from typing import TYPE_CHECKING, Any

from crashlab import Log, Store, Subject
from tests.quality.stores import ATOMIC, load_strict, save_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VALUES = ({"n": 1}, {"n": 2, "text": "a text " * 20}, {"n": 3})


class DamagedError(Exception):
    """The file is not what was written."""


# --- stores --------------------------------------------------------------------------------------


def _sealed(value: Any) -> dict[str, Any]:
    return {"version": 1, "sum": zlib.crc32(json.dumps([1, value]).encode()), "value": value}


def _opened(text: str) -> Any:
    """The value in ``text``; whatever is not exactly what :func:`_sealed` gave is refused."""
    try:
        form = json.loads(text)
        value = form["value"]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        message = "not whole"
        raise DamagedError(message) from error
    if text != json.dumps(_sealed(value)):
        message = "the checksum does not fit"
        raise DamagedError(message)
    return value


def save_sealed(directory: Path, value: Any) -> None:
    """With a checksum over the value and its version."""
    save_atomic(directory, _sealed(value))


def load_sealed(directory: Path) -> Any:
    """The value, None where no file is; all else is refused."""
    path = directory / "value.json"
    if not path.exists():
        return None
    try:
        return _opened(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        message = "no text"
        raise DamagedError(message) from error


def load_none_on_error(directory: Path) -> Any:
    """Wrong: damage counts as nothing there."""
    try:
        return load_sealed(directory)
    except DamagedError:
        return None


def load_says_nothing_there(directory: Path) -> Any:
    """Wrong: the error is the one of an empty directory, to the letter."""
    try:
        value = load_sealed(directory)
    except DamagedError:
        value = None
    if value is None:
        message = "nothing was saved"
        raise LookupError(message)
    return value


def load_says_damaged(directory: Path) -> Any:
    """One type of error for both, but told apart in words: that is loud enough."""
    path = directory / "value.json"
    if not path.exists():
        message = "nothing was saved"
        raise LookupError(message)
    try:
        return load_sealed(directory)
    except DamagedError as error:
        message = f"damaged: {error}"
        raise LookupError(message) from error


def load_unlinking(directory: Path) -> Any:
    """Wrong: the refusal removes what a person would have looked at."""
    try:
        return load_sealed(directory)
    except DamagedError:
        (directory / "value.json").unlink()
        raise


def load_moving_aside(directory: Path) -> Any:
    """Correct: what it refuses gets another name, and as long as that lies there nothing is loaded."""
    if (directory / "value.bad").exists():
        text = "value.bad was put aside for a person to look at"
        raise DamagedError(text)
    return load_moving_once(directory)


def load_moving_once(directory: Path) -> Any:
    """Wrong: refuses, and moves the file away; the next load finds nothing and begins anew."""
    try:
        return load_sealed(directory)
    except DamagedError:
        (directory / "value.json").rename(directory / "value.bad")
        raise


def load_exiting(directory: Path) -> Any:
    """Wrong: ends without a word."""
    try:
        return load_sealed(directory)
    except DamagedError:
        os._exit(0)


SMALL = Store(save_atomic, load_strict, values=[{"n": 1}, {"n": 2, "text": "a text"}])
SEALED = Store(save_sealed, load_sealed, values=VALUES)
SAYS_DAMAGED = Store(save_sealed, load_says_damaged, values=VALUES)


def save_twice(directory: Path, value: Any) -> None:
    """Two generations, each whole by itself: the older one takes the next value."""
    numbers = [_number(directory / name) for name in ("a.json", "b.json")]
    oldest = "a.json" if numbers[0] <= numbers[1] else "b.json"
    save_atomic(directory, _sealed([max(numbers) + 1, value]), oldest)


def _number(path: Path) -> int:
    try:
        return int(_opened(path.read_text())[0])
    except (OSError, ValueError, DamagedError):
        return 0


def load_older_silently(directory: Path) -> Any:
    """Wrong: where the newer generation is damaged the older one is given out as the truth."""
    found = []
    for name in ("a.json", "b.json"):
        try:
            found.append(_opened((directory / name).read_text()))
        except (OSError, ValueError, DamagedError):
            continue
    return max(found)[1] if found else None


def load_generations(directory: Path) -> Any:
    """The newer of two sound generations; a damaged one may have been the newer."""
    paths = [path for path in (directory / "a.json", directory / "b.json") if path.exists()]
    try:
        found = sorted(_opened(path.read_text()) for path in paths)
    except UnicodeDecodeError as error:
        message = "no text"
        raise DamagedError(message) from error
    numbers = [number for number, _ in found]
    whole = numbers in ([], [1]) or (len(numbers) == len(("a", "b")) and numbers[0] + 1 == numbers[1])
    if not whole:
        message = f"generations {numbers} do not follow each other"
        raise DamagedError(message)
    return found[-1][1] if found else None


# --- logs ----------------------------------------------------------------------------------------


def _lines(events: list[Any], first: int) -> bytes:
    lines = []
    for number, event in enumerate(events, first):
        text = json.dumps([number, event])
        lines.append(f"{zlib.crc32(text.encode())} {text}\n".encode())
    return b"".join(lines)


def _record(line: bytes) -> list[Any] | None:
    """Number and event of a line, None where it is none."""
    checksum, _, text = line.partition(b" ")
    if checksum != str(zlib.crc32(text)).encode():
        return None
    form: list[Any] = json.loads(text)
    return form


def _scan(directory: Path) -> tuple[list[list[Any] | None], int]:
    """Records and bad ones, and the length of the file without its bad end."""
    path = directory / "events.log"
    data = path.read_bytes() if path.exists() else b""
    *lines, _ = data.split(b"\n")
    records = [_record(line) for line in lines]
    sizes = [len(line) + 1 for line in lines]
    while records and records[-1] is None:
        records.pop()
        sizes.pop()
    return records, sum(sizes)


def append(directory: Path, events: list[Any]) -> None:
    """Cuts a bad end off first, then appends and syncs."""
    records, size = _scan(directory)
    with (directory / "events.log").open("ab") as file:
        file.truncate(size)
        file.write(_lines(events, max((record[0] for record in records if record is not None), default=-1) + 1))
        file.flush()
        os.fsync(file.fileno())


def _events(records: list[list[Any] | None]) -> Iterator[Any]:
    for number, record in enumerate(records):
        if record is None or record[0] != number:
            message = f"record {number} is damaged"
            raise DamagedError(message)
        yield record[1]


def load_log(directory: Path) -> list[Any]:
    """A bad end may be torn, and is left out; anything bad before a good record is refused."""
    return list(_events(_scan(directory)[0]))


def load_lazily(directory: Path) -> Iterator[Any]:
    """The good records first, then the error."""
    yield from _events(_scan(directory)[0])


def load_to_first_bad(directory: Path) -> list[Any]:
    """Wrong: stops at the first bad record, and is silent about the good ones behind it."""
    found = []
    for number, record in enumerate(_scan(directory)[0]):
        if record is None or record[0] != number:
            break
        found.append(record[1])
    return found


def append_to_sound(directory: Path, events: list[Any]) -> None:
    """Refuses to add to a log with a bad record in it."""
    load_log(directory)
    append(directory, events)


def load_without_bad(directory: Path) -> list[Any]:
    """Wrong: leaves a bad record out without a word."""
    return [record[1] for record in _scan(directory)[0] if record is not None]


def load_without_bad_and_say(directory: Path) -> list[Any]:
    """Leaves a bad record out, and says so; one that is there twice is given once."""
    found: dict[int, Any] = {}
    for place, record in enumerate(_scan(directory)[0]):
        if record is None or record[0] != place:
            print(f"events.log: the record at place {place} is not the one that was written", file=sys.stderr)  # noqa: T201 - the point of it
        if record is not None and record[0] not in found:
            found[record[0]] = record[1]
    return [found[number] for number in sorted(found)]


def append_and_count(directory: Path, events: list[Any]) -> None:
    """The log, then a mark of how many were promised."""
    append(directory, events)
    save_atomic(directory, _sealed(len(_scan(directory)[0])), "count.json")


def load_counted(directory: Path) -> list[Any]:
    """All that the mark promises, or an error."""
    found = load_log(directory)
    path = directory / "count.json"
    try:
        count = _opened(path.read_text()) if path.exists() else 0
    except UnicodeDecodeError as error:
        message = "the mark is no text"
        raise DamagedError(message) from error
    if len(found) < count or (not path.exists() and len(found) > len(BATCHES[0])):
        message = f"{len(found)} records, {count} were promised"
        raise DamagedError(message)
    return found


BATCHES = ([{"seq": 0}], [{"seq": 1, "text": "a text " * 10}], [{"seq": 2}, {"seq": 3}], [{"seq": 4}])
LOG = Log(append, load_log, values=BATCHES)
LAZY = Log(append, load_lazily, values=BATCHES)
SAYS_SO = Log(append, load_without_bad_and_say, values=BATCHES)
COUNTED = Log(append_and_count, load_counted, values=BATCHES)


# --- programs ------------------------------------------------------------------------------------


def _pay_all(lab: Any, *, keyed: bool) -> dict[str, Any]:
    paid = load_sealed(lab.dir) or 0
    while paid < 3:
        lab.effect("payment", key=f"invoice-{paid}" if keyed else None, number=paid)
        paid += 1
        save_sealed(lab.dir, paid)
        lab.ack(paid)
    return {"paid": paid}


def pay_by_file(lab: Any) -> dict[str, Any]:
    """Wrong: only the file knows what was paid, and an older file knows less."""
    return _pay_all(lab, keyed=False)


def pay_by_key(lab: Any) -> dict[str, Any]:
    """The outside world knows each payment by its key."""
    return _pay_all(lab, keyed=True)


def refuse(_lab: Any) -> None:
    """Wrong: refuses whatever it meets."""
    message = "I never resume"
    raise DamagedError(message)


def pay_anew_on_damage(lab: Any) -> dict[str, Any]:
    """Wrong: begins anew where its file cannot be read."""
    try:
        return _pay_all(lab, keyed=False)
    except DamagedError:
        save_sealed(lab.dir, 0)
        return _pay_all(lab, keyed=False)


def _pay_point_by_point(lab: Any, key: Callable[[int], str | None]) -> list[int]:
    """Each payment is a file of its own, so an older directory is a sound one; one with a gap is refused."""
    points = {path.name: _opened(path.read_text()) for path in sorted(lab.dir.glob("point-?"))}
    if points != {f"point-{n}": n for n in range(len(points))}:
        message = "a point is missing"
        raise DamagedError(message)
    for n in range(len(points), 4):
        lab.effect("payment", key=key(n), number=n)
        save_atomic(lab.dir, _sealed(n), f"point-{n}")
        lab.ack(n)
    return list(range(4))


def pay_points_by_key(lab: Any) -> list[int]:
    """The key of a payment is always the same."""
    return _pay_point_by_point(lab, lambda n: f"invoice-{n}")


def pay_points_by_new_keys(lab: Any) -> list[int]:
    """Wrong: a key that is drawn anew, so that the world does not know what it has done."""
    return _pay_point_by_point(lab, lambda _n: os.urandom(8).hex())


def pay_points_without_key(lab: Any) -> list[int]:
    """Where a whole directory is of an earlier moment, nobody can tell that more was paid."""
    return _pay_point_by_point(lab, lambda _n: None)


REFUSES_ALL = Subject(pay_by_key, refuse)
POINTS_BY_KEY = Subject(pay_points_by_key)
POINTS_WITHOUT_KEY = Subject(pay_points_without_key)
PAID_BY_KEY = Subject(pay_by_key)

FOUND: dict[str, tuple[Store | Log | Subject, str, set[str]]] = {
    "no checksum": (ATOMIC, "damage", {"accepted-damage"}),
    "none on error": (Store(save_sealed, load_none_on_error, values=VALUES), "damage", {"silent-reset"}),
    "damage told as nothing there": (
        Store(save_sealed, load_says_nothing_there, values=VALUES),
        "damage",
        {"silent-reset"},
    ),
    "moves what it refuses, and forgets": (
        Store(save_sealed, load_moving_once, values=VALUES),
        "damage:bit,damage:empty",
        {"silent-reset"},
    ),
    "unlinks what it refuses": (Store(save_sealed, load_unlinking, values=VALUES), "damage", {"evidence-destroyed"}),
    "exits in silence": (Store(save_sealed, load_exiting, values=VALUES), "damage:bit,damage:empty", {"lost"}),
    "older generation in silence": (Store(save_twice, load_older_silently, values=VALUES), "damage", {"lost"}),
    "stops at the first bad record": (Log(append, load_to_first_bad, values=BATCHES), "damage", {"lost"}),
    "stops in silence, but takes no more": (
        Log(append_to_sound, load_to_first_bad, values=BATCHES),
        "damage",
        {"lost"},
    ),
    "skips a bad record": (Log(append, load_without_bad, values=BATCHES), "damage", {"hole"}),
    "does not look at its mark": (
        Log(append_and_count, load_log, values=BATCHES),
        "damage:truncate,damage:stale",
        {"lost"},
    ),
    "an older file pays again": (Subject(pay_by_file), "damage:stale", {"duplicate-effect"}),
    "an older directory pays again": (Subject(pay_points_by_new_keys), "damage:restore", {"duplicate-effect"}),
    "begins anew": (Subject(pay_anew_on_damage), "damage:bit", {"silent-reset"}),
}
"""Subject, faults, and the kinds that must be found."""

CLEAN: dict[str, Store | Log | Subject] = {
    "checksum over all": SEALED,
    "one type of error, other words": SAYS_DAMAGED,
    "moves what it refuses, and goes on refusing": Store(save_sealed, load_moving_aside, values=VALUES),
    "two generations that count": Store(save_twice, load_generations, values=VALUES),
    "log that refuses": LOG,
    "log that refuses after the good ones": LAZY,
    "log that leaves out and says so": SAYS_SO,
    "log with a mark": COUNTED,
    "payments with a key": PAID_BY_KEY,
}
