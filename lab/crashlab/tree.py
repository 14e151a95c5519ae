"""The file tree that ops act on: immutable, with shared structure, a digest, and a way to disk and back.

A tree is a table of inodes, of which number 0 is the root directory. Names live in directories, so
that a hard link is two names for one number and a renamed directory is one changed entry. Applying
an op copies the table and the nodes that the op touches, and shares the rest.

Modelled: names, bytes, permission bits, modification times, symbolic and hard links, FIFOs and
stale sockets, extended attributes ``user.*``. Not modelled: owners, access times, devices.
"""

from __future__ import annotations

import base64
import hashlib
import stat
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.content import EMPTY, Content
from crashlab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT_INODE = 0


@dataclass(frozen=True, slots=True)
class File:
    """A regular file. ``time_set``: its time was set by hand, and not changed by a write since."""

    content: Content = EMPTY
    mode: int = 0o644
    mtime_ns: int = 0
    attributes: tuple[tuple[str, bytes], ...] = ()
    time_set: bool = False


@dataclass(frozen=True, slots=True)
class Directory:
    """Names of a directory, each with its inode number."""

    entries: Mapping[str, int] = field(default_factory=dict)
    mode: int = 0o755
    mtime_ns: int = 0
    attributes: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Symlink:
    """A symbolic link; its target is not followed."""

    target: str
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class Special:
    """A ``fifo`` or a ``socket`` that nobody listens on any more."""

    type: str
    mode: int = 0o644
    mtime_ns: int = 0


Node = File | Directory | Symlink | Special
TYPE_NAMES: dict[type[Node], str] = {File: "file", Directory: "directory", Symlink: "symlink"}


def type_name(node: Node) -> str:
    """``file``, ``directory``, ``symlink``, ``fifo`` or ``socket``."""
    return node.type if isinstance(node, Special) else TYPE_NAMES[type(node)]


@dataclass(frozen=True)
class Tree:
    """An immutable file tree.

    >>> tree = Tree.empty().apply(t.Create(n=1, path="a", inode=7))
    >>> tree = tree.apply(t.Write(n=2, path="a", inode=7, offset=0, data=b"hi"))
    >>> {path: node.content.read() for path, _, node in tree.walk()}
    {'a': b'hi'}
    """

    nodes: Mapping[int, Node]

    @staticmethod
    def empty() -> Tree:
        """A tree of one empty root directory."""
        return Tree({ROOT_INODE: Directory()})

    # --- looking -------------------------------------------------------------------------------

    def lookup(self, path: str) -> int | None:
        """The inode number under ``path``; ``""`` is the root. Symbolic links are not followed."""
        inode = ROOT_INODE
        for name in path.split("/") if path else ():
            node = self.nodes[inode]
            if not isinstance(node, Directory) or name not in node.entries:
                return None
            inode = node.entries[name]
        return inode

    def node(self, path: str) -> Node | None:
        """What ``path`` names, or None."""
        inode = self.lookup(path)
        return None if inode is None else self.nodes[inode]

    def walk(self, prefix: str = "") -> Iterator[tuple[str, int, Node]]:
        """``(path, inode number, node)`` of everything below the root, parents first, names sorted."""
        start = self.lookup(prefix)
        stack = [(prefix, start)] if start is not None else []
        while stack:
            path, inode = stack.pop()
            node = self.nodes[inode]
            if path != prefix:
                yield path, inode, node
            if isinstance(node, Directory):
                below = sorted(node.entries.items(), reverse=True)
                stack.extend((f"{path}/{name}" if path else name, child) for name, child in below)

    @cached_property
    def digest(self) -> str:
        """Hash of every path, kind, mode, content, attribute and hard link; times do not count."""
        names: dict[int, list[str]] = {}
        lines = []
        for path, inode, node in self.walk():
            names.setdefault(inode, []).append(path)
            lines.append(f"{path!r} {_node_line(node)}")
        lines.extend(f"linked {paths!r}" for paths in sorted(names.values()) if len(paths) > 1)
        return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()

    @cached_property
    def times_set(self) -> tuple[tuple[str, int], ...]:
        """Paths of files whose time was set by hand, with it: a program may read it back as data."""
        return tuple((path, node.mtime_ns) for path, _, node in self.walk() if isinstance(node, File) and node.time_set)

    def difference(self, other: Tree) -> list[str]:
        """Readable lines, one per path that differs: ``path: this / other``. Empty for equal digests."""
        mine, others = ({path: node for path, _, node in tree.walk()} for tree in (self, other))
        lines = []
        for path in sorted(mine.keys() | others.keys()):
            here, there = mine.get(path), others.get(path)
            if here is None or there is None or _node_line(here) != _node_line(there):
                lines.append(f"{path}: {describe(here)} / {describe(there)}")
        if not lines and self.digest != other.digest:
            lines.append("the same files, but linked otherwise")
        return lines

    # --- changing ------------------------------------------------------------------------------

    def apply(self, op: t.Op) -> Tree:
        """The tree after ``op``. Events and barriers change nothing.

        Raises LabError where the op does not fit the tree: the recording missed something.
        """
        change = _CHANGES.get(type(op))
        if change is None:
            return self
        try:
            nodes = dict(self.nodes)
            change(nodes, op)
        except (KeyError, AttributeError, TypeError) as error:  # no such name or inode; a node of another kind
            text = f"op {op.n} ({op.KIND} {getattr(op, 'path', '')}) does not fit the tree before it: {error!r}"
            raise LabError(text) from error
        return Tree(nodes)

    def without(self, path: str) -> Tree:
        """The tree with ``path`` and all below it gone; the same tree where it does not exist."""
        if self.lookup(path) is None:
            return self
        nodes = dict(self.nodes)
        _unbind(nodes, path, 0)
        return Tree(nodes)

    # --- JSON ----------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """A JSON object that :meth:`from_json` reads back."""
        return {str(inode): _node_to_json(node) for inode, node in self.nodes.items()}

    @staticmethod
    def from_json(form: Mapping[str, Any]) -> Tree:
        """Read a tree back. Raises KeyError, TypeError or ValueError for anything else."""
        nodes = {int(inode): _node_from_json(node) for inode, node in form.items()}
        _directory(nodes, ROOT_INODE)
        for node in nodes.values():
            if isinstance(node, Directory) and not nodes.keys() >= set(node.entries.values()):
                text = "a name leads to an inode that is not there"
                raise ValueError(text)
        return Tree(nodes)


