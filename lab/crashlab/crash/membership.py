"""Whether a tree is one that a power loss may leave: membership without enumeration.

This is how real disks judge the model: a crash image is read in, and asked for. Under a journal some
prefix of the metadata changes must have exactly these names; under entries each name must be a
version of its entry, found by walking the tree down with what is known so far. Then each file's size
and each of its blocks must be one of those that may show.

Times do not count, as they do not in :attr:`crashlab.tree.Tree.digest`. Two entries that no content
tells apart may be tried in turn; nothing else is searched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from crashlab.content import EMPTY
from crashlab.crash import shapes
from crashlab.crash.entries import EntryCuts
from crashlab.crash.moments import Moment, moment_after
from crashlab.crash.orders import cuts_of
from crashlab.crash.profiles import Profile, parse_profile
from crashlab.subject import REBUILT
from crashlab.tree import ROOT_INODE, Directory, File, Node, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from crashlab import trace as t
    from crashlab.content import Content
    from crashlab.crash.cuts import Cut, Cuts, Slot
    from crashlab.crash.micro import Key
    from crashlab.crash.moments import Choice
    from crashlab.crash.rules import BlockVersion
    from crashlab.crash.variants import Variants


def contains(
    trace: t.Trace,
    moment: Moment | int,
    tree: Tree,
    profile: Profile | str,
    *,
    rebuilt: Sequence[str] = REBUILT,
) -> bool:
    """Whether power lost at ``moment`` may leave ``tree``.

    ``moment`` is the number of completed ops, or a :class:`~crashlab.crash.moments.Moment`.

    >>> from crashlab import trace as t
    >>> ops = (t.Create(n=1, path="a", inode=7), t.Write(n=2, path="a", inode=7, offset=0, data=b"hi"))
    >>> trace = t.Trace(root="/r", base=Tree.empty(), ops=ops)
    >>> empty = Tree.empty().apply(ops[0])
    >>> contains(trace, 2, empty, "ext4"), contains(trace, 0, empty, "ext4")
    (True, False)
    """
    kept = parse_profile(profile) if isinstance(profile, str) else profile
    when = moment if isinstance(moment, Moment) else moment_after(trace, moment)
    return within(cuts_of(trace, kept, rebuilt=rebuilt), when, tree)


def within(cuts: Cuts, moment: Moment, tree: Tree) -> bool:
    """The same for cuts that are at hand: many trees of one trace."""
    return any(True for _ in fitting(cuts, moment, tree))


def fitting(cuts: Cuts, moment: Moment, tree: Tree) -> Iterator[Cut]:
    """The cuts that may come out as ``tree``."""
    if isinstance(cuts, EntryCuts):
        yield from _Search(cuts, moment, tree).fitting()
        return
    names = _names(tree)
    for cut in cuts.at(moment, range(cuts.count(moment))):
        if _names(Tree(cut.shape.nodes)) == names and holds(cut, tree):
            yield cut


def ways(cut: Cut, tree: Tree) -> tuple[int, ...]:
    """Of a cut that may come out as ``tree``, the way of each varied file in which it does."""
    return tuple(_way(slot, tree.nodes[_inode_at(tree, slot.paths[0])]) for slot in cut.varied)


def _inode_at(tree: Tree, path: str) -> int:
    inode = tree.lookup(path)
    assert inode is not None, "the cut holds the tree"
    return inode


def _way(slot: Slot, found: Node) -> int:
    head = next(number for number, node in enumerate(slot.heads) if _plain(node) == _plain(found))
    if slot.variants is None:
        return head
    assert isinstance(found, File)
    return head * slot.variants.count + _variant(slot.variants, found.content)


def _variant(variants: Variants, content: Content) -> int:
    """The number of the variant with this content."""
    start = 0
    for sized in variants.sizes:
        if sized.size == content.size:
            pairs = zip(sized.blocks, content.blocks, strict=True)
            chosen = [_index(versions, block) for versions, block in pairs]
            if None not in chosen:
                return start + sized.number([index for index in chosen if index is not None])
        start += sized.count
    return 0  # the only one: where nothing may differ, no sizes are kept


def _index(versions: Sequence[BlockVersion], block: bytes) -> int | None:
    return next((number for number, version in enumerate(versions) if version.data == block), None)


def _names(tree: Tree) -> set[str]:
    return {path for path, _, _ in tree.walk()}


def holds(cut: Cut, tree: Tree) -> bool:
    """Whether a cut with the same names may come out as ``tree``."""
    slots = {slot.inode: slot for slot in cut.slots}
    pairs = {(inode, tree.lookup(path)) for inode, paths in cut.shape.paths.items() for path in paths}
    if len({mine for mine, _ in pairs}) < len(pairs) or len({other for _, other in pairs}) < len(pairs):
        return False  # linked otherwise
    return all(
        other is not None and _fits(cut.shape.nodes[mine], slots.get(mine), tree.nodes[other]) for mine, other in pairs
    )


def _fits(node: Node, slot: Slot | None, found: Node) -> bool:
    if slot is None:
        return _plain(node) == _plain(found) and (
            not isinstance(node, File) or not isinstance(found, File) or _same_bytes(node, found)
        )
    if not any(_plain(head) == _plain(found) for head in slot.heads):
        return False
    return slot.variants is None or (isinstance(found, File) and slot.variants.holds(found.content))


def _same_bytes(node: File, found: File) -> bool:
    return (node.content.size, node.content.blocks) == (found.content.size, found.content.blocks)


def _plain(node: Node) -> Node:
    """The node without its bytes, names and time."""
    if isinstance(node, File):
        return replace(node, content=EMPTY, mtime_ns=0)
    if isinstance(node, Directory):
        return replace(node, entries={}, mtime_ns=0)
    return replace(node, mtime_ns=0)


@dataclass(frozen=True, slots=True)
class _Place:
    """A directory under ``path``: its inode in the model and in the tree, and those above it in the model."""

    path: str
    inode: int
    other: int
    above: tuple[int, ...] = ()

    def below(self, name: str, inode: int, other: int) -> _Place:
        """A directory inside of this one."""
        return _Place(f"{self.path}/{name}" if self.path else name, inode, other, (*self.above, self.inode))


@dataclass(frozen=True, slots=True)
class _Partial:
    """A search half way: ``keys`` of the directory ``here`` are to be picked, then those ``todo``."""

    here: _Place
    keys: tuple[Key, ...]
    todo: tuple[_Place, ...]
    picked: Mapping[Key, Choice]


class _Search:
    """Walks a tree down and picks for each entry a version that fits what the tree has there."""

    def __init__(self, cuts: EntryCuts, moment: Moment, tree: Tree) -> None:
        self._cuts, self._moment, self._tree = cuts, moment, tree
        self._choices = cuts.choices(moment)
        self._table = cuts.table(moment)
        self._heads = cuts.heads(moment)

    def fitting(self) -> Iterator[Cut]:
        """Cuts that may come out as the tree. The stack is our own: a directory may have thousands of entries."""
        root = _Place("", ROOT_INODE, ROOT_INODE)
        stack = [_Partial(root, (), (root,), {})]
        while stack:
            partial = stack.pop()
            if partial.keys:
                stack += self._picks(partial)
            elif partial.todo:
                stack += self._opened(partial)
            else:
                yield from self._finished(partial.picked)

    def _opened(self, partial: _Partial) -> Iterator[_Partial]:
        """The next directory, if the entries that nothing changed are those of the tree."""
        place, rest = partial.todo[0], partial.todo[1:]
        node, found = self._table[place.inode], self._tree.nodes[place.other]
        if not isinstance(node, Directory) or not isinstance(found, Directory) or place.inode in place.above:
            return
        keys = tuple(key for key in self._choices if key[0] == place.inode)
        if place.path == shapes.TEMPORARY:  # emptied: what its entries mean matters to rule B4 only
            if not found.entries:
                yield replace(partial, here=place, keys=keys, todo=rest)
            return
        hidden = {name for name, child in node.entries.items() if self._rebuilt(place.path, name, self._table[child])}
        known = node.entries.keys() - hidden
        if known <= found.entries.keys() <= known | {name for _, name in keys}:
            below = (
                place.below(name, node.entries[name], found.entries[name])
                for name in sorted(known)
                if isinstance(self._table[node.entries[name]], Directory)
            )
            yield replace(partial, here=place, keys=keys, todo=(*rest, *below))

    def _picks(self, partial: _Partial) -> Iterator[_Partial]:
        """One more entry picked, in each way that fits; the last one is tried first."""
        here, key, others = partial.here, partial.keys[0], partial.keys[1:]
        found = self._tree.nodes[here.other]
        assert isinstance(found, Directory)
        there = found.entries.get(key[1])
        # A directory under two names is walked twice, with one meaning of its entries.
        options = (partial.picked[key],) if key in partial.picked else self._choices[key]
        for choice in reversed(options):
            if here.path != shapes.TEMPORARY and not self._possible(choice, here.path, key[1], there):
                continue
            todo = partial.todo
            if choice.inode is not None and there is not None and isinstance(self._table[choice.inode], Directory):
                todo = (*todo, here.below(key[1], choice.inode, there))
            yield _Partial(here, others, todo, {**partial.picked, key: choice})

    def _possible(self, choice: Choice, path: str, name: str, there: int | None) -> bool:
        if choice.inode is None:
            return there is None
        node = self._table[choice.inode]
        if self._rebuilt(path, name, node):
            return there is None
        if there is None:
            return False
        found = self._tree.nodes[there]
        heads = self._heads.get(choice.inode, (node,))
        if not any(_plain(head) == _plain(found) for head in heads):
            return False
        if not isinstance(found, File) or choice.inode not in self._cuts.history.events:
            return True
        return self._cuts.variants(choice.inode, self._moment, None).holds(found.content)

    def _rebuilt(self, path: str, name: str, node: Node) -> bool:
        below = f"{path}/{name}" if path else name
        return isinstance(node, File) and shapes.is_rebuilt(below, self._cuts.rebuilt)

    def _finished(self, picked: Mapping[Key, Choice]) -> Iterator[Cut]:
        """The cut of these picks, if rule B4 and the links agree. Entries out of reach mean their newest."""
        whole = {key: picked.get(key, choices[0]) for key, choices in self._choices.items()}
        for cut in self._cuts.at(self._moment, [self._cuts.number(self._moment, whole)]):
            if holds(cut, self._tree):
                yield cut
