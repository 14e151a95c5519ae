"""Tests of ``python -m longrun``: what it prints, and how it exits."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from longrun.__main__ import main
from longrun.checkpoint import correct as one_file
from longrun.errors import OutcomeUnknown
from longrun.fake_api import FakeApi
from longrun.knobs import Knobs
from longrun.lease import Lease
from longrun.stream import Cut
from longrun.world import World

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_prints_its_verdict_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first word is the verdict; the summary names labels and replies; a resume prints the same."""
    assert main(["run", "--dir", str(tmp_path)]) == 0
    first = capsys.readouterr().out
    assert first.startswith("DONE  7 turns, 7 requests")
    assert "T-101 outage, T-102 billing" in first
    assert "T-102 1000 yen" in first
    assert main(["run", "--dir", str(tmp_path), "--resume", "--persona", "hasty"]) == 0
    assert capsys.readouterr().out == first


def test_another_seed_is_another_inbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The seed chooses the tickets."""
    assert main(["run", "--dir", str(tmp_path), "--seed", "7"]) == 0
    assert "T-101" not in capsys.readouterr().out


def test_a_run_in_one_file_is_gone_on_with_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is neither begun anew nor refused, and no points come up beside its file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longrun.__main__.HARNESS", one_file.HARNESS)
        assert main(["run", str(tmp_path), "--max-turns", "3"]) == 1
    assert main(["run", str(tmp_path)]) == 64
    assert "holds a run already (checkpoint.json, effects.jsonl)" in capsys.readouterr().err
    assert main(["run", "--resume", str(tmp_path), "--max-turns", "3"]) == 1
    names = {path.name for path in (tmp_path / "agent").iterdir()}
    assert names == {"checkpoint.json", "effects.jsonl", "lease.lock"}


@pytest.mark.parametrize(
    ("options", "end"),
    [(["--max-turns", "3"], "turn_limit: stopped after 3 turns"), (["--max-tokens", "100"], "token_limit")],
)
def test_a_cap_stops_the_run_for_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], end: str
) -> None:
    """It says which cap; a resume asks nothing more, whatever its caps are."""
    assert main(["run", str(tmp_path), *options]) == 1
    first = capsys.readouterr().out
    assert first.startswith("STOPPED")
    assert end in first
    assert main(["run", "--resume", str(tmp_path), "--max-turns", "9"]) == 1
    assert capsys.readouterr().out == first


def test_a_question_is_shown_answered_and_gone_on_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pager's answer is lost: the run waits, the act is named, an answer is recorded, the run comes to its end."""

    def lost(*_: object, **_given: object) -> str:
        raise OutcomeUnknown

    with monkeypatch.context() as patch:
        patch.setattr(World, "page_oncall", lost)
        assert main(["run", str(tmp_path)]) == 1
    assert "decide   T-101/page_oncall: page_oncall" in capsys.readouterr().out
    for arguments, text in (
        (["T-101/page_oncall"], "say whether T-101/page_oncall happened: happened or absent"),
        (["T-102/send_reply", "happened"], "does not ask about 'T-102/send_reply' (T-101/page_oncall)"),
    ):
        assert main(["decide", str(tmp_path), *arguments]) == 64
        assert text in capsys.readouterr().err
    assert main(["decide", str(tmp_path)]) == 1
    assert main(["run", "--resume", str(tmp_path)]) == 1
    capsys.readouterr()
    assert main(["decide", str(tmp_path), "T-101/page_oncall", "absent"]) == 0
    assert capsys.readouterr().out.startswith("RECORDED  T-101/page_oncall: it did not happen")
    assert main(["decide", str(tmp_path), "T-101/page_oncall", "absent"]) == 64
    assert main(["run", "--resume", str(tmp_path)]) == 0
    assert "pages    T-101" in capsys.readouterr().out


def test_where_no_run_is_nothing_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No directory is made; two directories are one too many."""
    assert main(["decide", str(tmp_path / "none")]) == 64
    assert "there is no run" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    assert main(["run", str(tmp_path), "--dir", str(tmp_path)]) == 64
    assert "two directories" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "required: command"),
        (["run", "--persona", "kind"], "invalid choice: 'kind'"),
        (["run", "--seed", "x"], "invalid int value"),
        (["walk"], "invalid choice: 'walk'"),
    ],
)
def test_misuse_exits_64(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong command line is told on stderr."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 64
    assert text in capsys.readouterr().err


def test_a_directory_that_does_not_fit_exits_64(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over a stored run, on nothing to resume, and below a file: each is told with what to do."""
    main(["run", "--dir", str(tmp_path / "run")])
    (tmp_path / "file").touch()
    for arguments, text in (
        (["--dir", str(tmp_path / "run")], "resume it, or take another directory"),
        (["--dir", str(tmp_path / "none"), "--resume"], "start one without --resume"),
        (["--dir", str(tmp_path / "file")], "Pass another --dir"),
    ):
        assert main(["run", *arguments]) == 64
        assert text in capsys.readouterr().err


