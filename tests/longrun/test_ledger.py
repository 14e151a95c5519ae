"""Tests of longrun.ledger: records, torn tails, damage, and an append that fails."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longrun.errors import Damaged
from longrun.ledger import LEDGER_NAME, Ledger, Record, record_of
from longrun.messages import user
from longrun.protocol import Checkpoint, OpenCall
from longrun.tools import args_digest
from tests.longrun.open_files import open_below

if TYPE_CHECKING:
    from pathlib import Path

RECORD = Record(
    n=1,
    run_id="run-1",
    timeline="main",
    writer_epoch=1,
    key="run-1/T-101/send_reply",
    tool="send_reply",
    args_digest="0" * 64,
    tool_use_id="toolu_1",
    outcome="done",
    result="reply sent: é\u2028",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of three records."""
    ledger = Ledger.create(tmp_path / LEDGER_NAME)
    for number in (1, 2, 3):
        ledger.append(replace(RECORD, n=number, key=f"key-{number}"))
    ledger.close()
    return ledger.path


def opened(path: Path, *, seen: int) -> list[int]:
    ledger = Ledger.open(path, seen=seen)
    ledger.close()
    return [record.n for record in ledger.records]


def test_records_come_back_and_more_can_follow(path: Path) -> None:
    """All fields survive; the next opener adds behind them."""
    ledger = Ledger.open(path, seen=3)
    assert ledger.latest("key-2") == replace(RECORD, n=2, key="key-2")
    assert ledger.latest("key-9") is None
    ledger.append(replace(RECORD, n=4, key="key-4"))
    ledger.close()
    assert opened(path, seen=4) == [1, 2, 3, 4]


def test_done_may_follow_unknown(path: Path) -> None:
    """The latest record of an act counts; both stay."""
    ledger = Ledger.open(path, seen=3)
    ledger.append(replace(RECORD, n=4, outcome="unknown"))
    assert [record.n for record in ledger.unknown()] == [4]
    ledger.append(replace(RECORD, n=5, outcome="done"))
    assert ledger.unknown() == []
    ledger.close()
    assert opened(path, seen=5) == [1, 2, 3, 4, 5]


def test_a_ledger_is_created_once(path: Path) -> None:
    """Creating over a ledger fails and leaves it."""
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        Ledger.create(path)
    assert path.read_bytes() == before


def test_a_torn_tail_is_removed_wherever_it_is_cut(path: Path) -> None:
    """Cut anywhere in its last line, which no checkpoint counted, the file loses that line and goes on."""
    whole = path.read_bytes()
    kept = whole[: whole.rindex(b"\n", 0, -1) + 1]
    for size in range(len(kept), len(whole)):
        path.write_bytes(whole[:size])
        assert opened(path, seen=2) == [1, 2]
        assert path.read_bytes() == kept


def test_a_page_that_never_arrived_is_a_torn_tail(path: Path) -> None:
    """Zeros in the last line, whether its end arrived or not, are no damage beyond what was counted."""
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for zeros in (slice(start, start + 9), slice(start + 40, len(whole) - 1), slice(start, len(whole))):
        data = bytearray(whole)
        data[zeros] = bytes(len(data[zeros]))
        path.write_bytes(data)
        assert opened(path, seen=2) == [1, 2]
        assert path.read_bytes() == whole[:start]


def test_a_counted_record_is_never_a_torn_tail(path: Path) -> None:
    """A last line that a checkpoint has counted may be missing or cut only by damage: refused, untouched."""
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    zeroed = whole[:start] + bytes(len(whole) - start - 1) + b"\n"
    for data in (whole[:start], whole[:-1], whole[: start + 5], b"", zeroed):
        path.write_bytes(data)
        with pytest.raises(Damaged):
            Ledger.open(path, seen=3)
        assert path.read_bytes() == data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_before_the_tail_is_refused(path: Path, data: st.DataObject) -> None:
    """One byte becomes another, not zero, before the last line end: refused, and the file untouched."""
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 2))
    other = data.draw(st.integers(1, 255).filter(lambda byte: byte != whole[at]))
    broken = whole[:at] + bytes([other]) + whole[at + 1 :]
    path.write_bytes(broken)
    with pytest.raises(Damaged):
        Ledger.open(path, seen=0)
    assert path.read_bytes() == broken
    path.write_bytes(whole)


