"""Trees to the real disk and back: nothing is lost, added or followed."""

from __future__ import annotations

import os
import socket
import stat
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crashlab import directory
from crashlab.content import Content
from crashlab.errors import LabError
from crashlab.tree import Directory, File, Node, Special, Symlink, Tree

if TYPE_CHECKING:
    from pathlib import Path

LINUX = sys.platform == "linux"
raw_name = st.binary(min_size=1, max_size=6).filter(
    lambda name: not {0, ord("/")} & set(name) and name not in (b".", b"..")
)
names = (raw_name if LINUX else st.text("abcXYZ-_ 0", min_size=1, max_size=6).map(str.encode)).map(os.fsdecode)
modes = st.integers(0, 0o777).map(lambda mode: mode | 0o400)
times = st.integers(0, 2**31).map(lambda seconds: seconds * 10**9 + 123_456_789)
attributes = (
    st.dictionaries(st.sampled_from(("user.a", "user.b")), st.binary(max_size=4)).map(
        lambda each: tuple(sorted(each.items()))
    )
    if LINUX
    else st.just(())
)
sizes = st.sampled_from((0, 1, 4095, 4096, 10_000))
contents = st.tuples(sizes, st.integers(0, 255)).map(lambda pair: Content.of(bytes([pair[1]]) * pair[0]))
leaves = st.one_of(
    st.builds(File, contents, modes, times, attributes),
    st.builds(Symlink, names, times),
    st.builds(Special, st.sampled_from(("fifo", "socket") if LINUX else ("fifo",)), modes, times),
)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Directories in directories, empty ones too, every kind of node, and hard links within and across."""
    nodes: dict[int, Node] = dict(enumerate(draw(st.lists(leaves, max_size=6)), start=4))
    numbers = st.dictionaries(names, st.sampled_from(sorted(nodes)) if nodes else st.nothing(), max_size=4)
    for number, below in ((3, {}), (2, {}), (1, {"deep": 2}), (0, {"one": 1, "empty": 3})):
        nodes[number] = Directory({**draw(numbers), **below}, draw(modes) | 0o700, draw(times), draw(attributes))
    return Tree(nodes)


def times_of(tree: Tree) -> dict[str, int]:
    """The modification time of every path."""
    return {path: node.mtime_ns for path, _, node in tree.walk()}


@given(tree=trees())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_tree_survives_the_disk(tmp_path: Path, tree: Tree) -> None:
    """Written out and read in again it is equal: bytes, names, links, modes, attributes and times."""
    directory.clear(tmp_path)
    directory.write(tree, tmp_path)
    back = directory.read(tmp_path)
    assert tree.difference(back) == []
    assert back.digest == tree.digest
    assert times_of(back) == times_of(tree)
    directory.clear(tmp_path)
    assert os.listdir(tmp_path) == []


def test_numbers_belong_to_real_inodes(tmp_path: Path) -> None:
    """Two names of one file have one number, the root has 0, and every real inode is known."""
    (tmp_path / "a").write_bytes(b"x")
    os.link(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c").write_bytes(b"x")
    tree, numbers = directory.read_numbered(tmp_path)
    assert tree.lookup("a") == tree.lookup("b") != tree.lookup("c")
    for name in ("a", "c"):
        status = os.stat(tmp_path / name)
        assert numbers[status.st_dev, status.st_ino] == tree.lookup(name)
    status = os.stat(tmp_path)
    assert numbers[status.st_dev, status.st_ino] == 0
    assert len(numbers) == len(set(numbers.values())) == len(tree.nodes) == 3


def test_no_link_is_followed_out(tmp_path: Path) -> None:
    """A symbolic link to elsewhere is read as a link, and clearing does not touch what it means."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "precious").write_bytes(b"x")
    (inside / "link").symlink_to(outside)
    (inside / "file").symlink_to(outside / "precious")
    assert {path for path, _, _ in directory.read(inside).walk()} == {"link", "file"}
    directory.clear(inside)
    assert os.listdir(inside) == []
    assert (outside / "precious").read_bytes() == b"x"


def test_a_socket_is_read_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that nobody listens on any more is part of the tree."""
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
    node = directory.read(tmp_path).node("s")
    assert isinstance(node, Special)
    assert node.type == "socket"


@pytest.mark.skipif(not LINUX or os.geteuid() != 0, reason="only root can make a device file")
def test_a_device_is_refused(tmp_path: Path) -> None:
    """What the lab does not model is an error that names it, not a file that is silently missing."""
    os.mknod(tmp_path / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    with pytest.raises(LabError, match=r"null.* is a device"):
        directory.read(tmp_path)


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Reading and writing nowhere says where."""
    with pytest.raises(LabError, match=r"cannot read the tree under .*nowhere"):
        directory.read(tmp_path / "nowhere")
    with pytest.raises(LabError, match=r"cannot write a crash state to .*nowhere"):
        directory.write(Tree.empty(), tmp_path / "nowhere")


def test_a_file_in_the_way_is_an_error_and_stays(tmp_path: Path) -> None:
    """A crash state is written into an empty directory only: nothing is overwritten."""
    (tmp_path / "a").write_bytes(b"mine")
    tree = Tree({0: Directory({"a": 1}), 1: File(Content.of(b"theirs"))})
    with pytest.raises(LabError, match="cannot write a crash state"):
        directory.write(tree, tmp_path)
    assert (tmp_path / "a").read_bytes() == b"mine"


def test_directories_without_permissions_are_written_and_cleared(tmp_path: Path) -> None:
    """Modes are set last, so that a directory that forbids writing can be filled; clearing it opens it again."""
    tree = Tree({0: Directory({"d": 1}), 1: Directory({"f": 2}, mode=0o500), 2: File(Content.of(b"x"), mode=0o400)})
    directory.write(tree, tmp_path)
    assert directory.read(tmp_path).difference(tree) == []
    os.chmod(tmp_path / "d", 0)
    directory.clear(tmp_path)
    assert os.listdir(tmp_path) == []
