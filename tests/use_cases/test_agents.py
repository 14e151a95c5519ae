"""Agents with an outside: effects with and without a key, coroutines, ends, absolute paths, an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab import Policy, Subject
from tests.use_cases import mailers
from tests.use_cases.cases import kinds, no_verdict, passes

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


# --- case 2: effects and save points ------------------------------------------------------------------------


def test_letters_with_a_key_may_be_sent_again(tmp_path: Path) -> None:
    """The outside counts a known key once, so resuming may simply go on."""
    report = passes(Subject(mailers.with_key), tmp_path)
    assert (report.trace.effects, report.trace.save_points) == (2, 4)


def test_letters_without_a_key_are_sent_twice(tmp_path: Path) -> None:
    """Killed between the letter and the note of it, this agent writes again."""
    assert "kill duplicate-effect" in kinds(Subject(mailers.without_key), tmp_path, faults="kill")


def test_letters_without_a_key_are_given_to_a_person(tmp_path: Path) -> None:
    """Where the files cannot tell, an honest "I do not know" is right."""
    passes(Subject(mailers.honest), tmp_path)


def test_a_policy_allows_what_the_user_can_live_with(tmp_path: Path) -> None:
    """A letter too many may be no harm; one too few still is."""
    passes(Subject(mailers.without_key), tmp_path, faults="kill", policy={"kill": Policy(effects="at-least-once")})
    found = kinds(
        Subject(mailers.without_key), tmp_path, faults="kill", policy={"kill": Policy(effects="at-most-once")}
    )
    assert "kill duplicate-effect" in found


# --- case 3: coroutines ----------------------------------------------------------------------------------------


def test_an_agent_of_tasks_passes(tmp_path: Path) -> None:
    """A task group is an agent like any other."""
    passes(Subject(mailers.fetch_all), tmp_path)


def test_an_agent_of_tasks_that_trusts_a_name_is_found(tmp_path: Path) -> None:
    """The file is there, and empty."""
    assert kinds(Subject(mailers.fetch_all_in_place), tmp_path, faults="kill") == {"kill diverged"}


# --- case 12: what counts as the same end ------------------------------------------------------------------------


def test_an_end_with_a_time_in_it_cannot_be_judged(tmp_path: Path) -> None:
    """Two runs differ without any crash; the message names the fields and what to write."""
    codes, message = no_verdict(Subject(mailers.stamped), tmp_path, faults="kill")
    assert codes == {"runs-differ"}
    assert "run" in message
    assert "view=" in message


def test_a_view_says_what_counts(tmp_path: Path) -> None:
    """The rest is compared, and nothing else."""
    passes(Subject(mailers.stamped, view=lambda end: end["total"]), tmp_path)


# --- cases 16 and 17: places ------------------------------------------------------------------------------------


def test_an_absolute_path_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recovery meets its state where the recorded run left it, with a mount namespace and without."""
    passes(Subject(mailers.by_absolute_path), tmp_path)
    monkeypatch.setenv("CRASHLAB_NO_NAMESPACE", "1")
    passes(Subject(mailers.by_absolute_path), tmp_path, faults="kill")


def test_a_program_is_told_its_place_by_its_environment(tmp_path: Path) -> None:
    """Variables are filled in; a log elsewhere is named, so that nobody wonders about it."""
    log = tmp_path / "log"
    log.mkdir()
    env = {"MAILER_HOME": "{dir}/home", "MAILER_LOG": str(log / "mailer.log"), "TZ": "UTC"}
    passes(Subject(mailers.at_a_fixed_place, env=env, outside=[f"{log}/*"]), tmp_path / "out")
    codes, message = no_verdict(Subject(mailers.at_a_fixed_place, env=env), tmp_path / "out")
    assert codes == {"outside-write"}
    assert "mailer.log" in message
