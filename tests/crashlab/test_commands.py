"""The commands on real runs, each in a process of its own: check, show, replay."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import crashlab.report
from crashlab import exits
from crashlab.report.load import load

LAB = Path(crashlab.report.__file__).parents[2]
SCHEMA = json.loads((Path(crashlab.report.__file__).parent / "schema.json").read_text(encoding="utf-8"))
SUBJECTS = """
import json, os
from crashlab import Store

def load(folder):
    path = folder / "value.json"
    return json.loads(path.read_text()) if path.exists() else None

def save_in_place(folder, value):
    (folder / "value.json").write_text(json.dumps(value))

def save(folder, value):
    with open(folder / "value.tmp", "w") as file:
        file.write(json.dumps(value))
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "value.tmp", folder / "value.json")
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)

naive = Store(save_in_place, load, values=[{"n": 1}, {"n": 2}])
correct = Store(save, load, values=[{"n": 1}, {"n": 2}])
"""


def crashlab_command(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m crashlab`` in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CRASHLAB_")}
    return subprocess.run(
        [sys.executable, "-m", "crashlab", *arguments],
        cwd=cwd,
        env={**clean, "PYTHONPATH": str(LAB), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a module of two subjects, the naive one checked."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "shop.py").write_text(SUBJECTS)
    done = crashlab_command("check", "shop:naive", "--jobs", "1", cwd=folder)
    assert done.returncode == exits.VIOLATION, done.stdout + done.stderr
    return folder


def test_check_finds_and_passes(project: Path) -> None:
    """The naive store is a violation, the correct one is consistent; nothing on stderr off a terminal."""
    out = str(project / "elsewhere")
    naive = crashlab_command("check", "shop:naive", "--out", out, cwd=project)
    assert (naive.returncode, naive.stderr) == (1, "")
    assert naive.stdout.startswith("VIOLATION  naive: ")
    correct = crashlab_command("check", "shop:correct", "--out", out, cwd=project)
    assert (correct.returncode, correct.stderr) == (0, "")
    assert re.search(r"^It died \d+ times and forgot nothing\.$", correct.stdout, re.MULTILINE)


def test_show_shows_what_check_showed(project: Path) -> None:
    """From the stored report: the same text, and the same object in JSON."""
    stored = next((project / ".crashlab" / "runs").iterdir())
    shown = crashlab_command("show", cwd=project)
    assert shown.returncode == 0
    assert shown.stdout == (stored / "report.txt").read_text()
    form = json.loads(crashlab_command("show", "--json", cwd=project).stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(form)
    assert form["reports"] == [json.loads((stored / "report.json").read_text())]


def test_check_leaves_a_page_in_its_run_folder(project: Path) -> None:
    """Of the result that it printed; ``report`` draws the same again, and says where."""
    stored = next((project / ".crashlab" / "runs").iterdir())
    page = (stored / "report.html").read_text()
    assert "naive" in page
    assert "it broke a promise" in page
    (stored / "report.html").unlink()
    done = crashlab_command("report", "--format", "html", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(project, done.stdout.strip()).resolve() == (stored / "report.html").resolve()
    assert (stored / "report.html").read_text() == page


def test_the_page_of_a_real_finding_has_the_bytes_that_the_crash_took(project: Path) -> None:
    """A naive store that was killed with its file empty: what was to be there is in the report."""
    report = load(json.loads(crashlab_command("show", "--json", cwd=project).stdout)["reports"][0])
    assert report.moments
    assert {change.path for finding in report.findings for change in finding.changes} == {"value.json"}


def test_an_issue_of_a_real_finding_rebuilds_its_state(project: Path, tmp_path: Path) -> None:
    """The script in it makes the files that the run folder has."""
    report = load(json.loads(crashlab_command("show", "--json", cwd=project).stdout)["reports"][0])
    finding = report.findings[0]
    text = crashlab_command("show", finding.id, "--issue", cwd=project).stdout
    script = tmp_path / "rebuild.py"
    script.write_text(text.split("```python\n")[1].split("\n```", maxsplit=1)[0])
    subprocess.run([sys.executable, "-I", str(script), str(tmp_path / "again")], check=True, capture_output=True)
    kept = Path(project, finding.directory, "dir", "value.json").read_bytes()
    assert (tmp_path / "again" / "dir" / "value.json").read_bytes() == kept


def test_show_one_finding(project: Path) -> None:
    """By its id, and by the id of another state of the same fault; JSON holds only that finding."""
    report = load(json.loads(crashlab_command("show", "--json", cwd=project).stdout)["reports"][0])
    finding = report.findings[0]
    one = crashlab_command("show", finding.id, cwd=project)
    assert one.stdout == (Path(project, finding.directory) / "finding.txt").read_text()
    for other in finding.same[:1]:
        assert crashlab_command("show", other, cwd=project).stdout == one.stdout
    form = json.loads(crashlab_command("show", finding.id, "--json", cwd=project).stdout)
    assert load(form["reports"][0]) == dataclasses.replace(report, findings=(finding,))


def test_show_of_an_unknown_id_names_the_known_ones(project: Path) -> None:
    """Misuse, with the likeliest correction."""
    report = load(json.loads(crashlab_command("show", "--json", cwd=project).stdout)["reports"][0])
    known = report.findings[0].id
    done = crashlab_command("show", known + "0", cwd=project)
    assert done.returncode == 64
    assert f"did you mean '{known}'" in done.stderr


def test_show_the_trace(project: Path) -> None:
    """One line per op; JSON is the stored trace."""
    stored = next((project / ".crashlab" / "runs").iterdir())
    trace = json.loads((stored / "trace.json").read_text())
    text = crashlab_command("show", "--trace", cwd=project).stdout
    assert len(text.splitlines()) == len(trace["ops"]) + 1
    assert re.search(r"^ +3  write +value\.json  8 bytes at 0 +shop\.py:\d+$", text, re.MULTILINE)
    assert json.loads(crashlab_command("show", "--trace", "--json", cwd=project).stdout) == trace


def test_show_without_a_run_is_misuse(tmp_path: Path) -> None:
    """And where CRASHLAB_OUT says, it is looked for."""
    done = crashlab_command("show", cwd=tmp_path, CRASHLAB_OUT="other")
    assert done.returncode == 64
    assert "no run in 'other'; make one with: crashlab check" in done.stderr


def test_replay_meets_the_violation_again_until_it_is_mended(project: Path, tmp_path: Path) -> None:
    """Exit 1 while it is there, 0 for a state that recovers, 0 once the code is mended; --into has the files."""
    report = load(json.loads(crashlab_command("show", "--json", cwd=project).stdout)["reports"][0])
    finding = report.findings[0]
    again = crashlab_command("replay", finding.id, "--into", str(tmp_path / "state"), cwd=project)
    assert again.returncode == 1, again.stdout + again.stderr
    assert f"[{finding.id}]" in again.stdout
    assert sorted(os.listdir(tmp_path / "state")) == ["dir", "home", "tmp"]
    assert crashlab_command("replay", "kill@0", cwd=project).returncode == 0
    script = subprocess.run([Path(project, finding.directory) / "run.sh"], capture_output=True, cwd="/", check=False)
    assert script.returncode == 1
    mended = SUBJECTS.replace(
        "return json.loads(path.read_text())", "return json.loads(path.read_text() or '{\"n\": 1}')"
    )
    (project / "shop.py").write_text(mended)
    try:
        assert crashlab_command("replay", finding.id, cwd=project).returncode == 0
    finally:
        (project / "shop.py").write_text(SUBJECTS)


def test_damage_is_checked_shown_and_replayed(project: Path, tmp_path: Path) -> None:
    """Some kinds by name: exit 1, an id that says what was damaged, and a replay that meets it again."""
    out = str(tmp_path / "runs")
    asked = ("--faults", "damage:bit,damage:version", "--out", out, "--quiet")
    done = crashlab_command("check", "shop:correct", *asked, cwd=project)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    form = json.loads(crashlab_command("show", "--json", "--run", f"{out}/latest", cwd=project).stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(form)
    report = load(form["reports"][0])
    assert report.settings.faults == ("damage:bit,damage:version",)
    finding = report.findings[0]
    assert (finding.kind, finding.id.split(":")[:2]) == ("accepted-damage", ["damage@value.json", "bit"])
    assert "flipped: " in finding.disk[0].state
    again = crashlab_command(
        "replay", finding.id, "--run", f"{out}/latest", "--into", str(tmp_path / "state"), cwd=project
    )
    assert again.returncode == 1, again.stdout + again.stderr
    assert f"[{finding.id}]" in again.stdout
    (place, bit) = divmod(int(finding.id.rpartition(":")[2]), 8)
    met, written = (tmp_path / "state/dir/value.json").read_bytes(), b'{"n": 2}'
    assert [old ^ new for old, new in zip(written, met, strict=True)] == [
        (1 << bit) * (at == place) for at in range(len(written))
    ]
    only = crashlab_command("check", "shop:correct", *asked, "--only", finding.id, cwd=project)
    assert only.returncode == 1
    wrong = crashlab_command("check", "shop:correct", "--faults", "damage:bits", cwd=project)
    assert (wrong.returncode, "has no variant ':bits'" in wrong.stderr) == (64, True)


def test_replay_of_an_unknown_state_is_misuse(project: Path) -> None:
    """An op that was never recorded, and an id that is none."""
    unknown = crashlab_command("replay", "kill@999", cwd=project)
    assert unknown.returncode == 64
    assert "kill@999 comes from another program" in unknown.stderr
    assert "crashlab replay" not in unknown.stderr, "that is what was just tried"
    assert crashlab_command("replay", "nonsense", cwd=project).returncode == 64


def test_a_reader_that_leaves_early_ends_it_without_a_traceback(project: Path) -> None:
    """``crashlab show | head`` prints no error of its own, and leaves with the code that it would have had."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "crashlab", "show"]
    environment = {**os.environ, "PYTHONPATH": str(LAB)}
    done = subprocess.run(command, cwd=project, env=environment, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_page_is_drawn_where_none_is_wanted(project: Path, tmp_path: Path) -> None:
    """As the demo does, which draws one of all."""
    out = tmp_path / "runs"
    asked = ("check", "shop:correct", "--faults", "kill", "--out", str(out), "--quiet")
    assert crashlab_command(*asked, "--no-page", cwd=project).returncode == 0
    assert not list(out.rglob("report.html"))
    assert crashlab_command(*asked, cwd=project).returncode == 0
    assert len(list(out.rglob("report.html"))) >= 1
