"""The run folder: what is in it, that it is whole or absent, and what happens when the disk refuses."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from crashlab import directory
from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.report import folder
from crashlab.report.folder import RunFolder, safe_name
from crashlab.report.load import load
from tests.crashlab.report.samples import DUPLICATE, HOSTILE, PASS, STATE, finished

ROOT = Path(folder.__file__).parents[2]


# --- what is in it ---------------------------------------------------------------------------------


def test_a_run_leaves_every_file_of_the_specification(tmp_path: Path) -> None:
    """Report, text and trace on top; per finding the state, the outputs, the text and the script."""
    run = finished(tmp_path / "out")
    assert re.fullmatch(rf"\d{{8}}T\d{{6}}\.\d{{6}}Z-agent-{os.getpid()}", run.path.name)
    assert sorted(os.listdir(run.path)) == ["kill@7", "report.json", "report.txt", "trace.json"]
    assert sorted(os.listdir(run.path / "kill@7")) == [
        *("dir", "finding.txt", "home", "recovery.err", "recovery.out", "run.sh", "tmp"),
    ]
    assert (run.path / "kill@7" / "recovery.out").read_text() == "out\n"
    assert (run.path / "kill@7" / "recovery.err").read_text() == "err\n"
    assert (run.path / "report.txt").read_text().startswith("VIOLATION  agent: ")


def test_the_text_of_a_finding_knows_its_subject_and_its_place(tmp_path: Path) -> None:
    """Somebody who was sent only that folder can read it."""
    run = finished(tmp_path / "out")
    text = (run.path / "kill@7" / "finding.txt").read_text()
    assert text.startswith("VIOLATION duplicate-effect: ")
    assert "tests/test_agent.py::test_agent   Subject(run)" in text
    assert f"look       {run.path / 'kill@7'}"[:60] in text


def test_the_crash_state_is_there_to_the_byte(tmp_path: Path) -> None:
    """Names, bytes and modes are those of the state, also those that nobody may enter."""
    run = finished(tmp_path / "out")
    for name in ("finding.txt", "recovery.err", "recovery.out", "run.sh"):
        (run.path / "kill@7" / name).unlink()
    assert directory.read(run.path / "kill@7").digest == STATE.digest


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
    """Report, trace and extra are what they were."""
    run = finished(tmp_path / "out")
    run.save_extra("reference.json", {"end": HOSTILE})
    again = RunFolder.open(run.path, tmp_path)
    assert again.trace() == t.Trace(root="/r", base=STATE, ops=())
    assert again.extra("reference.json") == {"end": HOSTILE}
    assert load(again.report()).verdict == "violation"


def test_latest_names_the_newest_run(tmp_path: Path) -> None:
    """The link moves on, is relative, and what was opened stays the run that it was."""
    out = tmp_path / "out"
    first = finished(out)
    opened = RunFolder.open(None, out)
    second = finished(out)
    assert os.readlink(out / "latest") == f"runs/{second.path.name}"
    assert opened.path == first.path.resolve()
    assert RunFolder.open(None, out).path == second.path.resolve()


def test_latest_as_a_text_file_is_understood(tmp_path: Path) -> None:
    """Where the system allows no links, a file holds the name."""
    run = finished(tmp_path)
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").write_text(f"runs/{run.path.name}\n")
    assert RunFolder.open(None, tmp_path).path == run.path


def test_a_folder_of_our_own_name_stays_out_of_commits(tmp_path: Path) -> None:
    """A new ``.crashlab`` is ignored by git; a folder that the user named is left as it is."""
    finished(tmp_path / ".crashlab")
    finished(tmp_path / "results")
    assert (tmp_path / ".crashlab" / ".gitignore").read_text() == "*\n"
    assert not (tmp_path / "results" / ".gitignore").exists()


def test_the_script_replays_the_state_where_the_check_was_run(tmp_path: Path) -> None:
    """It hands the id, its own run and further arguments to crashlab, from the directory of the check."""
    run = RunFolder.create(tmp_path / "it's out", "agent")
    hostile = dataclasses.replace(DUPLICATE, id="damage@it's $(touch gone);x:bit:1")
    where = Path(run.save_finding(hostile, STATE, stdout="", stderr=""))
    script = (where / "run.sh").read_text()
    stub = tmp_path / "python"
    stub.write_text('#!/bin/sh\npwd\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    (where / "run.sh").write_text(re.sub(r"^exec \S+", f"exec {stub}", script, flags=re.MULTILINE))
    done = subprocess.run([where / "run.sh", "--json"], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.splitlines() == [
        *(os.getcwd(), "-m", "crashlab", "replay", hostile.id, "--run", str(run.path), "--json"),
    ]


# --- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("kill@6+4085", "kill@6+4085"),
        ("power@9-3,5", "power@9-3,5"),
        ("power@9-3/kill@2", "power@9-3_kill@2"),
        ("damage@a%2Fb.json:bit:137", "damage@a_2Fb.json_bit_137"),
        ("..", "__"),
        (".", "_"),
        ("", "_"),
        ("é\x00\n~", "____"),
    ],
)
def test_names_are_escaped(text: str, name: str) -> None:
    """Letters, digits and ``@+.,-`` stay, the rest becomes ``_``; nothing leads out of the folder."""
    assert safe_name(text) == name


def test_long_names_stay_apart() -> None:
    """Two names that begin alike are two folders, and no file system finds them too long."""
    one, two = safe_name("x" * 500 + "1"), safe_name("x" * 500 + "2")
    assert one != two
    assert len(one) == len(two) == folder.NAME_BYTES


def test_ids_that_are_escaped_alike_do_not_overwrite_each_other(tmp_path: Path) -> None:
    """The second gets a folder of its own; so does an id that is the name of a file."""
    run = RunFolder.create(tmp_path, "agent")
    ids = ["a/b", "a_b", "trace.json"]
    run.save_trace(t.Trace(root="/r", base=STATE, ops=()))
    places = [run.save_finding(dataclasses.replace(DUPLICATE, id=each), STATE, stdout="", stderr="") for each in ids]
    assert [Path(each).name for each in places] == ["a_b", "a_b~2", "trace.json~2"]
    assert run.trace().root == "/r"


def test_hostile_outputs_are_kept(tmp_path: Path) -> None:
    """Bytes that were no text come back as those bytes; half characters do not stop the report."""
    run = RunFolder.create(tmp_path, HOSTILE)
    where = Path(run.save_finding(DUPLICATE, STATE, stdout="a\udcffb", stderr="\ud800"))
    assert (where / "recovery.out").read_bytes() == b"a\xffb"
    assert (where / "recovery.err").read_bytes() == rb"\ud800"
    assert run.path.parent == tmp_path / "runs"


# --- refusals --------------------------------------------------------------------------------------


def test_no_run_yet_is_misuse_and_says_how_to_make_one(tmp_path: Path) -> None:
    """Also where ``latest`` points to a run that has been removed."""
    with pytest.raises(UsageError, match=r"no run in .*; make one with: crashlab check"):
        RunFolder.open(None, tmp_path)
    (tmp_path / "latest").symlink_to("runs/gone")
    with pytest.raises(UsageError, match="no run in "):
        RunFolder.open(None, tmp_path)
    with pytest.raises(UsageError, match="is no run folder"):
        RunFolder.open(tmp_path / "nowhere", tmp_path)


@pytest.mark.parametrize("content", [b"", b'{"a"', b"[1]", b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_misuse_and_named(tmp_path: Path, content: bytes) -> None:
    """Half a file, another form, no text, and a tower of brackets."""
    run = finished(tmp_path)
    (run.path / "report.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"report\.json.*another run"):
        run.report()


def test_a_run_that_did_not_end_has_no_report(tmp_path: Path) -> None:
    """The trace is there, the report is not, and the message says why."""
    with pytest.raises(UsageError, match="that run did not end"):
        RunFolder.create(tmp_path, "agent").report()


def test_a_file_in_the_way_is_misuse(tmp_path: Path) -> None:
    """``--out`` of a file is answered with what to pass instead."""
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match=r"cannot write .*--out DIR"):
        RunFolder.create(tmp_path / "out", "agent")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_directory_named_latest_is_not_replaced(tmp_path: Path) -> None:
    """A real directory of that name is somebody's: misuse, and it stays."""
    (tmp_path / "latest").mkdir()
    with pytest.raises(UsageError, match="latest"):
        finished(tmp_path)
    assert (tmp_path / "latest").is_dir()


