"""What the log says to whom: messages for the model, rows for a person, acts for whoever may repeat one.

Pure functions of the records, which are indexed by their seq. Nothing here is stored: a projection that is lost is
made again. What the model sees are the surface records from the first to the leaf, by their parents, with each
compacted stretch replaced by its summary. What was done outside counts on all branches: to branch undoes nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from longrun.eventlog.events import EVENTS, SURFACE
from longrun.messages import canonical, sendable, tool_uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longrun.eventlog.record import Record
    from longrun.messages import Block, Message

SUMMARY_HEADING = "Summary of what came before:"


def leaf_at(records: Sequence[Record], at: int | None = None) -> int | None:
    """The surface record that the next one would follow, as things stood right after record ``at``."""
    for seq in range(len(records) - 1 if at is None else at, -1, -1):
        record = records[seq]
        if record.type in SURFACE:
            return seq
        if record.type == "branch/move":
            target: int | None = record.data["to_seq"]
            return target
    return None


def path_to(records: Sequence[Record], leaf: int | None) -> list[Record]:
    """The surface records of one branch, first to last."""
    found = []
    while leaf is not None:
        found.append(records[leaf])
        leaf = records[leaf].parent
    return found[::-1]


class Shown(NamedTuple):
    """One piece of a branch: a record, and the numbers of all that went into it, its own among them."""

    record: Record
    within: frozenset[int]


def compacted(path: Iterable[Record]) -> list[Shown]:
    """The pieces of a branch, summaries in the place of what they sum up."""
    pieces: list[Shown] = []
    for record in path:
        if record.type != "compaction":
            pieces.append(Shown(record, frozenset({record.seq})))
            continue
        ends = [_piece_with(pieces, record.data[name]) for name in ("from_seq", "to_seq")]
        first, last = min(ends), max(ends)
        within = frozenset({record.seq}).union(*(each.within for each in pieces[first : last + 1]))
        pieces[first : last + 1] = [Shown(record, within)]
    return pieces


def _piece_with(pieces: Sequence[Shown], seq: int) -> int:
    """Where that record is now: a summary may name another one that has gone into a third."""
    return next(at for at, each in enumerate(pieces) if seq in each.within)


_LATEST = object()


def messages(records: Sequence[Record], leaf: Any = _LATEST) -> list[Message]:
    """The messages of a branch as the Messages API takes them; of the latest branch unless a leaf is named.

    The results of one assistant message form one user message, in the order of the calls, before any text.
    """
    found: list[Message] = []
    results: dict[str, Block] = {}
    texts: list[Block] = []

    def told() -> None:
        """All that was said to the model since it spoke."""
        order = [call["id"] for call in tool_uses(found[-1])] if found else []
        content = [results[call_id] for call_id in order if call_id in results] + texts
        content += [block for call_id, block in results.items() if call_id not in order]
        if content:
            found.append({"role": "user", "content": _plain(content)})
        results.clear()
        texts.clear()

    for record, _ in compacted(path_to(records, leaf_at(records) if leaf is _LATEST else leaf)):
        data = record.data
        match record.type:
            case "user/message":
                texts += _text_blocks(data["content"])
            case "compaction":
                texts.append({"type": "text", "text": f"{SUMMARY_HEADING}\n{data['summary']}"})
            case "tool/result":
                results[data["call_id"]] = result_block(data)
            case _:
                told()
                found.append({"role": "assistant", "content": sendable(data["content"])})
    told()
    return found


def _text_blocks(content: str | list[Block]) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _plain(content: list[Block]) -> str | list[Block]:
    """One text alone is sent as a string, as a person would write it."""
    if len(content) == 1 and content[0].keys() == {"type", "text"}:
        text: str = content[0]["text"]
        return text
    return list(content)


def result_block(data: dict[str, Any]) -> Block:
    """A ``tool/result`` as the model gets it."""
    block: Block = {"type": "tool_result", "tool_use_id": data["call_id"], "content": data["content"]}
    return {**block, "is_error": True} if data["is_error"] else block


# --- the request -----------------------------------------------------------------------------------


def header_at(records: Sequence[Record], at: int | None = None) -> Record | None:
    """The newest ``request/header`` up to record ``at``."""
    seqs = range(len(records) - 1 if at is None else at, -1, -1)
    return next((records[seq] for seq in seqs if records[seq].type == "request/header"), None)


def context(records: Sequence[Record], at: int | None = None) -> dict[str, Any]:
    """The request that goes to the model as things stood at record ``at``: newest header, and messages.

    Raises LookupError where no header came before.
    """
    header = header_at(records, at)
    if header is None:
        text = f"no request/header up to record {at}: there is no request yet"
        raise LookupError(text)
    data = header.data
    request = {"model": data["model"], "system": data["system"], "tools": data["tools"], **data["params"]}
    return {**request, "messages": messages(records, leaf_at(records, at))}


def request_sha256(request: dict[str, Any]) -> str:
    """By which a ``model/call`` names its request."""
    return hashlib.sha256(canonical(request).encode()).hexdigest()


# --- what was done ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Act:
    """One call whose body ran, or may have run. ``outcome`` is None while it has no result."""

    seq: int
    call_id: str
    name: str
    input: dict[str, Any]
    policy: str
    key: str | None
    outcome: str | None = None
    content: str = ""
    external_id: str | None = None


def scope(records: Sequence[Record]) -> str:
    """The session whose name the keys of acts bear: this one, or the one that it was forked from at first."""
    start = records[0].data
    named: str = (start.get("parent") or {}).get("scope") or start["session_id"]
    return named


def effects(records: Iterable[Record]) -> list[Act]:
    """All calls that were begun, on all branches, oldest first, with what became of each.

    A fork begins with the keyed acts of the session that it was forked from.
    """
    acts: dict[str, Act] = {}
    for record in records:
        if record.type == "session/start":
            for at, told in enumerate((record.data.get("parent") or {}).get("acts", ())):
                acts[f"inherited {at}"] = Act(record.seq, f"inherited {at}", **told)
        data = record.data
        if record.type == "tool/call":
            key = data.get("key")
            acts[data["call_id"]] = Act(record.seq, data["call_id"], data["name"], data["input"], data["policy"], key)
        elif record.type == "tool/result" and data["call_id"] in acts:
            act = acts[data["call_id"]]
            text = data["content"] if isinstance(data["content"], str) else canonical(data["content"])
            acts[act.call_id] = Act(
                act.seq,
                act.call_id,
                act.name,
                act.input,
                act.policy,
                act.key,
                data["outcome"],
                text,
                data.get("external_id"),
            )
    return list(acts.values())


# --- what a person sees ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One record for a person. ``marks`` are of ``abandoned``, ``compacted``, ``synthetic``."""

    seq: int
    type: str
    text: str
    marks: tuple[str, ...] = ()


def ui(records: Sequence[Record]) -> list[Row]:
    """Every fact in its order, those too that the model no longer sees."""
    path = path_to(records, leaf_at(records))
    own = {record.seq for record in path}
    shown = {record.seq for record, _ in compacted(path)}
    rows = []
    for record in records:
        marks = []
        if record.type in SURFACE and record.seq not in own:
            marks.append("abandoned")
        if record.seq in own and record.seq not in shown:
            marks.append("compacted")
        if record.type in EVENTS and record.data.get("synthetic") is True:
            marks.append("synthetic")
        rows.append(Row(record.seq, record.type, _row_text(record), tuple(marks)))
    return rows


_SAYS = ("content", "summary", "text", "name", "reason", "label", "model", "decision", "kind", "turn", "segment")


def _row_text(record: Record) -> str:
    """The most telling field of a record. The data of a type that this program does not know may be any JSON."""
    for name in _SAYS if record.type in EVENTS else ():
        if name in record.data:
            value = record.data[name]
            return value if isinstance(value, str) else canonical(value)
    return canonical(record.data)
