"""Whether a submission does the same when nobody records it: two runs are watched from outside, and compared.

A submission may find out that it is recorded, and then work well. All states of a check follow from what it did then.
So it runs once more in a process that the lab neither patches nor traces; the kernel tells from outside which files
were made, written, renamed and removed. Where that is something else than beside the recorder, no case is a pass.

Of barriers inotify does not tell: with strace :mod:`crashcourse.outside_view` does.

Seen are the files right in the three places of the lab (``dir``, ``home``, ``tmp``), not those of directories below.
Names that only one run has (random ones) count as the same. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import struct
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

from crashcourse import outside_view
from crashcourse.folders import temporary
from crashlab.errors import LabError
from crashlab.recover import guest, place, travel
from crashlab.recover.wire import BOOTSTRAP
from crashlab.report.model import UnmeasuredReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from crashlab.report.model import Report
    from crashlab.subject import AnySubject

LIMIT_S = 60.0
_KINDS = {0x2: "write", 0x8: "close", 0x40: "move from", 0x80: "move to", 0x100: "create", 0x200: "delete"}
_HEAD = struct.Struct("iIII")
_QUEUE_BYTES = 1 << 22
Change = tuple[str, str, str]
"""What happened, in which place, to which name."""


def demanded(report: Report, subject: AnySubject) -> Report:
    """The report, unmeasured where the subject does something else when it is not recorded, or by another recorder."""
    if sys.platform != "linux" or report.settings.recorder == "strace":
        return report
    text = difference(subject) or outside_view.difference(subject)
    if not text:
        return report
    reason = UnmeasuredReason(code="runs-differ", detail=text, next="Do the same whoever watches.")
    return dataclasses.replace(report, unmeasured=(*report.unmeasured, reason))


def difference(subject: AnySubject) -> str:
    """The first changes in which the two runs differ; nothing where they agree, or where no two runs do."""
    form = travel.pack(subject)
    recorded, plain = (_changes(form, recorded=each) for each in (True, False))
    told = _told(recorded, plain)
    if not told or _told(plain, _changes(form, recorded=False)):
        return ""
    return f"a run that nobody records changes other files than a recorded one: {told}"


def _told(one: Sequence[Change], other: Sequence[Change]) -> str:
    common = {change[1:] for change in one} & {change[1:] for change in other}
    first, second = (
        Counter((kind, where, name if (where, name) in common else "*") for kind, where, name in each)
        for each in (one, other)
    )
    odd = [f"{kind} {where}/{name}" for kind, where, name in sorted((first - second) | (second - first))]
    return ", ".join(odd[:3])


def _changes(form: dict[str, Any], *, recorded: bool) -> list[Change]:
    """Run it once and see what changes. Raises LabError where the run cannot be started."""
    with (
        _started(form, recorded=recorded) as (process, root),
        _watching(f"/proc/{process.pid}/root{root}") as (queue, places),
    ):
        _let_go(process)
        return _collapsed(list(_read(queue, places)))


def _let_go(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(b"g", timeout=LIMIT_S)


@contextlib.contextmanager
def _started(form: dict[str, Any], *, recorded: bool) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The process, ready to run and waiting for the word, and the root of its places; it is ended afterwards."""
    somebody = guest.current()
    with temporary() as folder:
        reader, writer = os.pipe()
        asked = {
            "guest": somebody.form() if somebody else None,
            "temporary": somebody.temporary if somebody else folder,
            "subject": form,
            "recorded": recorded,
            "saying": writer,
        }
        command = [sys.executable, "-I", "-c", BOOTSTRAP, json.dumps(sys.path), "crashcourse.plain", json.dumps(asked)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[writer],
            start_new_session=True,
        )
        os.close(writer)
        try:
            with open(reader, "rb") as said:
                root = said.readline().decode().rstrip("\n")
            if not root:
                text = "the run that nobody records could not be started"
                raise LabError(text)
            yield process, root
        finally:
            process.kill()
            process.communicate()


@contextlib.contextmanager
def _watching(root: str) -> Iterator[tuple[int, dict[int, str]]]:
    """An inotify queue on the three places below ``root``."""
    library = ctypes.CDLL(None, use_errno=True)
    queue = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if queue < 0:
        text = f"inotify: {os.strerror(ctypes.get_errno())}"
        raise LabError(text)
    try:
        places = {}
        for name in place.PLACES:
            number = library.inotify_add_watch(queue, f"{root}/{name}".encode(), sum(_KINDS))
            if number < 0:
                text = f"inotify on {name}: {os.strerror(ctypes.get_errno())}"
                raise LabError(text)
            places[number] = name
        yield queue, places
    finally:
        os.close(queue)


def _read(queue: int, places: dict[int, str]) -> Iterator[Change]:
    """All that is in the queue."""
    parts = []
    with contextlib.suppress(BlockingIOError):
        while part := os.read(queue, _QUEUE_BYTES):
            parts.append(part)
    for data in parts:
        at = 0
        while at < len(data):
            number, mask, _, size = _HEAD.unpack_from(data, at)
            name = data[at + _HEAD.size : at + _HEAD.size + size].rstrip(b"\0")
            at += _HEAD.size + size
            kind = _KINDS.get(mask & sum(_KINDS), "")
            if kind and number in places:
                yield kind, places[number], os.fsdecode(name)


def _collapsed(changes: list[Change]) -> list[Change]:
    """Several writes in a row are one: into how many calls they are divided may depend on the recorder."""
    return [each for number, each in enumerate(changes) if not number or each != changes[number - 1]]
