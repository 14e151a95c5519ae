"""Each call that changes files, made by a small program: the ops that are told, and the proof."""

from __future__ import annotations

from typing import Any


def test_a_file_is_made_and_written(run: Any) -> None:
    """A new file, a write, one at a place, a gathered one, and one that appends at the real end."""
    recorded = run("""
fd = os.open("a", os.O_CREAT | os.O_RDWR, 0o640)
os.write(fd, b"hello"); os.pwrite(fd, b"J", 0); os.writev(fd, [b" ", b"world"])
os.lseek(fd, 2, 0); os.read(fd, 1); os.write(fd, b"L")
with open("a", "ab") as file: file.write(b"!")
""").prove()
    assert recorded.ops == [
        ("create", "dir/a", 0o640),
        ("write", "dir/a", 0, b"hello"),
        ("write", "dir/a", 0, b"J"),
        ("write", "dir/a", 5, b" world"),
        ("write", "dir/a", 3, b"L"),
        ("write", "dir/a", 11, b"!"),
    ]
