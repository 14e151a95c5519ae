"""The table of what the correct modules stand: its rows are what they say, and nothing is shown that was not run."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import longrun
from benchmarks import agent_rows, reference_agent
from benchmarks.agent_rows import FAULTS, ONE_FILE, ROWS, Row
from crashlab import Budget, Subject
from longrun.checkpoint import correct as checkpoint
from longrun.effects import correct as effects
from longrun.resume import correct as resume

if TYPE_CHECKING:
    from collections.abc import Callable

ASKS = Row("asks", "tests.quality.interrupted:ASKS", "careful", "kill")
SLIPS = Row("slips", "tests.quality.interrupted:MAILS_AGAIN", "careful", "recovery")
PLAIN = [Row("plain", "nowhere:subject", persona, "kill") for persona in ("careful", "hasty")]
COUNT = {"states": 9_999, "skipped": 0, "distinct": 8, "judged": 8, "refused": 0, "violation": 0, "unknown": 1}


def named(row: Row) -> Subject:
    """The subject of a row."""
    module, _, name = row.subject.partition(":")
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, Subject)
    return found


def line_of(row: Row, verdict: str = "consistent") -> dict[str, Any]:
    """What is kept of a row that came to ``verdict``."""
    about = agent_rows.asked(row, replace(agent_rows.BUDGET, nested=agent_rows.ALL_RECOVERIES), 0)
    bad = ["lost: gone [kill@1]"] if verdict == "violation" else []
    count = {**COUNT, "seconds": 1.0, "violation": len(bad)}
    return {**about, "verdict": verdict, "count": count, "findings": bad, "unmeasured": [], "notes": [], "run": ""}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command on two rows that do nothing, kept in a folder of the test."""
    monkeypatch.setattr(reference_agent, "ROWS", tuple(PLAIN))
    monkeypatch.setattr(reference_agent, "tried", lambda row, *_given, **_more: line_of(row))
    return lambda *more: reference_agent.main([*more, "--out", str(tmp_path)])


# --- the rows ---------------------------------------------------------------------------------------------


def test_each_row_names_a_subject_with_that_model() -> None:
    """And no two rows are the same."""
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        scene = named(row).run.__self__  # type: ignore[attr-defined]  # the method of a description
        assert getattr(scene, "inner", scene).persona == row.persona, row.name
        assert row.fault in FAULTS


def test_every_correct_module_and_every_subject_of_it_has_its_rows() -> None:
    """Both models under every fault; that of three lessons is one harness, and has one row for all of them."""
    assert checkpoint.HARNESS == resume.HARNESS == effects.HARNESS
    folder = Path(next(iter(longrun.__path__)))
    assert {path.parent.name for path in folder.glob("*/correct.py")} == {
        name for row in ROWS for name in row.module.split(", ") if "/" not in name
    }
    for module in (ONE_FILE, "rewind", "capstone"):
        found = {(row.persona, row.fault) for row in ROWS if row.module == module}
        assert found == {(persona, fault) for persona in ("careful", "hasty") for fault in FAULTS}
    for path in ("longrun.rewind.correct", "longrun.capstone.correct"):
        subjects = {name for name in vars(importlib.import_module(path)) if name.startswith("subject_")}
        assert {f"{path}:{name}" for name in subjects} <= {row.subject for row in ROWS}


# --- one row ----------------------------------------------------------------------------------------------


def test_a_row_tells_of_states_in_which_a_person_is_asked(tmp_path: Path) -> None:
    """A correct program: no violation, and the honest unknowns are counted."""
    budget = Budget(real_kills=1)
    line = agent_rows.tried(ASKS, budget, tmp_path, seed=0, progress=lambda *_: None)
    assert (line["verdict"], line["findings"], line["count"]["violation"]) == ("consistent", [], 0)
    assert 0 < line["count"]["unknown"] < line["count"]["distinct"]
    assert agent_rows.cells(ASKS, line)[:3] == ("asks", "careful", "kill")
    assert json.loads(json.dumps(line)) == line


def test_a_row_with_a_fault_is_shown_as_one(tmp_path: Path) -> None:
    """A program that mails again after a second kill: its kind and its state are told."""
    budget = Budget(real_kills=1, nested=4)
    line = agent_rows.tried(SLIPS, budget, tmp_path, seed=0, progress=lambda *_: None)
    assert line["verdict"] == "violation"
    assert line["count"]["fault"] == "recovery"
    assert any(text.startswith("duplicate-effect: ") for text in line["findings"])
    assert agent_rows.cells(SLIPS, line)[-1].endswith("VIOLATION")


