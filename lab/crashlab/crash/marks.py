"""What a power loss took, op by op, in words: which ops never reached the disk, and of which only a part.

The parts of an op are those of an id (:mod:`crashlab.crash.recipes`): ``d2`` the bytes of block 2, ``s``
the size, ``n1`` and ``n2`` the two names of a rename. A name that is lost takes its file out of sight,
whatever the id says of the bytes; so only what can be seen is told of such a file.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.content import BLOCK_BYTES
from crashlab.crash.states import prefixes_of
from crashlab.tree import File

if TYPE_CHECKING:
    from collections.abc import Collection

    from crashlab.content import Content
    from crashlab.crash.recipes import Lost
    from crashlab.tree import Tree

_NAMES = (
    t.Create,
    t.MakeDirectory,
    t.MakeSymlink,
    t.MakeSpecial,
    t.Link,
    t.Rename,
    t.Unlink,
    t.RemoveDirectory,
)
_CHANGES = (t.Write, t.Truncate, t.Allocate)
_CHAINED = (*_NAMES, t.Truncate, t.Allocate, t.Chmod, t.SetAttribute)
GONE = "never reached the disk"


@dataclass(frozen=True, slots=True)
class Mark:
    """What one op lost. ``whole``: nothing of it is there; else the ``parts`` that are not."""

    op: t.Op
    whole: bool = False
    parts: tuple[str, ...] = ()

    @property
    def is_name(self) -> bool:
        """Whether the lost thing is a name, or a change of one."""
        return isinstance(self.op, _NAMES) and (self.whole or any(part[0] in "nv" for part in self.parts))

    @property
    def is_bytes(self) -> bool:
        """Whether bytes or a size are lost."""
        return isinstance(self.op, (t.Write, t.Truncate, t.Allocate))

    @property
    def words(self) -> str:
        """The remark that stands behind the op.

        >>> op = t.Write(n=3, path="dir/a", inode=7, offset=0, data=bytes(9000))
        >>> Mark(op, parts=("d0", "d1", "d2")).words, Mark(op, parts=("d1",)).words
        ('its size is there, its bytes are not', 'block 1 never reached the disk')
        """
        if self.whole:
            return GONE
        kinds = {part[0] for part in self.parts}
        if "v" in kinds:
            return "replaced name vanished"
        if "n" in kinds:
            return "new name never reached the disk" if "n2" in self.parts else "old name is still there"
        if "s" in kinds and (sized := next((part for part in self.parts if part[0] == "s" and len(part) > 1), "")):
            return f"size reached only {int(sized[1:]) * BLOCK_BYTES:,} bytes"
        if self.parts == ("d",):
            return "cut in the journal"
        blocks = [part[1:] for part in self.parts if part[0] == "d"]
        if "o" in kinds:
            return "older bytes are there in part"
        if isinstance(self.op, t.Write) and len(blocks) == _blocks(self.op):
            return "its size is there, its bytes are not" if "s" not in kinds else GONE
        if blocks:
            shown = ", ".join(blocks[:3]) + (", …" if len(blocks) > 3 else "")  # noqa: PLR2004 - enough to see which
            return f"block{'s' * (len(blocks) > 1)} {shown} {GONE}"
        return "its size never reached the disk"


def marks_of(trace: t.Trace, lost: Lost, done: int, *, journals_data: bool = False) -> dict[int, Mark]:
    """Per op that lost something, what: of the first ``done`` ops.

    ``journals_data``: a journal that ends before an op takes later writes with it, not only names and sizes.
    """
    parts: dict[int, list[str]] = defaultdict(list)
    for op, part in sorted(lost.parts):
        if op:  # bytes from before the first op are no op's
            parts[op].append(part)
    whole = set(lost.whole)
    if lost.chain is not None:
        chained = (*_CHAINED, t.Write) if journals_data else _CHAINED
        whole |= {op.n for op in trace.ops[lost.chain - 1 : done] if isinstance(op, chained)}
        if lost.byte is not None:
            whole.discard(lost.chain)
            parts[lost.chain].append("d")
    found = {n: Mark(trace.op(n), whole=True) for n in whole}
    found |= {n: Mark(trace.op(n), parts=tuple(each)) for n, each in parts.items() if n not in whole}
    return dict(sorted(found.items()))


def _blocks(op: t.Write) -> int:
    return (op.offset + len(op.data) - 1) // BLOCK_BYTES - op.offset // BLOCK_BYTES + 1


def last_seen(trace: t.Trace, inode: int, content: Content, done: int) -> int | None:
    """The last of the first ``done`` ops after which a file had this content; 0 for the base, None for never."""
    prefixes = prefixes_of(trace)
    changes = [op.n for op in trace.ops[:done] if isinstance(op, (t.Create, *_CHANGES)) and op.inode == inode]
    for n in (*reversed(changes), 0):
        node = prefixes.tree(n).nodes.get(inode)
        if isinstance(node, File) and node.content.digest == content.digest:
            return n
    return None


def implied(trace: t.Trace, tree: Tree, done: int, marked: Collection[int]) -> dict[int, Mark]:
    """Writes that an id need not name, since what it names takes them away: all after what a file shows."""
    found: dict[int, Mark] = {}
    for _, inode, node in tree.walk():
        if not isinstance(node, File):
            continue
        seen = last_seen(trace, inode, node.content, done)
        if seen is None:
            found |= _cut_short(trace, inode, node.content.size, done, marked)
            continue
        ops = [op for op in trace.ops[seen:done] if isinstance(op, _CHANGES) and op.inode == inode]
        if not any(op.n in marked for op in ops):
            found |= {op.n: Mark(op, whole=True) for op in ops}
    return found


def _cut_short(trace: t.Trace, inode: int, size: int, done: int, marked: Collection[int]) -> dict[int, Mark]:
    """Writes that made a file longer than it is, and of which no id says so."""
    return {
        op.n: Mark(op, parts=("s",))
        for op in trace.ops[:done]
        if isinstance(op, t.Write) and op.inode == inode and op.offset + len(op.data) > size and op.n not in marked
    }
