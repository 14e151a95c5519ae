"""Tests of longrun.protocol: the way out, the way back, and everything that is refused on it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longrun.checkpoint.correct import HARNESS
from longrun.errors import Damaged, UnsupportedVersion
from longrun.messages import canonical, user
from longrun.protocol import Checkpoint, decode, encode, encode_in_pieces
from longrun.transcript_text import transcript_text

PATH = Path("checkpoint.json")


@pytest.fixture
def saves(desk: Any) -> list[Checkpoint]:
    """Every checkpoint that a run saves."""
    saved: list[Checkpoint] = []

    def save(directory: Path, checkpoint: Checkpoint) -> None:
        saved.append(checkpoint)
        HARNESS.save(directory, checkpoint)

    desk.agent(harness=replace(HARNESS, save=save)).start()
    return saved


def signed(form: dict[str, Any]) -> bytes:
    """A file with a fitting checksum, whatever it says."""
    rest = canonical({name: value for name, value in form.items() if name != "checksum"})
    return f'{{"checksum":"{hashlib.sha256(rest.encode()).hexdigest()}",{rest[1:]}'.encode()


def test_every_save_of_a_run_comes_back(saves: list[Checkpoint]) -> None:
    """What was encoded decodes to the same checkpoint, and encodes to the same bytes."""
    assert len(saves) > 20
    for checkpoint in saves:
        data = encode(checkpoint)
        assert decode(data, PATH) == checkpoint
        assert encode(decode(data, PATH)) == data == signed(json.loads(data))


def test_a_save_copies_no_transcript(saves: list[Checkpoint]) -> None:
    """The text of the messages is the very one that is kept for the next save."""
    for checkpoint in saves:
        pieces = encode_in_pieces(checkpoint)
        assert b"".join(pieces) == encode(checkpoint)
        assert any(piece is transcript_text(checkpoint.messages) for piece in pieces)


@given(st.text(min_size=1).filter(str.strip), st.integers(0, 2**70), st.dictionaries(st.text(), st.integers(0, 9)))
def test_any_words_and_any_numbers_come_back(task: str, seq: int, more: dict[str, int]) -> None:
    """Texts in any script and numbers of any length survive; further counters of the API are kept."""
    usage = {**more, **dict.fromkeys(("input_tokens", "output_tokens"), seq)}
    usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    total = sum(usage.values())
    checkpoint = Checkpoint(run_id="r", task=task, messages=(user(task),), seq=seq, usage=usage, tokens_used=total)
    assert decode(encode(checkpoint), PATH) == checkpoint


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_is_refused(saves: list[Checkpoint], data: st.DataObject) -> None:
    """One byte of one save becomes another: refused, never read as something else."""
    whole = encode(data.draw(st.sampled_from(saves)))
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
    with pytest.raises((Damaged, UnsupportedVersion)):
        decode(whole[:at] + bytes([other]) + whole[at + 1 :], PATH)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_cut_and_any_tail_is_refused(saves: list[Checkpoint], data: st.DataObject) -> None:
    """A file cut anywhere, filled with zeros from there, or with something behind it, is damaged."""
    whole = encode(data.draw(st.sampled_from(saves)))
    at = data.draw(st.integers(0, len(whole) - 1))
    for broken in (whole[:at], whole[:at] + bytes(len(whole) - at), whole + b"\n", whole + whole[:at]):
        if broken != whole:
            with pytest.raises(Damaged):
                decode(broken, PATH)


@pytest.mark.parametrize("version", [0, 1, 3, 10**30])
def test_another_version_is_another_error(saves: list[Checkpoint], version: int) -> None:
    """A whole number that is not 2 is unsupported, with or without the other fields of this version."""
    for form in ({**saves[-1].to_json(), "version": version}, {"version": version, "state": "x"}):
        with pytest.raises(UnsupportedVersion, match=f"protocol version {version}"):
            decode(signed(form), PATH)
    with pytest.raises(UnsupportedVersion):
        decode(json.dumps({"version": version}).encode(), PATH)


@pytest.mark.parametrize("version", [True, "2", 2.0, None, [2]])
def test_what_is_no_whole_number_is_no_version(saves: list[Checkpoint], version: Any) -> None:
    """True, "2" and 2.0 are refused as damage."""
    with pytest.raises(Damaged):
        decode(signed({**saves[-1].to_json(), "version": version}), PATH)


WRONG: dict[str, Any] = {
    "version": None,
    "run_id": 7,
    "task": None,
    "status": "asleep",
    "end": {"reason": "end_turn", "text": "x"},
    "seq": -1,
    "parent": "1",
    "timeline": None,
    "writer_epoch": True,
    "turns": 99,
    "requests_started": 0,
    "requests_saved": 99,
    "usage": {},
    "tokens_used": 1,
    "context_tokens": 1.5,
    "messages": [],
    "pending_tool_use": [],
    "ledger_seen": None,
}


@pytest.mark.parametrize("name", WRONG)
def test_each_field_is_checked(saves: list[Checkpoint], name: str) -> None:
    """A wrong value under a fitting checksum is refused; so are a missing and a surplus field."""
    inside_turn = next(save for save in saves if save.pending_tool_use and save.turns == 5)
    form = inside_turn.to_json()
    assert decode(signed(form), PATH) == inside_turn
    without = {other: value for other, value in form.items() if other != name}
    for broken in ({**form, name: WRONG[name]}, without, {**form, f"{name}_2": 1}):
        with pytest.raises(Damaged):
            decode(signed(broken), PATH)


@pytest.mark.parametrize(
    "change", [{"id": "toolu_other"}, {"input": {"x": 1}}, {"started": 1}, {"attempts": True}, {"key": 5}, {"more": 1}]
)
def test_open_calls_must_be_those_of_the_transcript(saves: list[Checkpoint], change: dict[str, Any]) -> None:
    """An open call with another id, input or type of field is damage."""
    form = next(save for save in saves if save.pending_tool_use).to_json()
    form["pending_tool_use"][0] = {**form["pending_tool_use"][0], **change}
    with pytest.raises(Damaged):
        decode(signed(form), PATH)


def test_an_open_call_is_an_object(saves: list[Checkpoint]) -> None:
    """A text in place of an open call is damage."""
    form = next(save for save in saves if save.pending_tool_use).to_json()
    form["pending_tool_use"][0] = "toolu_1"
    with pytest.raises(Damaged, match="no object"):
        decode(signed(form), PATH)


def test_a_broken_transcript_is_damage(saves: list[Checkpoint]) -> None:
    """A transcript that the API would refuse cannot have been saved."""
    form = saves[-1].to_json()
    form["messages"] = form["messages"][:-2] + form["messages"][-1:]
    with pytest.raises(Damaged, match="the transcript is broken"):
        decode(signed(form), PATH)


@pytest.mark.parametrize("data", [b"", b"[]", b"7", b"{}", b'{"version":NaN}', b"\xff", b"[" * 100_000])
def test_other_files_are_damage(data: bytes) -> None:
    """Empty, other JSON, no JSON, and JSON too deep to read are refused, by path."""
    with pytest.raises(Damaged, match=r"checkpoint\.json"):
        decode(data, PATH)