def describe(node: Node | None) -> str:
    """One node in a few words: ``file 12 bytes mode 644 a1b2c3d4``."""
    match node:
        case None:
            return "absent"
        case File():
            return f"file {node.content.size} bytes mode {node.mode:o} {node.content.digest[:8]}"
        case Symlink():
            return f"symlink to {node.target}"
        case _:
            return f"{type_name(node)} mode {node.mode:o}"


def _node_line(node: Node) -> str:
    match node:
        case File():
            return f"file {node.mode:o} {node.content.size} {node.content.block_sum:x} {node.attributes!r}"
        case Directory():
            return f"directory {node.mode:o} {node.attributes!r}"
        case Symlink():
            return f"symlink {node.target!r}"
        case Special():
            return f"{node.type} {node.mode:o}"


# --- one small function per op ------------------------------------------------------------------

_Nodes = dict[int, Node]


def _parent(nodes: _Nodes, path: str) -> tuple[int, str]:
    """Inode number of the directory that holds ``path``, and the last name."""
    *parents, name = path.split("/")
    inode = ROOT_INODE
    for part in parents:
        inode = _directory(nodes, inode).entries[part]
    return inode, name


def _directory(nodes: _Nodes, inode: int) -> Directory:
    node = nodes[inode]
    if not isinstance(node, Directory):
        text = f"a {type_name(node)} is in the place of a directory"
        raise TypeError(text)
    return node


def _bind(nodes: _Nodes, path: str, inode: int, time_ns: int) -> None:
    parent, name = _parent(nodes, path)
    directory = _directory(nodes, parent)
    nodes[parent] = replace(directory, entries={**directory.entries, name: inode}, mtime_ns=time_ns)


def _unbind(nodes: _Nodes, path: str, time_ns: int) -> int:
    """Remove a name. The inode stays in the table: a descriptor may still write to it."""
    parent, name = _parent(nodes, path)
    directory = _directory(nodes, parent)
    entries = dict(directory.entries)
    inode = entries.pop(name)
    nodes[parent] = replace(directory, entries=entries, mtime_ns=time_ns or directory.mtime_ns)
    return inode


def _make(node_of: Callable[[Any], Node]) -> Callable[[_Nodes, Any], None]:
    def change(nodes: _Nodes, op: Any) -> None:
        nodes[op.inode] = node_of(op)
        if op.path:  # a file of O_TMPFILE has no name until a link gives it one
            _bind(nodes, op.path, op.inode, op.time_ns)

    return change


