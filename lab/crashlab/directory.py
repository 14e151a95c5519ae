"""Trees to real directories and back.

:func:`read` takes a directory in and follows no symbolic link out of it; :func:`write` fills an
empty directory with exactly a tree; :func:`clear` empties one. Names that are no UTF-8, links, empty
directories, modes and modification times survive the round trip.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from typing import TYPE_CHECKING

from crashlab.content import Content
from crashlab.errors import LabError
from crashlab.tree import ROOT_INODE, Directory, File, Node, Special, Symlink, Tree, mode_of

if TYPE_CHECKING:
    from pathlib import Path

NUMBER = dict[tuple[int, int], int]
"""From ``(st_dev, st_ino)`` of the real file system to the inode number of the tree."""

_HAS_ATTRIBUTES = sys.platform == "linux"


def read(directory: str | Path) -> Tree:
    """The tree that lies under ``directory``, which becomes the root.

    Raises LabError for a device file, or a file that cannot be read.
    """
    return read_numbered(directory)[0]


def read_numbered(directory: str | Path) -> tuple[Tree, NUMBER]:
    """The tree, and which real inode became which number."""
    nodes: dict[int, Node] = {}
    numbers: NUMBER = {}
    try:
        root = os.stat(directory)
        numbers[root.st_dev, root.st_ino] = ROOT_INODE
        nodes[ROOT_INODE] = _read_directory(os.fspath(directory), root, nodes, numbers)
    except OSError as error:
        text = f"cannot read the tree under {os.fspath(directory)!r}: {error}"
        raise LabError(text) from error
    return Tree(nodes), numbers


def _read_directory(path: str, status: os.stat_result, nodes: dict[int, Node], numbers: NUMBER) -> Directory:
    entries = {}
    for entry in sorted(os.scandir(path), key=lambda each: each.name):
        below = entry.stat(follow_symlinks=False)
        identity = below.st_dev, below.st_ino
        number = numbers.get(identity)
        if number is None:
            number = numbers[identity] = len(numbers)
            nodes[number] = _read_node(entry.path, below, nodes, numbers)
        entries[entry.name] = number
    return Directory(entries, mode_of(status.st_mode), status.st_mtime_ns, _attributes(path))


def _read_node(path: str, status: os.stat_result, nodes: dict[int, Node], numbers: NUMBER) -> Node:
    kind, mode = stat.S_IFMT(status.st_mode), mode_of(status.st_mode)
    if kind == stat.S_IFDIR:
        return _read_directory(path, status, nodes, numbers)
    if kind == stat.S_IFREG:
        with open(path, "rb", buffering=0) as file:
            return File(Content.of(file.readall()), mode, status.st_mtime_ns, _attributes(path))
    if kind == stat.S_IFLNK:
        return Symlink(os.readlink(path), status.st_mtime_ns)
    if kind in (stat.S_IFIFO, stat.S_IFSOCK):
        return Special("fifo" if kind == stat.S_IFIFO else "socket", mode, status.st_mtime_ns)
    text = f"{path!r} is a device; the lab models files, directories, links, FIFOs and sockets"
    raise LabError(text)


def _attributes(path: str) -> tuple[tuple[str, bytes], ...]:
    if not _HAS_ATTRIBUTES:
        return ()
    try:
        names = sorted(name for name in os.listxattr(path) if name.startswith("user."))
    except OSError:  # a file system without attributes has none
        return ()
    return tuple((name, os.getxattr(path, name)) for name in names)


def write(tree: Tree, directory: str | Path) -> None:
    """Fill the empty ``directory`` with ``tree``.

    A directory under two names, which a power loss inside its renaming may leave, becomes two directories with the
    same files: no call makes the one with two names.
    Raises LabError where the disk refuses, for example because it is full; what was written until
    then stays, for the caller to clear.
    """
    root = os.fspath(directory)
    first_path: dict[int, str] = {}
    try:
        for path, inode, node in tree.walk():
            real = os.path.join(root, path)
            if inode in first_path and not isinstance(node, Directory):
                os.link(first_path[inode], real, follow_symlinks=False)
                continue
            first_path[inode] = real
            _write_node(node, real)
        top = tree.nodes[ROOT_INODE]
        assert isinstance(top, Directory)
        below = [(os.path.join(root, path), node) for path, _, node in tree.walk() if isinstance(node, Directory)]
        for real, node in [*reversed(below), (root, top)]:  # last, children first: making an entry changes both
            os.chmod(real, node.mode)
            os.utime(real, ns=(node.mtime_ns, node.mtime_ns))
    except OSError as error:
        text = f"cannot write a crash state to {root!r}: {error}"
        raise LabError(text) from error


def _write_node(node: Node, path: str) -> None:
    if isinstance(node, Directory):
        os.mkdir(path, 0o700)
    elif isinstance(node, File):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            _write_all(descriptor, node.content)
        finally:
            os.close(descriptor)
        os.chmod(path, node.mode)
    elif isinstance(node, Symlink):
        os.symlink(node.target, path)
    elif node.type == "fifo":
        os.mkfifo(path)
        os.chmod(path, node.mode)
    else:
        os.mknod(path, stat.S_IFSOCK | 0o600)
        os.chmod(path, node.mode)  # mknod takes the umask off
    if isinstance(node, (File, Directory)):
        for name, value in node.attributes:
            os.setxattr(path, name, value)
    if not isinstance(node, Directory):
        _set_times(path, node.mtime_ns)


def _write_all(descriptor: int, content: Content) -> None:
    rest = memoryview(content.read())
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _set_times(path: str, mtime_ns: int) -> None:
    os.utime(path, ns=(mtime_ns, mtime_ns), follow_symlinks=os.utime not in os.supports_follow_symlinks)


def clear(directory: str | Path) -> None:
    """Remove everything below ``directory``, whatever modes it has; follows no symbolic link."""
    with contextlib.suppress(PermissionError):
        os.chmod(directory, 0o700)
    for entry in list(os.scandir(directory)):
        if entry.is_dir(follow_symlinks=False):
            try:
                os.rmdir(entry.path)  # many are empty, and that is one call instead of seven
            except OSError:
                clear(entry.path)
                os.rmdir(entry.path)
        else:
            os.unlink(entry.path)
