"""Points: every save is a file of its own, ``points/<seq>.json``, and none is ever written over.

The number has eight digits or as many as it needs, and is read as a number: 100000000 comes after 99999999. The
newest point is the head; there is no pointer file that could say something else. A point gets its bytes under a
temporary name, is synced, and then gets its name by link(2), which refuses a name that is taken: so of two writers that
make the same number one is told, whatever they knew of each other. A name therefore never leads to half a
point, and what is no whole point is damage.

What is refused, and why nothing is skipped: a head that is damaged (an older point knows nothing of what was done
after it), a name that is not the number's own (two files could be one point), a gap in the numbers (no writer leaves
one). Not seen is an older point that is damaged, until somebody goes back to it, and a head that is gone whole: to its
directory that is a kill before its save, except where the ledger says more. Nor is a whole older directory
that somebody put back: a kill leaves the same, none of its files can tell of more, and the world has gone on meanwhile
(measured: of 414 states of ``damage:restore`` 13 send a reply again, which has no key; they count as undetectable).

The cost: a save and a load list the names of the folder and write or read one point. They read no other point.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

from longrun import files
from longrun.errors import Damaged, LostLease, UsageError
from longrun.lease import Lease, epoch_at
from longrun.ledger import LEDGER_NAME
from longrun.protocol import CHECKPOINT_NAME, decode, encode_in_pieces

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint

POINTS_NAME = "points"
FORKS_NAME = "forks"
_DIGITS = 8
_POINT = re.compile(r"([0-9]+)\.json")


def name_of(seq: int) -> str:
    """The file name of a point.

    >>> name_of(7), name_of(123456789)
    ('00000007.json', '123456789.json')
    """
    return f"{seq:0{_DIGITS}d}.json"


def path_of(directory: Path, seq: int) -> Path:
    """Where the point ``seq`` of ``directory`` is kept."""
    return directory / POINTS_NAME / name_of(seq)


def run_of(directory: Path) -> Path:
    """The directory of the run: that of a fork lies in it, any other is one itself."""
    return directory.parent.parent if is_fork(directory) else directory


def is_fork(directory: Path) -> bool:
    """Whether this is the directory of a fork, ``forks/<name>``."""
    return directory.parent.name == FORKS_NAME


def numbers(directory: Path) -> list[int]:
    """The numbers of all points, smallest first. Raises Damaged for a foreign name and for a gap."""
    folder = directory / POINTS_NAME
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    found = sorted(int(point[1]) for name in names if (point := _POINT.fullmatch(name)))
    for wanted, number in enumerate(found, found[0] if found else 0):
        if number != wanted:
            raise Damaged(folder, f"point {min(number, wanted)} is there twice, or {wanted} is missing before {number}")
    if odd := next((name for name in map(name_of, found) if name not in names), None):
        raise Damaged(folder / odd, "this point is there under another name than its own")
    return found


def read_point(directory: Path, seq: int) -> Checkpoint:
    """One point. Raises Damaged where it is not what was written, UsageError where there is none."""
    path = path_of(directory, seq)
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        text = f"there is no point {seq} in {path.parent}"
        raise UsageError(text) from error
    point = decode(data, path)
    if point.seq != seq:
        raise Damaged(path, f"it holds point {point.seq}")
    return point


def load(directory: Path) -> Checkpoint | None:
    """The head: the point with the highest number. None where there is none. Raises Damaged or UnsupportedVersion.

    A fork begins with a point, so one without any was never finished, or has lost them: Damaged.
    """
    found = numbers(directory)
    if found:
        return read_point(directory, found[-1])
    if is_fork(directory):
        raise Damaged(
            directory / POINTS_NAME, "no point: the fork was never finished (then make it again), or lost all"
        )
    return None


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Add a point; it is durable when this returns.

    Raises LostLease where its number is taken: another writer went on from the same point. Raises OSError, and then
    takes back what it did, if it can and nobody has gone on from it: what is the head now, a load tells.
    """
    path = path_of(directory, checkpoint.seq)
    make_folder(path.parent)
    temporary = files.temporary_name(path)
    try:
        files.write_new(
            temporary, *encode_in_pieces(checkpoint), sync=True
        )  # a durable name must not lead to absent data
        os.link(temporary, path)  # unlike a rename this writes over nothing
    except OSError as error:
        with contextlib.suppress(OSError):  # the first failure is the one to report
            os.unlink(temporary)
        if isinstance(error, FileExistsError):
            text = f"{path}: another writer has saved this point. Nothing more was written."
            raise LostLease(text) from error
        raise
    try:
        with contextlib.suppress(FileNotFoundError):  # who holds that it owns the directory may have cleared it away
            os.unlink(temporary)
        files.sync_directory(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            if numbers(directory)[-1] == checkpoint.seq:  # a gap would be worse than a point too many
                os.unlink(path)
        raise


def make_folder(folder: Path) -> None:
    """Make a folder, durably; leave one that is there."""
    if folder.is_dir():
        return
    folder.mkdir(exist_ok=True)
    try:
        files.sync_directory(folder.parent)
    except OSError:
        with contextlib.suppress(OSError):  # or a retry would find it and not sync it
            folder.rmdir()
        raise


def clear(directory: Path) -> None:
    """Remove what killed processes left, and make the names that were read durable. Only under the lease."""
    folder = directory / POINTS_NAME
    make_folder(folder)
    for each in (directory, folder):
        files.remove_temporary(each)
        files.sync_directory(each)


def history(directory: Path) -> list[str]:
    """What a plain start would write over."""
    held = [name for name in (CHECKPOINT_NAME, LEDGER_NAME) if (directory / name).exists()]
    return [*([POINTS_NAME] if numbers(directory) else []), *held]


def stored_epoch(directory: Path) -> int | None:
    """The ``writer_epoch`` of the head, None where there is none."""
    found = numbers(directory)
    return epoch_at(path_of(directory, found[-1])) if found else None


def take(directory: Path) -> Lease:
    """The lease of a directory with points. Raises LeaseHeld."""
    return Lease.take(directory, epoch_of=stored_epoch)


def convert(directory: Path) -> None:
    """Refuse a directory whose run is kept in one file, before anything is begun beside it. Raises Damaged."""
    path = directory / CHECKPOINT_NAME
    if path.exists():
        raise Damaged(path, "this run is kept in one file, not in points: resume it as such")
