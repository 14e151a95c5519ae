"""Drill branch-same-log: where a conversation stands, where it may go back to, and what a fork of it takes along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashcourse.drills import talks
from crashcourse.drills.drill import Drill, State, called
from crashcourse.drills.talks import SURFACE, Form, path, talk

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION = "s-1"


def states(seed: int) -> dict[str, Iterator[State]]:
    """All states: killed behind each record, of two conversations."""
    every = {"late": talk(seed, early=False), "early": talk(seed + 1, early=True)}
    return {"head": _behind_each(every, "head"), "targets": _behind_each(every, "targets"), "fork": _forks(every)}


def _behind_each(every: dict[str, list[Form]], name: str) -> Iterator[State]:
    for which, records in every.items():
        for size in range(len(records) + 1):
            yield called(f"{name}@{which}{size}", name, records[:size])


def _forks(every: dict[str, list[Form]]) -> Iterator[State]:
    for which, records in every.items():
        for size in range(1, len(records) + 1, 3):
            for to in targets(records[:size]):
                yield called(f"fork@{which}{size}-{to}", "fork", records[:size], to, SESSION)


# --- what is right --------------------------------------------------------------------------------


def head(records: list[Form]) -> int | None:
    """Behind which record the next one goes."""
    return talks.head(records)


def _open(records: list[Form], last: int | None) -> bool:
    """Whether a call on the way to that record has no result there."""
    way = path(records, last)
    named = [call["id"] for each in way for call in each.get("calls", ())]
    answered = {each["call_id"] for each in way if each["type"] == "tool/result"}
    return any(name not in answered for name in named)


def targets(records: list[Form]) -> list[int]:
    """All records behind which one may go on; none while a call is open."""
    if _open(records, head(records)):
        return []
    return [each["seq"] for each in records if each["type"] in SURFACE and not _open(records, each["seq"])]


def _known(records: list[Form]) -> Form:
    """What became of each act that has a key, on all branches."""
    outcomes = {each["call_id"]: each["outcome"] for each in records if each["type"] == "tool/result"}
    begun = [each for each in records if each["type"] == "tool/call" and "key" in each]
    return {each["key"]: outcomes.get(each["call_id"], "unknown") for each in begun}


def fork(records: list[Form], to: int, session: str) -> list[Form]:
    """The records that a new session begins with."""
    start = {"seq": 0, "type": "session/start", "parent": {"session": session, "seq": to}, "known": _known(records)}
    return [start, *_copied(path(records, to))]


def _copied(way: list[Form]) -> list[Form]:
    number = {each["seq"]: at for at, each in enumerate(way, 1)}
    found = []
    for each in way:
        copy = {**each, "seq": number[each["seq"]], "parent": number.get(each["parent"])}
        for name in ("from", "until"):
            if name in copy:
                copy[name] = number[copy[name]]
        found.append(copy)
    return found


# --- and what is not ------------------------------------------------------------------------------


def _without_moves(records: list[Form]) -> list[Form]:
    return [each if each["type"] != "branch/move" else {"seq": each["seq"], "type": "note"} for each in records]


def leaf_in_memory(records: list[Form]) -> int | None:
    """Knows nothing of a move after a restart."""
    return head(_without_moves(records))


def any_target(records: list[Form]) -> list[int]:
    """In the middle of a batch, too."""
    return [each["seq"] for each in records if each["type"] in SURFACE]


def own_branch_alone(records: list[Form]) -> list[int]:
    """What was left cannot be gone back to."""
    own = {each["seq"] for each in path(records, head(records))}
    return [seq for seq in targets(records) if seq in own]


def blank_fork(records: list[Form], to: int, session: str) -> list[Form]:
    """A fork that knows of no act."""
    start, *rest = fork(records, to, session)
    return [{**start, "known": {}}, *rest]


def known_of_branch(records: list[Form], to: int, session: str) -> list[Form]:
    """A fork that knows of the acts on its own way alone."""
    start, *rest = fork(records, to, session)
    own = {call["id"] for each in rest for call in each.get("calls", ())}
    begun = [each for each in records if each["type"] != "tool/call" or each["call_id"] in own]
    return [{**start, "known": _known(begun)}, *rest]


NAIVE: dict[str, dict[str, Any]] = {
    "naive_leaf_in_memory": {"head": leaf_in_memory},
    "naive_any_target": {"targets": any_target},
    "naive_own_branch_alone": {"targets": own_branch_alone},
    "naive_blank_fork": {"fork": blank_fork},
    "naive_known_of_branch": {"fork": known_of_branch},
}
DRILL = Drill(functions={"head": head, "targets": targets, "fork": fork}, states=states, naive=NAIVE)
