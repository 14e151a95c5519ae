"""The strategies: what they make, what they ask of a user's settings (nothing), and the ready state machine."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import crashlab
from crashlab import UsageError, check, path_check
from crashlab.kept_host import close_kept
from crashlab.strategies import Crash, batches, histories, json_values, state_machine
from tests.quality import crashing_stores as stores

if TYPE_CHECKING:
    from hypothesis.stateful import RuleBasedStateMachine
    from hypothesis.strategies import SearchStrategy

SEARCH = settings(max_examples=30, deadline=None, derandomize=True, database=None)
SMALL: SearchStrategy[dict[str, int]] = st.just({}) | st.fixed_dictionaries({"n": st.integers(0, 9)})
LAB = str(Path(crashlab.__file__).parents[1])


# --- what they make --------------------------------------------------------------------------------


@given(histories(st.integers(), max_size=5))
def test_a_history_begins_with_a_value_and_has_a_crash(history: list[Any]) -> None:
    """Between two and max_size elements."""
    assert 2 <= len(history) <= 5
    assert isinstance(history[0], int)
    assert any(isinstance(each, Crash) for each in history)


@given(histories(st.integers(), crashes="power"))
def test_only_the_crashes_asked_for(history: list[Any]) -> None:
    """By a list of faults."""
    assert {each.at for each in history if isinstance(each, Crash)} == {"power"}


@pytest.mark.parametrize(("options", "message"), [({"crashes": "kil"}, "'kil'"), ({"max_size": 1}, "so 2")])
def test_a_history_that_cannot_be_is_misuse(options: Any, message: str) -> None:
    """Told when the strategy is made."""
    with pytest.raises(UsageError, match=message):
        histories(st.integers(), **options)


def test_histories_shrink_to_one_value_and_one_kill() -> None:
    """The latest one."""
    assert find(histories(json_values()), lambda _: True, settings=SEARCH) == [{}, Crash("kill", 0)]


@pytest.mark.parametrize(
    "wanted",
    [
        lambda text: len(text.encode()) > 8192,
        lambda text: 4090 < len(text.encode()) < 4120,
        lambda text: 500 < len(text.encode()) < 540,
        lambda text: any(ord(letter) > 0xFFFF for letter in text),
        lambda text: any(len(digits) > 15 for digits in text.split()),
    ],
    ids=["8 KiB", "4 KiB", "512 bytes", "emoji", "large"],
)
def test_values_of_each_size_and_kind_are_among_them(wanted: Any) -> None:
    """As they stand in a file, within a few hundred tries."""
    search = settings(SEARCH, max_examples=2000, phases=(Phase.generate,))
    find(json_values(), lambda value: wanted(json.dumps(value, ensure_ascii=False)), settings=search)


@given(json_values() | batches())
def test_values_survive_json(value: Any) -> None:
    """No NaN, no lone surrogate: what a correct store is given, it can give back."""
    assert json.loads(json.dumps(value).encode("utf-8")) == value
    json.dumps(value, ensure_ascii=False).encode("utf-8")


# --- what they ask for -------------------------------------------------------------------------------


def in_a_fresh_process(program: str) -> subprocess.CompletedProcess[str]:
    """The program, with the lab on its path."""
    code = f"import sys; sys.path.insert(0, {LAB!r})\n{program}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    """And what to write instead."""
    done = in_a_fresh_process("sys.modules['hypothesis'] = None\nimport crashlab.strategies")
    assert "pip install hypothesis" in done.stderr
    assert "values=[{}, Crash('power', 0)]" in done.stderr


def test_the_lab_itself_needs_no_hypothesis() -> None:
    """Neither the package nor the modules that follow a path load it."""
    program = "import crashlab, crashlab.pipeline, crashlab.path_check\nprint('hypothesis' in sys.modules)"
    assert in_a_fresh_process(program).stdout == "False\n"


def test_the_users_settings_stay_as_they_are() -> None:
    """Neither the import nor a machine changes what is registered or in force."""
    program = """
from hypothesis import settings
before, names = settings.default, sorted(settings._profiles)
import crashlab.strategies as s
from crashlab import Store
s.state_machine(Store(print, print))
print(settings.default == before, sorted(settings._profiles) == names)
"""
    assert in_a_fresh_process(program).stdout == "True True\n"


def test_the_time_of_the_lab_is_not_the_tests() -> None:
    """With the shortest deadline that Hypothesis knows, and processes that have to be started, a test passes."""
    close_kept()

    @settings(SEARCH, max_examples=3, deadline=30, suppress_health_check=[])
    @given(histories(SMALL))
    def run(history: list[Any]) -> None:
        assert check(dataclasses.replace(stores.DURABLE, values=history)).verdict == "consistent"

    started = time.monotonic()
    run()
    assert time.monotonic() - started > 0.03, "or nothing was shown"


def test_without_that_the_deadline_would_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above is not green by chance."""
    close_kept()
    monkeypatch.setattr(path_check, "around", [])

    @settings(SEARCH, max_examples=3, deadline=1)
    @given(histories(SMALL))
    def run(history: list[Any]) -> None:
        check(dataclasses.replace(stores.DURABLE, values=history))

    with pytest.raises(Exception, match=r"deadline|[Uu]nreliable|[Ff]laky"):
        run()


# --- the state machine ---------------------------------------------------------------------------------


def outcome(machine: type[RuleBasedStateMachine]) -> unittest.TestResult:
    """What unittest makes of the machine."""
    case: Any = machine.TestCase
    phases = (Phase.generate, Phase.shrink)
    case.settings = settings(case.settings, max_examples=20, derandomize=True, database=None, phases=phases)
    result = unittest.TestResult()
    case("runTest").run(result)
    return result


def test_the_machine_has_settings_of_its_own() -> None:
    """No deadline, and no check of speed that a start of processes would fail."""
    case: Any = state_machine(stores.DURABLE).TestCase
    assert case.settings.deadline is None
    assert HealthCheck.too_slow in case.settings.suppress_health_check


def test_a_machine_of_a_correct_store_passes(tmp_path: Path) -> None:
    """Saves, crashes and loads in any order."""
    result = outcome(state_machine(stores.DURABLE, values=SMALL, out=tmp_path))
    assert result.wasSuccessful(), result


def test_a_machine_of_a_correct_log_passes(tmp_path: Path) -> None:
    """The same with appends."""
    result = outcome(state_machine(stores.REPAIRED, values=batches(SMALL), out=tmp_path))
    assert result.wasSuccessful(), result


def test_a_machine_shrinks_to_a_save_and_a_crash(tmp_path: Path) -> None:
    """Hypothesis prints the steps, and the error has the path as a program."""
    result = outcome(state_machine(stores.LEFTOVER, values=st.just({}), crashes="power", out=tmp_path))
    ((_, text),) = [*result.errors, *result.failures]
    assert text.count("state.save(value={})") == 2
    assert text.count("state.crash(") == 2
    assert "again: values=[{}, Crash(" in text


def test_a_machine_needs_values() -> None:
    """A program has none."""
    with pytest.raises(UsageError, match="needs a Store or a Log"):
        state_machine(crashlab.Commands("true"))
