"""Small traces written by hand: a builder, the patterns that programs save by, and seeded random ones.

A program starts with durable files and goes on op by op. The bytes of a write tell by which op they were
made, and at which place of the file: two versions of a block are never equal, and none is zero.

Not here: what the outside world sees. A pattern has no acks; what was acked is a matter of the moment.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Self

from crashlab import trace as t
from crashlab.crash.micro import size_of
from crashlab.recover.place import base_tree
from crashlab.tree import Directory, File, Symlink

if TYPE_CHECKING:
    from crashlab.tree import Tree

ROOT = "/root-of-the-trace"
_FIRST_INODE = 100


def filled(size: int, version: int) -> bytes:
    """Bytes of which no 4 KiB block equals another one's, and none is zero.

    >>> filled(3, 1), len({filled(12_288, 2)[at : at + 4096] for at in (0, 4096, 8192)})
    (b" '.", 3)
    """
    return bytes((i * 7 + version * 31 + i // 4096 * 13) % 251 + 1 for i in range(size))


class Program:
    """A trace in the making; names are relative to the traced ``dir``.

    >>> [op.KIND for op in Program(ck=10).save("ck", 20, fsync=True).trace.ops]
    ['create', 'write', 'fsync', 'rename']
    """

    def __init__(self, **files: int) -> None:
        self.base = base_tree()
        self.ops: list[t.Op] = []
        self._next, self._version = _FIRST_INODE, 0
        for name, size in files.items():
            self.durable(name, size)
        self.tree: Tree = self.base

    def durable(self, name: str, size: int) -> Self:
        """A file that was there for long. Before the first op only."""
        path = f"dir/{name}"
        self._next += 1
        self._version += 1
        self.base = self.base.apply(t.Create(n=1, path=path, inode=self._next))
        if size:
            data = filled(size, self._version)
            self.base = self.base.apply(t.Write(n=2, path=path, inode=self._next, offset=0, data=data))
        self.tree = self.base
        return self

    def durable_directory(self, name: str) -> Self:
        """A directory that was there for long."""
        self._next += 1
        self.base = self.tree = self.base.apply(t.MakeDirectory(n=1, path=f"dir/{name}", inode=self._next))
        return self

    @property
    def trace(self) -> t.Trace:
        """What was written down."""
        return t.Trace(root=ROOT, base=self.base, ops=tuple(self.ops))

    def add(self, op_type: type[t.Op], **fields: object) -> Self:
        """One op."""
        number = len(self.ops) + 1
        op = op_type(n=number, time_ns=number, **fields)  # type: ignore[arg-type]  # each caller names the fields of its op
        self.tree = self.tree.apply(op)
        self.ops.append(op)
        return self

    def inode(self, name: str) -> int:
        """What a name means now; ``""`` is the directory itself."""
        found = self.tree.lookup(_path(name))
        assert found is not None, name
        return found

    def size(self, name: str) -> int:
        """How long a file is now."""
        return size_of(self.tree, self.inode(name))

    def new(self, op_type: type[t.Op], name: str, **fields: object) -> Self:
        """A new inode under a name."""
        self._next += 1
        return self.add(op_type, path=_path(name), inode=self._next, **fields)

    def on(self, op_type: type[t.Op], name: str, **fields: object) -> Self:
        """An op on what a name means."""
        return self.add(op_type, path=_path(name), inode=self.inode(name), **fields)

    def create(self, name: str) -> Self:
        """A new file of size 0."""
        return self.new(t.Create, name)

    def mkdir(self, name: str) -> Self:
        """A new directory."""
        return self.new(t.MakeDirectory, name)

    def write(self, name: str, size: int, offset: int = 0, *, sync: str = "") -> Self:
        """New bytes, cut out of a whole file of them, so that each block of them is one of a kind."""
        self._version += 1
        data = filled(offset + size, self._version)[offset:]
        return self.on(t.Write, name, offset=offset, data=data, sync=sync)

    def append(self, name: str, size: int) -> Self:
        """New bytes at the end."""
        return self.write(name, size, self.size(name))

    def truncate(self, name: str, size: int) -> Self:
        """ftruncate."""
        return self.on(t.Truncate, name, size=size)

    def fsync(self, name: str = "", *, data_only: bool = False) -> Self:
        """Fsync of a file, or of a directory."""
        return self.on(t.Fsync, name, data_only=data_only)

    def rename(self, name: str, to: str) -> Self:
        """Rename."""
        return self.on(t.Rename, name, to=_path(to))

    def link(self, name: str, to: str) -> Self:
        """A second name."""
        return self.add(t.Link, path=_path(to), inode=self.inode(name))

    def unlink(self, name: str) -> Self:
        """The name goes."""
        return self.on(t.Unlink, name)

    def sync(self) -> Self:
        """Syncfs."""
        return self.add(t.Sync)

    def save(self, name: str, size: int, *, fsync: bool = False, directory: bool = False) -> Self:
        """Whole, by a temporary file that is renamed."""
        self.create(f"{name}.tmp").write(f"{name}.tmp", size)
        if fsync:
            self.fsync(f"{name}.tmp")
        self.rename(f"{name}.tmp", name)
        return self.fsync() if directory else self


def _path(name: str) -> str:
    return f"dir/{name}" if name else "dir"


def _saves(turns: int, *, fsync: bool = False) -> Program:
    program = Program(ck=6_000)
    for turn in range(turns):
        program.save("ck", 6_001 + turn, fsync=fsync)
    return program


def _appends(durable: int, step: int, times: int, *, fsync: bool = False) -> Program:
    program = Program(log=durable)
    for _ in range(times):
        program.append("log", step)
        if fsync:
            program.fsync("log")
    return program


def _directory() -> Program:
    program = Program().mkdir("d")
    for name in ("d/a", "d/b"):
        program.create(name).write(name, 12_000).fsync(name)
    return program.fsync("d").rename("d", "e")


def _rotated() -> Program:
    program = Program(ck=3_000)
    program.durable("ck.1", 2_000)
    program.rename("ck.1", "ck.2").rename("ck", "ck.1")
    return program.create("ck").write("ck", 4_000).fsync("ck")


PATTERNS: dict[str, t.Trace] = {
    name: program.trace
    for name, program in {
        "overwrite in place": Program(ck=16_000).write("ck", 16_000),
        "truncate and rewrite": Program(ck=16_000).truncate("ck", 0).write("ck", 6_000).append("ck", 4_000),
        "tmp, rename over": Program(ck=16_000).save("ck", 16_000),
        "tmp, rename to a new name": Program().save("new", 16_000),
        "tmp, fsync, rename over": Program(ck=16_000).save("ck", 16_000, fsync=True),
        "tmp, fsync, rename, fsync of the directory": Program(ck=16_000).save("ck", 16_000, fsync=True, directory=True),
        "tmp, rename over, fsync": Program(ck=16_000).save("ck", 16_000).fsync("ck"),
        "tmp, fdatasync, rename over": Program(ck=9_000)
        .create("tmp")
        .write("tmp", 9_001)
        .fsync("tmp", data_only=True)
        .rename("tmp", "ck"),
        "6 short appends": _appends(4_000, 500, 6),
        "3 appends, fsync each": _appends(0, 3_000, 3, fsync=True),
        "data, then marker": Program().create("data").write("data", 12_000).create("marker").write("marker", 10),
        "two files replaced": Program(a=12_000, b=12_000).save("a", 11_000).save("b", 11_000),
        "4 saves by rename": _saves(4),
        "3 saves by rename, fsync of each file": _saves(3, fsync=True),
        "publish, unlink the old one": Program(old=100).save("new", 12_000).unlink("old"),
        "rotate generations": _rotated(),
        "directory of two files, renamed": _directory(),
        "shrink, grow": Program(ck=9_000).truncate("ck", 1_000).append("ck", 5_000),
        "new file, fsync of an old one": Program(log=5_000).create("new").fsync("log"),
        "rename, fdatasync": Program(a=5_000).rename("a", "b").write("b", 100).fsync("b", data_only=True),
        "one more link": Program(a=5_000).link("a", "b").write("b", 5_000).unlink("a"),
        "synchronous write": Program(ck=8_192).write("ck", 6_000, 1_000, sync="data").append("ck", 100),
    }.items()
}
"""The ways in which programs save, and a few that touch other rules."""


# --- random programs ------------------------------------------------------------------------------

_SIZES = (1, 100, 4_095, 4_096, 4_097, 5_000, 8_192, 9_000, 12_288, 16_000)
_NAMES = ("a", "b", "c", "s/d", "s/e", "u/f")
_FREQUENT = ("write", "write", "append", "append", "create", "save", "save", "rename", "rename", "fsync", "fsync")
_BARRIERS = ("fdatasync", "dirsync", "dirsync", "sync")
_SELDOM = ("truncate", "truncate", "link", "unlink", "mkdir", "move", "chmod", "attribute", "allocate", "symlink")
_KINDS = (*_FREQUENT, *_FREQUENT, *_BARRIERS, *_SELDOM, "synchronous", "synchronous", "grow", "swap", "again")
_MODES = (0o600, 0o640, 0o755)


def random_program(seed: int, *, steps: int = 12) -> t.Trace:
    """A program of up to ``steps`` seeded steps over a few files and directories; the same for the same seed."""
    chooser = random.Random(f"program {seed}")  # noqa: S311 - a seeded choice, no secret
    program = Program()
    if chooser.random() < 0.6:  # noqa: PLR2004 - often enough both ways
        program.durable_directory("s")
    for name in chooser.sample(("a", "b", *(("s/d",) if program.tree.lookup("dir/s") else ())), chooser.randint(1, 2)):
        program.durable(name, chooser.choice(_SIZES))
    walk = _Walk(program, chooser)
    for _ in range(chooser.randint(3, steps)):
        walk.step()
    return program.trace


class _Walk:
    """Does one random step after the other; what does not fit where it stands is passed over."""

    def __init__(self, program: Program, chooser: random.Random) -> None:
        self._program, self._chooser = program, chooser
        self._last = ""

    def step(self) -> None:
        """One step."""
        kind = self._chooser.choice(_KINDS)
        if kind in ("create", "save", "mkdir", "symlink"):
            self._make(kind)
        elif kind == "swap":
            self._swap()
        elif kind in ("dirsync", "sync", "move"):
            self._whole(kind)
        elif files := self._files():
            again = kind == "again" and self._last in files
            name = self._last if again else self._chooser.choice(files)
            self._last = name
            self._on_file("fsync" if kind == "again" else kind, name)

    def _files(self) -> list[str]:
        return [path[4:] for path, _, node in self._program.tree.walk("dir") if isinstance(node, File)]

    def _directories(self) -> list[str]:
        walked = self._program.tree.walk("dir")
        return ["", *(path[4:] for path, _, node in walked if isinstance(node, Directory))]

    def _free(self) -> list[str]:
        directories = self._directories()
        tree = self._program.tree
        return [n for n in _NAMES if n.rpartition("/")[0] in directories and tree.lookup(f"dir/{n}") is None]

    def _make(self, kind: str) -> None:
        size, free = self._chooser.choice(_SIZES), self._free()
        if kind == "mkdir":
            free = [name for name in ("s", "u") if name not in self._directories()]
        if kind == "save":
            names = self._files() + free
            name = self._chooser.choice([name for name in names if not name.endswith(".tmp")] or ["a"])
            if self._program.tree.lookup(f"dir/{name}.tmp") is None:
                barriers = {"fsync": self._chooser.random() < 0.4, "directory": self._chooser.random() < 0.2}  # noqa: PLR2004 - seldom all
                self._program.save(name, size, **barriers)
                self._last = name
        elif free:
            self._last = name = self._chooser.choice(free)
            if kind == "mkdir":
                self._program.mkdir(name)
            elif kind == "symlink":
                self._program.new(t.MakeSymlink, name, target="a")
            else:
                self._program.create(name).write(name, size)

    def _swap(self) -> None:
        """A new symbolic link over what a name means, a link or a file."""
        walked = self._program.tree.walk("dir")
        names = [path[4:] for path, _, node in walked if isinstance(node, (File, Symlink))]
        if names and self._program.tree.lookup("dir/l.tmp") is None:
            self._program.new(t.MakeSymlink, "l.tmp", target="b").rename("l.tmp", self._chooser.choice(names))

    def _whole(self, kind: str) -> None:
        directories = self._directories()
        if kind == "sync":
            self._program.sync()
        elif kind == "dirsync":
            self._program.fsync(self._chooser.choice(directories))
        else:
            moves = [(name, to) for name in ("s", "u") for to in ("s", "u") if name in directories]
            moves = [(name, to) for name, to in moves if to not in directories]
            if moves:
                self._program.rename(*self._chooser.choice(moves))

    def _on_file(self, kind: str, name: str) -> None:  # noqa: C901, PLR0912 - one short arm per kind of step
        program, chooser, size = self._program, self._chooser, self._program.size(name)
        match kind:
            case "write":
                program.write(name, chooser.choice(_SIZES), chooser.choice((0, size // 2, size // 4096 * 4096, size)))
            case "append":
                program.append(name, chooser.choice(_SIZES))
            case "grow":
                program.write(name, chooser.choice(_SIZES), size + chooser.choice((1, 4_096, 5_000)))
            case "synchronous":
                offset = chooser.choice((0, size // 2, size, size, size + 5_000))
                program.write(name, chooser.choice(_SIZES), offset, sync=chooser.choice(("data", "all")))
            case "truncate":
                to = chooser.choice((0, 0, size // 2, size // 4096 * 4096, size + 3_000))
                if to != size:
                    program.truncate(name, to)
            case "allocate":
                if size < (to := chooser.choice(_SIZES)):
                    program.on(t.Allocate, name, size=to)
            case "fsync" | "fdatasync":
                program.fsync(name, data_only=kind == "fdatasync")
            case "chmod":
                program.on(t.Chmod, name, mode=chooser.choice(_MODES))
            case "attribute":
                where = {"path": f"dir/{name}", "inode": program.inode(name)}
                program.add(t.SetAttribute, **where, name="user.k", value=chooser.choice((b"1", b"2")))
            case "unlink":
                program.unlink(name)
            case "rename" | "link":
                self._onto(kind, name)

    def _onto(self, kind: str, name: str) -> None:
        program, free = self._program, self._free()
        if kind == "link" and free:
            program.link(name, self._chooser.choice(free))
        elif kind == "rename":
            inode = program.inode(name)
            others = [other for other in self._files() if program.inode(other) != inode]
            if targets := free + others:
                program.rename(name, self._chooser.choice(targets))
