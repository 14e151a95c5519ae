"""The tree as it is after the calls told so far: names, inodes, bytes, kept beside the program, never read from disk.

What is decoded lags behind the program, so the disk may have moved on; only what lies outside of the
root (links on the way to it) is looked up there. Not kept: owners, access times, and times that
nobody set by hand.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crashlab.content import BLOCK_BYTES
from crashlab.tree import ROOT_INODE, Directory, File, Symlink, Tree, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_ZEROS = bytes(BLOCK_BYTES)
_MOST_LINKS = 40  # path_resolution(7): the kernel gives up after 40


class Bytes:
    r"""The bytes of a file, in blocks; a hole takes no memory.

    >>> data = Bytes()
    >>> data.write(1, b"ab")
    >>> data.read(0, 10)
    b'\x00ab'
    """

    def __init__(self) -> None:
        self.size = 0
        self._blocks: dict[int, bytes] = {}

    def read(self, offset: int, size: int) -> bytes:
        """At most ``size`` bytes from ``offset`` on."""
        end = min(offset + size, self.size)
        if end <= offset:
            return b""
        first = offset // BLOCK_BYTES
        blocks = [self._blocks.get(index, _ZEROS) for index in range(first, -(-end // BLOCK_BYTES))]
        start = offset - first * BLOCK_BYTES
        return b"".join(blocks)[start : start + end - offset]

    def write(self, offset: int, data: bytes) -> None:
        """Lay ``data`` over the bytes at ``offset``."""
        end, view, at = offset + len(data), memoryview(data), offset
        while at < end:
            index, inside = divmod(at, BLOCK_BYTES)
            size = min(BLOCK_BYTES - inside, end - at)
            piece = bytes(view[at - offset : at - offset + size])
            if size < BLOCK_BYTES:
                old = self._blocks.get(index, _ZEROS)
                piece = old[:inside] + piece + old[inside + size :]
            self._blocks[index] = piece
            at += size
        if data:
            self.size = max(self.size, end)

    def truncate(self, size: int) -> None:
        """Cut or grow with zeros."""
        if size < self.size:
            kept, inside = divmod(size, BLOCK_BYTES)
            last = self._blocks.get(kept)
            for index in [index for index in self._blocks if index >= kept]:
                del self._blocks[index]
            if inside and last is not None:
                self._blocks[kept] = last[:inside] + _ZEROS[inside:]
        self.size = size


@dataclass(eq=False, slots=True)
class Node:
    """An inode below the root. ``kind`` is as :func:`crashlab.tree.type_name` says."""

    number: int
    kind: str
    mode: int = 0o644
    target: str = ""
    path: str = ""
    mtime_ns: int | None = None
    data: Bytes = field(default_factory=Bytes)
    entries: dict[str, Node] = field(default_factory=dict)
    attributes: dict[str, bytes] = field(default_factory=dict)
    parent: Node | None = None
    name: str = ""
    stored: set[int] = field(default_factory=set)

    def path_of(self, name: str) -> str:
        """The path of an entry of this directory, as it is called now."""
        parts, directory = [name], self
        while directory.parent is not None:
            parts.append(directory.name)
            directory = directory.parent
        return "/".join(reversed(parts))


Place = Node | str
"""A directory: below the root, or an absolute path elsewhere."""


@dataclass(frozen=True, slots=True)
class Where:
    """What a path means. ``path`` is relative to the root, or None outside of it; ``node`` what is there."""

    real: str
    asked: str
    path: str | None = None
    parent: Node | None = None
    name: str = ""
    node: Node | None = None


class Mirror:
    """The tree below ``root`` (a real path), changed call by call."""

    def __init__(self, root: str, base: Tree, numbers: Mapping[int, int]) -> None:
        self.root = root
        self.next_number = max(numbers.values(), default=0) + 1
        nodes = {inode: _node(numbers[inode], node) for inode, node in base.nodes.items()}
        for inode, node in base.nodes.items():
            if isinstance(node, Directory):
                for name, child in node.entries.items():
                    self.bind(nodes[inode], name, nodes[child])
        self.top = nodes[ROOT_INODE]

    def new(self, kind: str, mode: int = 0o644, target: str = "") -> Node:
        """A new inode without a name."""
        node = Node(self.next_number, kind, mode, target)
        self.next_number += 1
        return node

    def bind(self, parent: Node, name: str, node: Node) -> None:
        """``name`` now means ``node``."""
        parent.entries[name] = node
        if node.kind == "directory":
            node.parent, node.name = parent, name

    def resolve(self, start: Place, text: str, *, follow: bool) -> Where | None:
        """Where ``text`` leads from ``start``; None where a directory on the way is not there.

        The last name is kept as it is, unless ``follow``.
        """
        asked = os.path.abspath(os.path.join(self.real(start), text))
        place: Place = self._enter("/") if text.startswith("/") else start
        parts, links = deque(text.split("/")), 0
        follow = follow or text.endswith("/")
        while parts:
            part = parts.popleft()
            last = not any(parts)
            if part in ("", "."):
                continue
            if part == "..":
                place = self._up(place)
                continue
            if isinstance(place, str):
                candidate = os.path.join(place, part)
                target = "" if last and not follow else _link_target(candidate)
                if not target:
                    place = self._enter(candidate)
                    continue
            else:
                node = place.entries.get(part)
                if last and not (follow and node is not None and node.kind == "symlink"):
                    path = place.path_of(part)
                    return Where(f"{self.root}/{path}", asked, path, place, part, node)
                if node is None or node.kind not in ("directory", "symlink"):
                    return None
                if node.kind == "directory":
                    place = node
                    continue
                target = node.target
            links += 1
            if links > _MOST_LINKS:
                return None
            parts.extendleft(reversed(target.split("/")))
            place = self._enter("/") if target.startswith("/") else place
        return self._at(place, asked)

    def real(self, place: Place) -> str:
        """The absolute path of a directory."""
        if isinstance(place, str):
            return place
        return self.root if place.parent is None else f"{self.root}/{place.parent.path_of(place.name)}"

    def _at(self, place: Place, asked: str) -> Where:
        if isinstance(place, str):
            return Where(place, asked)
        path = "" if place.parent is None else place.parent.path_of(place.name)
        return Where(self.real(place), asked, path, place.parent, place.name, place)

    def _enter(self, path: str) -> Place:
        return self.top if path == self.root else path

    def _up(self, place: Place) -> Place:
        if isinstance(place, str):
            return self._enter(os.path.dirname(place))
        return os.path.dirname(self.root) if place.parent is None else place.parent


def _link_target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:  # no link, or nothing at all
        return ""


def _node(number: int, found: object) -> Node:
    assert not isinstance(found, str)
    node = Node(number, type_name(found))  # type: ignore[arg-type]  # any node of a tree
    if isinstance(found, Symlink):
        node.target = found.target
        return node
    node.mode, node.mtime_ns = found.mode, found.mtime_ns  # type: ignore[attr-defined]  # every other kind has them
    if isinstance(found, File | Directory):
        node.attributes = dict(found.attributes)
    if isinstance(found, File):
        node.data.write(0, found.content.read())
    return node
