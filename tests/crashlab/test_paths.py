"""One path through several crashes: what is picked, what goes on, what is demanded, and what can be repeated."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from crashlab import Log, Policy, Store, Unmeasured, UsageError, Violation, check, explore
from crashlab.replay import replay
from crashlab.report import model
from crashlab.report.folder import RunFolder
from crashlab.subject import Crash
from tests.crashlab.here import needs_strace
from tests.quality import crashing_stores as stores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab import Lab, Report

NAMED = dataclasses.replace(stores.UNSYNCED, values=[{"n": 1}, Crash("kill", 0), {"n": 2}, Crash("power", 0)])


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRASHLAB_OUT", str(tmp_path))


def on(subject: Store | Log, values: Sequence[Any], **options: Any) -> Report:
    """The report on a path."""
    return explore(dataclasses.replace(subject, values=values), **options)


# --- what passes -----------------------------------------------------------------------------------


def test_a_passing_path_says_how_little_it_claims(tmp_path: Path) -> None:
    """It names its crashes, judges after each and at the end, and leaves no run folder."""
    report = on(stores.DURABLE, [{"n": 1}, Crash("kill", 2), {"n": 2}, Crash("power", 0), {"n": 3}])
    assert report.verdict == "consistent", str(report)
    assert [each.partition("@")[0] for each in report.settings.path] == ["kill", "power"]
    assert {each.fault: each.judged for each in report.faults} == {"kill": 2, "power": 1}
    assert "consistent on the one path that was followed" in " ".join(str(report).split())
    assert "nothing is claimed of other states" in str(report)
    assert report.run == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "values",
    [
        [Crash("power", 0)],
        [Crash("kill", 5), {"n": 1}],
        [{"n": 1}, Crash("kill", 3), Crash("kill", 0), Crash("power", 7)],
        [{"n": 1}, {"n": 2}, Crash("power", 199), {}, Crash("power", 198), {}, Crash("kill", 197), {"n": 3}],
    ],
)
def test_crashes_may_stand_anywhere(values: list[Any]) -> None:
    """At the beginning, in a row, at the end; correct code passes."""
    assert on(stores.DURABLE, values).verdict == "consistent"


def test_a_log_goes_on_with_what_it_loaded() -> None:
    """A batch that was in flight and is there stays there, before the next one."""
    large = {"text": "x" * 9000}
    values = [[{"n": 1}], [{"n": 2}, large], Crash("kill", 2), [large], Crash("kill", 3), [{"n": 3}]]
    report = on(stores.REPAIRED, values)
    assert report.verdict == "consistent", str(report)


# --- what fails ------------------------------------------------------------------------------------


def test_an_id_repeats_the_crash_exactly_and_alone() -> None:
    """The id that a finding names, put among the values, leads to the same bytes and the same finding."""
    first = on(stores.UNSYNCED, [{"n": 1}, Crash("kill", 0), {"n": 2}, Crash("power", 0)]).findings[0]
    kill, power = first.id.split("/")
    again = on(stores.UNSYNCED, [{"n": 1}, Crash(kill), {"n": 2}, Crash(power)]).findings[0]
    whole = on(stores.UNSYNCED, [{"n": 1}, Crash(kill), {"n": 2}, Crash(first.id)]).findings[0]
    assert (again.id, again.kind, again.digest) == (first.id, first.kind, first.digest)
    assert (whole.id, whole.kind, whole.digest) == (first.id, first.kind, first.digest)


def test_a_finding_tells_every_run_and_replays_from_its_folder(tmp_path: Path) -> None:
    """Ops of both runs, the program, and a stored run that fails again in the same way."""
    finding = on(stores.UNSYNCED, [{"n": 1}, Crash("kill", 0), {"n": 2}, Crash("power", 0)]).findings[0]
    assert [line.run for line in finding.ops if line.op == "call"] == [0, 1, 1]
    assert finding.crashes == ("killed; then it went on",)
    assert finding.fault_line == "power loss"
    assert finding.program[:6] == (
        'save({"n": 1})',
        'crash("kill@5")         # checkpoint.json 8 bytes',
        'load()                  # returned {"n": 1}',
        'save({"n": 2})',
        'crash("power@6-4d0")    # checkpoint.json 8 bytes',
        'load()                  # raised JSONDecodeError; {"n": 2} was acked',
    )
    again = replay(RunFolder.open(None, tmp_path), finding.id)
    assert again.verdict == "violation", str(again)
    assert [(each.id, each.kind, each.digest) for each in again.findings] == [
        (finding.id, finding.kind, finding.digest)
    ]


def test_the_report_fits_the_schema() -> None:
    """With the path in its settings and the program in its finding."""
    report = on(stores.UNSYNCED, [{"n": 1}, Crash("kill", 0), {"n": 2}, Crash("power", 0)])
    form = json.loads(json.dumps(report.to_json()))
    schema = json.loads((Path(model.__file__).parent / "schema.json").read_text())
    jsonschema.validate(form, schema)
    assert form["settings"]["path"] == ["kill@5", "power@6-4d0"]
    assert form["findings"][0]["program"]


def test_a_replay_judges_by_the_whole_path(tmp_path: Path) -> None:
    """A value that was acked after the first crash and is lost at the second is no value of the first run."""
    values = [{"n": 1}, Crash("kill", 0), {"n": 2}, Crash("power", 0)]
    finding = on(stores.UNSYNCED, values).findings[0]
    again = replay(RunFolder.open(None, tmp_path), finding.id)
    assert again.findings[0].summary == finding.summary
    assert '{"n": 2} was acked' in again.findings[0].summary


def save_locked(directory: Path, value: Any) -> None:
    """Wrong: a lock that outlives its owner stops the second save after a crash, not the first."""
    lock = directory / "lock"
    if lock.exists() and (directory / "seen").exists():
        raise FileExistsError(lock)
    if lock.exists():
        (directory / "seen").touch()
    lock.touch()
    stores.save_durably(directory, value)
    if not (directory / "seen").exists():
        lock.unlink()


def test_a_save_that_fails_after_a_good_recovery_is_a_violation() -> None:
    """What no recovery shows is told by its program, which is how to repeat it."""
    subject = Store(save_locked, stores.load)
    report = on(subject, [{"n": 1}, Crash("kill", 2), {"n": 2}, {"n": 3}])
    (finding,) = report.findings
    assert (finding.kind, finding.observed.step) == ("stuck", "live")
    assert finding.program[-3] == 'save({"n": 3})          # raised FileExistsError'
    assert finding.replay == ""
    assert "replay     " not in str(report)


def test_each_cause_has_an_error_class_of_its_own() -> None:
    """By its class Hypothesis tells failures apart; for everybody else each is a Violation."""
    kinds = []
    for crash in (Crash("power@5-3"), Crash("power@5-4.."), Crash("power@5-3")):
        with pytest.raises(Violation) as caught:
            check(dataclasses.replace(stores.UNSYNCED, values=[{}, crash]))
        kinds.append(type(caught.value))
    assert kinds[0] is kinds[2]
    assert kinds[0] is not kinds[1]
    assert {kind.__name__ for kind in kinds} == {"Violation"}


# --- what is no verdict ------------------------------------------------------------------------------


def test_a_value_that_never_comes_back_accuses_no_crash() -> None:
    """JSON makes a list of a tuple without any crash: that is unmeasured, as in every check."""
    with pytest.raises(Unmeasured, match="round-trip"):
        check(dataclasses.replace(stores.DURABLE, values=[{"n": (1, 2)}, Crash("kill", 0)]))


def save_and_say(lab: Lab, value: Any) -> None:
    """Wrong: says that it has saved before it has."""
    lab.ack(value)
    stores.save_unsynced(lab.dir, value)


def load_late(directory: Path) -> list[Any]:
    """Wrong without any crash: never shows the last event."""
    return stores.load_events(directory)[:-1]


@pytest.mark.parametrize("values", [[[{"n": 1}], Crash("kill", 0)], [[{"n": 1}], Crash("kill", 0), [{"n": 2}]]])
def test_a_log_that_never_shows_all_accuses_no_crash(values: list[Any]) -> None:
    """The same of a list."""
    with pytest.raises(Unmeasured, match="round-trip"):
        check(Log(stores.append_repaired, load_late, values=values))


def test_an_ack_inside_of_a_call_is_no_end_of_it() -> None:
    """What comes back is asked after the call has returned."""
    report = on(Store(save_and_say, lambda lab: stores.load(lab.dir), open=lambda lab: lab), [{}, Crash("power@6-4")])
    assert [finding.kind for finding in report.findings] == ["lost"], str(report)
    assert all(control.passed for control in report.controls)


def test_a_save_that_fails_without_a_crash_is_misuse() -> None:
    """As in every check, and it names the call."""
    with pytest.raises(UsageError, match="on call 2 of save, before any crash"):
        on(stores.DURABLE, [{"n": 1}, {"n": {1}}, Crash("kill", 0)])


@pytest.mark.parametrize(
    ("at", "pick", "message"),
    [("pwoer", 0, "expected 'kill', 'power'"), ("kill@x", 0, "id of a state"), ("kill", -1, "from 0 on")],
)
def test_a_crash_that_means_nothing_is_told_at_once(at: str, pick: int, message: str) -> None:
    """When it is made, not when it is followed."""
    with pytest.raises(UsageError, match=message):
        Crash(at, pick)


def test_an_id_of_another_program_is_misuse() -> None:
    """Its op is not there."""
    with pytest.raises(UsageError, match="no op 99"):
        on(stores.DURABLE, [{}, Crash("kill@99")])


def test_only_has_no_place_on_a_path() -> None:
    """It says where the id belongs."""
    with pytest.raises(UsageError, match=r"put the id there, as Crash\('kill@3'\)"):
        on(stores.DURABLE, [{}, Crash("kill", 0)], only="kill@3")


def test_values_that_cannot_travel_are_misuse() -> None:
    """An open file is no value."""
    with open(os.devnull, "wb") as file, pytest.raises(UsageError, match="cannot be sent"):
        on(stores.DURABLE, [{"file": file}, Crash("kill", 0)])


def test_a_refusal_ends_the_path_where_the_policy_allows_it() -> None:
    """Nothing goes on from what was refused."""
    allowed = {"power": Policy(refuse=True, acked="prefix")}
    report = on(stores.UNSYNCED, [{}, Crash("power@4-3"), {}], policy=allowed)
    assert report.verdict == "consistent", str(report)
    assert [each.refused for each in report.faults] == [1]


# --- other ways to the same ----------------------------------------------------------------------------


def test_a_subject_by_its_import_path_has_its_values_there(tmp_path: Path) -> None:
    """The command line follows a path too, and replays it."""
    report = explore("tests.crashlab.test_paths:NAMED")
    (finding,) = report.findings
    assert finding.id.startswith("kill@5/power@6-")
    assert replay(RunFolder.open(None, tmp_path), finding.id).verdict == "violation"


def open_database(lab: Lab) -> sqlite3.Connection:
    """A table with one row."""
    database = sqlite3.connect(lab.dir / "state.db")
    database.execute("create table if not exists state (one integer primary key, text text)")
    return database


def save_row(database: sqlite3.Connection, value: Any) -> None:
    """One transaction."""
    with database:
        database.execute("insert or replace into state values (1, ?)", (json.dumps(value),))


def load_row(database: sqlite3.Connection) -> Any:
    """The row, or None."""
    row = database.execute("select text from state").fetchone()
    return json.loads(row[0]) if row else None


@needs_strace
def test_a_path_of_a_database_is_recorded_from_outside() -> None:
    """SQLite writes from C; its runs go on under strace, and it keeps what it acked."""
    subject = Store(save_row, load_row, open=open_database, close=sqlite3.Connection.close)
    report = on(subject, [{"n": 1}, Crash("kill", 3), {"n": 2}, Crash("power", 2), {"n": 3}])
    assert report.verdict == "consistent", str(report)
    assert report.settings.recorder == "strace"
