"""The tree: what each op does to it, what its digest tells apart, and its forms for people and for JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab import trace as t
from crashlab.content import Content
from crashlab.errors import LabError
from crashlab.tree import Directory, File, Special, Symlink, Tree, describe, type_name


def apply(*ops: tuple[type[t.Op], dict[str, Any]], tree: Tree | None = None) -> Tree:
    """A tree after these ops, numbered in order."""
    tree = Tree.empty() if tree is None else tree
    for n, (op_type, fields) in enumerate(ops, start=1):
        tree = tree.apply(op_type(n=n, time_ns=1000 + n, **fields))
    return tree


def create(path: str, inode: int, **fields: Any) -> tuple[type[t.Op], dict[str, Any]]:
    """A new file."""
    return t.Create, {"path": path, "inode": inode, **fields}


def write(path: str, inode: int, data: bytes, offset: int = 0) -> tuple[type[t.Op], dict[str, Any]]:
    """Bytes in a file."""
    return t.Write, {"path": path, "inode": inode, "offset": offset, "data": data}


def mkdir(path: str, inode: int) -> tuple[type[t.Op], dict[str, Any]]:
    """A new directory."""
    return t.MakeDirectory, {"path": path, "inode": inode}


def op(op_type: type[t.Op], path: str, inode: int, **fields: Any) -> tuple[type[t.Op], dict[str, Any]]:
    """Any other op."""
    return op_type, {"path": path, "inode": inode, **fields}


SMALL = apply(mkdir("d", 1), create("d/a", 2), write("d/a", 2, b"hello"), op(t.Link, "b", 2))


def content(tree: Tree, path: str) -> bytes:
    """The bytes of a file."""
    node = tree.node(path)
    assert isinstance(node, File)
    return node.content.read()


# --- what ops do ---------------------------------------------------------------------------------


def test_a_write_through_one_name_shows_under_every_name() -> None:
    """Hard links are two names of one file."""
    tree = apply(write("b", 2, b"J"), tree=SMALL)
    assert content(tree, "d/a") == content(tree, "b") == b"Jello"


def test_a_file_without_a_name_can_still_be_written_and_named_again() -> None:
    """After its last unlink a file lives on for its descriptors, unseen in the tree."""
    gone = apply(op(t.Unlink, "b", 2), op(t.Unlink, "d/a", 2), write("d/a", 2, b"x", 9), tree=SMALL)
    assert [path for path, _, _ in gone.walk()] == ["d"]
    back = apply(op(t.Link, "c", 2), tree=gone)
    assert content(back, "c") == b"hello\0\0\0\0x"


def test_a_file_is_created_without_a_name_and_linked_later() -> None:
    """O_TMPFILE: a Create with an empty path binds no name."""
    made = apply(create("", 3), write("", 3, b"x"), tree=SMALL)
    assert made.difference(SMALL) == []
    assert content(apply(op(t.Link, "d/c", 3), tree=made), "d/c") == b"x"


def test_a_rename_replaces_and_moves_whole_directories() -> None:
    """A file replaces a file; a directory takes along what lies in it."""
    tree = apply(create("c", 3), op(t.Rename, "c", 3, to="d/a"), op(t.Rename, "d", 1, to="e"), tree=SMALL)
    assert [path for path, _, _ in tree.walk()] == ["b", "e", "e/a"]
    assert content(tree, "e/a") == b""
    assert content(tree, "b") == b"hello"


def test_attributes_sizes_and_times_change_alone() -> None:
    """chmod, truncate, allocate, utime and setxattr touch what they name, and nothing else."""
    tree = apply(
        op(t.Chmod, "b", 2, mode=0o600),
        op(t.Truncate, "b", 2, size=2),
        op(t.Allocate, "b", 2, size=4),
        op(t.Allocate, "b", 2, size=1),
        op(t.SetAttribute, "b", 2, name="user.y", value=b"2"),
        op(t.SetAttribute, "b", 2, name="user.x", value=b"1"),
        op(t.SetAttribute, "b", 2, name="user.y", value=None),
        op(t.SetTimes, "b", 2, mtime_ns=77),
        tree=SMALL,
    )
    assert tree.node("d/a") == File(Content.of(b"he\0\0"), 0o600, 77, (("user.x", b"1"),), time_set=True)


def test_a_name_op_sets_the_time_of_its_directory() -> None:
    """The directory's modification time is that of the last op on its names."""
    tree = apply(op(t.Unlink, "d/a", 2), tree=SMALL)
    node = tree.node("d")
    assert isinstance(node, Directory)
    assert node.mtime_ns == 1001


