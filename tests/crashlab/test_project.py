"""``crashlab.toml``: what it may say, and how each mistake is answered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crashlab.errors import UsageError
from crashlab.project import OPTIONS, read
from crashlab.settings import Options
from crashlab.subject import Budget, Commands, Policy

EXAMPLE = """
[defaults]
budget = "quick"

[subject.checkpoint]
object = "myapp.crash:checkpoint"
timeout_s = 2
budget = { states = 100, time_s = 2.5, cuts = "blocks" }

[subject.agent]
start = "node agent.js {dir}"
resume = ["node", "agent.js", "{dir}", "--resume"]
view = "cat {dir}/answer.json"
env = { APP_HOME = "{dir}" }
faults = "kill,power,recovery"
policy.kill.effects = "at-least-once"
policy.power.acked = "prefix"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file lies, which is where we are."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "crashlab.toml"


def test_a_file_becomes_subjects_and_arguments(file: Path) -> None:
    """Fields go to the subject, arguments to the check, and both keep their order and types."""
    file.write_text(EXAMPLE)
    project = read(file)
    assert dict(project.defaults) == {"out": ".crashlab", "budget": "quick"}
    checkpoint, agent = project.subjects.values()
    assert (checkpoint.path, checkpoint.fields) == ("myapp.crash:checkpoint", {"timeout_s": 2})
    assert checkpoint.options == {"budget": Budget(states=100, time_s=2.5, cuts="blocks")}
    assert agent.commands == Commands(
        "node agent.js {dir}",
        ["node", "agent.js", "{dir}", "--resume"],
        view="cat {dir}/answer.json",
        env={"APP_HOME": "{dir}"},
        name="agent",
    )
    assert agent.options == {
        "faults": "kill,power,recovery",
        "policy": {"kill": Policy(effects="at-least-once"), "power": Policy(acked="prefix")},
    }


def test_every_argument_of_check_can_be_said(file: Path) -> None:
    """An argument that is added to check and forgotten here is noticed."""
    assert set(OPTIONS) == set(Options.__annotations__) - {"accept"}
    file.write_text("")
    assert dict(read(file).subjects) == {}


WRONG = [
    ("[default]", "default: unknown; did you mean 'defaults'? Known: defaults, subject"),
    ("budget = 'full'", "budget: unknown;"),
    ("[defaults]\nbugdet = 'full'", "defaults.bugdet: unknown; did you mean 'budget'?"),
    (
        "[defaults]\nbudget = 'ful'",
        "defaults.budget is 'ful'; expected 'quick' or 'full' or 'brief'; did you mean 'full'?",
    ),
    ("[defaults]\nbudget.stats = 7", "defaults.budget.stats: unknown; did you mean 'states'?"),
    ("[defaults]\nbudget.states = 'many'", "defaults.budget.states is 'many'; expected a whole number"),
    ("[defaults]\nfaults = 'powr'", "defaults.faults: unknown fault 'powr'; did you mean 'power'?"),
    ("[defaults]\nfaults = ['kill']", "defaults.faults is ['kill']; expected a list in one text"),
    ("[defaults]\nprofile = 'xsf'", "defaults.profile: unknown profile 'xsf'; did you mean 'xfs'"),
    ("[defaults]\nrecorder = 'strce'", "defaults.recorder is 'strce'"),
    ("[defaults]\nseed = true", "defaults.seed is True; expected a whole number"),
    ("[defaults]\njobs = 0", "defaults.jobs is 0; expected a whole number from 1 on"),
    ("[defaults]\npolicy.kil.effects = 'once'", "defaults.policy.kil: unknown; did you mean 'kill'?"),
    ("[defaults]\npolicy.kill.effect = 'once'", "defaults.policy.kill.effect: unknown; did you mean 'effects'?"),
    ("[defaults]\npolicy.kill.effects = 'one'", "defaults.policy.kill.effects is 'one'; expected 'once' or"),
    ("[defaults]\npolicy.kill.refuse = 1", "defaults.policy.kill.refuse is 1; expected True or False"),
    ("[defaults]\npolicy.kill = 1", "defaults.policy.kill is 1; expected a table"),
    ("[subject]\na = 1", "subject.a is 1; expected a table"),
    ("[subject.a]", 'subject.a needs either object = "module:object", or start = "COMMAND"'),
    ("[subject.a]\nobject = 'm:a'\nstart = 'b'", "subject.a needs either object"),
    ("[subject.a]\nobject = 'm'", "subject.a.object is 'm'; expected module:object"),
    ("[subject.a]\nobject = 'm:a'\nview = 'cat'", "subject.a.view: belongs to a program that is given by its commands"),
    ("[subject.a]\nstart = 'b'\nresum = 'c'", "subject.a.resum: unknown; did you mean 'resume'?"),
    ("[subject.a]\nstart = []", "subject.a.start is []; expected a command, or a list of words"),
    ("[subject.a]\nstart = 'b'\ntimeout_s = '5'", "subject.a.timeout_s is '5'; expected a number of seconds"),
    ("[subject.a]\nstart = 'b'\nenv = { N = 1 }", "subject.a.env is {'N': 1}; expected a table of texts"),
    ("[subject.'m:a']\nstart = 'b'", "subject.m:a: a name without ':' is needed"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[message.split(";")[0] for _, message in WRONG])
def test_what_means_nothing_is_answered_with_the_path_of_its_key(text: str, message: str, file: Path) -> None:
    """And with what was probably meant, or what is expected."""
    file.write_text(text)
    with pytest.raises(UsageError) as raised:
        read(file)
    assert str(raised.value).startswith("crashlab.toml: ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            b"[defaults]\nbudget full\n",
            "crashlab.toml:2:8: Expected '=' after a key in a key/value pair; mend this line",
        ),
        (b"[defaults]\nseed = 1\nseed = 2\n", "crashlab.toml:3:9: Cannot overwrite a value; mend this line: seed = 2"),
        (b"[defaults", "crashlab.toml:1:10: "),
        (b"a = " + b"[" * 5_000, "crashlab.toml holds lists or tables that are nested too deep to be read"),
        (b"[defaults]\nout = '\xff'\n", "crashlab.toml is not UTF-8, which TOML demands, from byte 18 on"),
    ],
)
def test_a_broken_file_is_told_with_line_and_column(text: bytes, message: str, file: Path) -> None:
    """In the form that editors jump to, with the line itself."""
    file.write_bytes(text)
    with pytest.raises(UsageError) as raised:
        read(file)
    assert str(raised.value).startswith(message)


def test_what_an_editor_of_windows_writes_is_read(file: Path) -> None:
    """A mark at the beginning that nobody sees, and its ends of lines."""
    file.write_bytes(b"\xef\xbb\xbf[defaults]\r\nseed = 3\r\n")
    assert read(file).defaults["seed"] == 3


def test_a_file_that_cannot_be_read_is_told(file: Path) -> None:
    """A misspelt --config, or a folder."""
    with pytest.raises(UsageError, match=r"cannot read crashlab\.toml: No such file or directory; name another"):
        read(file)
    file.mkdir()
    with pytest.raises(UsageError, match=r"cannot read crashlab\.toml: Is a directory"):
        read(file)


def test_paths_are_those_of_the_folder_of_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen from elsewhere they are absolute."""
    file.write_text("[defaults]\nout = 'kept'\n")
    assert read(file).defaults["out"] == "kept"
    (file.parent / "below").mkdir()
    monkeypatch.chdir(file.parent / "below")
    assert read(Path(os.pardir, "crashlab.toml")).defaults["out"] == str(file.parent / "kept")
