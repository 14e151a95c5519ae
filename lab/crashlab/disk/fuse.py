"""The few words of the FUSE protocol that a file system of two flat files needs.

The kernel's end is ``/dev/fuse``: one read gives one request, one write one reply. Layouts and
numbers are those of ``include/uapi/linux/fuse.h``, protocol 7.31 and later.

Not modelled: everything that a block device in a file never asks for (names made or removed, locks,
attributes, readahead). Such a request is answered with ENOSYS, which the kernel remembers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE = 1, 2, 3, 14, 15, 16
STATFS, RELEASE, FSYNC, FLUSH, INIT = 17, 18, 20, 25, 26
INTERRUPT, DESTROY, BATCH_FORGET = 36, 38, 42
WITHOUT_REPLY = frozenset({FORGET, BATCH_FORGET, INTERRUPT})

MAX_WRITE_BYTES = 1 << 20
REQUEST_BYTES = MAX_WRITE_BYTES + (1 << 16)
"""Room for the largest request."""

ROOT_NODE = 1

_REQUEST = struct.Struct("<IIQQIIIHH")
_REPLY = struct.Struct("<IiQ")
_INIT = struct.Struct("<IIIIHHIIHHII24x")
_ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
_ENTRY = struct.Struct("<QQQQII")
_ATTRIBUTES_VALID = struct.Struct("<QII")
_OPEN = struct.Struct("<QIi")
_TRANSFER = struct.Struct("<QQIIQII")
_WRITTEN = struct.Struct("<II")
_STATFS = struct.Struct("<QQQQQIII28x")

_ASYNC_READ, _ASYNC_DIO, _MAX_PAGES, _BIG_WRITES = 1 << 0, 1 << 15, 1 << 22, 1 << 5
_DIRECT_IO, _PARALLEL_DIRECT_WRITES = 1 << 0, 1 << 6
_PAGE_BYTES = 4096
_IN_FLIGHT = 4096
"""So many requests may wait for their reply: writes that are held back must not stop the others."""
_FOR_EVER_S = 1 << 30


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the kernel; ``body`` is valid until the next one is read."""

    opcode: int
    unique: int
    node: int
    body: memoryview


def request_of(buffer: memoryview) -> Request:
    """The request that fills ``buffer``."""
    _, opcode, unique, node, *_ = _REQUEST.unpack_from(buffer)
    return Request(opcode, unique, node, buffer[_REQUEST.size :])


def transfer_of(body: memoryview) -> tuple[int, int, memoryview]:
    """Offset, length in bytes and data of a READ or WRITE."""
    _, offset, size, *_ = _TRANSFER.unpack_from(body)
    return offset, size, body[_TRANSFER.size : _TRANSFER.size + size]


def reply(unique: int, payload: bytes = b"", error: int = 0) -> bytes:
    """A whole reply; ``error`` is a positive errno."""
    return _REPLY.pack(_REPLY.size + len(payload), -error, unique) + payload


def init_payload(body: memoryview) -> bytes:
    """What we can do, and that many writes may be on their way at once."""
    major, minor, readahead, flags = struct.unpack_from("<IIII", body)
    wanted = flags & (_ASYNC_READ | _ASYNC_DIO | _MAX_PAGES | _BIG_WRITES)
    pages = MAX_WRITE_BYTES // _PAGE_BYTES
    return _INIT.pack(
        major, min(minor, 31), readahead, wanted, _IN_FLIGHT, _IN_FLIGHT, MAX_WRITE_BYTES, 1, pages, 0, 0, 0
    )


def _attributes(node: int, size: int) -> bytes:
    mode = 0o040700 if node == ROOT_NODE else 0o100600
    return _ATTRIBUTES.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, _PAGE_BYTES, 0)


def entry_payload(node: int, size: int) -> bytes:
    """The answer to LOOKUP."""
    return _ENTRY.pack(node, 0, _FOR_EVER_S, _FOR_EVER_S, 0, 0) + _attributes(node, size)


def attributes_payload(node: int, size: int) -> bytes:
    """The answer to GETATTR."""
    return _ATTRIBUTES_VALID.pack(_FOR_EVER_S, 0, 0) + _attributes(node, size)


def open_payload() -> bytes:
    """The answer to OPEN: past the page cache, and writes side by side."""
    return _OPEN.pack(0, _DIRECT_IO | _PARALLEL_DIRECT_WRITES, 0)


def written_payload(size: int) -> bytes:
    """The answer to WRITE."""
    return _WRITTEN.pack(size, 0)


def statfs_payload() -> bytes:
    """The answer to STATFS."""
    return _STATFS.pack(0, 0, 0, 2, 0, _PAGE_BYTES, 255, _PAGE_BYTES)
