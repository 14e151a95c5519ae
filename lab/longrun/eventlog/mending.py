"""Making the files fit for the next append: the torn tail is kept apart and cut off, the last line gets its end.

What was read and not promised may be in the page cache only: of a process that was killed before its sync, or of one
whose sync failed. After that the pages count as clean, and no later sync writes them; on ext4 not even writing them
again helps, where the blocks were new (measured, see FAULT_MODEL.md, X5). So whoever builds on such records writes
them into a new file first, which takes the place of the segment whole. A crash in the middle leaves one or the other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from longrun.eventlog.segments import keep_torn, segment_path
from longrun.files import sync_directory, temporary_name, write_new

if TYPE_CHECKING:
    from longrun.eventlog.scan import Scan


def mend(scan: Scan) -> None:
    """Carry it out; the scan then describes what is there."""
    for number in scan.spare:
        os.unlink(segment_path(scan.directory, number))
    if scan.tail:  # evidence, whoever may want to look at it
        keep_torn(scan.directory, scan.good + 1, scan.tail)
    if scan.good > scan.promised:
        _renew(scan)
    elif scan.tail or not scan.ends:
        _shorten(scan)
    sync_directory(scan.directory)
    scan.tail, scan.spare = b"", []


def _renew(scan: Scan) -> None:
    """Put a new file, with all that is good, in the place of the segment."""
    path = segment_path(scan.directory, scan.segment)
    with path.open("rb") as file:
        data = file.read(scan.size)
    if not scan.ends:
        data, scan.ends = data + b"\n", True
        scan.size = len(data)
    temporary = temporary_name(path)
    write_new(temporary, data, sync=True)
    os.rename(temporary, path)


def _shorten(scan: Scan) -> None:
    """Cut the tail off, and end the last line, in place: what is kept was promised, so it is on the disk."""
    descriptor = os.open(segment_path(scan.directory, scan.segment), os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, scan.size)
        if not scan.ends:
            os.pwrite(descriptor, b"\n", scan.size)
            scan.size, scan.ends = scan.size + 1, True
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
