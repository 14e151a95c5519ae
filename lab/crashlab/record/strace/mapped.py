"""Stores into shared mappings: found by comparing pages at each traced call that a program makes.

No system call shows a store. So that the pages can be looked at while the program stands still,
strace holds every call at its entry, by default for :data:`HOLD_US`, and the line of that call is in the pipe before
(measured with strace 6.1). That costs too much to do always: where it is off, a mapping is only
noted. A comparison that may have come too late is noted too.

Each changed page is one op, told before the call that comes after the store. Not covered: a kill *between*
two calls, which may leave any subset of the pages stored since (FAULT_MODEL, table of ops): the trace
has the pages one by one in ascending order, so of these subsets it knows the prefixes. A file whose
descriptor was not seen being opened, and an address range that another mapping replaces, are not followed.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.record.proof import is_rebuilt

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.record.strace.decoder import Decoder
    from crashlab.record.strace.lines import Call
    from crashlab.record.strace.mirror import Node
    from crashlab.record.strace.processes import Memory, Process

HOLD_US = 5000
"""Long enough for a decoder that gets a core when it needs one; a caller may hold longer after a late comparison."""
PAGE_BYTES = 4096


@dataclass(eq=False, slots=True)
class Mapping:
    """A shared mapping of a traced file. ``file`` is the lab's own descriptor of it."""

    node: Node
    path: str
    length: int
    offset: int
    file: int
    writable: bool


def compare_all(decoder: Decoder, process: Process | None, time_ns: int) -> None:
    """Tell every page that was stored to since the last comparison; the call that began at ``time_ns`` waits."""
    seen: set[int] = set()
    stood = False
    owners = {id(each.memory): each for each in decoder.processes.values()}
    for owner in owners.values():
        teller = process if process is not None and process.memory is owner.memory else owner
        for mapping in list(owner.memory.mappings.values()):
            if mapping.writable and id(mapping) not in seen:
                seen.add(id(mapping))
                stood = _compare(decoder, teller, mapping) or stood
    if stood and time.time_ns() - time_ns > decoder.delay_ns:
        decoder.late = True
        decoder.note("stores into a mapping were compared too late: their place among the ops is not certain")


def _compare(decoder: Decoder, process: Process, mapping: Mapping) -> bool:
    node, told = mapping.node, False
    end = min(mapping.offset + mapping.length, node.data.size)
    for offset in range(mapping.offset, end, PAGE_BYTES):
        size = min(PAGE_BYTES, end - offset)
        now = os.pread(mapping.file, size, offset)
        if len(now) == size and now != node.data.read(offset, size):
            told = True
            node.data.write(offset, now)
            node.mtime_ns = None
            node.stored.add(offset // PAGE_BYTES)
            fields = {"offset": offset, "data": now, "time_ns": time.time_ns()}
            decoder.tell(process, t.Write, path=mapping.path, inode=node.number, **fields)
    return told


def left(decoder: Decoder, process: Process, memory: Memory) -> None:
    """A process has left its address space, by its end or an exec; the last one to leave takes the mappings along."""
    if any(each.memory is memory for each in decoder.processes.values()):
        return
    mappings = list(memory.mappings.values())
    memory.mappings.clear()
    for mapping in mappings:
        if mapping.writable and decoder.delay_ns and _compare(decoder, process, mapping):
            decoder.note(f"{mapping.path}: stores were found only after their process had ended")
        _release(decoder, mapping)


def _release(decoder: Decoder, mapping: Mapping) -> None:
    used = any(mapping is each for process in decoder.processes.values() for each in process.memory.mappings.values())
    if mapping.file >= 0 and not used:
        os.close(mapping.file)
        mapping.file = -1


def _mmap(decoder: Decoder, process: Process, call: Call) -> None:
    if not {"MAP_SHARED", "MAP_SHARED_VALIDATE"} & call.flags(3) or "MAP_ANONYMOUS" in call.flags(3):
        return
    writable = "PROT_WRITE" in call.flags(2)
    description = decoder.opened(process, call, 4, changing=writable)
    if description is None or description.node is None or "O_RDWR" not in description.flags:
        return
    path, fd = description.path, call.number(4)
    if is_rebuilt(path, decoder.rebuilt):
        return
    if not decoder.delay_ns:
        if writable:
            decoder.mapped = True
            decoder.note(f"{path} was mapped into memory, shared and writable; its stores need hold_us")
            return
        file = -1
    else:
        try:
            file = os.open(f"/proc/{process.pid}/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            decoder.note(f"the file {path}, mapped into memory, could not be looked at: {error}")
            return
        if time.time_ns() - call.time_ns > 2 * decoder.delay_ns:  # held at its entry and at its return
            decoder.late = True
            decoder.note(f"the file {path}, mapped into memory, was looked at too late")
    assert call.result is not None
    offset = int(call.args[5], 16) if "0x" in call.args[5] else int(call.args[5])
    mapping = Mapping(description.node, path, call.number(1), offset, file, writable)
    process.memory.mappings[call.result] = mapping


def _mprotect(decoder: Decoder, process: Process, call: Call) -> None:
    if "PROT_WRITE" not in call.flags(2):
        return
    start, end = call.number(0), call.number(0) + call.number(1)
    for address, mapping in process.memory.mappings.items():
        if address < end and start < address + mapping.length:
            mapping.writable = True
            if not decoder.delay_ns:
                decoder.mapped = True
                decoder.note(f"{mapping.path} was mapped into memory, shared and writable; its stores need hold_us")


def _munmap(decoder: Decoder, process: Process, call: Call) -> None:
    start, end = call.number(0), call.number(0) + call.number(1)
    for address, mapping in list(process.memory.mappings.items()):
        if start <= address and address + mapping.length <= end:  # a part that goes leaves the rest to be compared
            del process.memory.mappings[address]
            _release(decoder, mapping)


def _mremap(_decoder: Decoder, process: Process, call: Call) -> None:
    mapping = process.memory.mappings.pop(call.number(0), None)
    if mapping is not None and call.result is not None:
        mapping.length = call.number(2)
        process.memory.mappings[call.result] = mapping


def _msync(decoder: Decoder, process: Process, call: Call) -> None:
    """MS_SYNC is a barrier for the pages of its range only.

    Where that is the whole file it is told as ``fdatasync``; else as synchronous writes of the pages
    that were stored since the last barrier, with the bytes that they have: the weaker of the two.
    """
    if "MS_SYNC" not in call.flags(2):
        return
    start = call.number(0)
    for address, mapping in process.memory.mappings.items():
        if not address <= start < address + mapping.length:
            continue
        node = mapping.node
        first = mapping.offset + start - address
        end = min(first + call.number(1), node.data.size)
        if first == 0 and end == node.data.size:
            node.stored.clear()
            decoder.tell(process, t.Fsync, path=mapping.path, inode=node.number, data_only=True)
            return
        pages = sorted(page for page in node.stored if first <= page * PAGE_BYTES < end)
        node.stored.difference_update(pages)
        for page in pages:
            fields = {"offset": page * PAGE_BYTES, "data": node.data.read(page * PAGE_BYTES, PAGE_BYTES)}
            decoder.tell(process, t.Write, path=mapping.path, inode=node.number, sync="data", **fields)


CALLS: dict[str, Callable[[Decoder, Process, Call], None]] = {
    "mmap": _mmap,
    "mprotect": _mprotect,
    "munmap": _munmap,
    "mremap": _mremap,
    "msync": _msync,
}
