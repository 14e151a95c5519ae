"""A second model, written from the definition: every subset of micro-ops, kept if the implications hold.

It knows nothing of sizes, versions, cuts or floors. It takes each set P of metadata changes, growths
and block versions of a tiny trace, closes what barriers force under the implications, drops each P
that breaks one, and applies the rest in program order. What it gives must be what power.py gives.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab import trace as t
from crashlab.content import BLOCK_BYTES, Content
from crashlab.crash import shapes
from crashlab.crash.micro import Block, Growth, Micro, Name, Size, micro_ops, size_of
from crashlab.tree import File, Tree
from tests.crashlab.crash.power_traces import Program

Part = tuple[Any, ...]
"""``("m", j)`` link j of the chain; ``("s", op, size)``; ``("d", op, block)``."""


class Oracle:
    """All micro-ops of a trace as parts, with what each implies."""

    def __init__(self, program: Program, *, xfs: bool) -> None:
        self.xfs, self.trace = xfs, program.trace
        self.chain: list[tuple[t.FileOp, tuple[Micro, ...]]] = []
        self.data: list[Growth | Block] = []
        self.before: dict[int, int] = {}
        self.running = [program.base]
        self.sized = {inode for inode, node in program.tree.nodes.items() if isinstance(node, File)}
        for op in program.ops:
            micro = micro_ops(op, self.running[-1])
            self.before[op.n] = len(self.chain)
            if isinstance(op, t.FileOp) and any(isinstance(each, (Name, Size)) for each in micro):
                self.chain.append((op, micro))
            self.data += [each for each in micro if isinstance(each, (Growth, Block))]
            growth = next((each for each in micro if isinstance(each, Growth)), None)
            if xfs and growth and growth.old % BLOCK_BYTES and isinstance(op, t.Write):
                last = growth.old // BLOCK_BYTES
                self.data += [Block(op.n, growth.inode, last)] if op.offset // BLOCK_BYTES > last else []  # F4
            self.running.append(self.running[-1].apply(op))

    def forced(self) -> tuple[int, set[tuple[int, int]], dict[int, int]]:
        """By the definition: what barriers name, closed under J1 and J2. Chain length, blocks, least sizes."""
        length, blocks, grown = 0, set[tuple[int, int]](), dict[int, int]()
        syncs: list[int] = []
        for op in self.trace.ops:
            blocks |= self._flushed(op, syncs)
            syncs += [op.n] if isinstance(op, t.Sync) else []
            pages = range(1_000)
            if isinstance(op, t.Write) and op.sync:
                pages = range(op.offset // BLOCK_BYTES, (op.offset + len(op.data) - 1) // BLOCK_BYTES + 1)
            elif not isinstance(op, (t.Fsync, t.Sync)):
                continue
            for at, (link, micro) in enumerate(self.chain, start=1):
                if link.n < op.n and (isinstance(op, t.Sync) or self._touches(link, micro, op)):
                    length = max(length, at)
            for each in self.data:
                if each.op <= op.n and (isinstance(op, t.Sync) or each.inode == op.inode):
                    if isinstance(each, Growth) and each.old < pages.stop * BLOCK_BYTES:
                        least = min(each.end, pages.stop * BLOCK_BYTES)
                        grown[each.op] = max(least, grown.get(each.op, 0))
                        length = max(length, self.before[each.op])
                    elif isinstance(each, Block) and each.block in pages and not self._left(op, each):
                        blocks.add((each.op, each.block))
        return length, blocks, grown

    def _left(self, op: t.Op, block: Block) -> bool:
        """F5: sync leaves out what was there before, but for the last block of the size that it forces."""
        if not self.xfs or not isinstance(op, t.Sync):
            return False
        old = size_of(self.running[block.op - 1], block.inode)
        sizes = [
            each for each in self.data if isinstance(each, Growth) and each.inode == block.inode and each.op < op.n
        ]
        made = bool(sizes) and sizes[-1].op == block.op and (sizes[-1].end - 1) // BLOCK_BYTES == block.block
        return block.block * BLOCK_BYTES < old and not (made and not self._resized(block, op.n))

    def _resized(self, block: Block, n: int) -> bool:
        ops = (self.trace.op(number) for number in range(block.op + 1, n))
        return any(isinstance(op, (t.Truncate, t.Allocate)) and op.inode == block.inode for op in ops)

    def _flushed(self, op: t.Op, syncs: list[int]) -> set[tuple[int, int]]:
        """F5: what an earlier sync wrote out is forced by a barrier on a file, or by sync where names changed since."""
        if isinstance(op, t.Sync):
            syncs = [n for n in syncs if self.before[op.n] > self.before[n]]
        elif not (isinstance(op, t.Write) and op.sync) and not (isinstance(op, t.Fsync) and op.inode in self.sized):
            return set()
        return {(d.op, d.block) for d in self.data if isinstance(d, Block) and d.op <= max(syncs, default=0)}

    @staticmethod
    def _touches(link: t.FileOp, micro: tuple[Micro, ...], op: t.Fsync | t.Write) -> bool:
        if isinstance(op, t.Write) and op.sync == "data" and not isinstance(link, (t.Create, t.Truncate)):
            return False
        names, inode = [each for each in micro if isinstance(each, Name)], op.inode
        return link.inode == inode or any(name.over == inode or name.key[0] == inode for name in names)

    def states(self) -> set[int]:
        """The digest of every legal set."""
        length, forced_blocks, forced_growths = self.forced()
        growths = [each for each in self.data if isinstance(each, Growth)]
        blocks = [each for each in self.data if isinstance(each, Block)]
        free = [each for each in blocks if (each.op, each.block) not in forced_blocks]
        found = set()
        for prefix in range(length, len(self.chain) + 1):
            steps = [self._steps(each, prefix, forced_growths) for each in growths]
            for chosen in itertools.product(*steps):
                sizes = {each.op: size for each, size in zip(growths, chosen, strict=True) if size is not None}
                for bits in itertools.product((False, True), repeat=len(free)):
                    there = forced_blocks | {(b.op, b.block) for b, bit in zip(free, bits, strict=True) if bit}
                    tree = self._applied(prefix, sizes, there)
                    if tree is not None:
                        found.add(shapes.digest_of_tree(tree))
        return found

    def _steps(self, growth: Growth, prefix: int, forced: dict[int, int]) -> list[int | None]:
        least = forced.get(growth.op, 0)
        if self.before[growth.op] > prefix:
            return [None]
        inner = [size for size in range(0, growth.end, BLOCK_BYTES) if growth.old < size and least <= size]
        return [*([] if least else [None]), *inner, growth.end]

    def _applied(self, prefix: int, sizes: dict[int, int], there: set[tuple[int, int]]) -> Tree | None:
        tree, shown = self.trace.base, {op.n for op, _ in self.chain[:prefix]}
        for op, micro in self.chain[:prefix]:
            if any(isinstance(each, Name) for each in micro):
                tree = tree.apply(op)
        files = {}
        for inode in [inode for inode, node in tree.nodes.items() if isinstance(node, File)]:
            content = self._file(inode, shown, sizes, there)
            if content is None:
                return None
            files[inode] = File(Content.of(content))
        shape = shapes.survey({**tree.nodes, **files}, ())
        return None if shape is None else Tree(shape.nodes)

    def _file(self, inode: int, shown: set[int], sizes: dict[int, int], there: set[tuple[int, int]]) -> bytes | None:
        base = self.trace.base.nodes.get(inode)
        disk = bytearray(base.content.read() if isinstance(base, File) else b"").ljust(8 * BLOCK_BYTES, b"\0")
        size, made_by, last, dead = (base.content.size if isinstance(base, File) else 0), 0, {}, 8
        for op in self.trace.ops:
            for each in micro_ops(op, self.running[op.n - 1]):
                if (
                    isinstance(each, Block)
                    and each.inode == inode
                    and (op.n, each.block) in there
                    and each.block < dead
                ):
                    at = slice(each.block * BLOCK_BYTES, (each.block + 1) * BLOCK_BYTES)
                    disk[at] = self.running[op.n].nodes[inode].content.blocks[each.block]
                    last[each.block] = op.n
                elif isinstance(each, Growth) and each.inode == inode and op.n in sizes:
                    size, made_by = sizes[op.n], op.n
                elif isinstance(each, Size) and each.inode == inode and op.n in shown:
                    size, made_by = each.new, 0
                    kept = -(-each.new // BLOCK_BYTES) * BLOCK_BYTES if self.xfs else each.new
                    disk[kept:] = bytes(len(disk) - kept)
                elif isinstance(each, Size) and each.inode == inode and each.new < each.old:
                    dead = min(dead, -(-each.new // BLOCK_BYTES))
                elif isinstance(each, Name) and each.inode == inode and each.over is not None and op.n in shown:
                    grew = any(isinstance(g, Growth) and g.inode == inode and g.op < op.n for g in self.data)
                    if not self.xfs and size == 0 and grew and not self._emptied(inode, op.n):
                        return None  # X2
        if self.xfs and made_by and last.get((size - 1) // BLOCK_BYTES, 0) < made_by:
            return None  # F1
        return bytes(disk[:size])

    def _emptied(self, inode: int, n: int) -> bool:
        """Whether the running system itself had size 0 at the rename."""
        node = self.running[n].nodes[inode]
        return isinstance(node, File) and node.content.size == 0


WRITES = st.tuples(
    st.just("write"),
    st.sampled_from("ab"),
    st.sampled_from([50, 4_200]),
    st.sampled_from([0, 100, 4_096, 8_000]),
    st.sampled_from(["", "", "", "data", "all"]),
)
STEPS = st.one_of(
    WRITES,
    WRITES,
    st.tuples(st.just("rename"), st.sampled_from(["ab", "ba", "ac"])),
    st.tuples(st.just("create"), st.sampled_from("bc")),
    st.tuples(st.just("fsync"), st.sampled_from(["a", "b", ""])),
    st.tuples(st.just("unlink"), st.sampled_from("ab")),
    st.tuples(st.just("sync")),
)
TRUNCATION = st.tuples(st.just("truncate"), st.sampled_from("ab"), st.sampled_from([0, 40, 4_096]))


def program_of(steps: list[Part]) -> Program:
    program = Program(a=4_200)
    for kind, *rest in steps:
        names = [program.tree.lookup(f"dir/{name}") for name in (rest[0] if rest else "")]
        if kind == "sync":
            program.add(t.Sync)
        elif kind == "create" and names[0] is None:
            program.create(*rest)
        elif kind == "rename" and names[0] is not None:
            program.rename(*rest[0])
        elif kind == "fsync" and None not in names:
            program.fsync(*rest)
        elif kind in ("write", "unlink") and names[0] is not None:
            getattr(program, kind)(*rest)
        elif kind == "truncate" and names[0] is not None and named_size(program, rest[0]) > rest[1]:
            program.truncate(*rest)
    return program


def named_size(program: Program, name: str) -> int:
    return program.tree.node(f"dir/{name}").content.size


def at_the_end(program: Program, profile: str) -> set[int] | None:
    """The digests at the last moment, or None where subsets are too many."""
    if len(Oracle(program, xfs=profile == "xfs").data) > 9:
        return None
    loss = program.loss(profile)
    cuts = loss.cuts_at(loss.moments[len(program.ops)])
    return {
        shapes.digest_of_tree(cut.tree(ways))
        for cut in cuts
        for ways in itertools.product(*(range(slot.count) for slot in cut.varied))
    }


@settings(max_examples=60)
@given(steps=st.lists(st.one_of(STEPS, TRUNCATION), min_size=1, max_size=6))
def test_ext4_is_the_subsets_that_the_definition_allows(steps: list[Part]) -> None:
    """Floors, cuts and variants give exactly the legal subsets."""
    program = program_of(steps)
    mine = at_the_end(program, "ext4")
    assert mine is None or mine == Oracle(program, xfs=False).states()


@settings(max_examples=60)
@given(steps=st.lists(STEPS, min_size=1, max_size=6))
def test_xfs_is_the_subsets_that_the_definition_allows(steps: list[Part]) -> None:
    """The same for xfs, without truncations."""
    program = program_of(steps)
    mine = at_the_end(program, "xfs")
    assert mine is None or mine == Oracle(program, xfs=True).states()


@settings(max_examples=60)
@given(steps=st.lists(st.one_of(STEPS, TRUNCATION), min_size=1, max_size=6))
def test_xfs_holds_the_subsets_with_truncations(steps: list[Part]) -> None:
    """F3 lets a little more through than the definition: an older version, cut. Never less."""
    program = program_of(steps)
    mine = at_the_end(program, "xfs")
    assert mine is None or mine >= Oracle(program, xfs=True).states()


@pytest.mark.parametrize("xfs", [False, True])
def test_the_oracle_counts_the_plain_case(xfs: bool) -> None:
    """A guard for the guard: four blocks, renamed over, give the number of the fault model."""
    program = Program(ck=16_000).create("tmp").write("tmp", 16_000).rename("tmp", "ck")
    assert len(Oracle(program, xfs=xfs).states()) == (33 if xfs else 62)
