"""Which protocol would hold where no barrier helps, and which files failing states show otherwise.

A pattern is chosen by how the file is changed: in place, by appending, or by renaming; it names no line of
the program, since what must change there is the order of its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash.places import place_path
from crashlab.crash.shapes import TEMPORARY
from crashlab.crash.states import Prefixes
from crashlab.tree import Directory, File, Tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from crashlab.crash.power import PowerLoss, Recipe
    from crashlab.crash.states import CrashState


def involved(states: Iterable[tuple[PowerLoss, Recipe]]) -> set[int]:
    """The files and names that these states show otherwise than the running system did."""
    found: set[int] = set()
    trees: dict[int, Prefixes] = {}
    for loss, recipe in states:
        prefixes = trees.setdefault(id(loss), Prefixes(loss.trace))
        found |= set(_differing(prefixes.tree(loss.moment(recipe.done).started), loss.tree(recipe)))
    return found


def _differing(running: Tree, crashed: Tree) -> Iterator[int]:
    for inode, node in crashed.nodes.items():
        other = running.nodes.get(inode)
        if isinstance(node, Directory) and isinstance(other, Directory):
            for name in node.entries.keys() | other.entries.keys():
                ends = {node.entries.get(name), other.entries.get(name)}
                yield from (end for end in ends if end is not None and len(ends) > 1)
        elif isinstance(node, File) and isinstance(other, File) and _seen_in(node) != _seen_in(other):
            yield inode


def _seen_in(file: File) -> tuple[object, ...]:
    return file.content, file.mode, file.attributes


def pattern_at(state: CrashState) -> str:
    """The protocol for the files that one power loss shows otherwise than the running system did."""
    running = Prefixes(state.trace).tree(state.last_op)
    return pattern_for(state.trace, set(_differing(running, state.tree)))


def pattern_for(trace: t.Trace, concerned: Collection[int]) -> str:
    """The protocol that would hold, for the file that was changed in place or appended to."""
    writes = [op for op in trace.ops if isinstance(op, (t.Write, t.Truncate, t.Allocate))]
    kept = [op for op in writes if not op.path.startswith(f"{TEMPORARY}/")]
    if writes and not kept:
        return "Keep the state under lab.dir or the home directory: after a power loss $TMPDIR is empty."
    mine = [op for op in kept if op.inode in concerned] or kept
    last = mine[-1] if mine else None
    if last is None or _is_renamed(trace, last.inode):
        return (
            "Let one durable change, a rename or a record with a checksum, be the moment at which the new state "
            "counts: what comes before it must not count alone, and whatever it needs is synced before it."
        )
    if is_log(trace, last.inode):
        return (
            f"Give each record of {place_path(last.path)} its length and a checksum, fsync after each append, let the "
            "reader ignore a tail that does not match, and cut that tail off before the next append."
        )
    return (
        f"Write a temporary file in the same directory, fsync it, rename it over {place_path(last.path)}, fsync the "
        "directory: a reader then meets the old file or the new one, never a mix."
    )


def _is_renamed(trace: t.Trace, inode: int) -> bool:
    """Whether the file gets its name by a rename: then it is a temporary one, and nothing to be replaced."""
    return any(isinstance(op, t.Rename) and op.inode == inode for op in trace.ops)


def is_log(trace: t.Trace, inode: int) -> bool:
    """Whether the file is only ever appended to, and more than once."""
    changes = [op for op in trace.ops if isinstance(op, (t.Write, t.Truncate, t.Allocate)) and op.inode == inode]
    node = trace.base.nodes.get(inode)
    size = node.content.size if isinstance(node, File) else 0
    for op in changes:
        if not isinstance(op, t.Write) or op.offset != size:
            return False
        size += len(op.data)
    return len(changes) > 1 or inode in trace.base.nodes
