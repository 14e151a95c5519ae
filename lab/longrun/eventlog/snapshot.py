"""A snapshot: what a reader knows right behind one record, so that the next one need not read all before it.

It holds the state of the grammar, the leaf, and where each record lies; no bodies. It is bound to the sum of its
record. It is derived, never the truth: one that is missing, damaged or of another log is passed over with a line in
the report, and the log is read whole. But it is written only of what was promised. So one of this session that knows
more than its log does is evidence: the log was put back to an earlier state, and that is damage.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longrun.eventlog.record import BadLine, sum_of
from longrun.eventlog.segments import publish, segment_path, snapshot_numbers, snapshot_path
from longrun.eventlog.shelf import Shelf
from longrun.messages import parse_strict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longrun.eventlog.grammar import Grammar
    from longrun.eventlog.log import EventLog

_VERSION = 1
_ROOT = -1
"""In the place of a parent: the first of a branch."""


class NoSnapshot(Exception):  # noqa: N818 - only the reader sees it
    """A snapshot that cannot be used. The text says why."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was known behind record ``seq``, whose sum is ``bound``. ``origin`` is the sum of the session's first."""

    seq: int
    bound: str
    origin: str
    grammar: Grammar
    records: Shelf
    sizes: list[int]


def write_snapshot(log: EventLog) -> Path | None:
    """Write what is known now, which is promised first. None while a turn is open, and where it is there already."""
    log.barrier()
    grammar, last = log.grammar, log.records[-1]
    path = snapshot_path(log.directory, last.seq)
    if grammar.open or path.exists():
        return None
    older = snapshot_numbers(log.directory)
    form = _form(grammar) | {"sum_of_seq": last.sum, "origin": log.records[0].sum}
    form |= {"places": _packed(log.records.places), "sizes": _sizes(log)}
    body = json.dumps(form, separators=(",", ":"), allow_nan=False)[:-1].encode()
    publish(path, b'%b,"sum":"%b"}' % (body, sum_of(body).encode()))
    for seq in older:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(snapshot_path(log.directory, seq))
    return path


def _form(grammar: Grammar) -> dict[str, Any]:
    surface = grammar.surface
    return {
        "v": _VERSION,
        "seq": grammar.seq - 1,
        "fence": grammar.fence,
        "session_id": grammar.session_id,
        "turn": grammar.turn,
        "header": grammar.header,
        "leaf": grammar.leaf,
        "used": sorted(grammar.used),
        "surface": list(surface),
        "parents": [_ROOT if parent is None else parent for parent, _ in surface.values()],
        "kinds": "".join(kind for _, kind in surface.values()),
    }


def _packed(places: list[tuple[int, int]]) -> dict[str, Any]:
    """The offsets, and from which record on each segment goes."""
    firsts: dict[int, int] = {}
    for seq, (segment, _) in enumerate(places):
        firsts.setdefault(segment, seq)
    return {"firsts": list(firsts.values()), "offsets": [offset for _, offset in places]}


def _sizes(log: EventLog) -> list[int]:
    """The sealed segments' sizes, and how far the last one goes."""
    sealed = [segment_path(log.directory, number).stat().st_size for number in range(log.segment)]
    return [*sealed, log.size]


def load_snapshot(directory: Path, seq: int, make: Callable[[], Grammar]) -> Snapshot:
    """What the snapshot of record ``seq`` says. Raises NoSnapshot where it cannot be read."""
    data = snapshot_path(directory, seq).read_bytes()
    body, mark, _ = data.rpartition(b',"sum":"')
    if not mark or data != b'%b,"sum":"%b"}' % (body, sum_of(body).encode()):
        text = "it does not fit its sum"
        raise NoSnapshot(text)
    form = parse_strict(body.decode() + "}")
    if form["v"] != _VERSION:
        text = f"it has version {form['v']}"
        raise NoSnapshot(text)
    shelf = Shelf(directory, _places(form["places"]))
    return Snapshot(form["seq"], form["sum_of_seq"], form["origin"], _grammar(form, make()), shelf, form["sizes"])


def _grammar(form: dict[str, Any], grammar: Grammar) -> Grammar:
    grammar.seq, grammar.fence, grammar.session_id = form["seq"] + 1, form["fence"], form["session_id"]
    grammar.turn, grammar.header, grammar.leaf = form["turn"], form["header"], form["leaf"]
    grammar.used = set(form["used"])
    parents = (None if parent == _ROOT else parent for parent in form["parents"])
    grammar.surface = dict(zip(form["surface"], zip(parents, form["kinds"], strict=True), strict=True))
    return grammar


def _places(form: dict[str, Any]) -> list[tuple[int, int]]:
    offsets, firsts = form["offsets"], form["firsts"]
    ends = [*firsts[1:], len(offsets)]
    found: list[tuple[int, int]] = []
    for segment, (first, end) in enumerate(zip(firsts, ends, strict=True)):
        found += [(segment, offset) for offset in offsets[first:end]]
    return found


def require_bound(directory: Path, snapshot: Snapshot) -> None:
    """Raise NoSnapshot unless the log holds the very record that the snapshot is bound to, behind sealed segments."""
    sizes = snapshot.sizes
    for number, size in enumerate(sizes):
        try:
            found = segment_path(directory, number).stat().st_size
        except FileNotFoundError as error:
            text = f"it knows of segment {number}, which is not there"
            raise NoSnapshot(text) from error
        if found < size or (number < len(sizes) - 1 and found != size):
            text = f"segment {number} has {found} bytes, it knows of {size}"
            raise NoSnapshot(text)
    try:
        last = snapshot.records.line(snapshot.seq)
    except BadLine as error:
        text = f"record {snapshot.seq} is not where it says"
        raise NoSnapshot(text) from error
    if (last.seq, last.sum) != (snapshot.seq, snapshot.bound):
        text = f"it is bound to {snapshot.bound}, record {snapshot.seq} of this log is {last.sum}"
        raise NoSnapshot(text)
