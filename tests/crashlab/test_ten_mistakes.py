"""The ten likeliest mistakes of a newcomer: each is answered with what was seen and what to write instead."""

from __future__ import annotations

import json
import sqlite3
import uuid
from pathlib import Path
from typing import Any

import pytest

from crashlab import Budget, Report, Store, Subject, Unmeasured, UsageError, Violation, check, explore
from crashlab.context import Context, surrounded
from crashlab.pytest_plugin import NOTE_ON_PATCHES

FEW = Budget(states=500, subset=2, sample=0, real_kills=0)


def save_checkpoint(path: Path, state: Any) -> None:
    """What the user has: a path first, then the state."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(state, file)


def load(folder: Path) -> Any:
    path = folder / "checkpoint.json"
    return json.loads(path.read_text()) if path.exists() else None


def words(error: pytest.ExceptionInfo[BaseException]) -> str:
    """The message, without the line breaks of the page."""
    return " ".join(str(error.value).split())


def reason(report: Report, code: str) -> str:
    """What was seen and what to do next, of the one reason with this code."""
    (found,) = [each for each in report.unmeasured if each.code == code]
    return f"{found.detail} {found.next}"


def test_1_a_connection_of_the_test_process(tmp_path: Path) -> None:
    """Recovery after a crash never has it; the message names the variable and where to open it."""
    connection = sqlite3.connect(":memory:")

    def save(_: Path, value: Any) -> None:
        connection.execute("insert into t values (?)", (json.dumps(value),))

    with pytest.raises(UsageError) as raised:
        check(Store(save, load), out=tmp_path)
    connection.close()
    assert str(raised.value) == (
        "save cannot be sent to a fresh process: it closes over connection (sqlite3.Connection). "
        "Recovery after a crash never has that object. "
        'Open it inside: Store(save, load, open=lambda lab: sqlite3.connect(lab.dir / "x.db"))'
    )


def test_2_arguments_the_other_way_round(tmp_path: Path) -> None:
    """The message says how save is called, and the lambda that turns them."""

    def save(state: Any, path: Path) -> None:
        save_checkpoint(path, state)

    with pytest.raises(UsageError) as raised:
        check(Store(save, load), out=tmp_path)
    assert words(raised).startswith("the uncrashed run raised TypeError: expected str, bytes or os.PathLike object")
    assert "on call 1 of save, before any crash" in str(raised.value)
    assert 'save=lambda dir, value: save_checkpoint(value, dir / "checkpoint.json")' in str(raised.value)


def test_3_a_path_outside_of_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the file that was written, and two ways out."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "state").mkdir()

    def save(_: Path, value: Any) -> None:
        save_checkpoint(Path("state", "checkpoint.json"), value)

    report = explore(Store(save, load), out="runs", budget=FEW)
    said = reason(report, "empty-trace")
    assert said.startswith("nothing was written under lab.dir; the program wrote")
    assert "state/checkpoint.json" in said
    assert 'Put its path under lab.dir, or its variable into env={"APP_HOME": "{dir}"}.' in said


def test_4_an_end_that_is_another_one_each_time(tmp_path: Path) -> None:
    """The message names the field and both values, and the view that leaves it out."""

    def run(lab: Any) -> dict[str, Any]:
        (lab.dir / "state").write_text("1")
        return {"run_id": str(uuid.uuid4()), "n": 3}

    said = reason(explore(Subject(run), out=tmp_path, budget=FEW), "runs-differ")
    assert said.startswith('two uncrashed runs ended differently: run_id "')
    assert said.endswith('If that is allowed, compare the rest: view=lambda end: {"n": end["n"]}.')


def test_5_a_value_that_comes_back_as_another_one(tmp_path: Path) -> None:
    """A tuple through JSON; no crash is needed for that."""
    store = Store(
        lambda folder, value: save_checkpoint(folder / "checkpoint.json", value), load, values=[{"xy": (1, 2)}]
    )
    said = reason(explore(store, out=tmp_path, budget=FEW), "round-trip")
    assert said == (
        'saved {"xy": (1, 2)}, loaded {"xy": [1, 2]} without any crash. Mend it, or say what counts: view=….'
    )


class Checkpoint:
    """An end that is no data."""


def test_6_an_end_without_a_json_form(tmp_path: Path) -> None:
    """The message is that sentence and nothing else."""

    def run(lab: Any) -> Checkpoint:
        (lab.dir / "state").write_text("1")
        return Checkpoint()

    with pytest.raises(UsageError) as raised:
        check(Subject(run), out=tmp_path)
    assert str(raised.value) == "the end is a Checkpoint, which has no JSON form. Pass view=lambda end: vars(end)."


def save_by_sqlite(folder: Path, value: Any) -> None:
    connection = sqlite3.connect(folder / "checkpoint.db")
    with connection:
        connection.execute("create table if not exists t (x)")
        connection.execute("insert into t values (?)", (json.dumps(value),))
    connection.close()


def load_by_sqlite(folder: Path) -> Any:
    if not (folder / "checkpoint.db").exists():
        return None
    connection = sqlite3.connect(folder / "checkpoint.db")
    row = connection.execute("select x from t order by rowid desc limit 1").fetchone()
    connection.close()
    return json.loads(row[0])


@pytest.mark.parametrize("recorder", ["python", "auto"])
def test_7_a_library_that_writes_by_itself(recorder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pass where nobody could see the writes; where strace is not there, what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unmeasured) as raised:
        check(Store(save_by_sqlite, load_by_sqlite), out=tmp_path / "runs", budget=FEW, recorder=recorder)
    said = words(raised)
    assert "unseen-writer" in said
    assert "checkpoint.db" in said
    assert ("apt install strace" if recorder == "auto" else "recorder='strace' sees more") in said
    assert said.endswith("This is not a pass.")


def test_8_a_program_without_end(tmp_path: Path) -> None:
    """The time limit is told, and both ways on."""

    def run(lab: Any) -> None:
        while True:
            (lab.dir / "state").write_text("1")

    said = reason(explore(Subject(run, timeout_s=0.1), out=tmp_path, budget=FEW), "time-limit")
    assert said == (
        "the recorded run did not end in 0.6 s. "
        "If it has no end, ack its saves and pass stop_after_acks=5; if it is slow, raise timeout_s."
    )


def test_9_a_state_of_another_recording(tmp_path: Path) -> None:
    """An id is a recipe for one recording; the stored run has the other."""

    def save(folder: Path, value: Any) -> None:
        save_checkpoint(folder / "checkpoint.json", value)

    with pytest.raises(UsageError) as raised:
        check(Store(save, load, values=[{"n": 1}]), out=tmp_path, budget=FEW, only="power@9-3")
    assert str(raised.value) == (
        "no op 9 in this recording (4 ops): power@9-3 comes from another program, value or runtime version. "
        "Use the stored run: crashlab replay power@9-3 --run .crashlab/runs/…"
    )


def test_10_patches_of_the_test(tmp_path: Path) -> None:
    """The plugin tells the check of them, and the finding says that they do not reach the fresh process."""

    def save(folder: Path, value: Any) -> None:
        save_checkpoint(folder / "checkpoint.json", value)

    store = Store(save, load, values=[{"n": 1}, {"n": 2}])
    with surrounded(Context(notes=lambda: [NOTE_ON_PATCHES])), pytest.raises(Violation) as raised:
        check(store, out=tmp_path, budget=FEW, faults="kill")
    assert (
        "This test uses monkeypatch. Patches do not reach the fresh process; patch inside the callable or use env."
        in words(raised)
    )
    with pytest.raises(Violation) as plain:
        check(store, out=tmp_path, budget=FEW, faults="kill")
    assert "monkeypatch" not in str(plain.value)


def test_a_misspelt_name_is_answered_with_the_right_one(tmp_path: Path) -> None:
    """And with all that are known."""
    with pytest.raises(UsageError, match=r"unknown fault 'powerloss'; did you mean 'power'\? Known: kill, power"):
        check(Store(save_checkpoint, load), faults="powerloss", out=tmp_path)
