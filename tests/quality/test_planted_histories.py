"""Histories find what is planted, and shrink to the shortest path that shows it; correct stores stay green."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from crashlab import Violation, check, explore
from crashlab.crash import nested
from crashlab.kept_host import close_kept
from crashlab.paths import Leg
from crashlab.strategies import Crash, batches, histories, json_values
from tests.quality import crashing_stores as stores

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from crashlab import Log, Store

SEARCH = settings(max_examples=100, deadline=None, derandomize=True, database=None)
SMALL: SearchStrategy[dict[str, int]] = st.just({}) | st.fixed_dictionaries({"n": st.integers(0, 9)})
EVENTS = batches(SMALL | st.just({"text": "x" * 9000}), max_size=2)


def broken(subject: Store | Log, values: list[Any]) -> bool:
    """Whether this path ends in a violation."""
    return explore(dataclasses.replace(subject, values=values)).verdict == "violation"


def shortest(subject: Store | Log, values: SearchStrategy[Any], crashes: str = "kill,power") -> list[Any]:
    """The history to which the search shrinks. Raises NoSuchExample where it finds none."""
    history = histories(values, crashes=crashes)
    return find(history, lambda found: broken(subject, found), settings=SEARCH)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRASHLAB_OUT", str(tmp_path))
    close_kept()  # what another test's lab has seen is not remembered here


@pytest.mark.parametrize("values", [SMALL, pytest.param(json_values(), marks=pytest.mark.full)], ids=["small", "all"])
def test_a_missing_fsync_shrinks_to_one_value_and_one_power_loss(values: SearchStrategy[Any]) -> None:
    """With values of all shapes and sizes the shortest path is still the empty one, at the latest moment."""
    assert shortest(stores.UNSYNCED, values) == [{}, Crash("power", 0)]


def test_a_save_in_place_shrinks_to_one_value_and_one_kill() -> None:
    """A kill inside the first save is enough, and which one is a matter of the ops."""
    first, crash = shortest(stores.IN_PLACE, SMALL)
    assert (first, crash.at) == ({}, "kill")


def test_a_glued_tail_shrinks_to_small_batches_and_one_crash() -> None:
    """The append after a half line spoils itself: one crash that leaves half of a batch, and no more than two."""
    *saved, crash = shortest(stores.GLUED, EVENTS)
    assert isinstance(crash, Crash)
    assert all(isinstance(each, list) and len(each) == 1 for each in saved)
    assert len(saved) <= 2


def test_a_leftover_temporary_file_needs_two_crashes() -> None:
    """The first power loss leaves both names, the second takes the bytes that were written through the old one."""
    found = shortest(stores.LEFTOVER, SMALL, "power")
    assert found == [{}, Crash("power", 0), {}, Crash("power", 0)]


def test_a_store_that_gives_up_at_the_second_crash_is_found_there() -> None:
    """Each crash by itself is harmless, and so is every recovery from it."""
    found = shortest(stores.SECOND_CRASH, SMALL)
    assert [type(each) for each in found] == [dict, Crash, dict, Crash]
    assert not broken(stores.SECOND_CRASH, [*found[:2], *found[2:3]])


@pytest.mark.parametrize(
    ("subject", "values"),
    [
        (stores.DURABLE, json_values()),
        (stores.EVERY_CRASH, SMALL),
        (stores.REPAIRED, batches()),
    ],
    ids=["durable", "every crash", "repaired"],
)
def test_correct_twins_stay_green(subject: Store | Log, values: SearchStrategy[Any]) -> None:
    """As many histories as this profile has examples, at most a hundred, and none of them is a violation."""
    seen = []
    many = min(settings.default.max_examples, SEARCH.max_examples)

    @settings(SEARCH, max_examples=many, phases=(Phase.generate,), suppress_health_check=[HealthCheck.too_slow])
    @given(history=histories(values))
    def run(history: list[Any]) -> None:
        seen.append(check(dataclasses.replace(subject, values=history)).verdict)

    run()
    assert len(seen) >= many
    assert set(seen) == {"consistent"}


def test_hypothesis_shows_each_failure_as_a_program() -> None:
    """Neither the bytes nor the name were synced: two failures, each with its path as a program, and its run."""

    @settings(SEARCH)
    @given(history=histories(SMALL, crashes="power"))
    def run(history: list[Any]) -> None:
        check(dataclasses.replace(stores.UNSYNCED, values=history))

    with pytest.raises(ExceptionGroup) as caught:
        run()
    errors = caught.value.exceptions
    assert [type(error).__name__ for error in errors] == ["Violation"] * 2
    assert {error.kind for error in errors if isinstance(error, Violation)} == {"lost"}
    programs = {tuple(program_in(str(error))) for error in errors}
    assert programs == {
        (
            "save({})",
            'crash("power@5-3")      # checkpoint.json 0 bytes',
            "load()                  # raised JSONDecodeError; {} was acked",
            "",
            "again: values=[{}, Crash('power@5-3')]",
        ),
        (
            "save({})",
            'crash("power@5-4..")    # checkpoint.tmp 2 bytes',
            "load()                  # returned null; {} was acked",
            "",
            "again: values=[{}, Crash('power@5-4..')]",
        ),
    }
    assert all("crashlab replay power@5-" in str(error) for error in errors)


def program_in(message: str) -> list[str]:
    """The program in a message: from its first call to the line that repeats it."""
    lines = [line.strip() for line in message.splitlines()]
    end = next(number for number, line in enumerate(lines) if line.startswith("again: "))
    return lines[lines.index("save({})") : end + 1]


# --- the search itself is checked ---------------------------------------------------------------------


def test_a_lab_that_ignores_crashes_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each crash leaves all that was written, the missing fsync goes unseen: the demand above turns red."""
    monkeypatch.setattr(Leg, "pick", lambda self, *_: self.one(f"kill@{len(self.ran.ops)}"))
    with pytest.raises(NoSuchExample):
        shortest(stores.UNSYNCED, SMALL)


PENDING = [{}, Crash("kill", 0), Crash("power", 0)]


def test_what_a_killed_run_left_unsynced_is_lost_in_a_later_power_loss() -> None:
    """Nothing is written after the kill, and yet the power loss takes the value."""
    assert broken(stores.UNSYNCED, PENDING)
    assert not broken(stores.DURABLE, PENDING)


def test_a_lab_that_forgets_what_is_pending_misses_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a kill counts as if all were durable after it, the demand above turns red."""
    monkeypatch.setattr(nested, "is_power", lambda _state: True)
    assert not broken(stores.UNSYNCED, PENDING)
