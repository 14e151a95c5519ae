"""The replay proof finds what was missed, and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from crashlab import trace as t
from crashlab.record.proof import is_rebuilt, replay_proof
from crashlab.tree import Tree


def work(d: str) -> None:
    """A few ops of every kind that a proof can miss."""
    Path(d, "old").write_bytes(b"x" * 5000)
    Path(d, "cache").mkdir()
    Path(d, "cache", "index").write_bytes(b"index")
    os.chmod(f"{d}/old", 0o600)
    os.link(f"{d}/old", f"{d}/twin")
    os.rename(f"{d}/old", f"{d}/new")


def test_a_whole_trace_is_proven(record: Any) -> None:
    """Nothing missed, nothing to say."""
    recorded = record(work)
    assert replay_proof(recorded.trace, recorded.last, rebuilt=()) == ()


@pytest.mark.parametrize(
    ("kind", "path"),
    [("write", "dir/new: "), ("chmod", "dir/new: "), ("link", "dir/twin: "), ("rename", "dir/new: absent")],
)
def test_a_recorder_that_drops_an_op_is_found_out(record: Any, kind: str, path: str) -> None:
    """Sabotage: with one op missing from the trace the proof fails, and names the path."""
    recorded = record(work, drop=kind)
    assert any(line.startswith(path) for line in replay_proof(recorded.trace, recorded.last, rebuilt=()))


@pytest.mark.parametrize("kind", ["create", "mkdir"])
def test_a_trace_that_does_not_fit_itself_is_not_proven(record: Any, kind: str) -> None:
    """Sabotage: an op on a file that was never made is a failed proof, not a crash of the proof."""
    recorded = record(work, drop=kind)
    (line,) = replay_proof(recorded.trace, recorded.last, rebuilt=())
    assert "does not fit the tree before it" in line


def test_a_foreign_writer_is_found_out(record: Any) -> None:
    """What a child process writes is missing from the trace; the proof names it, and the recorder warned."""

    def foreign(d: str) -> None:
        import subprocess  # noqa: PLC0415 - as a subject would

        subprocess.run(["sh", "-c", "echo x > foreign; echo y >> known"], cwd=d, check=True)
        os.rename(f"{d}/foreign", f"{d}/renamed")

    recorded = record(foreign, before=lambda d: Path(d, "known").write_bytes(b""))
    lines = replay_proof(recorded.trace, recorded.last, rebuilt=())
    assert [line.partition(":")[0] for line in lines] == ["dir/known", "dir/renamed"]
    assert any("sh -c echo x" in text for text in recorded.watched.unseen)
    assert any(text.startswith("dir/foreign was made by something") for text in recorded.watched.unseen)


def test_rebuilt_files_do_not_count(record: Any) -> None:
    """Files that the program rebuilds are left out of the proof, with what lies below them."""

    def foreign(d: str) -> None:
        os.system(f"echo x > {d}/index-shm; mkdir -p {d}/cache/deep; echo y > {d}/cache/deep/er")  # noqa: S605 - a child process is the point

    recorded = record(foreign)
    assert len(replay_proof(recorded.trace, recorded.last, rebuilt=())) == 4
    assert replay_proof(recorded.trace, recorded.last, rebuilt=["*-shm", "cache"]) == ()
    assert len(replay_proof(recorded.trace, recorded.last, rebuilt=["*-shm", "cache/deep"])) == 1


@pytest.mark.parametrize(
    ("path", "glob", "expected"),
    [
        ("dir/a.db-shm", "*-shm", True),
        ("dir/sub/a.db-shm", "*-shm", True),
        ("dir/sub/a.db", "sub/*.db", True),
        ("home/.cache/x", ".cache", False),
        ("home/.cache", ".cache", True),
        ("dir/a.db", "b.db", False),
        ("dir", "dir", True),
    ],
)
def test_a_glob_matches_the_last_name_or_the_path_inside(path: str, glob: str, *, expected: bool) -> None:
    """``*-shm`` means any such file; ``sub/x`` means that one."""
    assert is_rebuilt(path, [glob]) is expected


def test_another_hard_link_is_a_difference() -> None:
    """Two equal files are not one file with two names."""
    ops = (t.Create(n=1, path="a", inode=1), t.Link(n=2, path="b", inode=1))
    twins = Tree.empty().apply(ops[0]).apply(t.Create(n=2, path="b", inode=2))
    assert replay_proof(t.Trace(root="/r", base=Tree.empty(), ops=ops), twins, ()) == (
        "the same files, but linked otherwise",
    )
