"""``crashlab check`` with names of ``crashlab.toml``, on real runs in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crashlab import exits
from crashlab.chosen import chosen
from crashlab.errors import UsageError
from tests.crashlab.here import needs_strace
from tests.crashlab.test_commands import SUBJECTS, crashlab_command

CONFIG = """
[defaults]
faults = "kill"
budget = { states = 500, real_kills = 0 }

[subject.naive]
object = "shop:naive"

[subject.good]
object = "shop:correct"
timeout_s = 7
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose module lies beside the file, and a folder below to work in."""
    (tmp_path / "shop.py").write_text(SUBJECTS)
    (tmp_path / "crashlab.toml").write_text(CONFIG)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_name_all_are_checked_wherever_one_is(project: Path) -> None:
    """From a folder below: objects are found beside the file, runs are kept there, the worst verdict counts."""
    done = crashlab_command("check", "--json", cwd=project / "below")
    assert done.returncode == exits.VIOLATION, done.stderr
    reports = json.loads(done.stdout)["reports"]
    assert [(each["subject"]["name"], each["verdict"]) for each in reports] == [
        ("naive", "violation"),
        ("good", "consistent"),
    ]
    assert {tuple(each["settings"]["faults"]) for each in reports} == {("kill",)}
    assert all(Path(each["run"]).parent == project / ".crashlab" / "runs" for each in reports)
    assert [path.name for path in (project / "below").iterdir()] == []
    shown = crashlab_command("show", "--json", cwd=project / "below")
    assert json.loads(shown.stdout)["reports"] == reports[1:]


def test_one_by_its_name_and_the_command_line_wins(project: Path) -> None:
    """An option of the command line is stronger than the file; a relative folder is that of the caller."""
    done = crashlab_command(
        *("check", "good", "--faults", "power", "--budget", "brief", "--out", "here", "--json"),
        cwd=project / "below",
        CRASHLAB_FAULTS="kill,power",
    )
    assert done.returncode == exits.CONSISTENT, done.stderr + done.stdout
    (report,) = json.loads(done.stdout)["reports"]
    assert report["settings"]["faults"] == ["power"]
    assert Path(report["run"]).parent == project / "below" / "here" / "runs"


def test_list_names_them(project: Path) -> None:
    """Each with what it is; as data too; nothing is run."""
    done = crashlab_command("check", "--list", cwd=project)
    assert (done.returncode, done.stdout) == (0, "naive  shop:naive\ngood   shop:correct\n")
    form = json.loads(crashlab_command("check", "good", "--list", "--json", cwd=project).stdout)
    assert form == {"schema": "crashlab.subjects/1", "subjects": [{"name": "good", "about": "shop:correct"}]}
    assert not (project / ".crashlab").exists()


def test_no_name_reaches_a_terminal_as_it_is(project: Path) -> None:
    """One of a file from elsewhere could hide a line, or give the terminal orders."""
    (project / "crashlab.toml").write_text('[subject."a\\u001b[8m\\nb"]\nobject = "shop:naive"\n')
    done = crashlab_command("check", "--list", cwd=project)
    assert done.stdout == "a\\x1b[8m\\nb  shop:naive\n"


def test_a_misspelt_name_is_answered(project: Path) -> None:
    """With the likeliest one, and all that there are."""
    with pytest.raises(UsageError) as raised:
        chosen(["god"], None)
    assert "'god' names no subject; did you mean 'good'?" in str(raised.value)
    assert "crashlab.toml declares naive, good" in str(raised.value)
    done = crashlab_command("check", "god", cwd=project)
    assert (done.returncode, done.stdout) == (exits.MISUSE, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "or declare some in crashlab.toml"), ("[defaults]\n", "crashlab.toml declares no subject; add a table")],
)
def test_nothing_to_check_is_misuse(text: str | None, words: str, project: Path) -> None:
    """It says what to write."""
    (project / "crashlab.toml").unlink()
    if text is not None:
        (project / "crashlab.toml").write_text(text)
    with pytest.raises(UsageError, match=words):
        chosen([], None)


def test_a_field_that_the_object_does_not_have_is_told(project: Path) -> None:
    """Only the object knows its kind, so it is told when it is looked at; the others are still checked."""
    (project / "crashlab.toml").write_text(f"{CONFIG}atomic = true\n")
    done = crashlab_command("check", "--json", "good", "naive", cwd=project)
    assert done.returncode == exits.MISUSE
    assert "subject.good.atomic: shop:correct is a Store, which has no 'atomic'" in done.stderr
    assert [each["subject"]["name"] for each in json.loads(done.stdout)["reports"]] == ["naive"]


def test_another_file_by_its_name(project: Path) -> None:
    """``--config`` takes any file; one that is broken is misuse, with its place."""
    other = project / "below" / "other.toml"
    other.write_text("[subject.mine]\nobject = 'shop:naive'\n")
    done = crashlab_command("check", "--list", "--config", "below/other.toml", cwd=project)
    assert done.stdout == "mine  shop:naive\n"
    other.write_text("[subject")
    done = crashlab_command("check", "--config", "below/other.toml", cwd=project)
    assert done.returncode == exits.MISUSE
    assert done.stderr.startswith("crashlab: below/other.toml:1:9: ")


@needs_strace
def test_commands_run_in_the_folder_of_the_file(project: Path) -> None:
    """Relative names in a command are those of the project, from wherever the check is started."""
    (project / "save.sh").write_text('printf 1 > "$1/a.tmp" && sync "$1/a.tmp" && mv "$1/a.tmp" "$1/a" && sync "$1"\n')
    (project / "crashlab.toml").write_text(
        '[subject.shell]\nstart = "sh save.sh {dir}"\nbudget = "brief"\nfaults = "kill"\n'
    )
    done = crashlab_command("check", "shell", "--json", cwd=project / "below")
    assert done.returncode == exits.CONSISTENT, done.stdout + done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    assert (report["subject"]["name"], report["subject"]["kind"]) == ("shell", "Commands")
