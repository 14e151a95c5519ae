"""Tests of longrun.rewind.shared_ledger: two live timelines, one record of what was done."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longrun.errors import Damaged
from longrun.ledger import LEDGER_NAME, Ledger, Record
from longrun.messages import user
from longrun.protocol import Checkpoint, OpenCall
from longrun.rewind import points
from longrun.rewind.shared_ledger import claim, open_shared

if TYPE_CHECKING:
    from pathlib import Path

KEY = "r/T-101/send_reply"
GIVEN = {"ticket": "T-101", "text": "Hello", "refund_yen": 0}
RECORD = Record(
    n=1,
    run_id="r",
    timeline="main",
    writer_epoch=1,
    key=KEY,
    tool="send_reply",
    args_digest="0" * 64,
    tool_use_id="toolu_1",
    outcome="done",
    result="reply sent",
)
CALL = OpenCall(id="toolu_1", name="send_reply", input=GIVEN, key=KEY)
HEAD = Checkpoint(run_id="r", task="t", messages=(user("t"),), seq=2, parent=1)


def asked(call: OpenCall) -> Checkpoint:
    """A head with this call open."""
    said = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}]
    return replace(
        HEAD, messages=(user("t"), {"role": "assistant", "content": said}), turns=1, pending_tool_use=(call,)
    )


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    """The directory of a fork, in that of a run with an empty ledger."""
    Ledger.create(tmp_path / LEDGER_NAME).close()
    place = tmp_path / points.FORKS_NAME / "other"
    place.mkdir(parents=True)
    return place


def test_two_that_are_open_at_once_number_on_from_each_other(fork: Path) -> None:
    """Each append reads first what the other has added, whatever number it was given."""
    run, other = open_shared(points.run_of(fork), HEAD), open_shared(fork, HEAD)
    for number, ledger in enumerate((run, other, other, run), 1):
        ledger.append(replace(RECORD, key=f"key-{number}"))
    assert [record.n for record in run.records] == [1, 2, 3, 4]
    with other.alone():
        assert other.records == run.records
        assert other.latest("key-4") == run.records[3]
    run.close()
    other.close()
    with open_shared(fork, replace(HEAD, ledger_seen=4)).alone():
        pass


def test_two_processes_lose_no_record(fork: Path) -> None:
    """Twenty records each, at the same time: forty lines, numbered from 1, none torn."""
    children = []
    for place in (points.run_of(fork), fork):
        child = os.fork()
        if child == 0:
            try:
                ledger = open_shared(place, HEAD)
                for number in range(20):
                    ledger.append(replace(RECORD, key=f"{place.name}-{number}"))
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    whole = Ledger.open(points.run_of(fork) / LEDGER_NAME, seen=40)
    whole.close()
    assert len({record.key for record in whole.records}) == 40


def test_a_half_line_of_a_live_writer_is_no_torn_tail(fork: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens or appends waits until the writer is through; here waiting is an error, so that the test ends."""
    run, other = open_shared(points.run_of(fork), HEAD), open_shared(fork, HEAD)
    real = fcntl.flock

    def at_once(descriptor: int, how: int) -> None:
        real(descriptor, how | fcntl.LOCK_NB)

    with run.alone():
        os.write(run._descriptor, b'{"half')
        monkeypatch.setattr(fcntl, "flock", at_once)
        with pytest.raises(BlockingIOError):
            open_shared(fork, HEAD)
        with pytest.raises(BlockingIOError):
            other.append(RECORD)
    assert run.path.read_bytes() == b'{"half'
    other.append(RECORD)  # the writer gave up the lock without ending its line: it failed
    assert other.path.read_bytes() == RECORD.line()
    run.close()
    other.close()


def test_a_ledger_that_shrank_or_is_gone_is_refused(fork: Path) -> None:
    """Whole records are never removed, by whomever."""
    ledger = open_shared(fork, HEAD)
    ledger.append(RECORD)
    ledger.append(replace(RECORD, key="other"))
    os.truncate(ledger.path, len(RECORD.line()))
    with pytest.raises(Damaged, match="has counted 2"):
        ledger.append(replace(RECORD, key="third"))
    ledger.close()
    ledger.path.unlink()
    with pytest.raises(Damaged, match="the ledger is gone"):
        open_shared(fork, HEAD)


def test_what_another_line_has_begun_is_known(fork: Path) -> None:
    """Its head says started, the ledger nothing: it may have been done. Recorded, or not begun, or one's own: no."""
    run = points.run_of(fork)
    points.save(run, replace(asked(replace(CALL, started=True, attempts=1)), seq=1, parent=None))
    other = open_shared(fork, HEAD)
    with claim(other, CALL) as begun:
        assert begun
    with claim(other, replace(CALL, key="r/T-102/send_reply")) as begun:
        assert not begun
    with claim(other, replace(CALL, key=None)) as begun:
        assert not begun
    mine = open_shared(run, HEAD)
    with claim(mine, CALL) as begun:
        assert not begun
    mine.append(RECORD)
    with claim(other, CALL) as begun:
        assert not begun
        assert other.latest(KEY) == RECORD
    mine.close()
    other.close()


def test_the_lock_is_given_back_whatever_happens(fork: Path) -> None:
    """An act that fails leaves nobody waiting."""
    run, other = open_shared(points.run_of(fork), HEAD), open_shared(fork, HEAD)

    def fails() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), run.claim(KEY):
        fails()
    fcntl.flock(other._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    run.close()
    other.close()


def test_a_resumed_run_makes_its_first_point_durable_before_a_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill may have left the name of the point in the page cache alone; a ledger must not outlive it."""
    ledger_there: list[bool] = []
    first = replace(HEAD, seq=1, parent=None)
    points.save(tmp_path, first)

    def synced(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), os.stat(tmp_path / points.POINTS_NAME)):
            ledger_there.append((tmp_path / LEDGER_NAME).exists())

    monkeypatch.setattr(os, "fsync", synced)
    open_shared(tmp_path, first).close()
    assert ledger_there == [False]
