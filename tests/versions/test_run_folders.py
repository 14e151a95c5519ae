"""Run folders of other versions: older ones are read and replayed, newer ones refused with what to do.

``run-0.1`` is what version 0.1 wrote. It stays as it is: whoever changes a form so that it cannot be read any more
must raise the number of that form, and say so in lab/CHANGELOG.md.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from crashlab import cli, exits
from crashlab.report import model

SAMPLE = Path(__file__).parent / "run-0.1"
APP = """
import json
from crashlab import Store

S = Store(lambda d, v: (d / "v").write_text(json.dumps(v)), lambda d: json.loads((d / "v").read_text()), values=[1, 2])
"""
FORMS = {"report.json": "report/1", "trace.json": "trace/1", "reference.json": "reference/1"}
STATE = "power@4-3"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sample, whose subject is a module of this machine."""
    folder = tmp_path / "runs" / "of-0.1"
    shutil.copytree(SAMPLE, folder)
    (tmp_path / "app.py").write_text(APP)
    change(folder, "reference.json", lambda form: form["subject"].update(sys_path=[str(tmp_path), *sys.path]))
    monkeypatch.chdir(tmp_path)
    return folder


def change(run: Path, name: str, how: Any) -> None:
    """Change one JSON file of a run."""
    form = json.loads((run / name).read_text())
    how(form)
    (run / name).write_text(json.dumps(form))


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and all that was said, in one line."""
    code = cli.main(list(arguments))
    out, err = capsys.readouterr()
    return code, " ".join((out + err).split())


def everything(capsys: pytest.CaptureFixture[str], run: Path) -> dict[str, tuple[int, str]]:
    """What each command that reads runs says of this one."""
    where = ["--run", str(run)]
    return {
        "show": said(capsys, "show", STATE, *where),
        "ops": said(capsys, "show", "--trace", *where),
        "report": said(capsys, "report", str(run), "--format", "github"),
        "replay": said(capsys, "replay", STATE, "--quiet", *where),
    }


# --- what can be read ---------------------------------------------------------------------------------------


def test_a_run_of_version_0_1_is_shown_drawn_and_replayed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command still reads it, and the violation is still there."""
    codes = {name: code for name, (code, _) in everything(capsys, run).items()}
    assert codes == {"show": 0, "ops": 0, "report": 0, "replay": exits.VIOLATION}
    assert f"[{STATE}]" in said(capsys, "show", STATE, "--run", str(run))[1]


def test_fields_that_came_later_have_their_defaults(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An older minor version has fewer fields; each that has a default may be missing, alone or with all others."""
    optional = {"place", "changes", "crashes", "moment", "fault_line", "remark", "run"}
    optional |= {"inside", "reached", "known", "unknown"}

    def older(form: Any) -> None:
        for part in [form, *form["findings"], *form["faults"], *form["findings"][0]["ops"]]:
            for name in optional & set(part):
                del part[name]
        for name in ("matrix", "accepted", "controls", "notes", "versions"):
            form.pop(name, None)

    change(run, "report.json", older)
    change(run, "reference.json", lambda form: (form.pop("schema"), form.pop("rebuilt")))
    codes = {name: code for name, (code, _) in everything(capsys, run).items()}
    assert codes == {"show": 0, "ops": 0, "report": 0, "replay": exits.VIOLATION}


def test_fields_of_a_newer_version_are_passed_over(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same number, and more in it."""
    for name in ("report.json", "reference.json"):
        change(run, name, lambda form: form.update(weather={"wind": 3}))
    change(run, "report.json", lambda form: form["findings"][0].update(weather="fair"))
    assert {code for code, _ in everything(capsys, run).values()} == {0, exits.VIOLATION}


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_a_later_number_is_refused(run: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence: what was found, what is read, what to do. No traceback, no guess."""
    change(run, name, lambda form: form.update(schema=f"crashlab.{FORMS[name][:-1]}2"))
    readers = {"report.json": ("show", "report", "replay"), "trace.json": ("ops", "replay")}
    for command in readers.get(name, ("replay",)):
        code, text = everything(capsys, run)[command]
        assert code == exits.MISUSE, (command, text)
        assert f"crashlab.{FORMS[name][:-1]}2" in text
        assert f"crashlab.{FORMS[name]}" in text
        assert "again" in text
        assert "Traceback" not in text


@pytest.mark.parametrize("name", FORMS)
def test_a_missing_file_is_named(run: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that was cut off has not all files; a replay needs each of them."""
    (run / name).unlink()
    code, text = everything(capsys, run)["replay"]
    assert (code, name in text, "--run DIR" in text) == (exits.MISUSE, True, True), text


@pytest.mark.parametrize("field", ["subject", "modules", "end", "ended", "nothing"])
def test_a_reference_without_a_field_that_a_replay_needs_is_refused(
    run: Path, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the field, and which version made the run."""
    change(run, "reference.json", lambda form: form.pop(field))
    code, text = everything(capsys, run)["replay"]
    assert (code, f"has no {field!r}" in text, "made by crashlab 0.1.0" in text) == (exits.MISUSE, True, True), text


# --- the rules themselves -----------------------------------------------------------------------------------


def test_the_sample_is_of_the_forms_that_are_written_now() -> None:
    """A number that was raised needs a sample of its own, and a line in the changelog."""
    for name, form in FORMS.items():
        assert json.loads((SAMPLE / name).read_text())["schema"] == f"crashlab.{form}"
    assert model.SCHEMA == "crashlab.report/1"


def test_no_field_of_the_sample_was_removed_or_renamed() -> None:
    """What version 0.1 wrote, this version still knows by the same names."""
    kept: dict[str, Any] = {
        "report": model.Report,
        "findings": model.Finding,
        "faults": model.FaultCount,
        "controls": model.Control,
        "subject": model.SubjectInfo,
        "settings": model.Settings,
    }
    sample = json.loads((SAMPLE / "report.json").read_text())
    for name, kind in kept.items():
        part = sample if name == "report" else sample[name]
        written = set(part[0] if isinstance(part, list) else part)
        assert written - set(kind.__dataclass_fields__) == set(), name
