"""Two uncrashed runs that differ: the first place at which they do is shown, with what fits the subject."""

from __future__ import annotations

from typing import Any

import pytest

from crashlab import trace as t
from crashlab.agreement import difference, runs_differ
from crashlab.observation import RawRecording
from crashlab.tree import Tree, describe


def ended(end: Any, files: dict[str, bytes] | None = None, *, effects: tuple[str, ...] = ()) -> RawRecording:
    """A run that came to this end; with ``files`` they are the end."""
    tree = Tree.empty().apply(t.MakeDirectory(n=1, path="dir", inode=1))
    for inode, (path, data) in enumerate((files or {}).items(), start=2):
        tree = tree.apply(t.Create(n=1, path=f"dir/{path}", inode=inode))
        tree = tree.apply(t.Write(n=2, path=f"dir/{path}", inode=inode, offset=0, data=data))
    if files is not None:
        end = {"$files": {path.removeprefix("dir/"): describe(node) for path, _, node in tree.walk()}}
    ops = tuple(
        t.Effect(n=n, name=name, key=None, detail={}, receipt="", counted=True) for n, name in enumerate(effects, 1)
    )
    return RawRecording(root="/r", base=Tree.empty(), ops=ops, last=tree, how="returned", value={"end": end})


def test_runs_that_agree_have_no_difference() -> None:
    """Files by their bytes, ends by their value, effects in any order."""
    assert difference(ended(None, {"a": b"1"}), ended(None, {"a": b"1"})) == ""
    assert difference(ended({"n": 1}, effects=("x", "y")), ended({"n": 1}, effects=("y", "x"))) == ""


def test_the_first_file_that_differs_is_named_with_its_first_byte() -> None:
    """Both values were cut before they differed: nobody could see what to mend."""
    long = b"x" * 5000
    told = difference(ended(None, {"a": b"1", "b": long + b"one"}), ended(None, {"a": b"1", "b": long + b"other"}))
    assert told.startswith("b differs from byte 5,001 on (5,003 / 5,005 bytes): ")
    assert "one'" in told
    assert "other'" in told
    only = difference(ended(None, {"a": b"1"}), ended(None, {"a": b"1", "tmp-7": b""}))
    assert only == "tmp-7 is there after the second run only"


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({"n": 1, "run": {"id": 7}}, {"n": 1, "run": {"id": 8}}, "run.id 7 / 8"),
        ("short", "shorter", '"short" / "shorter"'),
        ("y" * 90 + "1", "y" * 90 + "2", f'…{"y" * 12}1" / …{"y" * 12}2"'),
    ],
)
def test_a_value_is_shown_from_where_it_differs(first: Any, second: Any, told: str) -> None:
    """Of a long text with what stands before."""
    assert difference(ended(first), ended(second)) == told


def test_an_effect_of_one_run_only_is_a_difference() -> None:
    """By its name."""
    assert difference(ended(1, effects=("mail",)), ended(1)).startswith("effect mail")


def test_what_to_do_fits_the_subject() -> None:
    """No lambda is advised to a program that is no Python code."""
    files, value = ended(None, {"a": b"1"}), ended({"n": 1})
    program = runs_differ("a differs", files, "Commands")
    assert (program.code, program.detail) == ("runs-differ", "two uncrashed runs ended differently: a differs.")
    assert "--view" in program.next
    assert "lambda" not in program.next
    assert "lambda" in runs_differ("n 1 / 2", value, "Subject").next
    assert "return what counts" in runs_differ("a differs", files, "Subject").next
