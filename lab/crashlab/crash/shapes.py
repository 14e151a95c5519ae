"""The names of a crash state: which paths lead to which inode, and their share of the digest.

A shape is a table of nodes without the bytes of its files. Its digest is a sum, as the digest of
the whole state is: one term per path that is no file, one per set of hard links, and per file a key
that multiplies what it holds. Equal sums mean equal :attr:`crashlab.tree.Tree.digest`.

What a power loss never leaves is taken away here: all below the temporary place, and the files
that the program rebuilds.

Most names of a tree are the same in every state of a trace. :class:`Ground` sums those up once, so
that a state costs what its trace has changed, not what lies there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from crashlab.record import proof
from crashlab.tree import ROOT_INODE, Directory, File, Node, Special, Symlink, Tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

MASK = (1 << 128) - 1
TEMPORARY = "tmp"


@lru_cache(maxsize=65_536)
def key_of_text(text: str) -> int:
    """128 bits of a text, odd, so that multiplying by it loses nothing."""
    data = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=16).digest(), "little") | 1


def key_of_file(paths: Sequence[str], head: File) -> int:
    """What multiplies the content of a file: all its names, each with the mode."""
    return sum(key_of_text(f"file {path!r} {head.mode:o} {head.attributes!r}") for path in paths)


def term_of_file(paths: Sequence[str], head: File, size: int, block_sum: int) -> int:
    """The share of one file under all its names."""
    return key_of_file(paths, head) * (block_sum + key_of_text(f"size {size}"))


def term_of_node(paths: Sequence[str], node: Node) -> int:
    """The share of a directory, link, FIFO or socket under all its names."""
    match node:
        case Directory():
            line = f"directory {node.mode:o} {node.attributes!r}"
        case Symlink():
            line = f"symlink {node.target!r}"
        case Special():
            line = f"{node.type} {node.mode:o}"
        case File():
            return term_of_file(paths, node, node.content.size, node.content.block_sum)
    return sum(key_of_text(f"{line} at {path!r}") for path in paths)


def term_of_links(paths: Sequence[str]) -> int:
    """The share of the fact that several names are one inode."""
    return key_of_text(f"linked {sorted(paths)!r}") if len(paths) > 1 else 0


def digest_of_tree(tree: Tree) -> int:
    """The sum over a whole tree: what enumerating gives for a state with this tree, without its outside.

    >>> digest_of_tree(Tree.empty())
    0
    """
    paths: dict[int, list[str]] = {}
    for path, inode, _ in tree.walk():
        paths.setdefault(inode, []).append(path)
    terms = (term_of_node(names, tree.nodes[inode]) + term_of_links(names) for inode, names in paths.items())
    return sum(terms) & MASK


@dataclass(frozen=True, slots=True)
class Shape:
    """``nodes`` after a power loss; ``paths`` of each inode in it; ``named`` before anything was taken away."""

    nodes: Mapping[int, Node]
    paths: Mapping[int, tuple[str, ...]]
    named: frozenset[int]


@lru_cache(maxsize=65_536)
def is_rebuilt(path: str, rebuilt: tuple[str, ...]) -> bool:
    """Whether the program makes this file anew, by the same globs as in the replay proof.

    >>> is_rebuilt("dir/state/lock.mdb", ("lock.mdb",)), is_rebuilt("dir/state/data.mdb", ("lock.mdb",))
    (True, False)
    """
    return proof.is_rebuilt(path, rebuilt)


def survey(nodes: Mapping[int, Node], rebuilt: tuple[str, ...]) -> Shape | None:
    """Walk the names of a table of nodes. None where a directory would lie below itself."""
    paths: dict[int, list[str]] = {}
    named = {ROOT_INODE}
    pruned: dict[int, Node] = {}
    stack: list[tuple[str, int, tuple[int, ...], bool]] = [("", ROOT_INODE, (), True)]
    while stack:
        path, inode, above, kept = stack.pop()
        node = nodes[inode]
        if not isinstance(node, Directory):
            continue
        if inode in above:
            return None
        above = (*above, inode)
        stays = kept and path != TEMPORARY
        gone = []
        for name in sorted(node.entries, reverse=True):
            child, below = node.entries[name], f"{path}/{name}" if path else name
            named.add(child)
            shown = stays and not (isinstance(nodes[child], File) and is_rebuilt(below, rebuilt))
            if shown:
                paths.setdefault(child, []).append(below)
            else:
                gone.append(name)
            stack.append((below, child, above, shown))
        if gone and kept:
            pruned[inode] = replace(node, entries={k: v for k, v in node.entries.items() if k not in gone})
    return Shape({**nodes, **pruned}, {inode: tuple(found) for inode, found in paths.items()}, frozenset(named))


def whole(nodes: Mapping[int, Node], rebuilt: tuple[str, ...]) -> Shape:
    """The shape of nodes that are known to have no loop."""
    shape = survey(nodes, rebuilt)
    assert shape is not None, "a tree that was recorded, or that stood, has no loops"
    return shape


@dataclass(frozen=True, slots=True)
class Hook:
    """A name that may lead elsewhere from state to state, in a directory that always has the same path."""

    key: tuple[int, str]
    path: str
    shown: bool


@dataclass(frozen=True, slots=True)
class Ground:
    """What no state of a trace moves.

    ``digest`` is the share of the nodes that nothing changes; ``named`` are the inodes with a name that
    stays; ``paths`` those of them of which something else may change; from ``hooks`` hangs all the rest.
    """

    digest: int
    named: frozenset[int]
    paths: Mapping[int, tuple[str, ...]]
    hooks: tuple[Hook, ...]

    @staticmethod
    def of(
        nodes: Mapping[int, Node],
        moved: Collection[tuple[int, str]],
        meant: Iterable[int],
        varied: Collection[int],
        rebuilt: tuple[str, ...],
    ) -> Ground:
        """The ground of the tree before a trace.

        ``moved`` entries change, and may mean the inodes ``meant``; of the inodes ``varied`` something else changes.
        """
        loose = _with_those_below(nodes, moved, meant)
        paths, named, hooks = _walk_still(nodes, moved, loose, rebuilt)
        plain = (share(names, nodes[inode]) for inode, names in paths.items() if inode not in varied)
        other = {inode: tuple(names) for inode, names in paths.items() if inode in varied}
        return Ground(sum(plain) & MASK, frozenset(named), other, tuple(hooks))


def _walk_still(
    nodes: Mapping[int, Node], moved: Collection[tuple[int, str]], loose: Collection[int], rebuilt: tuple[str, ...]
) -> tuple[dict[int, list[str]], set[int], list[Hook]]:
    """The paths of what stays, every inode with a name that stays, and where the rest hangs."""
    paths: dict[int, list[str]] = {}
    named, hooks = {ROOT_INODE}, list[Hook]()
    of_directory: dict[int, dict[str, None]] = {}
    for inode, name in moved:
        of_directory.setdefault(inode, {})[name] = None
    stack: list[tuple[str, int, bool]] = [("", ROOT_INODE, True)]
    while stack:
        path, inode, kept = stack.pop()
        node = nodes[inode]
        if not isinstance(node, Directory):
            continue
        stays, front, mine = kept and path != TEMPORARY, f"{path}/" if path else "", of_directory.get(inode, ())
        hooks += [Hook((inode, name), front + name, stays) for name in mine]
        for name, child in node.entries.items():
            if name in mine:
                continue
            if child in loose:
                hooks.append(Hook((inode, name), front + name, stays))
                continue
            named.add(child)
            shown = stays and not (isinstance(nodes[child], File) and is_rebuilt(front + name, rebuilt))
            if shown:
                paths.setdefault(child, []).append(front + name)
            stack.append((front + name, child, shown))
    return paths, named, hooks


def share(paths: Sequence[str], node: Node) -> int:
    """All of the share of one inode."""
    return term_of_node(paths, node) + term_of_links(paths)


def _with_those_below(
    nodes: Mapping[int, Node], moved: Collection[tuple[int, str]], meant: Iterable[int]
) -> frozenset[int]:
    """The inodes that may move, and all that may move with them."""
    loose, stack = set[int](), list(meant)
    while stack:
        inode = stack.pop()
        if inode not in loose:
            loose.add(inode)
            node = nodes.get(inode)
            if isinstance(node, Directory):
                stack += (child for name, child in node.entries.items() if (inode, name) not in moved)
    return frozenset(loose)


Names = tuple[dict[int, tuple[str, ...]], set[int]]
"""The paths of each inode that shows, and every inode that has a name."""


def hang(
    hung: Iterable[tuple[str, bool, int]],
    nodes: Mapping[int, Node],
    added: Mapping[int, Sequence[tuple[str, int]]],
    rebuilt: tuple[str, ...],
) -> Names | None:
    """The names of all that hangs from hooks: ``(path, shown, inode)`` each.

    ``added`` are entries that the directories of ``nodes`` have besides their own. None where a
    directory would lie below itself.
    """
    paths: dict[int, tuple[str, ...]] = {}
    named: set[int] = set()
    stack: list[tuple[str, bool, int, tuple[int, ...]]] = []
    for path, shown, inode in hung:
        named.add(inode)
        node = nodes[inode]
        if isinstance(node, Directory):
            stack.append((path, shown, inode, ()))
        elif shown and not (isinstance(node, File) and is_rebuilt(path, rebuilt)):
            paths[inode] = (*paths[inode], path) if inode in paths else (path,)
    while stack:
        path, shown, inode, above = stack.pop()
        named.add(inode)
        node = nodes[inode]
        if isinstance(node, Directory):
            if inode in above:
                return None
            if shown:
                paths[inode] = (*paths.get(inode, ()), path)
            stays, higher = shown and path != TEMPORARY, (*above, inode)
            for entries in (node.entries.items(), added.get(inode, ())):
                stack += ((f"{path}/{name}", stays, child, higher) for name, child in entries)
        elif shown and not (isinstance(node, File) and is_rebuilt(path, rebuilt)):
            paths[inode] = (*paths.get(inode, ()), path)
    return paths, named
