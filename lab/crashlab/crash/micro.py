"""The micro-ops of a trace: what one op changes on disk, in pieces that a power loss may separate.

``Name`` (N): an entry of a directory means another inode, or nothing. ``Size`` (Z): a size that was
set. ``Growth`` (S): a size that grew because bytes were written. ``Block`` (D): a new version of one
4 KiB block. ``Attribute`` (A): mode or extended attribute.

:class:`History` is all of them along one trace, in the order in which the rules of a profile ask:
the chain of metadata changes, the events of each file, the versions of each entry, the barriers.

Not modelled: time stamps, owners, quotas. A rename of one inode onto itself changes nothing, a
file without a name has no micro-op of its own until a link names it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.content import BLOCK_BYTES, EMPTY, Content
from crashlab.tree import ROOT_INODE, Directory, File, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab.crash.profiles import Profile

Key = tuple[int, str]
"""An entry: the inode of a directory, and a name in it."""


@dataclass(frozen=True, slots=True)
class Name:
    """N: ``key`` now means ``inode``, or nothing; ``over`` is the inode that a rename replaced."""

    op: int
    key: Key
    inode: int | None
    over: int | None = None


@dataclass(frozen=True, slots=True)
class Size:
    """Z: the size was set from ``old`` to ``new``."""

    op: int
    inode: int
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Growth:
    """S: the size grew from ``old`` to ``end`` because of a write."""

    op: int
    inode: int
    old: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """D: a new version of block ``block``."""

    op: int
    inode: int
    block: int


@dataclass(frozen=True, slots=True)
class Attribute:
    """A: mode or extended attribute."""

    op: int
    inode: int


Micro = Name | Size | Growth | Block | Attribute


def micro_ops(op: t.Op, before: Tree) -> tuple[Micro, ...]:
    """The micro-ops of ``op``, which acts on the tree ``before``, in the order in which it does them.

    >>> tree = Tree.empty().apply(t.Create(n=1, path="a", inode=7))
    >>> micro_ops(t.Write(n=2, path="a", inode=7, offset=0, data=b"hi"), tree)
    (Block(op=2, inode=7, block=0), Growth(op=2, inode=7, old=0, end=2))
    """
    match op:
        case t.Create() | t.MakeDirectory() | t.MakeSymlink() | t.MakeSpecial() | t.Link():
            return (Name(op.n, key_of(before, op.path), op.inode),) if op.path else ()
        case t.Unlink() | t.RemoveDirectory():
            return (Name(op.n, key_of(before, op.path), None),)
        case t.Rename():
            over = before.lookup(op.to)
            if over == op.inode:
                return ()
            source, target = key_of(before, op.path), key_of(before, op.to)
            return Name(op.n, target, op.inode, over), Name(op.n, source, None)
        case t.Chmod() | t.SetAttribute():
            return (Attribute(op.n, op.inode),)
        case t.Write() | t.Truncate() | t.Allocate():
            return tuple(_of_data(op, size_of(before, op.inode)))
    return ()


def _of_data(op: t.Write | t.Truncate | t.Allocate, old: int) -> Iterator[Micro]:
    if isinstance(op, t.Write):
        end = op.offset + len(op.data)
        for block in range(op.offset // BLOCK_BYTES, -(-end // BLOCK_BYTES)) if op.data else ():
            yield Block(op.n, op.inode, block)
        if op.data and end > old:
            yield Growth(op.n, op.inode, old, end)
        return
    new = op.size if isinstance(op, t.Truncate) else max(op.size, old)
    if new == old:
        return
    yield Size(op.n, op.inode, old, new)
    if new < old and new % BLOCK_BYTES:  # the tail of the last block is zeroed
        yield Block(op.n, op.inode, new // BLOCK_BYTES)


def key_of(tree: Tree, path: str) -> Key:
    """The directory inode and the name that ``path`` ends in."""
    parent, _, name = path.rpartition("/")
    inode = tree.lookup(parent)
    assert inode is not None, path
    return inode, name


def size_of(tree: Tree, inode: int) -> int:
    """The size of a file, in bytes."""
    node = tree.nodes[inode]
    assert isinstance(node, File), node
    return node.content.size


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to the data of a file, with what the file holds after it.

    ``before`` metadata changes were issued earlier. ``position`` is the event's own place in the
    chain where it has one: a set size (``kind`` ``size``) or a rename over another file (``over``).
    ``synced``: a write through a descriptor that is opened ``O_SYNC`` or ``O_DSYNC``. ``after_failure``: a write
    to a file of which a barrier failed before; the next barrier forces its pages, and not all earlier ones, and
    of these not the blocks ``unwritten``.
    """

    kind: str
    op: int
    before: int
    position: int
    old: int
    size: int
    blocks: range
    content: Content
    time_ns: int
    synced: bool = False
    after_failure: bool = False
    unwritten: frozenset[int] = frozenset()

    def forces(self, profile: Profile) -> tuple[range, int]:
        """Of a write that is forced by itself: the pages, and the size that the file has at least."""
        if self.after_failure:
            return self.blocks, self.size
        return profile.synced_write(self.blocks, self.size)

    @property
    def grows(self) -> bool:
        """Whether a write made the file longer."""
        return self.kind == "write" and self.size > self.old


@dataclass(frozen=True, slots=True)
class Meta:
    """One link of the chain of metadata changes."""

    op: int
    names: tuple[Name, ...]
    touches: frozenset[int]
    sets_size: bool
    creates: bool


@dataclass(frozen=True, slots=True)
class Barrier:
    """What one op makes durable: ``inode`` None is everything; ``data_only`` as fdatasync does."""

    op: int
    inode: int | None
    data_only: bool
    directory: bool