def refused(tmp_path: Path, program: str) -> str:
    """What a process of its own prints that runs ``program`` with ``RunFolder`` and ``out`` at hand."""
    head = f"from pathlib import Path\nfrom crashlab.report.folder import RunFolder\nout = Path({str(tmp_path)!r})\n"
    code = head + textwrap.dedent(program)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    return done.stdout + done.stderr


def test_a_folder_without_permission_is_misuse(tmp_path: Path) -> None:
    """A process that may not write there hears which folder, and what to pass."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    program = """
        import os
        if os.geteuid() == 0:  # the superuser may write anywhere
            os.setuid(65534)
        try:
            RunFolder.create(out / "closed", "agent")
        except Exception as error:
            print(type(error).__name__, error)
    """
    said = refused(tmp_path, program)
    assert said.startswith("UsageError cannot write ")
    assert "Permission denied; pass a folder that can be written: --out DIR" in said


def test_a_disk_that_is_full_is_the_labs_failure_and_leaves_the_old_file(tmp_path: Path) -> None:
    """The system refuses to write more than 4 KB: the file that was there is whole, nothing is half."""
    program = """
        import resource, signal
        run = RunFolder.create(out, "agent")
        run.save_extra("extra.json", {"n": 1})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        earlier = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, earlier[1]))
        try:
            run.save_extra("extra.json", {"n": "x" * 10000})
        except Exception as error:
            print(type(error).__name__, error)
        resource.setrlimit(resource.RLIMIT_FSIZE, earlier)
        print(run.extra("extra.json"))
    """
    said = refused(tmp_path, program)
    assert said.startswith("LabError cannot write ")
    assert "the result is not kept. Free some space, or pass another place: --out DIR" in said
    assert said.endswith("{'n': 1}\n")


def test_a_place_that_is_no_path_is_misuse(tmp_path: Path) -> None:
    """As a file can say, with an escape. The reason is in the words of this version of Python."""
    with pytest.raises(UsageError, match=r"is no path \(.*embedded null .*\); pass a folder that can be written"):
        RunFolder.create(tmp_path / "a\0b", "agent")


def test_a_killed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """Killed before the rename: what the name names is what it named."""
    program = """
        import os, signal
        run = RunFolder.create(out, "agent")
        run.save_extra("extra.json", {"n": 1})
        print(run.path, flush=True)
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        run.save_extra("extra.json", {"n": 2})
    """
    run = Path(refused(tmp_path, program).strip())
    assert RunFolder.open(run, tmp_path).extra("extra.json") == {"n": 1}
    assert json.loads((run / "~extra.json").read_text()) == {"n": 2}


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which file a descriptor is")
def test_bytes_reach_the_disk_before_their_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order that the lab asks of everybody: flush the file, rename it, flush the directory."""
    run = RunFolder.create(tmp_path, "agent")
    calls = []
    flush, rename = os.fsync, os.replace

    def watched_flush(descriptor: int) -> None:
        calls.append("flush " + os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        flush(descriptor)

    def watched_rename(old: Path, new: Path) -> None:
        calls.append(f"rename {old.name} {new.name}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", watched_flush)
    monkeypatch.setattr(os, "replace", watched_rename)
    run.save_extra("extra.json", {})
    assert calls == ["flush ~extra.json", "rename ~extra.json extra.json", f"flush {run.path.name}"]


def test_a_pass_leaves_no_finding(tmp_path: Path) -> None:
    """Only report, text and trace."""
    run = RunFolder.create(tmp_path, "agent")
    run.finish(PASS)
    assert sorted(os.listdir(run.path)) == ["report.json", "report.txt"]
