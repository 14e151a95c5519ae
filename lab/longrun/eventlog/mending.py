"""Making the files fit for the next append: the torn tail is kept apart and cut off, the last line gets its end.

Whatever is read and was not promised is written once more. It may be in the page cache only: of a process that was
killed before its sync, or of one whose sync failed, after which the pages count as clean and no later sync writes
them. Over the same bytes this is harmless, and a crash in the middle of it leaves what was there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from longrun.eventlog.segments import keep_torn, segment_path
from longrun.files import sync_directory

if TYPE_CHECKING:
    from longrun.eventlog.scan import Scan


def mend(scan: Scan) -> None:
    """Carry it out; the scan then describes what is there."""
    for number in scan.spare:
        os.unlink(segment_path(scan.directory, number))
    cut(scan)
    descriptor = os.open(segment_path(scan.directory, scan.segment), os.O_RDWR | os.O_CLOEXEC)
    try:
        if scan.tail:
            os.ftruncate(descriptor, scan.size)
        renew(scan, descriptor)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(scan.directory)
    scan.tail, scan.spare = b"", []


def cut(scan: Scan) -> None:
    """Keep the torn tail in a file of its own: it is evidence, whoever may want to look at it."""
    if scan.tail:
        keep_torn(scan.directory, scan.good + 1, scan.tail)


def renew(scan: Scan, descriptor: int) -> None:
    """Write again what nobody was promised, and the LF of the last line."""
    first = next((at for at in range(len(scan.records)) if scan.records[at].seq > scan.promised), None)
    if first is not None and scan.places[first][0] == scan.segment:
        offset = scan.places[first][1]
        os.pwrite(descriptor, os.pread(descriptor, scan.size - offset, offset), offset)
    if not scan.ends:
        os.pwrite(descriptor, b"\n", scan.size)
        scan.size, scan.ends = scan.size + 1, True