def test_damage_exits_2_and_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged checkpoint is refused by path, and not one byte changes."""
    main(["run", "--dir", str(tmp_path)])
    path = max((tmp_path / "agent" / "points").iterdir())
    path.write_bytes(path.read_bytes()[:4096])
    capsys.readouterr()
    assert main(["run", "--dir", str(tmp_path), "--resume"]) == 2
    assert f"REFUSED {path}" in capsys.readouterr().err
    assert path.stat().st_size == 4096


def test_a_live_run_without_a_key_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It exits 64, says where the key belongs and that none is needed otherwise, and has made no directory."""
    for value in (None, ""):
        if value is None:
            monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        else:
            monkeypatch.setenv("ANTHROPIC_API_KEY", value)
        assert main(["run", "--live", "--dir", str(tmp_path / "run")]) == 64
        said = capsys.readouterr().err
        assert "needs a key in ANTHROPIC_API_KEY" in said
        assert "without --live no key is needed" in said
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("clean", [True, False])
def test_a_line_that_breaks_exits_1_and_can_be_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, clean: bool
) -> None:
    """It says how to go on; the resumed run comes to the end."""
    cut = {3: Knobs(cut=Cut(4, clean=clean))}
    with monkeypatch.context() as patch:
        patch.setattr("longrun.__main__.FakeApi", lambda persona, seed: FakeApi(persona, seed, knobs=cut))
        assert main(["run", "--dir", str(tmp_path)]) == 1
    assert "go on with --resume" in capsys.readouterr().err
    assert main(["run", "--dir", str(tmp_path), "--resume"]) == 0


def test_a_live_model_has_no_persona(capsys: pytest.CaptureFixture[str]) -> None:
    """The two options exclude each other."""
    with pytest.raises(SystemExit) as caught:
        main(["run", "--live", "--persona", "hasty"])
    assert caught.value.code == 64
    assert "not allowed with" in capsys.readouterr().err


def test_a_directory_in_use_exits_64(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While another process works there it is told, and nothing is read."""
    main(["run", "--dir", str(tmp_path)])
    with Lease.take(tmp_path / "agent"):
        assert main(["run", "--dir", str(tmp_path), "--resume"]) == 64
    assert "another process works here" in capsys.readouterr().err


def test_it_runs_as_a_module_without_the_client(tmp_path: Path, program_environment: Any) -> None:
    """The run in this process loads neither the anthropic client nor an HTTP server."""
    code = (
        "import sys; from longrun.__main__ import main; "
        f"code = main(['run', '--dir', {str(tmp_path)!r}]); "
        "print(sorted({'anthropic', 'http.server', 'asyncio'} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=program_environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_run_that_keeps_points_can_go_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run, list, rewind, resume, fork, resume the fork: both come to the end, and nobody is written to twice."""
    place = ["--dir", str(tmp_path)]
    assert main(["run", *place]) == 0
    first = capsys.readouterr().out
    assert main(["points", *place]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == int(first.split(" saves")[0].split()[-1])
    for back, words in ((["rewind", "--turn", "4"], "REWOUND"), (["fork", "other", "--turn", "4"], "FORKED ")):
        assert main([*back, *place]) == 0
        assert capsys.readouterr().out.startswith(words)
        line = ["--line", "other"] if "fork" in back else []
        assert main(["run", "--resume", *line, *place]) == 0
        said = capsys.readouterr().out
        assert said.startswith("DONE  7 turns, 1")
        assert said.splitlines()[1:5] == first.splitlines()[1:5]


def test_there_is_nothing_to_go_back_to_without_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No run, an unknown line, and a line without a resume exit with 64 and say what to do."""
    place = ["--dir", str(tmp_path)]
    main(["run", *place])
    for arguments, words in (
        (["rewind", "--turn", "4", "--dir", str(tmp_path / "none")], "start a run with longrun run"),
        (["points", "--dir", str(tmp_path / "none")], "start a run with longrun run"),
        (["run", "--resume", "--line", "other", *place], "with longrun fork"),
        (["run", "--line", "other", *place], "needs --resume"),
    ):
        assert main(arguments) == 64
        assert words in capsys.readouterr().err
