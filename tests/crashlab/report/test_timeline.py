"""The time line: true to the matrix at every scale, in its picture and in its words."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.report.model import MatrixRow, Moment, OpLine, TraceInfo
from crashlab.report.timeline import LEFT, RANK, WIDTH, Timeline, crash_op, timeline_of
from tests.crashlab.report.samples import CUT, DUPLICATE, UNMEASURED, report

VERDICTS = st.sampled_from(RANK)


def line_of(rows: list[tuple[str, str]], *, ops_each: int = 3, bin_width: float = 2.0) -> Timeline:
    """A time line of rows with these verdicts after a kill, and after a loss of power."""
    matrix = tuple(
        MatrixRow(place=f"p{n}", first_op=n * ops_each + 1, last_op=(n + 1) * ops_each, after=kill, power=power)
        for n, (kill, power) in enumerate(rows)
    )
    made = timeline_of(report(matrix=matrix, trace=TraceInfo(ops=len(rows) * ops_each)), (), bin_width=bin_width)
    assert made is not None
    return made


@given(rows=st.lists(st.tuples(VERDICTS, VERDICTS), min_size=1, max_size=60), ops_each=st.integers(1, 400))
def test_no_verdict_is_hidden_by_the_scale(rows: list[tuple[str, str]], ops_each: int) -> None:
    """At the middle of a row stands its verdict or a worse one, and no bar has a verdict that no row has."""
    line = line_of(rows, ops_each=ops_each)
    for lane, column in (("kill", 0), ("power", 1)):
        bars = dict(line.bars).get(lane, ())
        for n, row in enumerate(rows):
            x = LEFT + WIDTH * (n + 0.5) / len(rows)
            at = max((each.verdict for each in bars if each.x <= x <= each.x + each.width), key=RANK.index, default="")
            assert RANK.index(at) >= RANK.index(row[column])
        assert {each.verdict for each in bars} <= {row[column] for row in rows}
        assert all(each.x >= LEFT and each.x + each.width <= LEFT + WIDTH + 0.2 for each in bars)


def test_a_scale_that_hides_a_violation_would_be_noticed() -> None:
    """Sabotage: among ten thousand rows one violation is seen at the widest bin that pages use."""
    rows = [("consistent", "")] * 10_000
    rows[7_777] = ("violation", "")
    for width in (2.0, 44.0):
        bars = dict(line_of(rows, bin_width=width).bars)["kill"]
        assert [each.verdict for each in bars].count("violation") == 1
        assert len(bars) <= 3


def test_the_words_say_what_the_picture_says() -> None:
    """Runs of equal verdicts, the worst first."""
    line = line_of([("consistent", "violation"), ("consistent", "violation"), ("violation", "")])
    assert dict(line.words) == {
        "kill": "violation at ops 7-9; consistent at ops 1-6",
        "power": "violation at ops 1-6",
    }


def test_flags_stand_at_the_crash_and_lead_to_drawn_findings_only() -> None:
    """A finding that is not drawn in full has no flag: its link would lead nowhere."""
    each = report(findings=(CUT, DUPLICATE), trace=TraceInfo(ops=10))
    both, one = timeline_of(each, (1, 2)), timeline_of(each, (2,))
    assert both is not None
    assert one is not None
    assert [(flag.number, flag.n, flag.id) for flag in both.flags] == [(1, 6, "kill@6+4085"), (2, 7, "kill@7")]
    assert [flag.number for flag in one.flags] == [2]
    assert dict(both.words)["finding 2"] == "kill@7, at op 7"


def test_flags_do_not_lie_on_each_other() -> None:
    """Those that crashed at the same op stand below each other."""
    each = report(findings=(DUPLICATE,) * 3, trace=TraceInfo(ops=100))
    line = timeline_of(each, (1, 2, 3))
    assert line is not None
    assert len({(flag.x, flag.row) for flag in line.flags}) == 3


def test_a_crash_of_a_recovery_stands_where_the_run_crashed() -> None:
    """The ops of the recovery have numbers of their own."""
    ops = (OpLine(n=4, op="write", text="", run=0), OpLine(n=90, op="write", text="", run=1))
    assert crash_op(dataclasses.replace(CUT, ops=ops)) == 4


def test_moments_that_share_a_place_share_a_mark() -> None:
    """And its title counts them."""
    moments = tuple(Moment(n=n, op="ack", text=f"{n}") for n in range(1, 5001))
    line = timeline_of(report(moments=moments, trace=TraceInfo(ops=5000)), ())
    assert line is not None
    marks = dict(line.marks)["acks"]
    assert len(marks) <= WIDTH / 2 + 1
    assert marks[0].title == "op 1: ack 1 and 5 more"


@pytest.mark.parametrize("ops", [1, 2, 7, 13, 186, 5_000, 1_234_567])
def test_ticks_are_few_and_hold_both_ends(ops: int) -> None:
    """Round numbers between."""
    line = timeline_of(report(trace=TraceInfo(ops=ops), matrix=(MatrixRow(place="a", first_op=1, last_op=ops),)), ())
    assert line is not None
    numbers = [n for _, n in line.ticks]
    assert {1, ops} <= set(numbers)
    assert len(numbers) <= 15
    assert numbers == sorted(set(numbers))


def test_where_nothing_is_known_of_the_ops_there_is_no_line() -> None:
    """A report that got no further than its reason."""
    assert timeline_of(UNMEASURED, ()) is None


def test_a_flag_that_has_no_room_is_left_out() -> None:
    """Three findings at one place can be read; a hundred on top of each other cannot."""
    line = timeline_of(report(findings=(DUPLICATE,) * 100, trace=TraceInfo(ops=100)), range(1, 101))
    assert line is not None
    assert [flag.number for flag in line.flags] == [1, 2, 3]
    assert len({(flag.x, flag.row) for flag in line.flags}) == 3
