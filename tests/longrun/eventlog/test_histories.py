"""Random histories with crashes: what was promised stays, a repair is a repair once, and views follow from the log.

A machine writes turns, notes, branches, segments and snapshots, and dies: with what the page cache held cut at any
byte, or with any blocks of 512 bytes gone that no sync had covered. It is opened, inspected and opened again.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from longrun.eventlog import project
from longrun.eventlog.events import Compaction, Note
from longrun.eventlog.opening import inspect
from longrun.eventlog.scan import Reader
from longrun.eventlog.snapshot import write_snapshot
from longrun.eventlog.tree import branch, targets
from longrun.messages import check_messages
from tests.longrun.eventlog.sessions import NAME, answer, begin, call, end, files, opened, result, segment

BLOCK = 512


class Histories(RuleBasedStateMachine):
    """One session over many processes."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="histories-"))
        self.calls = 0
        self.durable: dict[str, bytes] = {}
        self.kept: list[str] = []

    @initialize()
    def first(self) -> None:
        self.log = opened(self.root)
        self.promise()

    def teardown(self) -> None:
        self.log.abandon()
        shutil.rmtree(self.root)

    def promise(self) -> None:
        """All so far is promised; these bytes are on the disk, and these records may never go."""
        self.log.barrier()
        self.durable = files(self.root)
        self.kept = [record.sum for record in self.log.records]

    # --- what a process does -------------------------------------------------------------------------

    @precondition(lambda self: not self.log.grammar.pending)
    @rule(text=st.text(max_size=40), promised=st.booleans())
    def note(self, text: str, promised: bool) -> None:
        self.log.add(Note(note={"text": text * 20}))
        if promised:
            self.promise()

    @precondition(lambda self: not self.log.grammar.open)
    @rule()
    def start(self) -> None:
        begin(self.log)

    @precondition(lambda self: self.log.grammar.open and not self.log.grammar.pending)
    @rule(count=st.integers(0, 3))
    def ask(self, count: int) -> None:
        ids = [f"c{self.calls + at}" for at in range(count)]
        self.calls += count
        answer(self.log, *ids)

    @precondition(lambda self: any(each.called is None for each in self.log.grammar.pending.values()))
    @rule(promised=st.booleans())
    def begin_call(self, promised: bool) -> None:
        name = next(each.call_id for each in self.log.grammar.pending.values() if each.called is None)
        call(self.log, name, promise=False)
        if promised:
            self.promise()

    @precondition(lambda self: any(each.called for each in self.log.grammar.pending.values()))
    @rule()
    def finish_call(self) -> None:
        result(self.log, next(each.call_id for each in self.log.grammar.pending.values() if each.called))

    @precondition(lambda self: self.log.grammar.open and not self.log.grammar.pending)
    @rule()
    def finish(self) -> None:
        end(self.log)
        self.promise()

    @precondition(lambda self: not self.log.grammar.open)
    @rule(pick=st.integers(0, 99))
    def move(self, pick: int) -> None:
        places = [None, *targets(self.log.grammar)]
        branch(self.log, places[pick % len(places)])
        self.promise()

    @precondition(lambda self: not self.log.grammar.pending)
    @rule(first=st.integers(0, 99), last=st.integers(0, 99))
    def compact(self, first: int, last: int) -> None:
        path, kinds = self.log.grammar.path(self.log.grammar.leaf), self.log.grammar.surface
        heads = [seq for seq in path if kinds[seq][1] not in "rR"]
        if heads:
            head = heads[first % len(heads)]
            ends = [seq for seq in path if seq >= head and self.log.grammar.may_rest(seq)]
            if ends:
                tail = ends[last % len(ends)]
                self.log.add(Compaction(summary="so far", from_seq=head, to_seq=tail, tokens_before=1))

    @precondition(lambda self: not self.log.grammar.open)
    @rule(snapshot=st.booleans())
    def rotate(self, snapshot: bool) -> None:
        self.log.rotate(force=True)
        if snapshot:
            write_snapshot(self.log)
        self.promise()

    # --- how it ends ---------------------------------------------------------------------------------

    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """What the page cache held, the last write cut anywhere behind what was promised."""
        self.log.abandon()
        path = segment(self.root, self.log.segment)
        size, sure = path.stat().st_size, len(self.durable.get(path.name, b""))
        cut = data.draw(st.integers(min(sure, size), size), label="cut at")
        path.write_bytes(path.read_bytes()[:cut])
        self.reopen()

    @rule(data=st.data())
    def lose_power(self, data: st.DataObject) -> None:
        """Of what was written since the last promise any blocks are zeros."""
        self.log.abandon()
        path = segment(self.root, self.log.segment)
        found, sure = bytearray(path.read_bytes()), len(self.durable.get(path.name, b""))
        for block in range(sure // BLOCK, -(-len(found) // BLOCK)):
            if data.draw(st.booleans(), label=f"block {block} is lost"):
                begins, ends = max(sure, block * BLOCK), min(len(found), (block + 1) * BLOCK)
                found[begins:ends] = bytes(ends - begins)
        path.write_bytes(bytes(found))
        self.reopen()

    @rule()
    def close(self) -> None:
        self.log.close()
        self.reopen()

    def reopen(self) -> None:
        """Inspect, open, close, open: the first opening repairs, the second adds its writer and nothing else."""
        before = files(self.root)
        looked = inspect(self.root, NAME)
        assert files(self.root) == before
        with opened(self.root) as log:
            repaired = [record.sum for record in log.records]
            assert repaired[: len(self.kept)] == self.kept
            assert len(log.records) == len(looked.records) + 1 + len(looked.repairs)
        self.log = opened(self.root)
        again = list(self.log.records)
        assert [record.sum for record in again[:-1]] == repaired
        assert again[-1].type == "writer/start"
        self.promise()

    # --- what always holds ---------------------------------------------------------------------------

    @invariant()
    def numbers_have_no_gap_and_calls_one_outcome(self) -> None:
        """Of every call that is not open, just one."""
        records = list(self.log.records)
        assert [record.seq for record in records] == list(range(len(records)))
        results = [record.data["call_id"] for record in records if record.type == "tool/result"]
        assert len(results) == len(set(results))
        assert set(results) | set(self.log.grammar.pending) == self.log.grammar.used

    @invariant()
    def views_follow_from_the_log(self) -> None:
        """The same whoever reads it, with and without snapshots; each logged request can be made again."""
        written = views(self.log.records)
        for reader in (Reader().read, Reader().verify):
            assert views(reader(self.log.directory).records) == written
        for record in self.log.records:
            if record.type == "model/call":
                request = project.context(self.log.records, record.seq)
                assert project.request_sha256(request) == record.data["request_sha256"]

    @invariant()
    def the_transcript_is_valid(self) -> None:
        """Where no call is open, the server takes it."""
        found = project.messages(self.log.records)
        if found and not self.log.grammar.pending and found[0]["role"] == "user":
            check_messages(found, may_end_with_assistant=True)


def views(records: Any) -> tuple[Any, ...]:
    return (project.messages(records), project.ui(records), project.effects(records), project.leaf_at(records))


Histories.TestCase.settings = settings(Histories.TestCase.settings, stateful_step_count=25)
TestHistories = Histories.TestCase
