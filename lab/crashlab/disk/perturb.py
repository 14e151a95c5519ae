"""What a kernel and its other users may do between two ops of a workload: commits and writes of their own.

Nothing here changes a byte, a name or a mode of the workload's files, so the model's answer stays the
same; but it decides what reaches the disk when. *Bystanders* are files of strangers, one in each
directory: an fsync of one commits what else is in the journal.

Not covered: memory pressure, other mounts on the same device; of commits by the clock only those of btrfs.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from crashlab.disk import kernel
from crashlab.tree import Directory, File, Tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BYSTANDER = ".bystander"
_FIRST_NUMBER = 1 << 40
ACTIONS = ("nothing", "nothing", "fsync here", "fsync there", "range", "commit", "syncfs")
"""Those of a run that asks for nothing else; ``first block``, the first 4 KiB of each open file, is for experiments."""


def with_bystanders(base: Tree) -> Tree:
    """The tree with a bystander in each directory.

    >>> [path for path, _, _ in with_bystanders(Tree.empty()).walk()]
    ['.bystander']
    """
    nodes = dict(base.nodes)
    for inode, node in base.nodes.items():
        if isinstance(node, Directory) and _is_open_place(base, inode):
            number = _FIRST_NUMBER + inode
            nodes[number] = File()
            nodes[inode] = Directory({**node.entries, BYSTANDER: number}, node.mode, node.mtime_ns, node.attributes)
    return Tree(nodes)


def _is_open_place(base: Tree, inode: int) -> bool:
    """The traced ``tmp`` holds nothing that a crash state shows."""
    return inode != base.lookup("tmp")


class Perturbation:
    """Seeded actions at the boundaries of ops, on the file system under ``root``."""

    def __init__(self, root: Path, seed: int, *, actions: Sequence[str] = ACTIONS) -> None:
        self._root, self._actions = root, actions
        self._chooser = random.Random(f"perturb {seed}")  # noqa: S311 - a seeded choice, no secret

    def between(self, descriptors: Sequence[int]) -> str:
        """Do one action; ``descriptors`` are open files of the workload. What was done."""
        action = self._chooser.choice(self._actions)
        if action == "syncfs":
            kernel.sync_file_system(self._root)
        elif action == "commit":
            kernel.commit(self._root)
        elif action == "range" and descriptors:
            descriptor = self._chooser.choice(list(descriptors))
            blocks = os.fstat(descriptor).st_size // 4096 + 1
            first = self._chooser.randrange(blocks)
            kernel.sync_range(descriptor, first * 4096, self._chooser.randint(1, blocks) * 4096)
        elif action == "first block":
            for descriptor in descriptors:
                kernel.sync_range(descriptor, 0, 4096)
        elif action.startswith("fsync"):
            self._fsync(self._root / ("dir" if action == "fsync here" else ""))
        return action

    def _fsync(self, directory: Path) -> None:
        """A new time makes the bystander's inode dirty, so that its fsync has something to commit."""
        descriptor = os.open(directory / BYSTANDER, os.O_RDONLY)
        try:
            os.utime(descriptor, ns=(0, self._chooser.randrange(1 << 60)))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