def _set(**changes: Callable[[Any, Any], Any]) -> Callable[[_Nodes, Any], None]:
    def change(nodes: _Nodes, op: Any) -> None:
        node = nodes[op.inode]
        nodes[op.inode] = replace(node, **{name: value_of(node, op) for name, value_of in changes.items()})

    return change


def _link(nodes: _Nodes, op: t.Link) -> None:
    nodes[op.inode]  # a KeyError where no such file was ever made
    _bind(nodes, op.path, op.inode, op.time_ns)


def _rename(nodes: _Nodes, op: t.Rename) -> None:
    inode = _unbind(nodes, op.path, op.time_ns)
    _bind(nodes, op.to, inode, op.time_ns)


def _remove(nodes: _Nodes, op: t.FileOp) -> None:
    _unbind(nodes, op.path, op.time_ns)


def _attributes(node: Any, op: t.SetAttribute) -> tuple[tuple[str, bytes], ...]:
    kept = {name: value for name, value in node.attributes if name != op.name}
    if op.value is not None:
        kept[op.name] = op.value
    return tuple(sorted(kept.items()))


def _set_times(nodes: _Nodes, op: t.SetTimes) -> None:
    node = replace(nodes[op.inode], mtime_ns=op.mtime_ns)
    nodes[op.inode] = replace(node, time_set=True) if isinstance(node, File) else node


def _no(_node: Any, _op: t.Op) -> bool:
    return False


def _now(_node: Any, op: t.Op) -> int:
    return op.time_ns


_CHANGES: dict[type[t.Op], Callable[[_Nodes, Any], None]] = {
    t.Create: _make(lambda op: File(mode=op.mode, mtime_ns=op.time_ns)),
    t.MakeDirectory: _make(lambda op: Directory(mode=op.mode, mtime_ns=op.time_ns)),
    t.MakeSymlink: _make(lambda op: Symlink(op.target, op.time_ns)),
    t.MakeSpecial: _make(lambda op: Special(op.type, op.mode, op.time_ns)),
    t.Link: _link,
    t.Unlink: _remove,
    t.RemoveDirectory: _remove,
    t.Rename: _rename,
    t.Write: _set(content=lambda node, op: node.content.write(op.offset, op.data), mtime_ns=_now, time_set=_no),
    t.Truncate: _set(content=lambda node, op: node.content.truncate(op.size), mtime_ns=_now, time_set=_no),
    t.Allocate: _set(content=lambda node, op: node.content.truncate(max(op.size, node.content.size)), mtime_ns=_now),
    t.Chmod: _set(mode=lambda _node, op: op.mode),
    t.SetTimes: _set_times,
    t.SetAttribute: _set(attributes=_attributes),
}


# --- JSON of one node ---------------------------------------------------------------------------


def _node_to_json(node: Node) -> dict[str, Any]:
    form: dict[str, Any] = {"type": type_name(node), "mtime_ns": node.mtime_ns}
    match node:
        case File():
            form["data"] = base64.b64encode(node.content.read()).decode()
        case Directory():
            form["entries"] = dict(node.entries)
        case Symlink():
            form["target"] = node.target
    if not isinstance(node, Symlink):
        form["mode"] = node.mode
    if isinstance(node, (File, Directory)) and node.attributes:
        form["attributes"] = {name: base64.b64encode(value).decode() for name, value in node.attributes}
    return form


def _node_from_json(form: Mapping[str, Any]) -> Node:
    attributes = tuple(
        sorted((name, base64.b64decode(value)) for name, value in form.get("attributes", {}).items()),
    )
    match form["type"]:
        case "file":
            content = Content.of(base64.b64decode(form["data"], validate=True))
            return File(content, form["mode"], form["mtime_ns"], attributes)
        case "directory":
            return Directory(dict(form["entries"]), form["mode"], form["mtime_ns"], attributes)
        case "symlink":
            return Symlink(form["target"], form["mtime_ns"])
        case "fifo" | "socket":
            return Special(form["type"], form["mode"], form["mtime_ns"])
    text = f"unknown type of node {form['type']!r}"
    raise ValueError(text)


def mode_of(status_mode: int) -> int:
    """The permission bits of a ``st_mode``."""
    return stat.S_IMODE(status_mode)
