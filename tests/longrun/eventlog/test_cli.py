"""Tests of ``longrun log``: what it prints, how it exits, and that it changes nothing."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from longrun.__main__ import main
from longrun.eventlog import project
from longrun.eventlog.cli import shown
from longrun.eventlog.events import Note
from longrun.eventlog.opening import inspect, inspect_directory
from longrun.eventlog.record import Draft, decode, encode
from longrun.eventlog.snapshot import write_snapshot
from tests.longrun.eventlog.sessions import (
    NAME,
    answer,
    begin,
    call,
    directory,
    files,
    mark,
    noted,
    opened,
    segment,
    whole_turn,
)

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "a\x1b[31m\x07\u202eb\ud800\nc"


def ran(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``longrun log``."""
    code = main(["log", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def extended(root: Path, **fields: Any) -> None:
    """One more line behind the last, right in its place but for ``fields``; written by another program."""
    last = decode(segment(root).read_bytes().splitlines()[-1])
    place = {"seq": last.seq + 1, "prev": last.sum, "mark": last.mark, "fence": last.fence, "time_ms": 0}
    draft = {**place, "parent": None, "type": "note", "data": {}, "ignorable": True}
    with segment(root).open("ab") as file:
        file.write(encode(Draft(**{**draft, **fields})) + b"\n")


@pytest.mark.parametrize("action", ["inspect", "verify"])
def test_a_sound_session(action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict first, then the counts; code 0."""
    noted(tmp_path, 1, 2)
    code, out, err = ran(capsys, action, directory(tmp_path))
    assert (code, err) == (0, "")
    assert out == "SOUND  s: 4 records, 0 turns, segments 0 to 0, promised up to record 3\n"


@pytest.mark.parametrize("action", ["inspect", "verify"])
def test_what_an_opening_would_mend_is_told_and_not_done(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An open turn with a call that was begun, and half a line; code 1, and no byte has changed."""
    with opened(tmp_path) as log:
        begin(log)
        answer(log, "c1")
        call(log, "c1")
        log.barrier()
    with segment(tmp_path).open("ab") as file:
        file.write(b'{"v":1,')
    before = files(tmp_path)
    code, out, _ = ran(capsys, action, directory(tmp_path))
    assert code == 1
    assert out.startswith("UNFINISHED  s: ")
    assert "report   torn tail: 7 bytes" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("adds")] == ["tool/result", "turn/end"]
    assert files(tmp_path) == before
    code, out, _ = ran(capsys, action, directory(tmp_path), "--json")
    told = json.loads(out)
    assert (code, told["verdict"], told["session"]) == (1, "unfinished", NAME)
    assert [each["type"] for each in told["repairs"]] == ["tool/result", "turn/end"]


@pytest.mark.parametrize("action", ["inspect", "verify", "show"])
def test_damage_is_refused_with_its_place(action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Code 2, the place in words and as fields, nothing on stdout but for programs, no byte changed."""
    noted(tmp_path, 1, 2)
    data = segment(tmp_path).read_bytes()
    segment(tmp_path).write_bytes(data.replace(b'{"n":1}', b'{"n":7}'))
    before = files(tmp_path)
    code, out, err = ran(capsys, action, directory(tmp_path))
    assert (code, out) == (2, "")
    assert err.startswith("longrun: REFUSED ")
    assert "in segment 0, line 3" in err
    code, out, _ = ran(capsys, action, directory(tmp_path), "--json")
    told = json.loads(out)
    assert (code, told["verdict"], told["kind"], told["line"]) == (2, "refused", "bad-line", 3)
    assert files(tmp_path) == before


def test_verify_reads_what_a_snapshot_lets_inspect_pass_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Damage before a snapshot in a sealed segment: the one starts behind it, the other does not."""
    with opened(tmp_path) as log:
        log.append(Note(note={"n": 1}))
        log.barrier()
        log.rotate(force=True)
        log.append(Note(note={"n": 2}))
        log.barrier()
        write_snapshot(log)
    data = segment(tmp_path).read_bytes()
    segment(tmp_path).write_bytes(data.replace(b'{"n":1}', b'{"n":7}'))
    assert ran(capsys, "inspect", directory(tmp_path))[0] == 0
    code, _, err = ran(capsys, "verify", directory(tmp_path))
    assert code == 2
    assert "in segment 0, line 3" in err


def test_a_newer_programs_log_is_refused_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is not called damaged; the name of the type is escaped."""
    noted(tmp_path, 1)
    extended(tmp_path, type="x\x1b[2J", ignorable=False)
    code, _, err = ran(capsys, "inspect", directory(tmp_path))
    assert code == 2
    assert "unknown type" in err
    assert "\x1b" not in err


def test_show_prints_the_three_views(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is that of ``project``."""
    with opened(tmp_path) as log:
        whole_turn(log, "c1", text="hello")
    records = inspect(tmp_path, NAME).records
    code, out, _ = ran(capsys, "show", directory(tmp_path))
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()] == [record.type for record in records]
    assert "hello" in out
    _, out, _ = ran(capsys, "show", directory(tmp_path), "--view", "messages", "--json")
    assert json.loads(out) == project.messages(records)
    _, out, _ = ran(capsys, "show", directory(tmp_path), "--view", "effects", "--json")
    assert [each["call_id"] for each in json.loads(out)] == ["c1"]
    _, out, _ = ran(capsys, "show", directory(tmp_path), "--view", "effects")
    assert "done" in out


def test_hostile_text_is_escaped_wherever_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a terminal would obey, in a message, in the name of a call and in the data of an unknown type."""
    with opened(tmp_path) as log:
        begin(log, HOSTILE)
        answer(log, f"c{HOSTILE}")
        log.barrier()
    for arguments in (["inspect"], ["verify"], ["show"], ["show", "--view", "messages"]):
        _, out, err = ran(capsys, *arguments, directory(tmp_path))
        assert not [each for each in out + err if not each.isprintable() and each != "\n"], arguments
        assert "x1b" in out or "u001b" in out
    _, out, _ = ran(capsys, "show", directory(tmp_path), "--json")
    assert HOSTILE in [row["text"] for row in json.loads(out)]


def test_an_error_that_quotes_the_log_is_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A grammar refusal names the open calls as they are."""
    with opened(tmp_path) as log:
        begin(log)
        answer(log, "c\x1b[2J")
        log.barrier()
    extended(tmp_path, type="turn/end", data={"turn": 1, "synthetic": False, "reason": "completed"}, ignorable=False)
    code, _, err = ran(capsys, "verify", directory(tmp_path))
    assert code == 2
    assert r"c\x1b[2J" in err


@pytest.mark.parametrize("data", [[1], 7, "text", None])
def test_a_record_that_may_be_passed_over_is_shown_whatever_it_holds(
    data: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A newer program's type whose data is no object."""
    noted(tmp_path, 1)
    extended(tmp_path, type="newer/type", data=data)
    code, out, _ = ran(capsys, "show", directory(tmp_path))
    assert code == 0
    assert out.splitlines()[-1].split()[1:] == ["newer/type", json.dumps(data)]


def test_what_the_terminal_cannot_show_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ASCII terminal gets ASCII; another one the letters."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert shown("é\x9f\x00") == r"\xe9\x9f\x00"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert shown("é\x9f") == r"é\x9f"


def test_misuse_is_told_from_a_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Code 64: no such directory, no session in it, the folder of all sessions, and what is no file."""
    assert ran(capsys, "inspect", tmp_path / "no\x1b")[::2] == (
        64,
        f"longrun: there is no directory {tmp_path}/no\\x1b\n",
    )
    (tmp_path / "empty").mkdir()
    assert ran(capsys, "inspect", tmp_path / "empty")[0] == 64
    noted(tmp_path, 1)
    code, _, err = ran(capsys, "inspect", tmp_path)
    assert code == 64
    assert "there are sessions in it: s" in err
    segment(tmp_path).unlink()
    os.mkfifo(segment(tmp_path))
    code, _, err = ran(capsys, "verify", directory(tmp_path))
    assert code == 64
    assert "is no file" in err
    with pytest.raises(SystemExit) as left:
        main(["log", "mend", str(tmp_path)])
    assert left.value.code == 64


def test_a_mark_without_its_log_is_damage_and_no_new_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code 2."""
    noted(tmp_path, 1)
    segment(tmp_path).unlink()
    assert mark(tmp_path).exists()
    code, _, err = ran(capsys, "inspect", directory(tmp_path))
    assert code == 2
    assert "missing" in err


def test_what_cannot_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An I/O error is told as one, without a traceback."""
    noted(tmp_path, 1)

    def failing(*_: Any, **__: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("longrun.eventlog.cli.inspect_directory", failing)
    code, out, err = ran(capsys, "inspect", directory(tmp_path))
    assert (code, out) == (2, "")
    assert "Input/output error" in err


def test_no_session_is_told_by_the_function_too(tmp_path: Path) -> None:
    """For callers that are no command line."""
    with pytest.raises(FileNotFoundError, match="there is no session"):
        inspect_directory(tmp_path)