@dataclass(frozen=True, slots=True)
class Version:
    """An entry means ``inode`` from ``op`` on; ``over`` where a rename replaced another inode."""

    op: int
    inode: int | None
    over: bool = False


def barrier_of(op: t.Op, tree: Tree) -> Barrier | None:
    """The barrier that ``op`` is, once it has completed."""
    match op:
        case t.Sync():
            return Barrier(op.n, None, data_only=False, directory=False)
        case t.Fsync() if not op.failed:
            directory = isinstance(tree.nodes[op.inode], Directory)
            return Barrier(op.n, op.inode, data_only=op.data_only, directory=directory)
        case t.Write() if op.sync and op.data:
            return Barrier(op.n, op.inode, data_only=op.sync == "data", directory=False)
    return None


@dataclass
class History:
    """The micro-ops of a whole trace, folded. ``trees[j]`` has the names after j metadata changes."""

    trace: t.Trace
    chain: list[Meta] = field(default_factory=list)
    events: dict[int, list[Event]] = field(default_factory=dict)
    entries: dict[Key, list[Version]] = field(default_factory=dict)
    attributes: dict[int, list[int]] = field(default_factory=dict)
    barriers: dict[int, Barrier] = field(default_factory=dict)
    issued: list[int] = field(default_factory=lambda: [0])
    running: list[Tree] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)

    @staticmethod
    def of(trace: t.Trace) -> History:
        """Fold ``trace``. The last one is kept: every profile asks for the same, and none changes it."""
        global _last  # noqa: PLW0603 - a cache of one, by identity: a Trace is costly to hash
        if _last is None or _last.trace is not trace:
            _last = History(trace, running=[trace.base], trees=[trace.base])
            for op in trace.ops:
                _last._add(op)
        return _last

    def base_content(self, inode: int) -> Content:
        """What a file held before the trace; nothing where the trace made it."""
        node = self.trace.base.nodes.get(inode)
        return node.content if isinstance(node, File) else EMPTY

    def _add(self, op: t.Op) -> None:
        tree = self.running[-1]
        micro = micro_ops(op, tree)
        barrier = barrier_of(op, tree)
        nameless = isinstance(op, t.Create) and not op.path
        after = tree.apply(op) if micro or nameless or isinstance(op, t.SetTimes) else tree
        if micro:
            self._add_micro(op, micro, after)
        elif nameless:
            self.trees[-1] = self.trees[-1].apply(op)  # it may stand in a tree: nothing shows it
        if barrier is not None:
            self.barriers[op.n] = barrier
        self.running.append(after)
        self.issued.append(len(self.chain))

    def _add_micro(self, op: t.Op, micro: tuple[Micro, ...], after: Tree) -> None:
        data = isinstance(op, (t.Write, t.Truncate, t.Allocate))  # of many blocks, no names
        names = () if data else tuple([each for each in micro if isinstance(each, Name)])
        changed = [] if data else [each.inode for each in micro if isinstance(each, Attribute)]
        sets_size = isinstance(micro[0], Size)
        if names or sets_size or changed:
            self._add_link(op, names, sets_size=sets_size)
        for inode in changed:
            self.attributes.setdefault(inode, []).append(op.n)
        if names or changed:
            self.trees[-1] = self.trees[-1].apply(op)
        self._add_event(op, micro, after)
        self._add_names(names, self.running[-1])

    def _add_link(self, op: t.Op, names: tuple[Name, ...], *, sets_size: bool) -> None:
        assert isinstance(op, t.FileOp)
        touches = {op.inode} | {each.over for each in names if each.over is not None}
        creates = bool(names) and isinstance(op, (t.Create, t.MakeDirectory))
        self.chain.append(Meta(op.n, names, frozenset(touches), sets_size, creates))
        self.trees.append(self.trees[-1])

    def _add_event(self, op: t.Op, micro: tuple[Micro, ...], after: Tree) -> None:
        before, position = self.issued[-1], len(self.chain)
        if isinstance(op, (t.Write, t.Truncate, t.Allocate)):
            blocks = [each.block for each in micro if isinstance(each, Block)]
            node, old = after.nodes[op.inode], size_of(self.running[-1], op.inode)
            assert isinstance(node, File)
            kind = "write" if isinstance(op, t.Write) else "size"
            touched = range(blocks[0], blocks[-1] + 1) if blocks else range(0)
            synced = isinstance(op, t.Write) and bool(op.sync)
            new = Event(kind, op.n, before, position, old, node.content.size, touched, node.content, op.time_ns, synced)
            self.events.setdefault(op.inode, []).append(new)
        elif isinstance(op, t.Rename):
            node, over = after.nodes[op.inode], self.running[-1].node(op.to)
            if isinstance(node, File) and isinstance(over, File):
                size = node.content.size
                new = Event("over", op.n, before, position, size, size, range(0), node.content, op.time_ns)
                self.events.setdefault(op.inode, []).append(new)

    def _add_names(self, names: tuple[Name, ...], tree: Tree) -> None:
        for name in names:
            directory = tree.nodes[name.key[0]]
            assert isinstance(directory, Directory)
            first = Version(0, directory.entries.get(name.key[1]))
            version = Version(name.op, name.inode, over=name.over is not None)
            self.entries.setdefault(name.key, [first]).append(version)


def named_in(tree: Tree) -> frozenset[int]:
    """Every inode that some path of the tree leads to."""
    return frozenset(inode for _, inode, _ in tree.walk()) | {ROOT_INODE}


_last: History | None = None
