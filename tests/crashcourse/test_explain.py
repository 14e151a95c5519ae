"""Answers as files of words: strict reading, names of crash points, and a stage that really kills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashcourse import explain
from crashcourse.explain import Table, answers, judged, points, stage
from crashcourse.result import Shown
from crashlab import Subject
from crashlab import trace as t
from crashlab.errors import LabError, UsageError
from crashlab.recover.place import base_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from crashlab.lab import Lab

LARGE = b"x" * 5_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[one", "answers.toml:1:5"),
        ("[one]\n[one]\n", "answers.toml:2"),
        ("[onee]\n", "onee: unknown; did you mean 'one'"),
        ("one = " + "[" * 5_000, "answers.toml"),
        ("[one]\ncap = " + "1" * 5_000, "answers.toml cannot be read .*; an answer is"),
        ("# " + "x" * 70_000, "has 70,002 bytes; an answer has at most 65,536"),
        ("[one]\nwhy = '\udcff'\n", "not UTF-8"),
    ],
    ids=["broken", "twice", "unknown", "deep", "digits", "large", "bytes"],
)
def test_a_file_that_is_no_answer_is_told(text: str, message: str, tmp_path: Path) -> None:
    """With its place, or with what would be right."""
    file = tmp_path / "answers.toml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match=message):
        answers(file, ["one", "two"])


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, r"\[one\] is missing"),
        ({"one": 1}, r"one is 1; expected a table: \[one\]"),
        ({"one": {"pont": "start"}}, "one.pont: unknown; did you mean 'point'"),
        ({"one": {"why": 1}}, "one.why is 1; expected a text"),
        ({"one": {}}, "one.point is missing"),
        ({"one": {"point": "not started"}}, "one.point is not started"),
        ({"one": {"point": 7}}, "one.point is 7; expected a short text"),
        ({"one": {"point": "x" * 201}}, "expected a short text"),
        ({"one": {"point": ["x" * 300]}}, r"x\.\.\..*expected a short text"),
    ],
)
def test_a_table_is_read_strictly(form: dict[str, object], message: str) -> None:
    """Each mistake names its key."""
    with pytest.raises(UsageError, match=message):
        Table.of(form, "one", ["point"]).text("point")


def test_numbers_and_words_are_of_their_kind() -> None:
    """True is no number, a word must be one of those that there are, a list has no other things in it."""
    table = Table("one", {"cap": True, "kind": "mail", "turns": [2, 1, 2], "odd": [1, "2"]})
    for read in (
        lambda: table.number("cap", 1, 9),
        lambda: table.text("kind", ["case", "reply"]),
        lambda: table.numbers("odd", most=9),
        lambda: table.numbers("kind", most=9),
    ):
        with pytest.raises(UsageError, match=r"one\.\w+ is .*; expected "):
            read()
    assert table.numbers("turns", most=2) == [1, 2]
    with pytest.raises(UsageError, match="from 1 to 1"):
        table.numbers("turns", most=1)


def agents_run() -> t.Trace:
    """A request, two acts, a save that a kill can cut, and a request."""
    ops = (
        t.Effect(n=1, name="model_request", key="requests", detail={}, receipt="a"),
        t.Effect(n=2, name="mail", key=None, detail={}, receipt="b"),
        t.Effect(n=3, name="mail", key=None, detail={}, receipt="c"),
        t.Create(n=4, path="dir/a", inode=9),
        t.Write(n=5, path="dir/a", inode=9, offset=0, data=LARGE),
        t.SavePoint(n=6, name="turn1.B"),
        t.Effect(n=7, name="model_request", key="requests", detail={}, receipt="a", counted=False),
    )
    return t.Trace(root="/r", base=base_tree(), ops=ops)


def test_crash_points_have_readable_names() -> None:
    """Requests and acts by turn and number, saves by their steps; before, after, and inside; and by id."""
    found = points(agents_run())
    names = {name: [state.id for state in states] for name, states in found.items() if not name.startswith("kill@")}
    assert names == {
        "start": ["kill@0"],
        "turn1.request-": ["kill@0"],
        "turn1.request+": ["kill@1"],
        "turn1.tool1.effect-": ["kill@1"],
        "turn1.tool1.effect+": ["kill@2"],
        "turn1.tool2.effect-": ["kill@2"],
        "turn1.tool2.effect+": ["kill@3"],
        "turn1.B.create-": ["kill@3"],
        "turn1.B.create+": ["kill@4"],
        "turn1.B.data-": ["kill@4"],
        "turn1.B.data@4096": ["kill@5+4096"],
        "turn1.B.data+": ["kill@5"],
        "turn1.B-": ["kill@5"],
        "turn1.B+": ["kill@6"],
        "turn2.request-": ["kill@6"],
        "turn2.request+": ["kill@7"],
    }
    assert [state.id for state in found["kill@5+4096"]] == ["kill@5+4096"]


def two_saves(lab: Lab) -> int:
    """Two files, each a save of the same name, and an effect between them."""
    for number in (1, 2):
        (lab.dir / f"{number}.txt").write_bytes(b"%d" % number)
        lab.save_point("turn1.B")
        lab.effect("mail", number=number)
    return 2


def count(lab: Lab) -> int:
    """How many files there are."""
    return len(list(lab.dir.iterdir()))


def test_the_stage_kills_and_recovers() -> None:
    """What a real kill leaves, what the recovery makes of that; and names that mean nothing, or too much."""
    with stage(Subject(two_saves, count)) as scene:
        assert scene.end == 2
        state = scene.at(Table("one", {"point": "turn0.tool1.effect+"}))
        left = scene.killed(state)
        assert [path for path, _, _ in left.last.walk("dir")] == ["dir/1.txt"]
        assert [op.name for op in left.ops if isinstance(op, t.Effect)] == ["mail"]
        step = scene.recovered(state)
        assert step.value is not None
        assert step.value["end"] == 1
        cut = scene.places["start"][0]
        assert scene.killed(cut).ops == ()
        with pytest.raises(
            UsageError, match=r"one\.point is 'turn1.B.data\+'.* the name of 2 points; take one of kill@"
        ):
            scene.at(Table("one", {"point": "turn1.B.data+"}))
        with pytest.raises(UsageError, match=r"no crash point of this run: near it are turn0\.tool\d\.effect"):
            scene.at(Table("one", {"point": "turn0.tool1.effects+"}))
        with pytest.raises(UsageError, match="an id such as kill@7 is always right"):
            scene.at(Table("one", {"point": "???"}))


@pytest.mark.parametrize(
    ("run", "message"), [(lambda _lab: 1, "nothing was written"), (lambda _lab: 1 // 0, "ZeroDivisionError")]
)
def test_a_subject_that_fails_by_itself_is_the_courses_mistake(run: Callable[[Lab], int], message: str) -> None:
    """Never the learner's, who has not written it."""
    with pytest.raises(LabError, match=message), stage(Subject(run)):
        pass


def test_each_part_of_a_case_counts() -> None:
    """Right ones, wrong ones, and those that are no answer; the first that is wrong is shown."""

    def no_answer() -> None:
        text = "one.point is missing"
        raise UsageError(text)

    shown = Shown(kind="wrong-answer", found="two")
    outcome = judged("fate", {"a": lambda: None, "b": no_answer, "c": lambda: shown, "d": lambda: "other"})
    assert outcome.verdicts == {"consistent": 1, "violation": 3}
    assert outcome.finding == Shown(kind="wrong-answer", crash_point="b", found="one.point is missing")
    assert judged("fate", {"a": lambda: None}).verdicts == {"consistent": 1}
    assert explain.judged("fate", {"c": lambda: shown}).finding == shown
