"""Stores into shared mappings: found page by page, in their place among the other ops."""

from __future__ import annotations

from typing import Any

from crashlab.record.strace.mapped import HOLD_US

MAP = """
fd = os.open("m", os.O_CREAT | os.O_RDWR); os.ftruncate(fd, 3 * 4096 + 100); m = mmap.mmap(fd, 3 * 4096 + 100)
"""


def held(run: Any, program: str) -> Any:
    """Record with every call held; longer where the decoder got its core too late, as a caller is told to do."""
    hold_us = HOLD_US
    while (recorded := run(program, hold_us=hold_us)).finished.late and hold_us < 32 * HOLD_US:
        hold_us *= 2
    return recorded


def stores(recorded: Any) -> list[tuple[Any, ...]]:
    """Every op after the file was made, pages by number."""
    return [
        (op.KIND, op.offset // 4096, len(op.data), op.sync) if op.KIND == "write" else (op.KIND,)
        for op in recorded.trace.ops[2:]
    ]


def test_a_mapping_is_only_noted_where_nobody_looks(run: Any) -> None:
    """Where no call is held the stores are not seen; the recording says so, and how to see them."""
    recorded = run(MAP + "m[0] = 65")
    assert recorded.finished.mapped
    assert recorded.unseen == ("dir/m was mapped into memory, shared and writable; its stores need hold_us",)


def test_a_private_or_read_only_mapping_is_nothing(run: Any) -> None:
    """What cannot store into the file is not noted."""
    recorded = run("""
with open("m", "wb") as file: file.write(b"x" * 5000)
fd = os.open("m", os.O_RDWR); mmap.mmap(fd, 5000, flags=mmap.MAP_PRIVATE)[0] = 1
mmap.mmap(fd, 5000, prot=mmap.PROT_READ)
""").prove()
    assert not recorded.finished.mapped


def test_stores_before_msync(run: Any) -> None:
    """The whole file synced is a barrier on it; a part synced forces its pages only."""
    recorded = held(
        run, MAP + "m[0] = 65; m[3 * 4096 + 5] = 66; m.flush(); m[4096] = 67; m[0] = 68; m.flush(4096, 4096)"
    ).prove()
    assert stores(recorded) == [
        ("write", 0, 4096, ""),
        ("write", 3, 100, ""),
        ("fsync",),
        ("write", 0, 4096, ""),
        ("write", 1, 4096, ""),
        ("write", 1, 4096, "data"),
    ]


def test_stores_without_msync(run: Any) -> None:
    """They show at munmap, at the end of the program, before an exec, and before any other op."""
    recorded = held(
        run,
        MAP
        + """
m[0] = 65; os.mkdir("d"); m[4096] = 66; m.close(); os.mkdir("e")
m = mmap.mmap(fd, 4096); m[1] = 1; os.close(fd); os.unlink("m"); m[2] = 2
if os.fork() == 0: m[3] = 3; os.execv("/bin/true", ["true"])
os.wait(); m[4] = 4
""",
    ).prove()
    assert [op.KIND for op in recorded.trace.ops[2:]] == [
        *("write", "mkdir", "write", "mkdir", "write", "unlink"),
        *("write", "write", "write"),
    ]


def test_stores_and_writes_to_one_file(run: Any) -> None:
    """A store is told before the call after it, also where both change the same page."""
    recorded = held(
        run,
        MAP
        + """
m[0] = 65; os.pwrite(fd, b"W", 1); m[1] = 66; os.fsync(fd); m[2] = 67
""",
    ).prove()
    data = [op.data[:3] if op.KIND == "write" else op.KIND for op in recorded.trace.ops[2:]]
    assert data == [b"A\0\0", b"W", b"AB\0", "fsync", b"ABC"]


def test_sqlite_with_a_log_is_seen(run: Any) -> None:
    """sqlite keeps the index of its log in a shared mapping."""
    recorded = held(
        run,
        """
import sqlite3
c = sqlite3.connect("db"); c.execute("pragma journal_mode=wal"); c.execute("create table t (a)")
for n in range(3): c.execute("insert into t values (?)", (n,)); c.commit()
c.close()
""",
    ).prove()
    assert {op.path for op in recorded.trace.ops if op.KIND == "write"} >= {"dir/db", "dir/db-wal", "dir/db-shm"}
