"""From a trace to crash states: what each fault may leave on disk.

One name is public here: :func:`crashlab.crash.contains` says of any directory whether a power loss may leave it.

>>> from crashlab.crash import contains
>>> from crashlab.trace import Create, Trace
>>> from crashlab.tree import Tree
>>> trace = Trace(root="/r", base=Tree.empty(), ops=(Create(n=1, path="a", inode=7),))
>>> contains(trace, 1, Tree.empty(), "ext4")  # the new name may be lost
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crashlab.crash.membership import contains

__all__ = ["contains"]


def __getattr__(name: str) -> Any:
    if name != "contains":
        text = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(text)
    from crashlab.crash.membership import contains  # noqa: PLC0415 - every process that judges would carry it

    return contains
