"""The command ``crashlab``: misuse, exit codes, options and streams, without the lab behind it."""

from __future__ import annotations

import io
import json
import re
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import crashlab
import crashlab.report
from crashlab import cli, commands, exits
from crashlab.errors import LabError, UsageError
from crashlab.report.load import load
from crashlab.side_by_side import Checked
from tests.crashlab.report.samples import PASS, UNMEASURED, VIOLATION

if TYPE_CHECKING:
    from crashlab.report.model import Report

SCHEMA = json.loads((Path(crashlab.report.__file__).parent / "schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def explored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Report | BaseException]:
    """What exploring a subject gives, by its name: the commands without the lab behind them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    outcomes: dict[str, Report | BaseException] = {
        "m:good": PASS,
        "m:bad": VIOLATION,
        "m:unknown": UNMEASURED,
        "m:misused": UsageError("no such thing"),
        "m:broken": LabError("a worker died"),
        "m:bug": ValueError("unexpected"),
        "m:interrupted": KeyboardInterrupt(),
    }

    def explore(subject: str, **_: Any) -> Report:
        outcome = outcomes[subject]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setitem(sys.modules, "crashlab.pipeline", types.SimpleNamespace(explore=explore))
    return outcomes


# --- misuse ----------------------------------------------------------------------------------------


def test_no_command_prints_help_and_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    """Help goes to stderr: nothing was asked for, so there is no data."""
    assert cli.main([]) == 64
    assert "usage: crashlab" in (captured := capsys.readouterr()).err
    assert captured.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["chekc"],
        ["check", "m:good", "--budget", "huge"],
        ["check", "m:good", "--recorder", "dtrace"],
        ["check", "m:good", "--seed", "x"],
        ["check", "m:good", "--unknown"],
        ["replay"],
        ["show", "a", "b"],
    ],
)
def test_misuse_leaves_with_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """argparse would leave with 2, which means unmeasured here."""
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 64
    assert "--help" in capsys.readouterr().err


@pytest.mark.parametrize("subject", ["shop", "shop:", ":naive", ""])
def test_a_subject_without_module_or_name_is_misuse(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message shows the form."""
    assert cli.main(["check", subject]) == 64
    assert "write MODULE:OBJECT, for example myapp.crash:checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["--version"]])
def test_help_and_version_are_data(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """They were asked for, so they go to stdout and all is well."""
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 0
    assert "crashlab" in capsys.readouterr().out


def test_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """A code that the program uses is a code that the help explains."""
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    listed = {int(code) for code in re.findall(r"^  (\d+) ", capsys.readouterr().out, re.MULTILINE)}
    assert listed == {*commands.WORST_FIRST, exits.INTERRUPTED}


# --- exit codes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subjects", "code"),
    [
        ("good", 0),
        ("bad", 1),
        ("unknown", 2),
        ("broken", 3),
        ("bug", 3),
        ("misused", 64),
        ("interrupted", 130),
        ("good unknown", 2),
        ("unknown bad good", 1),
        ("bad misused", 64),
        ("misused broken bad unknown good", 3),
        ("bad interrupted good", 130),
    ],
)
@pytest.mark.usefixtures("explored")
def test_the_worst_of_several_subjects_counts(subjects: str, code: int) -> None:
    """The lab's failure over misuse over violation over unmeasured; interrupted ends it all."""
    assert cli.main(["check", *(f"m:{name}" for name in subjects.split())]) == code


@pytest.mark.usefixtures("explored")
def test_one_failure_does_not_hide_the_other_results(capsys: pytest.CaptureFixture[str]) -> None:
    """The misused subject is told on stderr, the others are shown on stdout."""
    cli.main(["check", "m:misused", "m:good"])
    captured = capsys.readouterr()
    assert captured.err == "crashlab: no such thing\n"
    assert captured.out.startswith("PASS  agent")


@pytest.mark.usefixtures("explored")
def test_a_fault_of_the_lab_is_told_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody can mend "something went wrong"."""
    cli.main(["check", "m:bug"])
    captured = capsys.readouterr()
    assert "ValueError: unexpected" in captured.err
    assert "please report this" in captured.err
    assert captured.out == ""


@pytest.mark.usefixtures("explored")
def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """Also when one subject failed, and when all did: it fits the schema and holds what there is."""
    cli.main(["check", "m:good", "m:misused", "m:bad", "--json"])
    form = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SCHEMA).validate(form)
    assert [load(each) for each in form["reports"]] == [PASS, VIOLATION]
    cli.main(["check", "m:misused", "--json"])
    assert json.loads(capsys.readouterr().out) == {"schema": "crashlab.reports/1", "reports": []}


def test_options_reach_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option arrives under its name; what was not given is None, for the lab to choose."""
    seen: list[dict[str, Any]] = []

    def explore(subject: str, **options: Any) -> Report:
        seen.append({"subject": subject, **options})
        return PASS

    monkeypatch.setitem(sys.modules, "crashlab.pipeline", types.SimpleNamespace(explore=explore))
    given = (
        "--faults kill[cut=byte] --profile posix --budget full --seed 7 --jobs 2 --recorder python --disk ext4 "
        "--redundant --only kill@7 --out runs --baseline known.toml --accept later"
    )
    cli.main(["check", "m:good", *given.split(), "--quiet"])
    cli.main(["check", "m:good"])
    for each in seen:
        assert callable(each.pop("progress"))
    assert seen[0] == {
        "subject": "m:good",
        "faults": "kill[cut=byte]",
        "profile": "posix",
        "budget": "full",
        "seed": 7,
        "jobs": 2,
        "recorder": "python",
        "disk": "ext4",
        "redundant": True,
        "only": "kill@7",
        "out": Path("runs"),
        "baseline": str(Path("known.toml").absolute()),
        "accept": "later",
    }
    assert {name: value for name, value in seen[1].items() if value is not None} == {"subject": "m:good"}


# --- the stream ------------------------------------------------------------------------------------


class Stream(io.TextIOWrapper):
    """A stdout of any encoding that may be a terminal."""

    def __init__(self, encoding: str, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self.terminal = terminal

    def isatty(self) -> bool:
        """As it was made."""
        return self.terminal

    @property
    def text(self) -> str:
        """What was written."""
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined] # the buffer is a BytesIO


def shown_on(stream: Stream, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What a check of the good subject writes to ``stream``."""
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    cli.main(["check", "m:good", *arguments])
    return stream.text


@pytest.mark.usefixtures("explored")
def test_colours_only_on_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a pipe, not with --no-color, not with NO_COLOR, not on a dumb terminal."""
    assert "\x1b[" in shown_on(Stream("utf-8", terminal=True), monkeypatch)
    assert "\x1b[" not in shown_on(Stream("utf-8", terminal=False), monkeypatch)
    assert "\x1b[" not in shown_on(Stream("utf-8", terminal=True), monkeypatch, "--no-color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in shown_on(Stream("utf-8", terminal=True), monkeypatch)
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b[" in shown_on(Stream("utf-8", terminal=True), monkeypatch)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
@pytest.mark.usefixtures("explored")
def test_a_stream_of_few_letters_gets_ascii(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fails to be encoded, and the matrix has a letter that the stream has."""
    text = shown_on(Stream(encoding, terminal=False), monkeypatch)
    assert text.isascii()
    assert ". consistent" in text
    assert "· consistent" in shown_on(Stream("utf-8", terminal=False), monkeypatch)


@pytest.mark.usefixtures("explored")
def test_a_narrow_terminal_gets_narrow_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide one gets no more than 100 columns."""
    monkeypatch.setenv("COLUMNS", "70")
    lines = shown_on(Stream("utf-8", terminal=True), monkeypatch, "--no-color").splitlines()
    assert max(map(len, lines)) <= 70
    assert any(len(line) > 60 for line in lines)


# --- demo ------------------------------------------------------------------------------------------


def exhibit(monkeypatch: pytest.MonkeyPatch, explored: dict[str, Report | BaseException], **kinds: str) -> None:
    """Let longrun offer these subjects, each with the kind that it must show; their outcomes are known."""
    shown = tuple(
        types.SimpleNamespace(subject=f"m:{name}", kind=kind, options=("--faults=kill",))
        for name, kind in kinds.items()
    )
    monkeypatch.setitem(sys.modules, "longrun", types.ModuleType("longrun"))
    monkeypatch.setitem(sys.modules, "longrun.demo", types.SimpleNamespace(DEMO=shown))

    def checked(asked: list[tuple[str, list[str]]], options: list[str], **_: Any) -> list[Checked]:
        assert {"--budget=brief"} <= {*options}
        assert [list(own) for _, own in asked] == [["--faults=kill"]] * len(asked)
        subjects = [subject for subject, _ in asked]
        reports = [explored[subject] for subject in subjects]
        known = [report if isinstance(report, crashlab.Report) else None for report in reports]
        return [Checked(subject, 64, report) for subject, report in zip(subjects, known, strict=True)]

    monkeypatch.setattr("crashlab.commands.check_side_by_side", checked)


def test_the_demo_compares_first(
    explored: dict[str, Report | BaseException], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agents of longrun, by name, as one table and then each report; as they must come out is success."""
    exhibit(monkeypatch, explored, bad="lost", good="")
    assert cli.main(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("subject ")
    assert [line.split()[1] for line in lines[1:3]] == ["VIOLATION", "PASS"]


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ({"bad": "duplicate-effect"}, 1),
        ({"bad": ""}, 1),
        ({"good": "lost"}, 1),
        ({"unknown": ""}, 2),
        ({"unknown": "lost"}, 2),
        ({"misused": ""}, 64),
    ],
)
def test_the_demo_fails_where_an_exhibit_does_not_come_out(
    kinds: dict[str, str],
    code: int,
    explored: dict[str, Report | BaseException],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A naive agent that passes is as bad as a correct one that fails, and is named."""
    exhibit(monkeypatch, explored, **kinds)
    assert cli.main(["demo"]) == code
    assert (f"m:{next(iter(kinds))} must show" in capsys.readouterr().err) == (code != 64)


def test_the_demo_without_longrun_is_misuse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lab alone is a fine installation; the message says what is missing."""
    monkeypatch.setitem(sys.modules, "longrun", None)
    monkeypatch.delitem(sys.modules, "longrun.demo", raising=False)
    assert cli.main(["demo"]) == 64
    assert "longrun, which is not installed here" in capsys.readouterr().err
