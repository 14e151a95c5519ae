"""The proof that a recording missed nothing: its ops, replayed from the first tree, give the last one.

What something else wrote, a C library or a child process, shows here as a path that differs. The
proof sees the end only: a file that something else made and removed again leaves no difference.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from crashlab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab.trace import Trace
    from crashlab.tree import Tree


def replay_proof(trace: Trace, last: Tree, rebuilt: Sequence[str]) -> tuple[str, ...]:
    """One line per path that the replayed trace and the real ``last`` tree do not agree on; empty is proven.

    Paths that match a glob of ``rebuilt``, by their last name or by their path inside the traced
    place, do not count, nor does what lies below them.

    >>> from crashlab.trace import Create, Trace
    >>> from crashlab.tree import Tree
    >>> trace = Trace(root="/r", base=Tree.empty(), ops=(Create(n=1, path="a", inode=1),))
    >>> [line.partition(":")[0] for line in replay_proof(trace, Tree.empty(), rebuilt=())]
    ['a']
    """
    tree = trace.base
    try:
        for op in trace.ops:
            tree = tree.apply(op)
    except LabError as error:
        return (str(error),)
    return tuple(without_rebuilt(tree, rebuilt).difference(without_rebuilt(last, rebuilt)))


def without_rebuilt(tree: Tree, rebuilt: Sequence[str]) -> Tree:
    """The tree without the files that the program builds anew."""
    if not rebuilt:
        return tree
    for path in [path for path, _, _ in tree.walk() if is_rebuilt(path, rebuilt)]:
        tree = tree.without(path)
    return tree


def is_rebuilt(path: str, rebuilt: Sequence[str]) -> bool:
    """Whether the program rebuilds this file by itself.

    >>> is_rebuilt("dir/cache/index.db-shm", ["*-shm"]), is_rebuilt("dir/cache/index.db", ["cache/*.db"])
    (True, True)
    """
    names = (path.rpartition("/")[2], path.partition("/")[2])
    return any(fnmatch.fnmatch(name, pattern) for name in names for pattern in rebuilt)
