"""A process that owns a disk, keeps it busy for ever, and is to be killed. Run as a program."""

from __future__ import annotations

import os
import sys

from crashlab.disk.disk import RealDisk


def main() -> None:
    with RealDisk("ext4") as disk:
        server = _first_child(disk._keeper.pid)
        sys.stdout.write(f"{os.getpid()} {disk._keeper.pid} {server}\n")
        sys.stdout.flush()
        turn = 0
        while True:
            turn += 1
            with open(disk.path / "dir" / "a", "wb") as file:
                file.write(os.urandom(20_000))
                os.fsync(file.fileno())
            disk.mark(turn)
            for image in disk.images(disk.log(), turn, seed=turn, count=2):
                disk.tree(image)
            if turn % 50 == 0:
                disk.renew()


def _first_child(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return int(file.read().split()[0])


if __name__ == "__main__":
    main()
