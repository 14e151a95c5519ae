"""Drill projections: three projections of one log, asked behind each record of a conversation."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from crashcourse.drills.drill import Drill, State, called
from crashcourse.drills.talks import SURFACE, Form, head, path, talk

if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTIONS = ("messages", "rows", "effects")


def states(seed: int) -> dict[str, Iterator[State]]:
    """All states: each function behind each record of two conversations."""
    talks = {"late": talk(seed, early=False), "early": talk(seed + 1, early=True)}
    return {name: _behind_each(talks, name) for name in FUNCTIONS}


def _behind_each(talks: dict[str, list[Form]], name: str) -> Iterator[State]:
    for which, records in talks.items():
        for size in range(len(records) + 1):
            yield called(f"{name}@{which}{size}", name, records[:size])


# --- what is right --------------------------------------------------------------------------------


def compacted(way: list[Form]) -> list[Form]:
    """The way, with each summary in the place of what it sums up."""
    found: list[Form] = []
    for record in way:
        if record["type"] != "compaction":
            found.append(record)
            continue
        seqs = [each["seq"] for each in found]
        found[seqs.index(record["from"]) : seqs.index(record["until"]) + 1] = [record]
    return found


def messages(records: list[Form]) -> list[Form]:
    """What the model is sent."""
    return sent(compacted(path(records, head(records))))


def sent(pieces: list[Form], *, in_order: bool = True) -> list[Form]:
    """These pieces as messages."""
    found: list[Form] = []
    for piece in pieces:
        if piece["type"] == "assistant/message":
            calls = [{"type": "tool_use", **call} for call in piece["calls"]]
            found.append({"role": "assistant", "content": [_said(piece["text"]), *calls]})
            continue
        if not found or found[-1]["role"] != "user":
            found.append({"role": "user", "content": []})
        found[-1]["content"].append(_block(piece))
    if in_order:
        for before, message in pairwise(found):
            if message["role"] == "user":
                message["content"].sort(key=_place([block.get("id") for block in before["content"]]))
    return found


def _said(text: Any) -> Form:
    return {"type": "text", "text": text}


def _block(piece: Form) -> Form:
    if piece["type"] == "tool/result":
        return {"type": "tool_result", "id": piece["call_id"], "text": piece["text"]}
    return _said(piece["summary" if piece["type"] == "compaction" else "text"])


def _place(calls: list[Any]) -> Any:
    """In which order the blocks of a user stand: results as their calls do, then the rest as it came."""
    return lambda block: calls.index(block["id"]) if block["type"] == "tool_result" else len(calls)


def rows(records: list[Form]) -> list[list[Any]]:
    """What a person sees."""
    way = path(records, head(records))
    own, left = {each["seq"] for each in way}, {each["seq"] for each in compacted(way)}
    found: list[list[Any]] = []
    for record in records:
        marks = []
        if record["type"] in SURFACE and record["seq"] not in own:
            marks.append("abandoned")
        if record["seq"] in own - left:
            marks.append("compacted")
        if record.get("synthetic"):
            marks.append("synthetic")
        found.append([record["seq"], record["type"], marks])
    return found


def effects(records: list[Form]) -> list[list[Any]]:
    """What was begun, and what became of it."""
    outcomes = {each["call_id"]: each["outcome"] for each in records if each["type"] == "tool/result"}
    return [
        [each["call_id"], each["name"], outcomes.get(each["call_id"])]
        for each in records
        if each["type"] == "tool/call"
    ]


# --- and what is not ------------------------------------------------------------------------------


def arrival_order(records: list[Form]) -> list[Form]:
    """Results as they came in."""
    return sent(compacted(path(records, head(records))), in_order=False)


def no_summary(records: list[Form]) -> list[Form]:
    """What was summed up is sent all the same, and the summary where it was made."""
    return sent(path(records, head(records)))


def last_record_leads(records: list[Form]) -> list[Form]:
    """A move is forgotten: the head is the last surface record."""
    return messages(
        [each if each["type"] != "branch/move" else {"seq": at, "type": "note"} for at, each in enumerate(records)]
    )


def rows_of_branch(records: list[Form]) -> list[list[Any]]:
    """What was left is not shown."""
    return [row for row in rows(records) if "abandoned" not in row[2]]


def effects_of_branch(records: list[Form]) -> list[list[Any]]:
    """To go back undoes an effect, it is held."""
    own = {call["id"] for each in path(records, head(records)) for call in each.get("calls", ())}
    return [row for row in effects(records) if row[0] in own]


DRILL = Drill(
    functions={"messages": messages, "rows": rows, "effects": effects},
    states=states,
    naive={
        "naive_arrival_order": {"messages": arrival_order},
        "naive_no_summary": {"messages": no_summary},
        "naive_last_record_leads": {"messages": last_record_leads},
        "naive_rows_of_branch": {"rows": rows_of_branch},
        "naive_effects_of_branch": {"effects": effects_of_branch},
    },
)
