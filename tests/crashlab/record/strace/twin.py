"""A random workload as a program: run plainly, for strace to watch, or recorded from the inside.

``python twin.py plain|inside ROOT``; the steps come as JSON on standard input, and ``inside`` writes
its ops as JSON lines to standard output.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

FLAGS = [
    os.O_RDWR,
    os.O_RDWR | os.O_CREAT,
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    os.O_RDWR | os.O_CREAT | os.O_DSYNC,
    os.O_RDWR | os.O_CREAT | os.O_SYNC | os.O_APPEND,
    os.O_RDONLY,
]


def step(descriptors: list[int], call: str, args: Sequence[Any]) -> None:  # noqa: C901, PLR0912, PLR0915 - a table
    """Do one step; ``args`` are small numbers and names."""
    a, b = args[0], args[1]
    n, m = args[2], args[3]
    fd = descriptors[n % len(descriptors)] if descriptors else -1
    match call:
        case "open":
            descriptors.append(os.open(a, FLAGS[n % len(FLAGS)], 0o600 + m % 64))
        case "nameless":
            descriptors.append(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640))
        case "name":
            os.link(f"/proc/self/fd/{fd}", f"n{n}-{m}", src_dir_fd=fd, follow_symlinks=True)
        case "dup":
            descriptors.append(os.dup(fd))
        case "close":
            os.close(descriptors.pop(n % len(descriptors)))
        case "write":
            os.write(fd, bytes([m % 256]) * (m * 37 % 9000))
        case "writev":
            os.writev(fd, [b"v" * (m % 5000), b"", b"w" * n])
        case "pwrite":
            os.pwrite(fd, b"p" * n, m * 11)
        case "pwritev":
            os.pwritev(fd, [b"q" * n], m, os.RWF_DSYNC)
        case "seek":
            os.lseek(fd, m, n % 3)
        case "read":
            os.read(fd, m)
        case "file":
            with open(a, ("w", "a", "r+", "x")[n % 4], encoding="ascii") as file:
                file.write("t" * m)
        case "ftruncate":
            os.ftruncate(fd, m * 17)
        case "truncate":
            os.truncate(a, m)
        case "allocate":
            os.posix_fallocate(fd, n, m * 3 + 1)
        case "sendfile":
            source = descriptors[m % len(descriptors)]
            if not os.path.sameopenfile(fd, source):  # nobody can tell what that copies
                os.sendfile(fd, source, n, m)
        case "copy":
            os.copy_file_range(descriptors[m % len(descriptors)], fd, m)
        case "fsync":
            (os.fsync, os.fdatasync)[m % 2](fd)
        case "times":
            os.utime(a, ns=(1, m * 1000))
        case "chmod":
            os.chmod(a, 0o600 + m % 64)
        case "attribute":
            os.setxattr(a, "user.a", bytes([m % 3]))
        case "mkfifo" | "mkdir" | "rmdir" | "unlink" | "chdir":
            getattr(os, call)(a)
        case _:
            getattr(os, call)(a, b)  # rename, link, symlink


def main() -> None:
    """Run the steps."""
    how, root = sys.argv[1:]
    steps = json.load(sys.stdin)
    lines: list[str] = []
    if how == "inside":
        from crashlab import directory, trace  # noqa: PLC0415 - the plain program knows nothing of the lab
        from crashlab.record.python import RECORDER  # noqa: PLC0415 - as above

        RECORDER.install()
        _, numbers = directory.read_numbered(root)
        RECORDER.start(root=root, numbers=numbers, emit=lambda op: lines.append(json.dumps(trace.op_to_json(op))))
    descriptors: list[int] = []
    for call, *args in steps:
        try:
            step(descriptors, call, args)
        except (OSError, ValueError, IndexError, ZeroDivisionError):
            continue
    if how == "inside":
        watched = RECORDER.stop()
        sys.stdout.write(json.dumps({"ops": [json.loads(line) for line in lines], "unseen": watched.unseen}))


if __name__ == "__main__":
    main()
