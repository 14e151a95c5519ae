"""Tests of the stored sessions: what was ever written is read, or refused, the same way for ever."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import longrun.eventlog.errors
from longrun.eventlog import project
from longrun.eventlog.design import DESIGN
from longrun.eventlog.errors import LogDamaged, LogError
from longrun.eventlog.events import ToolResult, TurnEnd
from longrun.eventlog.opening import Opening, inspect, inspect_directory
from longrun.eventlog.record import sum_of
from longrun.eventlog.scan import Reader
from longrun.eventlog.slots import NOTHING
from longrun.messages import canonical
from tests.longrun.eventlog.sessions import NAME, directory, files, opened
from tests.longrun.eventlog.stored import CORPUS, LATEST, LEASE_NAME, MAKERS, made

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.eventlog.events import Event
    from longrun.eventlog.opening import Inspection

OUTCOMES: dict[str, dict[str, Any]] = tomllib.loads((CORPUS / "outcomes.toml").read_text())
KEPT = [name for name, outcome in OUTCOMES.items() if "records" in outcome]
REFUSED = [name for name, outcome in OUTCOMES.items() if "refuses" in outcome]


def copied(root: Path, name: str) -> None:
    shutil.copytree(CORPUS / name, directory(root))


def said(event: Event) -> str:
    """An event of a repair, as the table names it."""
    assert isinstance(event, ToolResult | TurnEnd)
    return f"{event.TYPE} {event.outcome if isinstance(event, ToolResult) else event.reason}"


def outcome_of(found: Inspection) -> dict[str, Any]:
    """What the table says of a session that is kept."""
    messages = project.messages(found.records, found.grammar.leaf)
    return {
        "records": len(found.records),
        "last": found.records[-1].sum,
        "promised": found.promised,
        "report": found.report,
        "repairs": [said(event) for event in found.repairs],
        "messages": len(messages),
        "digest": sum_of(canonical(messages).encode()),
    }


def test_every_session_has_one_outcome() -> None:
    """The table names what there is, and each entry says either what is kept or how it is refused."""
    stored = {path.parent.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*/*/*")}
    assert stored == set(OUTCOMES)
    assert set(KEPT).isdisjoint(REFUSED)
    assert len(KEPT) + len(REFUSED) == len(OUTCOMES)


@pytest.mark.parametrize("name", MAKERS)
def test_the_present_writer_writes_just_these_bytes(name: str) -> None:
    """Else it is another format, and wants a number and a folder of its own: these stay."""
    assert made(name) == {path.name: path.read_bytes() for path in (LATEST / name).iterdir()}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_sound_is_read(name: str, tmp_path: Path) -> None:
    """With these records, promises and messages, past a snapshot too; looking changes no byte."""
    copied(tmp_path, name)
    before = files(tmp_path)
    found = outcome_of(inspect(tmp_path, NAME))
    assert found == OUTCOMES[name]
    whole = outcome_of(inspect_directory(directory(tmp_path), whole=True))
    assert {**whole, "report": found["report"]} == found
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", KEPT)
def test_what_is_sound_is_gone_on_with(name: str, tmp_path: Path) -> None:
    """An opening adds its own record and the repair, the next one its own alone; what was there keeps its sums."""
    copied(tmp_path, name)
    wanted = OUTCOMES[name]
    before = [record.sum for record in inspect(tmp_path, NAME).records]
    with opened(tmp_path) as log:
        records = list(log.records)
    assert [record.sum for record in records[: len(before)]] == before
    added = records[len(before) :]
    assert [record.type for record in added] == ["writer/start", *(each.split()[0] for each in wanted["repairs"])]
    with opened(tmp_path) as log:
        again = list(log.records)
    assert again[:-1] == records
    assert again[-1].type == "writer/start"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_left_as_it_is(name: str, tmp_path: Path) -> None:
    """By this error at this place, whoever comes, also a second time; not one byte changes."""
    wanted = OUTCOMES[name]
    copied(tmp_path, name)
    before = files(tmp_path)
    for attempt in (lambda: inspect(tmp_path, NAME), lambda: opened(tmp_path), lambda: opened(tmp_path)):
        with pytest.raises(LogError) as caught:
            attempt()
        error = caught.value
        assert type(error) is getattr(longrun.eventlog.errors, wanted["refuses"])
        if isinstance(error, LogDamaged):
            assert error.kind == wanted["kind"]
            assert error.expected == wanted["expected"]
            assert [error.segment, error.line, error.byte] == wanted["place"]
        else:
            assert wanted["says"] in str(error)
    after = files(tmp_path)
    if LEASE_NAME not in before:
        assert after.pop(LEASE_NAME) == b""
    assert after == before


def test_a_reader_that_forgets_promises_is_noticed(tmp_path: Path) -> None:
    """Sabotage: some of what must be refused is kept, and some of what is kept comes to something else."""
    forgetful = Opening(design=replace(DESIGN, reader=Reader(promise=lambda *_: NOTHING)))
    taken = []
    for name in REFUSED:
        copied(tmp_path / name, name)
        try:
            inspect(tmp_path / name, NAME, forgetful)
        except (LogError, FileNotFoundError):
            continue
        taken.append(name)
    assert "format-1/damaged/a-flipped-bit" in taken
    copied(tmp_path, "format-1/sound/an-open-turn")
    assert outcome_of(inspect(tmp_path, NAME, forgetful)) != OUTCOMES["format-1/sound/an-open-turn"]