def test_events_and_barriers_change_nothing() -> None:
    """They are ops without an effect on files."""
    barriers = [
        op(t.Fsync, "b", 2),
        (t.Sync, {}),
        (t.Ack, {}),
        (t.Effect, {"name": "mail"}),
        (t.SavePoint, {"name": "x"}),
    ]
    assert apply(*barriers, tree=SMALL) is SMALL


def test_applying_shares_and_never_changes_the_tree_before() -> None:
    """Trees are immutable: the old one stays, and nodes that an op does not touch are the same objects."""
    before = SMALL.digest
    after = apply(create("c", 3), tree=SMALL)
    assert SMALL.digest == before
    assert after.nodes[2] is SMALL.nodes[2]
    assert SMALL.lookup("c") is None


@pytest.mark.parametrize(
    "wrong",
    [
        write("none", 99, b"x"),
        op(t.Unlink, "none", 99),
        op(t.Unlink, "none/below", 99),
        op(t.Rename, "none", 99, to="x"),
        create("b/below-a-file", 9),
        create("none/x", 9),
        op(t.Unlink, "b/below-a-file", 9),
        op(t.RemoveDirectory, "none", 9),
        write("d", 1, b"x"),
        op(t.Link, "new", 99),
        op(t.Truncate, "d", 1, size=0),
        op(t.Chmod, "none", 99, mode=0),
        op(t.Chmod, "l", 4, mode=0),
    ],
    ids=lambda wrong: f"{wrong[0].KIND} {wrong[1]['path']}",
)
def test_an_op_that_does_not_fit_is_refused(wrong: tuple[type[t.Op], dict[str, Any]]) -> None:
    """Where a recording missed something, the next op says so instead of making up a tree."""
    tree = apply((t.MakeSymlink, {"path": "l", "inode": 4, "target": "d"}), tree=SMALL)
    with pytest.raises(LabError, match="does not fit the tree before it"):
        apply(wrong, tree=tree)


# --- looking ---------------------------------------------------------------------------------------


def test_walk_goes_parents_first_in_the_order_of_names() -> None:
    """Every name once, sorted, each directory before what lies in it; or only what lies below a place."""
    tree = apply(create("d/z", 3), mkdir("d/m", 4), create("d/m/x", 5), create("a", 6), tree=SMALL)
    assert [path for path, _, _ in tree.walk()] == ["a", "b", "d", "d/a", "d/m", "d/m/x", "d/z"]
    assert [path for path, _, _ in tree.walk("d/m")] == ["d/m/x"]
    assert list(tree.walk("none")) == []


def test_lookup_finds_names_and_nothing_else() -> None:
    """The empty path is the root; a name below a file is nothing; links are not followed."""
    tree = apply((t.MakeSymlink, {"path": "l", "inode": 3, "target": "d"}), tree=SMALL)
    assert (tree.lookup(""), tree.lookup("d/a"), tree.lookup("b/x"), tree.lookup("l/a")) == (0, 2, None, None)
    assert tree.node("nothing") is None


def test_without_takes_away_a_path_and_all_below() -> None:
    """The rest stays; taking away nothing gives the same tree."""
    assert [path for path, _, _ in SMALL.without("d").walk()] == ["b"]
    assert SMALL.without("none") is SMALL


