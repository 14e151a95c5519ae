"""Tests of longrun.eventlog.levels: each does the same work, and what each loses is found by its own state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, explore
from crashlab.report.model import FaultCount, Finding, Report, Settings, SubjectInfo, UnmeasuredReason
from longrun.errors import Damaged
from longrun.eventlog.levels import __main__ as command
from longrun.eventlog.levels import subjects
from longrun.eventlog.levels.lines import append_line, open_lines
from longrun.eventlog.levels.subjects import LEVELS, OPENERS, PATH, cell, uncrashed
from longrun.eventlog.levels.work import HEADER, REFUND, REPORT, SHORTER, is_unknown, model, work
from longrun.messages import check_messages, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.report.model import Verdict

ONE = Budget(real_kills=1)


def done(name: str, directory: Path) -> int:
    """Do the work at this level, or what is left of it; how many refunds that took."""
    refunds: list[str] = []

    def refund() -> str:
        refunds.append("refund-1")
        return refunds[-1]

    with OPENERS[name](directory) as level:
        work(level, refund, lambda _: None)
    return len(refunds)


def tried(name: str, state: str, out: Path) -> Report:
    return explore(f"{PATH}:{name}", faults=re.split(r"[@:]", state)[0], only=state, out=out, budget=ONE)


@pytest.mark.parametrize("name", LEVELS)
def test_each_level_does_the_work_and_keeps_both_branches(name: str, tmp_path: Path) -> None:
    """The model sees the new branch alone; the history has the old one; a restart finds all done."""
    assert done(name, tmp_path) == 1
    assert done(name, tmp_path) == 0
    with OPENERS[name](tmp_path) as level:
        seen, kept = ([text_of(each) for each in each_of] for each_of in (level.messages(), level.history()))
        check_messages(level.messages(), may_end_with_assistant=True)
        assert not is_unknown(level.history())
    assert SHORTER in seen
    assert REPORT not in seen
    assert {SHORTER, REPORT} <= set(kept)


def test_only_the_log_can_make_its_requests_again() -> None:
    """And a branch is a copy at the first level, a line at the second."""
    told = {name: re.findall(r"\d+", uncrashed(name)) for name in LEVELS}
    assert {name: numbers[0] for name, numbers in told.items()} == {"messages": "0", "tree": "0", "log": "4"}
    assert {numbers[1] for numbers in told.values()} == {"4"}
    assert int(told["tree"][2]) < int(told["log"][2]) < int(told["messages"][2])


TREE = pytest.param("tree", marks=pytest.mark.full)  # its lines are those of the messages


@pytest.mark.parametrize("name", ["messages", TREE])
def test_a_kill_before_the_refund_loses_its_class(name: str, tmp_path: Path) -> None:
    """The calls are kept, and nothing was begun; a person is asked all the same."""
    report = tried(name, "kill@6", tmp_path)
    assert cell(report) == "loses in 1 of 1: outcome class", str(report)


@pytest.mark.parametrize(("name", "refunds"), [("messages", 0), ("tree", 0), ("log", 1)])
def test_after_the_answer_that_calls_only_the_log_knows_that_nothing_was_begun(
    name: str, refunds: int, tmp_path: Path
) -> None:
    """The same without the lab: the others dare not pay, and ask a person."""
    with OPENERS[name](tmp_path) as level:
        level.say(REFUND)
        said = level.messages()
        level.asks({**HEADER, "messages": said})
        level.answer(model(said))
    assert done(name, tmp_path) == refunds
    with OPENERS[name](tmp_path) as level:
        assert is_unknown(level.history()) != bool(refunds)


@pytest.mark.parametrize("name", LEVELS)
def test_a_refund_that_was_begun_is_done_by_none_again(name: str, tmp_path: Path) -> None:
    """Here the log asks a person too."""
    with OPENERS[name](tmp_path) as level, pytest.raises(KeyboardInterrupt):
        work(level, interrupted, lambda _: None)
    assert done(name, tmp_path) == 0
    with OPENERS[name](tmp_path) as level:
        assert is_unknown(level.history())


def interrupted() -> str:
    raise KeyboardInterrupt


@pytest.mark.full  # every kill of each level
def test_the_log_survives_every_kill(tmp_path: Path) -> None:
    """The same work and the same judge."""
    report = explore(f"{PATH}:log", faults="kill", out=tmp_path, budget=ONE)
    assert report.verdict == "consistent", str(report)
    assert cell(report).startswith("survives ")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("messages", "messages-0.jsonl"),
        pytest.param("tree", "tree.jsonl", marks=pytest.mark.full),  # its lines are those of the messages
    ],
)
def test_lines_without_sums_take_a_flipped_bit_for_good(name: str, file: str, tmp_path: Path) -> None:
    """A letter of a message is another one."""
    (tmp_path / "whole").mkdir()
    done(name, tmp_path / "whole")
    at = (tmp_path / "whole" / file).read_bytes().index(b"Write a report") * 8
    report = tried(name, f"damage@{file}:bit:{at}", tmp_path)
    assert cell(report) == "loses in 1 of 1: accepted-damage", str(report)


def test_the_log_refuses_that_bit(tmp_path: Path) -> None:
    """And leaves the file as it is."""
    (tmp_path / "whole").mkdir()
    done("log", tmp_path / "whole")
    at = (tmp_path / "whole/s/seg-000000.jsonl").read_bytes().index(b"Write a report") * 8
    report = tried("log", f"damage@s%2Fseg-000000.jsonl:bit:{at}", tmp_path)
    assert cell(report) == "survives 1, of which 1 refused", str(report)


def test_half_a_last_line_is_cut_and_one_before_it_is_refused(tmp_path: Path) -> None:
    """And a last line that cannot be read counts as half a one."""
    path = tmp_path / "lines"
    for number in range(3):
        append_line(path, number)
    with path.open("ab") as file:
        file.write(b"[3")
    assert open_lines(path) == [0, 1, 2]
    assert path.read_bytes() == b"0\n1\n2\n"
    path.write_bytes(b"0\n1\n\x00\n")
    assert open_lines(path) == [0, 1]
    path.write_bytes(b"0\n\x00\n2\n")
    with pytest.raises(Damaged, match="line at byte 2 cannot be read"):
        open_lines(path)
    assert path.read_bytes() == b"0\n\x00\n2\n"


@pytest.mark.parametrize(
    ("verdict", "count", "says"),
    [
        ("consistent", FaultCount(fault="kill", judged=3, consistent=3), "survives 3"),
        ("consistent", FaultCount(fault="damage", judged=3, refused=2), "survives 3, of which 2 refused"),
        ("violation", FaultCount(fault="kill", judged=3, violation=1), "loses in 1 of 3: lost message"),
        ("unmeasured", FaultCount(fault="kill", judged=3, consistent=3), "unmeasured: budget"),
    ],
)
def test_a_cell_says_what_the_report_says(verdict: Verdict, count: FaultCount, says: str) -> None:
    """A report that is not measured is no row of success."""
    found = Finding(
        id="kill@1", verdict="violation", kind="lost", fault="kill", summary="a message that was acked is gone"
    )
    report = Report(
        verdict=verdict,
        subject=SubjectInfo(name="levels/tree", kind="Subject"),
        settings=Settings(faults=("kill",)),
        faults=(count,),
        findings=(found,) * count.violation,
        unmeasured=(UnmeasuredReason(code="budget", detail=""),) * (verdict == "unmeasured"),
    )
    assert cell(report) == says


def test_the_command_prints_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each level and fault."""
    monkeypatch.setattr(command, "rows", lambda: iter([("tree", "kill", "survives 3")]))
    command.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*LEVELS, "tree"]
    assert lines[-1] == "tree      kill          survives 3"


def test_rows_are_those_of_the_levels_and_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is asked of the lab once."""
    asked: list[Any] = []

    def explored(path: str, **options: Any) -> str:
        asked.append((path, options["faults"]))
        return "report"

    monkeypatch.setattr(subjects, "explore", explored)
    monkeypatch.setattr(subjects, "cell", str)
    assert list(subjects.rows(["tree"], ["kill", "power"])) == [("tree", "kill", "report"), ("tree", "power", "report")]
    assert asked == [(f"{PATH}:tree", "kill"), (f"{PATH}:tree", "power")]
