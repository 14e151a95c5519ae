"""A trace done with real calls on a real file system, and its crash images held against the model.

Op n is bracketed by two marks, so that each place in the disk's log belongs to a crash moment:
``n - 1`` ops done and ``n`` started inside of op n, ``n`` and ``n`` behind it. After the last op the
file system is synced, so that everything was on its way at some place. Between two flushes what may
be on disk only grows; so images are taken just before each flush, at each mark, and at the end.

Not enacted: sockets and FIFOs by type (a FIFO stands for both); time stamps set by hand are set, but
no answer of the model depends on them.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from crashlab import directory
from crashlab import trace as t
from crashlab.crash.membership import within
from crashlab.crash.moments import Moment
from crashlab.crash.orders import cuts_of
from crashlab.crash.profiles import Profile, parse_profile
from crashlab.crash.shapes import TEMPORARY
from crashlab.disk import kernel
from crashlab.disk.log import DiskLog, Flush, Image, Mark, images
from crashlab.disk.perturb import ACTIONS, Perturbation, with_bystanders
from crashlab.errors import LabError
from crashlab.recover.place import base_tree
from crashlab.tree import Directory, File, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashlab.disk.disk import RealDisk


def started_mark(n: int) -> int:
    """The mark that says: op ``n`` is about to start."""
    return 2 * n - 1


def done_mark(n: int) -> int:
    """The mark that says: op ``n`` is done."""
    return 2 * n


def moment_of(mark: int) -> Moment:
    """The moment that begins with a mark.

    >>> moment_of(started_mark(3)), moment_of(done_mark(3))
    (Moment(done=2, started=3), Moment(done=3, started=3))
    """
    return Moment(mark // 2, (mark + 1) // 2)


def moments(log: DiskLog) -> Iterator[tuple[int, Moment]]:
    """Positions in a log that together hold every image, each with its moment."""
    now = Moment(0, 0)
    for position, entry in enumerate(log.entries):
        if isinstance(entry, (Flush, Mark)):
            yield position, now
        if isinstance(entry, Mark):
            now = moment_of(entry.name)
    yield len(log.entries), now


def pages_of(trace: t.Trace) -> set[bytes]:
    """Every 4 KiB page that a file of the trace holds at some time: what its data writes are known by."""
    pages: set[bytes] = set()
    tree = trace.base
    for op in trace.ops:
        tree = tree.apply(op)
        if isinstance(op, (t.Write, t.Truncate, t.Allocate)):
            node = tree.nodes[op.inode]
            assert isinstance(node, File)
            pages.update(node.content.blocks)
    return pages


class Actor:
    """Does ops with real calls below ``root``. Descriptors stay open while a file has no name, or by choice."""

    def __init__(self, root: str | os.PathLike[str], base: Tree, *, keep_open: bool = True) -> None:
        self._root, self._tree, self._keep_open = os.fspath(root), base, keep_open
        self._open: dict[int, int] = {}

    @property
    def descriptors(self) -> list[int]:
        """Open files of the workload."""
        return list(self._open.values())

    def close(self) -> None:
        """Close what is open."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def do(self, op: t.Op) -> None:
        """One op. Raises OSError as the call does."""
        if isinstance(op, t.Unlink) and isinstance(self._tree.nodes[op.inode], File):
            self._descriptor(op)  # an op may still reach the file without its name
        self._call(op)
        self._tree = self._tree.apply(op)
        if not self._keep_open:
            named = {inode for _, inode, _ in self._tree.walk()}
            for inode in [inode for inode in self._open if inode in named]:
                os.close(self._open.pop(inode))

    def _path(self, path: str) -> str:
        return os.path.join(self._root, path)

    def _descriptor(self, op: t.FileOp) -> int:
        if op.inode not in self._open:
            node = self._tree.nodes[op.inode]
            flags = os.O_RDONLY if isinstance(node, Directory) else os.O_RDWR
            self._open[op.inode] = os.open(self._path(op.path), flags | os.O_CLOEXEC | os.O_NOFOLLOW)
        return self._open[op.inode]

    def _call(self, op: t.Op) -> None:  # noqa: C901, PLR0912 - one short arm per kind of op
        match op:
            case t.Create():
                self._create(op)
            case t.Write():
                self._write(op)
            case t.Truncate():
                os.ftruncate(self._descriptor(op), op.size)
            case t.Allocate():
                kernel.allocate(self._descriptor(op), op.size)
            case t.Fsync():
                (os.fdatasync if op.data_only else os.fsync)(self._descriptor(op))
            case t.Sync():
                kernel.sync_file_system(self._root)
            case t.MakeDirectory():
                os.mkdir(self._path(op.path), op.mode)
            case t.MakeSymlink():
                os.symlink(op.target, self._path(op.path))
            case t.Link():
                self._link(op)
            case t.Rename():
                os.rename(self._path(op.path), self._path(op.to))
            case t.Unlink():
                os.unlink(self._path(op.path))
            case t.RemoveDirectory():
                os.rmdir(self._path(op.path))
            case _:
                self._seldom(op)

    def _seldom(self, op: t.Op) -> None:
        match op:
            case t.Chmod():
                os.chmod(self._path(op.path), op.mode)
            case t.SetTimes():
                os.utime(self._path(op.path), ns=(op.mtime_ns, op.mtime_ns))
            case t.SetAttribute() if op.value is None:
                os.removexattr(self._path(op.path), op.name)
            case t.SetAttribute():
                assert op.value is not None
                os.setxattr(self._path(op.path), op.name, op.value)
            case t.MakeSpecial():
                os.mkfifo(self._path(op.path), op.mode)

    def _create(self, op: t.Create) -> None:
        if op.path:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._open[op.inode] = os.open(self._path(op.path), flags, op.mode)
        else:
            self._open[op.inode] = os.open(self._root, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, op.mode)

    def _write(self, op: t.Write) -> None:
        descriptor, own = self._descriptor(op), -1
        if op.sync:
            flag = os.O_DSYNC if op.sync == "data" else os.O_SYNC
            own = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_CLOEXEC | flag)
        try:
            written = os.pwrite(own if op.sync else descriptor, op.data, op.offset)
        finally:
            if own >= 0:
                os.close(own)
        if written != len(op.data):
            text = f"op {op.n} wrote {written} of {len(op.data)} bytes: the disk is too small for this trace"
            raise LabError(text)

    def _link(self, op: t.Link) -> None:
        old = next((path for path, inode, _ in self._tree.walk() if inode == op.inode), None)
        if old is None:
            kernel.link_open(self._open[op.inode], self._path(op.path))
        else:
            os.link(self._path(old), self._path(op.path), follow_symlinks=False)


