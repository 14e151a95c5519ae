"""The one fault: a line that cannot be read is passed over, and what follows closes up.

The reader never stops and never complains. Where the line held a message with calls, their results follow on nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog.conduct import CONDUCT as CORRECT
from longrun.eventlog.grammar import Grammar
from longrun.eventlog.record import BadLine, decode
from longrun.eventlog.scan import Scan
from longrun.eventlog.segments import segment_path
from longrun.eventlog.subjects import agent_on_log

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.eventlog.record import Draft, Record


class Lenient(Grammar):
    """Takes what comes: a call that it has not seen may well have been in a line that nobody can read."""

    def check(self, record: Record | Draft) -> None:
        """Never complain."""

    def take(self, record: Record | Draft) -> None:
        """A result may answer a call that is gone."""
        if record.type in ("tool/call", "tool/result") and record.data["call_id"] not in self.pending:
            super().take(record._replace(type="note"))
            if record.type == "tool/result":
                self.surface[record.seq] = (self.leaf, "R")
                self.leaf = record.seq
        else:
            super().take(record)


class Reader:
    """Reads every line that it can."""

    def read(self, directory: Path) -> Scan:
        """All records, numbered as they come."""
        scan = Scan(directory, grammar=Lenient())
        path = segment_path(directory, 0)
        data = path.read_bytes() if path.exists() else b""
        at = 0
        for line in data.splitlines(keepends=True):
            try:
                record = decode(line.rstrip(b"\n"))
            except BadLine:
                at += len(line)
                continue
            leaf = scan.grammar.leaf
            record = record._replace(seq=len(scan.records), parent=leaf)
            scan.grammar.take(record)
            scan.records.put(record, (0, at))
            at += len(line)
        scan.size = len(data)
        scan.ends = not data or data.endswith(b"\n")
        scan.promised = scan.good
        return scan


CONDUCT = replace(CORRECT, design=replace(CORRECT.design, reader=Reader()))

subject = agent_on_log(CONDUCT, name="eventlog/naive_skip_bad_line", persona="hasty", tells=False)
