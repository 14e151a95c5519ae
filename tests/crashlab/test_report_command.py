"""The commands that draw stored results: ``report``, ``show --issue``, and the page that ``check`` leaves."""

from __future__ import annotations

import dataclasses
import sys
import types
from pathlib import Path

import pytest

from crashlab import cli
from crashlab.errors import LabError
from crashlab.side_by_side import Checked
from tests.crashlab.report.samples import PASS, VIOLATION, finished


def test_report_prints_the_latest_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As text; the same as ``show``."""
    finished(tmp_path)
    assert cli.main(["report", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert cli.main(["show", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == text
    assert text.startswith("VIOLATION  agent: ")


@pytest.mark.parametrize(("form", "begins"), [("json", "{"), ("junit", "<?xml"), ("github", "## crashlab")])
def test_report_in_other_formats(form: str, begins: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To stdout, or into a file and then nothing to stdout."""
    run = finished(tmp_path)
    assert cli.main(["report", str(run.path), "--format", form]) == 0
    text = capsys.readouterr().out
    assert text.startswith(begins)
    assert cli.main(["report", str(run.path), "--format", form, "--output", str(tmp_path / "file")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "file").read_text() == text


def test_report_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Into the run folder, with its path on stdout; or where one says, ``-`` being stdout."""
    run = finished(tmp_path)
    assert cli.main(["report", "--format", "html", "--out", str(tmp_path)]) == 0
    assert Path(capsys.readouterr().out.strip()) == run.path.resolve() / "report.html"
    assert cli.main(["report", "--format", "html", "--output", "-", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (run.path / "report.html").read_text()


def test_a_page_of_several_reports_needs_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It belongs to no one run."""
    runs = [str(finished(tmp_path).path), str(finished(tmp_path).path)]
    assert cli.main(["report", *runs, "--format", "html"]) == 64
    assert "--output FILE" in capsys.readouterr().err
    assert cli.main(["report", *runs, "--format", "html", "--output", str(tmp_path / "all.html")]) == 0
    assert "2 subjects." in (tmp_path / "all.html").read_text()


@pytest.mark.parametrize("spoil", ["missing", "empty", "cut", "newer", "unwritable"])
def test_report_of_what_is_none_is_misuse(spoil: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 64, one line, and what to do."""
    run = finished(tmp_path / "out")
    arguments = [str(run.path)]
    if spoil == "missing":
        arguments = [str(tmp_path / "missing")]
    elif spoil == "empty":
        (run.path / "report.json").unlink()
    elif spoil == "cut":
        (run.path / "report.json").write_text("{")
    elif spoil == "newer":
        (run.path / "report.json").write_text('{"schema": "crashlab.report/2"}')
    else:
        arguments += ["--output", str(tmp_path / "missing" / "file")]
    assert cli.main(["report", *arguments]) == 64
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("crashlab: ")
    assert said.err.count("\n") == 1
    assert "--run" not in said.err


def test_an_issue_is_about_one_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named by its id."""
    finished(tmp_path)
    assert cli.main(["show", "kill@7", "--issue", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("# duplicate-effect: ")
    assert cli.main(["show", "--issue", "--out", str(tmp_path)]) == 64
    assert "crashlab show ID --issue" in capsys.readouterr().err


def test_the_demo_leaves_one_page_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the folder of all runs, which is named on stderr; nowhere where no run made that folder."""
    exhibits = tuple(
        types.SimpleNamespace(subject=name, kind=kind, options=()) for name, kind in (("a", ""), ("b", "lost"))
    )
    monkeypatch.setitem(sys.modules, "longrun", types.ModuleType("longrun"))
    monkeypatch.setitem(sys.modules, "longrun.demo", types.SimpleNamespace(DEMO=exhibits))
    checked = [Checked("a", 0, PASS), Checked("b", 1, VIOLATION)]
    monkeypatch.setattr("crashlab.commands.check_side_by_side", lambda *_, **__: checked)
    assert cli.main(["demo", "--out", str(tmp_path / "missing")]) == 0
    assert "demo.html" not in capsys.readouterr().err
    assert cli.main(["demo", "--out", str(tmp_path)]) == 0
    assert f"all of them on one page: {tmp_path / 'demo.html'}" in capsys.readouterr().err
    assert "2 subjects." in (tmp_path / "demo.html").read_text()


def test_a_page_that_cannot_be_kept_does_not_hide_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result is shown first; then the failure is told and counts."""
    report = dataclasses.replace(VIOLATION, run=str(tmp_path))
    monkeypatch.setitem(sys.modules, "crashlab.pipeline", types.SimpleNamespace(explore=lambda *_, **__: report))

    def refused(*_: object) -> None:
        text = "no room"
        raise LabError(text)

    monkeypatch.setattr("crashlab.report.folder.RunFolder.save_text", refused)
    assert cli.main(["check", "m:bad"]) == 3
    said = capsys.readouterr()
    assert said.out.startswith("VIOLATION")
    assert said.err == "crashlab: the lab failed: no room\n"
