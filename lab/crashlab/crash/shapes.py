"""The names of a crash state: which paths lead to which inode, and their share of the digest.

A shape is a table of nodes without the bytes of its files. Its digest is a sum, as the digest of
the whole state is: one term per path that is no file, one per set of hard links, and per file a key
that multiplies what it holds. Equal sums mean equal :attr:`crashlab.tree.Tree.digest`.

What a power loss never leaves is taken away here: all below the temporary place, and the files
that the program rebuilds.
"""

from __future__ import annotations

import fnmatch
import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from crashlab.tree import ROOT_INODE, Directory, File, Node, Special, Symlink, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MASK = (1 << 128) - 1
TEMPORARY = "tmp"
REBUILT = ("*-shm",)


@lru_cache(maxsize=65_536)
def key_of_text(text: str) -> int:
    """128 bits of a text, odd, so that multiplying by it loses nothing."""
    data = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=16).digest(), "little") | 1


def term_of_file(paths: Sequence[str], head: File, size: int, block_sum: int) -> int:
    """The share of one file under all its names."""
    content = block_sum + key_of_text(f"size {size}")
    return sum(key_of_text(f"file {path!r} {head.mode:o} {head.attributes!r}") for path in paths) * content


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


def is_rebuilt(path: str, rebuilt: Sequence[str]) -> bool:
    """Whether the program makes this file anew."""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in rebuilt)


def survey(nodes: Mapping[int, Node], rebuilt: Sequence[str]) -> Shape | None:
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