ANOTHER: dict[str, Tree] = {
    "a name": apply(op(t.Rename, "b", 2, to="c"), tree=SMALL),
    "a byte": apply(write("b", 2, b"H"), tree=SMALL),
    "a size": apply(op(t.Truncate, "b", 2, size=6), tree=SMALL),
    "a mode": apply(op(t.Chmod, "b", 2, mode=0o600), tree=SMALL),
    "a directory's mode": apply(op(t.Chmod, "d", 1, mode=0o700), tree=SMALL),
    "an attribute": apply(op(t.SetAttribute, "b", 2, name="user.x", value=b""), tree=SMALL),
    "an empty directory": apply(mkdir("e", 3), tree=SMALL),
    "a link": apply(op(t.Unlink, "b", 2), create("b", 3), write("b", 3, b"hello"), tree=SMALL),
    "a kind": apply(op(t.Unlink, "b", 2), (t.MakeSpecial, {"path": "b", "inode": 3, "type": "fifo"}), tree=SMALL),
    "a target": apply(op(t.Unlink, "b", 2), (t.MakeSymlink, {"path": "b", "inode": 3, "target": "x"}), tree=SMALL),
}


@pytest.mark.parametrize("what", ANOTHER)
def test_digest_and_difference_see(what: str) -> None:
    """Anything that a program could see makes another digest, and a line that names it."""
    other = ANOTHER[what]
    assert other.digest != SMALL.digest
    assert SMALL.difference(other)
    assert len({tree.digest for tree in ANOTHER.values()}) == len(ANOTHER)


def test_digest_does_not_see_times_and_numbers() -> None:
    """Equal files are equal, whenever they were made and whatever their inode numbers."""
    other = apply(create("b", 70), mkdir("d", 80), op(t.Link, "d/a", 70), write("b", 70, b"hello"))
    assert other.digest == SMALL.digest
    assert SMALL.difference(other) == []


def test_a_difference_says_both_sides() -> None:
    """One line per path: here, and there."""
    other = apply(op(t.Unlink, "b", 2), write("d/a", 2, b"J"), tree=SMALL)
    absent, changed = SMALL.difference(other)
    assert absent.startswith("b: file 5 bytes mode 644")
    assert absent.endswith(" / absent")
    assert changed.startswith("d/a: file 5 bytes")


def test_every_kind_of_node_has_a_name_and_a_description() -> None:
    """What reports print."""
    nodes = (File(Content.of(b"x")), Directory(), Symlink("t"), Special("fifo"), Special("socket"))
    assert [type_name(node) for node in nodes] == ["file", "directory", "symlink", "fifo", "socket"]
    assert [describe(node).split()[0] for node in nodes] == ["file", "directory", "symlink", "fifo", "socket"]
    assert describe(None) == "absent"


# --- JSON ------------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=4).filter(
    lambda name: name not in (".", "..")
)
modes = st.integers(0, 0o7777)
times = st.integers(0, 2**62)
attributes = st.dictionaries(st.just("user.") | st.just("user.x"), st.binary(max_size=3)).map(
    lambda each: tuple(sorted(each.items()))
)
leaves = st.one_of(
    st.builds(File, st.binary(max_size=5000).map(Content.of), modes, times, attributes),
    st.builds(Symlink, st.text(min_size=1, max_size=5), times),
    st.builds(Special, st.sampled_from(("fifo", "socket")), modes, times),
)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A tree of two levels with every kind of node and with hard links."""
    below = draw(st.lists(leaves, max_size=5))
    nodes: dict[int, Any] = dict(enumerate(below, start=2))
    numbers = st.dictionaries(names, st.sampled_from(sorted(nodes)) if nodes else st.nothing(), max_size=6)
    nodes[1] = Directory(draw(numbers), draw(modes), draw(times), draw(attributes))
    nodes[0] = Directory({**draw(numbers), "sub": 1}, draw(modes), draw(times))
    return Tree(nodes)


@given(trees())
def test_a_tree_survives_json(tree: Tree) -> None:
    """The JSON form, as text, gives an equal tree back; names that are no UTF-8 included."""
    back = Tree.from_json(json.loads(json.dumps(tree.to_json())))
    assert back == tree
    assert back.digest == tree.digest


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"0": {}},
        {"x": {}},
        {"0": {"type": "file"}},
        {"0": {"type": "door", "mtime_ns": 0}},
        {"0": {"type": "fifo", "mtime_ns": 0, "mode": 0}},
        {"0": {"type": "directory", "mtime_ns": 0, "mode": 0, "entries": {"a": 1}}},
    ],
    ids=str,
)
def test_what_is_no_tree_is_refused(form: dict[str, Any]) -> None:
    """A damaged form raises one of three errors, which the trace turns into a message."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        Tree.from_json(form)
