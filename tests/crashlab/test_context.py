"""What stands around a check: which layer wins, and where a project's file is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab.context import Context, merged, project_file, running_test, surrounded
from crashlab.settings import resolve
from crashlab.subject import Policy

if TYPE_CHECKING:
    from pathlib import Path


def test_each_layer_wins_over_those_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken away one by one from above, each layer shows the next one."""
    file, declared = {"budget": "file"}, {"budget": "declared"}
    command, marker = {"budget": "command"}, {"budget": "marker"}
    monkeypatch.setenv("CRASHLAB_BUDGET", "environment")
    with surrounded(Context(marker=marker, command=command, declared=declared)):
        assert merged({"budget": "argument"}, file)["budget"] == "argument"
        assert merged({"budget": None}, file)["budget"] == "marker"
    with surrounded(Context(command=command, declared=declared)):
        assert merged({}, file)["budget"] == "command"
    with surrounded(Context(declared=declared)):
        assert merged({}, file)["budget"] == "environment"
        monkeypatch.delenv("CRASHLAB_BUDGET")
        assert merged({}, file)["budget"] == "declared"
    assert merged({}, file)["budget"] == "file"
    assert "budget" not in merged({})


def test_only_of_the_command_line_wins_over_the_argument() -> None:
    """Who asks for one state means that one."""
    with surrounded(Context(only="kill@7")):
        assert merged({"only": "kill@1"})["only"] == "kill@7"


def test_zero_and_false_are_values() -> None:
    """Only None means nothing was said."""
    with surrounded(Context(marker={"seed": 5, "redundant": True})):
        assert merged({"seed": 0, "redundant": False}) == {
            "seed": 0,
            "redundant": False,
            **merged({"seed": 0, "redundant": False}),
        }
        assert merged({"seed": 0})["seed"] == 0


def test_the_context_comes_back_after_an_error() -> None:
    """A test that fails inside of another one's run must not leave its name behind."""
    with surrounded(Context(test="outer")):
        with pytest.raises(ZeroDivisionError), surrounded(Context(test="inner")):
            1 / 0  # noqa: B018 - the error is the point
        assert running_test() == "outer"


def test_the_file_is_found_above_but_not_beyond_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, then upwards; the folder that holds the repository is the last one that is looked at."""
    repository = tmp_path / "repository"
    inside = repository / "src" / "app"
    inside.mkdir(parents=True)
    (tmp_path / "crashlab.toml").write_text("")
    monkeypatch.chdir(inside)
    assert project_file() == tmp_path / "crashlab.toml"
    (repository / ".git").write_text("gitdir: elsewhere\n")  # as in a worktree
    assert project_file() is None
    (repository / "crashlab.toml").write_text("")
    assert project_file() == repository / "crashlab.toml"


def test_defaults_of_a_file_reach_every_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is called from a test; a policy of a fault that is not asked for does not matter there."""
    (tmp_path / "crashlab.toml").write_text(
        '[defaults]\nseed = 7\nout = "kept"\npolicy.damage.evidence = "any"\npolicy.kill.effects = "at-most-once"\n'
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    for name in ("FAULTS", "BUDGET", "OUT", "JOBS"):
        monkeypatch.delenv(f"CRASHLAB_{name}", raising=False)
    asked = resolve(jobs=1)
    assert (asked.seed, asked.out) == (7, tmp_path / "kept")
    assert asked.policy == {"kill": Policy(effects="at-most-once")}
    assert resolve(jobs=1, faults="damage").policy == {"damage": Policy(evidence="any")}