# --- the command ------------------------------------------------------------------------------------------


def test_what_is_kept_is_not_run_again(run: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time nothing is left to do; another seed is another row."""
    assert run() == 0
    monkeypatch.setattr(reference_agent, "tried", None)
    assert run() == 0
    with pytest.raises(TypeError):
        run("--seed", "1")


@pytest.mark.parametrize("change", ["code", "budget"])
def test_a_row_of_other_code_or_another_budget_counts_for_nothing(
    change: str, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not shown either."""
    assert run() == 0
    if change == "code":
        monkeypatch.setattr(agent_rows, "code_digest", lambda: "another")
    else:
        monkeypatch.setattr(reference_agent, "BUDGET", replace(agent_rows.BUDGET, subset=1))
    assert run("--show") == 3
    assert capsys.readouterr().out.count("not run") == len(PLAIN)


def test_interrupted_it_shows_what_was_reached(
    run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows before are kept, the others are said to be missing; then it goes on."""

    def stopped(row: Row, *_given: Any, **_more: Any) -> dict[str, Any]:
        if row == PLAIN[1]:
            raise KeyboardInterrupt
        return line_of(row)

    with monkeypatch.context() as patch:
        patch.setattr(reference_agent, "tried", stopped)
        assert run() == 130
    said = capsys.readouterr()
    assert "interrupted" in said.err
    assert "1 of 2 rows: 8 states judged, 0 violations, 1 unknown." in said.out
    assert run() == 0
    assert "2 of 2 rows" in capsys.readouterr().out


@pytest.mark.parametrize(("verdict", "code"), [("violation", 1), ("unmeasured", 2)])
def test_what_is_no_pass_is_none_of_the_table(
    verdict: str,
    code: int,
    run: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The exit code says so, the row too, and the page is left as it is."""
    monkeypatch.setattr(reference_agent, "tried", lambda row, *_given, **_more: line_of(row, verdict))
    monkeypatch.setattr(reference_agent, "write", None)
    assert run("--write") == code
    said = capsys.readouterr()
    assert said.out.count(f" {verdict.upper()}|") == len(PLAIN)
    assert ("lost: gone [kill@1]" in said.err) == (verdict == "violation")


def test_bad_use_is_told(run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A word that no row has, a page of some rows only, a file of something else."""
    for given, text in ((["--only", "plane"], "no row has 'plane'"), (["--write", "--only", "plain"], "all rows")):
        with pytest.raises(SystemExit):
            run(*given)
        assert text in capsys.readouterr().err
    (tmp_path / "other").write_text('{"row": 7}\n')
    assert run("--kept", str(tmp_path / "other")) == 2
    assert "other:1 is no line of this tool" in capsys.readouterr().err


def test_the_page_is_written_behind_its_marker(
    run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What stands before it is left; without one nothing is written."""
    page = tmp_path / "page.md"
    page.write_text(f"# By hand\n\n{reference_agent.BEGIN}\n\nold\n")
    monkeypatch.setattr(reference_agent, "PAGE", page)
    assert run("--write", "--show") == 3
    assert page.read_text().count("|not run|") == len(PLAIN)
    assert "0 of 2 rows" in page.read_text()
    assert run("--write") == 0
    text = page.read_text()
    assert text.startswith("# By hand\n\n<!--")
    assert "old" not in text
    assert text.count("|plain|") == len(PLAIN)
    page.write_text("nothing")
    assert run("--write") == 2
    assert page.read_text() == "nothing"


def test_the_page_has_every_row_and_claims_no_more_than_it_shows() -> None:
    """In the order of the rows; each violation would stand there, and what was not run is counted as that."""
    page = reference_agent.PAGE.read_text()
    found = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
    head, _, *rows = found
    assert tuple(head) == agent_rows.HEAD
    assert [row[:3] for row in rows] == [list(agent_rows.cells(row, None)[:3]) for row in ROWS]
    shown = [row for row in rows if row[-1] != "not run"]
    assert {row[head.index("violations")] for row in shown} == {"0"}
    assert all(re.fullmatch(r"[\d,]+", row[-1]) for row in shown)
    judged = sum(int(row[head.index("distinct")].replace(",", "")) for row in shown)
    assert f"{len(shown)} of {len(ROWS)} rows: {judged:,} states judged, 0 violations" in page