def enact(  # noqa: PLR0913 - each is one knob of a run, by name
    disk: RealDisk,
    trace: t.Trace,
    *,
    seed: int,
    actions: Sequence[str] = ACTIONS,
    held: bool = False,
    keep_open: bool = True,
) -> t.Trace:
    """Do ``trace`` on the disk, in a run of its own, with seeded perturbations between its ops.

    ``held``: data writes are held back as by a slow disk. Gives the trace as the disk saw it: with the
    bystanders of the perturbations in its base.
    """
    seen = replace(trace, base=with_bystanders(trace.base))
    disk.renew()
    _fill(disk, seen.base)
    disk.register(pages_of(seen))
    disk.hold(on=held)
    actor = Actor(disk.path, seen.base, keep_open=keep_open)
    perturbation = Perturbation(disk.path, seed, actions=actions)
    with contextlib.closing(actor), _no_umask():
        for op in seen.ops:
            disk.mark(started_mark(op.n))
            actor.do(op)
            disk.mark(done_mark(op.n))
            perturbation.between([] if isinstance(op, t.EVENTS) else actor.descriptors)
    kernel.sync_file_system(disk.path)
    disk.hold(on=False)
    return seen


@contextlib.contextmanager
def _no_umask() -> Iterator[None]:
    old = os.umask(0)
    try:
        yield
    finally:
        os.umask(old)


def _fill(disk: RealDisk, base: Tree) -> None:
    if base.digest != base_tree().digest:
        directory.clear(disk.path)
        directory.write(base, disk.path)
        disk.begin()


@dataclass(frozen=True, slots=True)
class Outside:
    """An image that the model does not allow."""

    image: Image
    moment: Moment
    tree: Tree


@dataclass(slots=True)
class Verdict:
    """How many images were mounted, which trees they showed, and those outside the model.

    ``judged`` counts the images per moment and digest of the tree.
    """

    images: int = 0
    trees: dict[str, Tree] = field(default_factory=dict)
    judged: Counter[tuple[Moment, str]] = field(default_factory=Counter)
    outside: list[Outside] = field(default_factory=list)


def judge(  # noqa: PLR0913 - each is one bound, by name
    disk: RealDisk,
    trace: t.Trace,
    profile: Profile | str | None = None,
    *,
    seed: int,
    per_moment: int = 64,
    most: int = 1_000_000,
    torn: bool = False,
) -> Verdict:
    """Hold the images of the run that was just enacted against ``profile``, by default the disk's own.

    ``per_moment`` images at each place of the log, ``most`` altogether. An image that stands for two
    moments is mounted once; two images that show one tree at one moment are judged once.
    """
    kept = parse_profile(profile or disk.kind) if isinstance(profile, (str, type(None))) else profile
    cuts, log, verdict = cuts_of(trace, kept), disk.log(), Verdict()
    shown: dict[Image, Tree] = {}
    for position, moment in moments(log):
        for image in images(log, position, seed=seed, count=per_moment, torn=torn):
            if image not in shown:
                if verdict.images >= most:
                    return verdict
                shown[image] = visible(disk.tree(image))
                verdict.images += 1
            tree = shown[image]
            verdict.trees.setdefault(tree.digest, tree)
            verdict.judged[moment, tree.digest] += 1
            if verdict.judged[moment, tree.digest] == 1 and not within(cuts, moment, tree):
                verdict.outside.append(Outside(image, moment, tree))
    return verdict


def visible(tree: Tree) -> Tree:
    """The tree with the traced ``tmp`` emptied, as crash states have it."""
    node = tree.node(TEMPORARY)
    for name in node.entries if isinstance(node, Directory) else ():
        tree = tree.without(f"{TEMPORARY}/{name}")
    return tree