def test_records_out_of_order_are_refused(path: Path) -> None:
    """A line that is missing, doubled or moved shows in the numbers."""
    first, second, third, _ = path.read_bytes().split(b"\n")
    for lines in ([first, third], [first, first, second], [second, first, third]):
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        with pytest.raises(Damaged, match="line"):
            Ledger.open(path, seen=0)


@pytest.mark.parametrize("line", [b"", b"7", b"[]", b"{}", b"null", b"\xff"])
def test_another_line_is_no_record(path: Path, line: bytes) -> None:
    """Other JSON, no JSON and empty lines are refused."""
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(Damaged, match="line 4"):
        Ledger.open(path, seen=3)


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_failed_append_leaves_the_old_ledger(path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk is full or fails, the append raises, the old bytes stand, and a retry works."""
    ledger, before, write = Ledger.open(path, seen=3), path.read_bytes(), os.write
    written: list[bytes] = []

    def failing(descriptor: int, data: bytes = b"") -> int:
        if call == "write" and not written:
            written.append(data[:20])  # a part of it fits
            return write(descriptor, data[:20])
        raise OSError(errno.ENOSPC, "no space left")

    fourth = replace(RECORD, n=4, key="key-4")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(OSError, match="no space"):
            ledger.append(fourth)
    assert path.read_bytes() == before
    assert ledger.latest("key-4") is None
    ledger.append(fourth)
    ledger.close()
    assert opened(path, seen=4) == [1, 2, 3, 4]


def test_an_opening_that_cannot_sync_raises(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read must be durable before it is used: a failing disk stops the opening, and changes nothing."""
    before = path.read_bytes()

    def failing(_descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is ill")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="ill"):
            Ledger.open(path, seen=3)
    assert open_below(path.parent) == []
    assert path.read_bytes() == before
    assert opened(path, seen=3) == [1, 2, 3]


def test_a_run_has_its_ledger_from_the_first_save_on(tmp_path: Path) -> None:
    """None before it; made anew where a kill left the first save alone; later it can only have been lost."""
    saved = Checkpoint(run_id="run-1", task="t", messages=(user("t"),), seq=1)
    Ledger.of_run(tmp_path, None).close()
    (tmp_path / LEDGER_NAME).unlink()
    Ledger.of_run(tmp_path, saved).close()
    (tmp_path / LEDGER_NAME).unlink()
    with pytest.raises(Damaged, match="the ledger is gone"):
        Ledger.of_run(tmp_path, replace(saved, seq=2))


def test_a_record_says_of_which_run_and_of_which_act_it_is() -> None:
    """All that tells it apart comes from the checkpoint and from the call; a read has no record."""
    state = Checkpoint(run_id="run-1", task="t", messages=(user("t"),), timeline="fork", writer_epoch=3)
    call = OpenCall(id="toolu_9", name="send_reply", input={"ticket": "T-1"}, key="run-1/T-1/send_reply")
    record = record_of(state, call, "unknown", "who knows")
    assert (record.run_id, record.timeline, record.writer_epoch) == ("run-1", "fork", 3)
    assert (record.key, record.tool, record.tool_use_id) == (call.key, "send_reply", "toolu_9")
    assert (record.outcome, record.result, record.args_digest) == ("unknown", "who knows", args_digest(call.input))
    with pytest.raises(AssertionError, match="a read is no act"):
        record_of(state, replace(call, key=None), "done", "")


def test_a_resumed_run_makes_the_checkpoint_durable_before_a_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill may have left the name of the first checkpoint in the page cache alone; a ledger must not outlive it."""
    ledger_there: list[bool] = []

    def synced(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), os.stat(tmp_path)):
            ledger_there.append((tmp_path / LEDGER_NAME).exists())

    monkeypatch.setattr(os, "fsync", synced)
    first = Checkpoint(run_id="r", task="t", messages=(user("t"),), seq=1)
    Ledger.of_run(tmp_path, first).close()
    assert ledger_there == [False, True]
