"""``crashlab doctor``: what it sees here, and that it sees what is missing."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import cli, doctor, exits
from crashlab.disk import available
from crashlab.doctor import Finding
from crashlab.errors import LabError
from crashlab.pipeline import explore
from crashlab.report.examined import render_examined
from tests.crashlab.report.samples import UNMEASURED
from tests.crashlab.test_commands import crashlab_command

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.report.model import Report


def named(findings: list[Finding], name: str) -> Finding:
    return next(each for each in findings if each.name == name)


def test_this_machine_works(tmp_path: Path) -> None:
    """The tests run here, so the core does; the check was a real one, and nothing of it is left."""
    done = crashlab_command("doctor", "--json", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == exits.CONSISTENT, done.stderr
    form = json.loads(done.stdout)
    assert (form["schema"], form["works"]) == ("crashlab.doctor/1", True)
    findings = {each["name"]: each for each in form["findings"]}
    assert "crash states in" in findings["a check from end to end"]["detail"]
    assert findings["pytest"]["works"]
    assert findings["Python"]["detail"].startswith(".".join(map(str, sys.version_info[:3])))
    assert all(each["needed_for"] for each in form["findings"])
    assert all(each["works"] or each["next"] for each in form["findings"])
    assert list(tmp_path.iterdir()) == []


def test_what_a_project_asks_of_its_checks_is_not_asked_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Faults that the probe was not made for, a broken file, and variables that mean nothing break no machine."""
    monkeypatch.chdir(tmp_path)
    asked: list[Report] = []

    def observed(*arguments: Any, **options: Any) -> Report:
        asked.append(explore(*arguments, **options))
        return asked[-1]

    for text in ('[defaults]\nfaults = "damage"\nbudget = "full"\nbaseline = "none.toml"\n', "broken"):
        (tmp_path / "crashlab.toml").write_text(text)
        monkeypatch.setenv("CRASHLAB_JOBS", "none")
        monkeypatch.setenv("CRASHLAB_FAULTS", "connection")
        assert doctor.works(doctor._check(observed))
    assert {each.settings.faults for each in asked} == {("kill", "power")}
    assert os.listdir(tmp_path) == ["crashlab.toml"]


def test_text_has_the_answer_first() -> None:
    """Each thing is one line, and what is missing says what to do."""
    findings = [
        Finding(name="Python", works=True, core=True, needed_for="everything", detail="3.11"),
        Finding(name="strace", works=False, needed_for="programs", detail="not installed", next="apt install strace"),
    ]
    text = render_examined(findings, works=True, color=False)
    assert [line.split() for line in text.splitlines()] == [
        ["OK", "crashlab", "works", "here"],
        [],
        ["works", "Python", "3.11;", "for", "everything"],
        ["missing", "strace", "not", "installed;", "for", "programs"],
        ["apt", "install", "strace"],
    ]
    broken = [dataclasses.replace(findings[0], works=False, next="install it"), findings[1]]
    text = render_examined(broken, works=doctor.works(broken), color=False)
    assert text.startswith("BROKEN  crashlab cannot judge anything here\n")


def test_what_is_missing_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without strace and mkfs on the path, without rights and devices, without Hypothesis."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    available._missing.cache_clear()
    findings = [*doctor._strace(), *doctor._disk_parts(), *doctor._disks(), *doctor._packages()]
    available._missing.cache_clear()
    for name in ("strace", "root", "FUSE", "loop devices", "a real ext4", "pytest-xdist", "hypothesis"):
        finding = named(findings, name)
        assert not finding.works
        assert finding.next
    assert "apt install strace" in named(findings, "strace").next
    assert named(findings, "hypothesis").next == "pip install hypothesis"
    assert doctor.works(findings), "none of these belongs to the core"


@pytest.mark.parametrize("outcome", [LabError("a worker died"), UNMEASURED])
def test_a_check_that_fails_is_the_core(outcome: Report | LabError) -> None:
    """Sabotage: where the lab itself cannot judge its own store, the doctor must not say OK."""

    def broken(*_: Any, **__: Any) -> Report:
        if isinstance(outcome, LabError):
            raise outcome
        return outcome

    findings = doctor._check(broken)
    assert not doctor.works(findings)
    assert findings[0].detail
    assert findings[0].next


def test_the_probe_is_a_real_store(tmp_path: Path) -> None:
    """It passes where all is well, under both faults."""
    report = explore(doctor.PROBE, out=tmp_path)
    assert report.verdict == "consistent", str(report)
    assert {each.fault for each in report.faults} == {"kill", "power"}


def test_recoveries_one_at_a_time_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a namespace the core works, only slower."""
    monkeypatch.setenv("CRASHLAB_NO_NAMESPACE", "1")
    findings = doctor._check()
    assert doctor.works(findings)
    assert not named(findings, "mount namespace").works


def test_doctor_exits_with_unmeasured_where_the_core_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that asks sees it from the exit code."""
    monkeypatch.setattr(doctor, "examine", lambda: [Finding(name="Python", works=False, core=True, needed_for="all")])
    assert cli.main(["doctor"]) == exits.UNMEASURED
    assert capsys.readouterr().out.startswith("BROKEN")
