"""States that people do not expect, each with a program that brings it about: seen on a real disk, or not.

Which of them a run shows, the kernel decides: it depends on what its own threads have written when the power
fails. So each is tried over several seeds, until it is seen or the tries are used up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.programs import Program, filled
from crashlab import trace as t
from crashlab.tree import File

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.real_runs import Run
    from crashlab.crash.moments import Moment
    from crashlab.tree import Tree

CALM = ("nothing",)
STRANGERS = ("nothing", "fsync here", "fsync there")
RANGES = ("range", "range", "fsync here", "commit")


@dataclass(frozen=True, kw_only=True)
class Danger:
    """One such state. ``shown`` says whether a tree at a moment is it; ``rules`` are those that allow it.

    ``actions`` between the ops are those that bring it about: some need a stranger's fsync, some none.
    """

    name: str
    rules: str
    kinds: tuple[str, ...]
    program: t.Trace
    shown: Callable[[Tree, Moment], bool]
    held: bool = False
    actions: Sequence[str] = STRANGERS

    def images(self, run: Run) -> int:
        """How often a run showed it: an image counts at each moment that it stands for."""
        trees = run.verdict.trees
        return sum(count for (moment, digest), count in run.verdict.judged.items() if self.shown(trees[digest], moment))


def _bytes(tree: Tree, name: str) -> bytes | None:
    node = tree.node(f"dir/{name}")
    return node.content.read() if isinstance(node, File) else None


def _ends_without(number: int, name: str, content: bytes) -> Callable[[Tree, Moment], bool]:
    """After op ``number`` a name still means other bytes."""
    return lambda tree, moment: moment.done >= number and _bytes(tree, name) == content


def _same_file(tree: Tree, *names: str) -> bool:
    inodes = [tree.lookup(f"dir/{name}") for name in names]
    return None not in inodes and len(set(inodes)) == 1


OLD, NEW = 9_000, 20_000
_REPLACED = Program(ck=OLD).save("ck", NEW).trace
_SYNCED = Program(ck=OLD).save("ck", NEW, fsync=True).add(t.Ack).trace
_REWRITTEN = Program(ck=OLD).truncate("ck", 0).write("ck", NEW).trace
_CUT = Program(ck=4_000).truncate("ck", 1_000).trace
_CUT_AND_GROWN = Program(ck=4_000).truncate("ck", 1_000).append("ck", 3_096)
for _ in range(5):
    _CUT_AND_GROWN.append("ck", 4_096)
_LONG = Program().create("log")
for _ in range(6):
    _LONG.append("log", 4_096)
_VANISHING = Program(other=10).create("ck").write("ck", OLD).fsync("ck").save("ck", NEW)
_VANISHING.append("other", 10).fsync("other")
_MOVED = Program(a=OLD).durable_directory("s").rename("a", "s/b").fsync("s").trace
_TWICE = Program(ck=OLD, other=10).save("ck", 9_001).fsync("ck").save("ck", 9_002)
_TWICE.append("other", 10).fsync("other")
_OTHER = Program(log=5_000).create("new").fsync("log").add(t.Ack).trace
_SWEPT = Program(ck=8_192, other=10).write("ck", 8_192).append("other", 10).fsync("other").sync().add(t.Ack)
_DATA_ONLY = Program(a=5_000).rename("a", "b").write("b", 100).fsync("b", data_only=True).add(t.Ack).trace

DANGERS = (
    Danger(
        name="full size, all zeros, after a rename",
        rules="X1",
        kinds=("ext4",),
        program=_REPLACED,
        shown=lambda tree, _: _bytes(tree, "ck") == bytes(NEW),
        held=True,
    ),
    Danger(
        name="0 bytes after truncating and writing anew",
        rules="X3, F2",
        kinds=("ext4", "xfs"),
        program=_REWRITTEN,
        shown=lambda tree, _: _bytes(tree, "ck") == b"",
    ),
    Danger(
        name="0 bytes after a rename over the old file",
        rules="F2",
        kinds=("ext4[noauto_da_alloc]", "xfs"),
        program=_REPLACED,
        shown=lambda tree, _: _bytes(tree, "ck") == b"" and tree.node("dir/ck.tmp") is None,
    ),
    Danger(
        name="the old size with a zeroed tail",
        rules="F3",
        kinds=("xfs",),
        program=_CUT,
        shown=lambda tree, _: _bytes(tree, "ck") == filled(4_000, 1)[:1_000] + bytes(3_000),
        actions=CALM,
    ),
    Danger(
        name="old bytes behind a truncation, once the file has grown again",
        rules="F3",
        kinds=("xfs",),
        program=_CUT_AND_GROWN.trace,
        shown=lambda tree, _: (_bytes(tree, "ck") or b"")[1_000:4_001] == filled(4_000, 1)[1_000:] + bytes(1),
        actions=RANGES,
    ),
    Danger(
        name="an overwrite lost behind sync, which found the log empty",
        rules="F5",
        kinds=("xfs",),
        program=_SWEPT.trace,
        shown=_ends_without(4, "ck", filled(8_192, 1)),
        actions=CALM,
    ),
    Danger(
        name="zeros in front of bytes that were written later",
        rules="F1, B5",
        kinds=("ext4", "xfs", "btrfs"),
        program=_LONG.trace,
        shown=lambda tree, _: (found := _bytes(tree, "log") or b"")[:4_096] == bytes(4_096) and any(found),
        actions=RANGES,
    ),
    Danger(
        name="a durable name vanishes: neither the old file nor the new one",
        rules="B3",
        kinds=("btrfs",),
        program=_VANISHING.trace,
        shown=lambda tree, moment: moment.done >= 6 and tree.node("dir/ck") is None and not tree.node("dir/ck.tmp"),  # noqa: PLR2004 - the op behind the rename
        actions=CALM,
    ),
    Danger(
        name="both names of a rename",
        rules="B4",
        kinds=("btrfs",),
        program=_MOVED,
        shown=lambda tree, _: _same_file(tree, "a", "s/b"),
    ),
    Danger(
        name="a name falls back behind what was fsynced",
        rules="B2",
        kinds=("btrfs",),
        program=_TWICE.trace,
        shown=lambda tree, moment: moment.done >= 4 and _bytes(tree, "ck") == filled(OLD, 1),  # noqa: PLR2004 - the fsync
        actions=CALM,
    ),
    Danger(
        name="the old file after rename has returned, its data fsynced",
        rules="J6, B1",
        kinds=("ext4", "xfs", "btrfs"),
        program=_SYNCED,
        shown=_ends_without(5, "ck", filled(OLD, 1)),
        actions=CALM,
    ),
    Danger(
        name="a new file lost, though another one was fsynced after it",
        rules="J4",
        kinds=("ext4", "xfs", "btrfs"),
        program=_OTHER,
        shown=lambda tree, moment: moment.done >= 2 and tree.node("dir/new") is None,  # noqa: PLR2004 - the fsync
        actions=CALM,
    ),
    Danger(
        name="a rename lost, though the file was fdatasynced after it",
        rules="J4, B6",
        kinds=("ext4",),
        program=_DATA_ONLY,
        shown=lambda tree, moment: moment.done >= 3 and tree.node("dir/b") is None,  # noqa: PLR2004 - the fdatasync
        actions=CALM,
    ),
)
