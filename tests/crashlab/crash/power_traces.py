"""Traces for the tests of power loss: a builder by hand, and random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from crashlab import trace as t
from crashlab.crash.power import PowerLoss
from crashlab.crash.profiles import Profile, parse_profile
from crashlab.tree import Directory, Tree
from tests.crashlab.traces import BASE, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable


def data(size: int, seed: int) -> bytes:
    """Bytes of which no block equals another's, and none is zero."""
    return bytes((i * 7 + seed * 31 + i // 4096 * 13) % 251 + 1 for i in range(size))


class Program:
    """A trace that is written down op by op. ``Program(ck=16_000)`` starts with a durable file."""

    def __init__(self, **files: int) -> None:
        self.base, self.tree, self._next, self._seed = BASE, BASE, 100, 1
        self.ops: list[t.Op] = []
        for name, size in files.items():
            self.base = self.base.apply(t.Create(n=1, path=f"dir/{name}", inode=self._next))
            content = data(size, 1)
            self.base = self.base.apply(t.Write(n=2, path=f"dir/{name}", inode=self._next, offset=0, data=content))
            self._next += 1
        self.tree = self.base

    def add(self, op_type: type[t.Op], **fields: Any) -> Program:
        op = op_type(n=len(self.ops) + 1, time_ns=len(self.ops) + 1, **fields)
        self.tree = self.tree.apply(op)
        self.ops.append(op)
        return self

    def inode(self, name: str) -> int:
        inode = self.tree.lookup(f"dir/{name}" if name else "dir")
        assert inode is not None, name
        return inode

    def on(self, op_type: type[t.Op], name: str, **fields: Any) -> Program:
        path = f"dir/{name}" if name else "dir"
        return self.add(op_type, path=path, inode=self.inode(name), **fields)

    def new(self, op_type: type[t.Op], name: str, **fields: Any) -> Program:
        self._next += 1
        return self.add(op_type, path=f"dir/{name}" if name else "", inode=self._next, **fields)

    def create(self, name: str) -> Program:
        return self.new(t.Create, name)

    def write(self, name: str, size: int, offset: int = 0, sync: str = "") -> Program:
        self._seed += 1
        return self.on(t.Write, name, offset=offset, data=data(size, self._seed), sync=sync)

    def truncate(self, name: str, size: int) -> Program:
        return self.on(t.Truncate, name, size=size)

    def fsync(self, name: str = "", *, data_only: bool = False) -> Program:
        return self.on(t.Fsync, name, data_only=data_only)

    def rename(self, name: str, to: str) -> Program:
        return self.on(t.Rename, name, to=f"dir/{to}")

    def link(self, name: str, to: str) -> Program:
        return self.add(t.Link, path=f"dir/{to}", inode=self.inode(name))

    def unlink(self, name: str) -> Program:
        return self.on(t.Unlink, name)

    def ack(self) -> Program:
        return self.add(t.Ack, value=len(self.ops))

    @property
    def trace(self) -> t.Trace:
        return t.Trace(root=ROOT, base=self.base, ops=tuple(self.ops))

    def loss(self, profile: str | Profile, **options: Any) -> PowerLoss:
        return PowerLoss(self.trace, parse_profile(profile) if isinstance(profile, str) else profile, **options)

    def contents(self, profile: str | Profile, name: str, *, done: int | None = None) -> set[bytes | None]:
        """What file ``name`` may hold, None for absent; at one moment only where ``done`` is given."""
        loss = self.loss(profile)
        found: set[bytes | None] = set()
        for recipe in loss.states():
            if done is None or recipe.done == done:
                node = loss.tree(recipe).node(f"dir/{name}")
                found.add(None if node is None else node.content.read())
        return found


def digests(trace: t.Trace, profile: str | Profile, **options: Any) -> set[int]:
    """The digests of all states."""
    loss = PowerLoss(trace, parse_profile(profile) if isinstance(profile, str) else profile, **options)
    return {recipe.digest for recipe in loss.states()}


# --- random programs ------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "sub/c"])
SIZES = st.sampled_from([1, 100, 4096, 5000, 8192, 9000])
STEPS = st.one_of(
    st.tuples(
        st.just("write"),
        NAMES,
        SIZES,
        st.sampled_from([0, 0, 100, 4096, 5000]),
        st.sampled_from(["", "", "all", "data"]),
    ),
    st.tuples(st.just("append"), NAMES, SIZES),
    st.tuples(st.just("truncate"), NAMES, st.sampled_from([0, 50, 4096, 6000])),
    st.tuples(st.just("create"), NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("link"), NAMES, NAMES),
    st.tuples(st.just("unlink"), NAMES),
    st.tuples(st.just("chmod"), st.sampled_from(["a", "b", "sub/c", "sub"]), st.sampled_from([0o600, 0o644])),
    st.tuples(st.just("fsync"), NAMES, st.booleans()),
    st.tuples(st.just("dirsync"), st.sampled_from(["", "sub"])),
    st.tuples(st.just("move directory")),
    st.tuples(st.just("sync")),
    st.tuples(st.just("ack")),
)


def program_of(steps: list[tuple[Any, ...]]) -> Program:
    """The program of these steps; what does not fit is passed over."""
    program = Program(a=5000, b=100)
    program.new(t.MakeDirectory, "sub")
    for step in steps:
        _step(program, *step)
    return program


def _step(program: Program, kind: str, name: str = "", *rest: Any) -> None:
    there = program.tree.lookup(f"dir/{name}") if name else 0
    if kind == "create" and there is None and program.tree.node(f"dir/{name}".rpartition("/")[0]) is not None:
        program.create(name)
    elif kind in ("sync", "ack"):
        program.add(t.Sync) if kind == "sync" else program.ack()
    elif kind == "dirsync" and isinstance(program.tree.node(f"dir/{name}" if name else "dir"), Directory):
        program.fsync(name)
    elif kind == "move directory":
        moves = [("sub", "moved"), ("moved", "sub")]
        for source, target in moves:
            if program.tree.node(f"dir/{source}") is not None:
                program.rename(source, target)
                break
    elif there is not None and kind in _FILE_STEPS:
        _FILE_STEPS[kind](program, name, *rest)


def _append(program: Program, name: str, size: int) -> None:
    program.write(name, size, program.tree.node(f"dir/{name}").content.size)


def _truncate(program: Program, name: str, size: int) -> None:
    if program.tree.node(f"dir/{name}").content.size != size:
        program.truncate(name, size)


def _onto(program: Program, name: str, to: str, *, link: bool) -> None:
    target = program.tree.lookup(f"dir/{to}")
    if program.tree.node(f"dir/{to}".rpartition("/")[0]) is None or target == program.inode(name):
        return
    if not link:
        program.rename(name, to)
    elif target is None:
        program.link(name, to)


_FILE_STEPS: dict[str, Callable[..., object]] = {
    "write": lambda program, name, size, offset, sync: program.write(name, size, offset, sync),
    "append": _append,
    "truncate": _truncate,
    "rename": lambda program, name, to: _onto(program, name, to, link=False),
    "link": lambda program, name, to: _onto(program, name, to, link=True),
    "unlink": lambda program, name: program.unlink(name),
    "chmod": lambda program, name, mode: program.on(t.Chmod, name, mode=mode),
    "fsync": lambda program, name, data_only: program.fsync(name, data_only=data_only),
}
PROGRAMS = st.lists(STEPS, min_size=1, max_size=8).map(program_of)


def empty_trace() -> t.Trace:
    """A trace in which nothing happens."""
    return t.Trace(root=ROOT, base=Tree.empty(), ops=())
