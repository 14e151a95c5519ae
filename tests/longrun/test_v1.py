"""Tests of longrun.v1 and of the corpus: what was ever stored is read, or refused, the same way for ever."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import longrun.errors
from longrun import v1
from longrun.checkpoint import correct
from longrun.errors import LongrunError
from longrun.lease import LOCK_NAME
from longrun.ledger import LEDGER_NAME
from longrun.protocol import CHECKPOINT_NAME
from longrun.tools import args_digest

if TYPE_CHECKING:
    from longrun.loop import Agent

CORPUS = Path(__file__).parent / "corpus"
OUTCOMES: dict[str, dict[str, Any]] = tomllib.loads((CORPUS / "outcomes.toml").read_text())
READ = [name for name, outcome in OUTCOMES.items() if "opens" in outcome]
REFUSED = [name for name, outcome in OUTCOMES.items() if "refuses" in outcome]
OPEN_ACTS = "v1/good/open-acts-first-recorded"


def copied(desk: Any, name: str) -> None:
    shutil.copytree(CORPUS / name, desk.agent_directory, dirs_exist_ok=True)


def test_every_directory_has_one_outcome() -> None:
    """The table names what there is, and each entry says either how it opens or how it is refused."""
    files = [path for path in CORPUS.glob("*/**/*") if path.is_file()]
    assert {path.parent.relative_to(CORPUS).as_posix() for path in files} == set(OUTCOMES)
    assert set(READ).isdisjoint(REFUSED)
    assert len(READ) + len(REFUSED) == len(OUTCOMES)


@pytest.mark.parametrize("name", READ)
def test_what_is_sound_is_read_and_gone_on_with(desk: Any, name: str) -> None:
    """It opens with these figures and open calls, and its end is reached with these effects and no refused request."""
    wanted = OUTCOMES[name]
    copied(desk, name)
    loaded = correct.load(desk.agent_directory)
    agent = desk.agent()
    last = agent.resume()
    opened = agent.opened
    assert opened == loaded
    assert (opened.status, opened.turns, opened.tokens_used) == (wanted["opens"], wanted["turns"], wanted["tokens"])
    assert [call.name for call in opened.pending_tool_use] == wanted["open"]
    assert last.status == wanted["ends"]
    assert [each.name for each in desk.outside.effects] == wanted["does"]
    assert agent.model.refusals == []
    kept = sorted(path.name for path in desk.agent_directory.iterdir() if path.suffix != v1.KEPT_SUFFIX)
    assert kept == sorted({CHECKPOINT_NAME, LEDGER_NAME, LOCK_NAME})
    if opened.status != "running":
        assert last == opened
    records = (desk.agent_directory / LEDGER_NAME).read_bytes().splitlines()
    assert len(records) >= wanted["records"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_is_refused_and_left_as_it_is(desk: Any, name: str) -> None:
    """Of this kind, in these words, also a second time; not one byte changes, no request is made."""
    wanted = OUTCOMES[name]
    copied(desk, name)
    before = desk.files()
    kind = getattr(longrun.errors, wanted["refuses"])
    for _ in range(2):
        agent = desk.agent()
        with pytest.raises(LongrunError) as caught:
            agent.resume()
        assert type(caught.value) is kind
        assert wanted["says"] in str(caught.value)
        assert agent.model.exchanges == []
    after = desk.files()
    assert after.pop(LOCK_NAME) == b""
    assert after == before


# --- version 1 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [each for each in READ if each.startswith("v1/")])
def test_reading_changes_nothing_and_conversion_keeps_the_originals(desk: Any, name: str) -> None:
    """load is pure; after the conversion the same is read, and the old files stand beside it byte for byte."""
    copied(desk, name)
    before = desk.files()
    loaded = correct.load(desk.agent_directory)
    assert desk.files() == before
    v1.convert(desk.agent_directory)
    after = desk.files()
    assert correct.load(desk.agent_directory) == loaded
    assert after[f"{CHECKPOINT_NAME}.v1"] == before[CHECKPOINT_NAME]
    assert after.get(f"{v1.EFFECTS_NAME}.v1") == before.get(v1.EFFECTS_NAME, before.get(f"{v1.EFFECTS_NAME}.v1"))
    assert v1.EFFECTS_NAME not in after
    assert after[LEDGER_NAME].count(b"\n") == OUTCOMES[name]["records"]
    v1.convert(desk.agent_directory)
    assert desk.files() == after


def test_tokens_go_on_under_a_name_of_their_own(desk: Any) -> None:
    """What version 1 counted is kept, and the sum never falls."""
    copied(desk, OPEN_ACTS)
    last = desk.agent().resume()
    assert last.usage["legacy"] == OUTCOMES[OPEN_ACTS]["tokens"]
    assert last.tokens_used == sum(last.usage.values()) > last.usage["legacy"]


def test_the_map_becomes_records_found_by_call_id(desk: Any) -> None:
    """Each has the act key and the digest of the call that made it, and is done."""
    copied(desk, OPEN_ACTS)
    found = v1.read(desk.agent_directory)
    assert found is not None
    record = found.records[-1]
    call = found.checkpoint.pending_tool_use[0]
    assert (record.tool_use_id, record.key, record.outcome) == (call.id, call.key, "done")
    assert record.args_digest == args_digest(call.input)
    assert [each.started for each in found.checkpoint.pending_tool_use] == [True] * 3


def test_the_reader_that_was_never_asked_is_noticed(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: with a conversion that does nothing the corpus is not read."""
    monkeypatch.setattr(v1, "read", lambda _directory: None)
    copied(desk, OPEN_ACTS)
    agent: Agent = desk.agent()
    with pytest.raises(longrun.errors.UnsupportedVersion, match="protocol version 1"):
        agent.resume()
