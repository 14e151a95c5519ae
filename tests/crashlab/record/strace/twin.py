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


def step(descriptors: list[int], call: str, args: Sequence[Any]) -> None:
    """Do one step; ``args`` are two names and two small numbers."""
    a, b, n, m = args
    if (by_name := BY_NAME.get(call)) is not None:
        by_name(a, n, m)
        return
    if call in ("rename", "link", "symlink"):
        getattr(os, call)(a, b)
        return
    if call == "open":
        descriptors.append(os.open(a, FLAGS[n % len(FLAGS)] | os.O_NONBLOCK, 0o600 + m % 64))
    elif call == "nameless":
        descriptors.append(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640))
    else:
        fd = descriptors[n % len(descriptors)]
        if call == "dup":
            descriptors.append(os.dup(fd))
        elif call == "close":
            os.close(descriptors.pop(n % len(descriptors)))
        else:
            BY_DESCRIPTOR[call](fd, n, m, descriptors[m % len(descriptors)])


def at_once(path: str, flags: int) -> int:
    """Open without waiting: the name may be a FIFO that nobody reads."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def file(a: str, n: int, m: int) -> None:
    """Write through the buffers of a file object."""
    with open(a, ("w", "a", "r+", "x")[n % 4], encoding="ascii", opener=at_once) as opened:
        opened.write("t" * m)


def sendfile(fd: int, n: int, m: int, source: int) -> None:
    """Send a part of one file to another; nobody can tell what it would copy into itself."""
    if not os.path.sameopenfile(fd, source):
        os.sendfile(fd, source, n, m)


BY_NAME: dict[str, Any] = {
    "file": file,
    "truncate": lambda a, _, m: os.truncate(a, m),
    "times": lambda a, _, m: os.utime(a, ns=(1, m * 1000)),
    "chmod": lambda a, _, m: os.chmod(a, 0o600 + m % 64),
    "attribute": lambda a, _, m: os.setxattr(a, "user.a", bytes([m % 3])),
    "mkfifo": lambda a, *_: os.mkfifo(a),
    "mkdir": lambda a, *_: os.mkdir(a),
    "rmdir": lambda a, *_: os.rmdir(a),
    "unlink": lambda a, *_: os.unlink(a),
    "chdir": lambda a, *_: os.chdir(a),
}
BY_DESCRIPTOR: dict[str, Any] = {
    "name": lambda fd, n, m, _: os.link(f"/proc/self/fd/{fd}", f"n{n}-{m}", src_dir_fd=fd, follow_symlinks=True),
    "write": lambda fd, _n, m, _: os.write(fd, bytes([m % 256]) * (m * 37 % 9000)),
    "writev": lambda fd, n, m, _: os.writev(fd, [b"v" * (m % 5000), b"", b"w" * n]),
    "pwrite": lambda fd, n, m, _: os.pwrite(fd, b"p" * n, m * 11),
    "pwritev": lambda fd, n, m, _: os.pwritev(fd, [b"q" * n], m, os.RWF_DSYNC),
    "seek": lambda fd, n, m, _: os.lseek(fd, m, n % 3),
    "read": lambda fd, _n, m, _: os.read(fd, m),
    "ftruncate": lambda fd, _n, m, _: os.ftruncate(fd, m * 17),
    "allocate": lambda fd, n, m, _: os.posix_fallocate(fd, n, m * 3 + 1),
    "sendfile": sendfile,
    "copy": lambda fd, _n, m, source: os.copy_file_range(source, fd, m),
    "fsync": lambda fd, _n, m, _: (os.fsync, os.fdatasync)[m % 2](fd),
}


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
