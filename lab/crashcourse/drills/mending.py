"""Drill repair-as-fact: the records that an opening adds to a log whose turn was cut off.

A session of two turns is cut off behind each record; all of it was promised, or less; the world answers, or does not;
and the repair itself is cut off after each record that it adds. The outcomes are those of lesson 7.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from crashcourse.drills.drill import Drill, State, called

if TYPE_CHECKING:
    from collections.abc import Iterator

Form = dict[str, Any]
DONE, NOT_STARTED, UNKNOWN = "done", "not-started", "unknown"
POLICIES = ("read", "keyed", "keyed", "keyed", "ask")
_FIRST_TURN = 5


def session(seed: int) -> tuple[list[Form], Form]:
    """The records of two turns, and what the world answers: of three keys it has one, has one not, and cannot tell."""
    chance = random.Random(seed)  # noqa: S311 - the same twin for the same seed
    names = [f"call-{number}" for number in chance.sample(range(100), len(POLICIES) + 1)]
    policies = chance.sample(POLICIES, len(POLICIES))
    kept = chance.sample([f"case-{chance.randrange(100)}", None, ""], 3)
    records: list[Form] = [
        {"type": "turn/start", "turn": 1},
        {"type": "assistant/message", "calls": [names[0]]},
        _call(names[0], "keyed"),
        _result(names[0], DONE, synthetic=False),
        {"type": "turn/end", "turn": 1, "reason": "completed", "synthetic": False},
        {"type": "turn/start", "turn": 2},
        {"type": "assistant/message", "calls": names[1:]},
    ]
    calls = [_call(name, policy) for name, policy in zip(names[1:], policies, strict=True)]
    keyed = [call["key"] for call in calls if "key" in call]
    answers = {key: answer for key, answer in zip(keyed, kept, strict=True) if answer != ""}
    results = [_result(name, DONE, synthetic=False) for name in chance.sample(names[1:], len(POLICIES))]
    end = {"type": "turn/end", "turn": 2, "reason": "completed", "synthetic": False}
    return [*records, *calls, *results, end], answers


def _call(name: str, policy: str) -> Form:
    form = {"type": "tool/call", "call_id": name, "policy": policy}
    return {**form, "key": f"key-of-{name}"} if policy == "keyed" else form


def _result(name: str, outcome: str, *, synthetic: bool) -> Form:
    return {"type": "tool/result", "call_id": name, "outcome": outcome, "synthetic": synthetic}


def states(seed: int) -> dict[str, Iterator[State]]:
    """All states, by their case."""
    records, answers = session(seed)
    return {"kill": _kills(records, answers), "power": _powers(records, answers), "nested": _nested(records, answers)}


def _kills(records: list[Form], answers: Form) -> Iterator[State]:
    for size in range(1, len(records) + 1):
        for world, name in ((answers, ""), ({}, "-silent")):
            yield called(f"kill@{size}{name}", "repair", records[:size], size - 1, world)


def _powers(records: list[Form], answers: Form) -> Iterator[State]:
    """Records that were written and not promised can still be read where the power has not taken them."""
    for size in range(_FIRST_TURN + 1, len(records)):
        for promised in range(_FIRST_TURN, size - 1):
            yield called(f"power@{size}-{promised}", "repair", records[:size], promised, answers)


def _nested(records: list[Form], answers: Form) -> Iterator[State]:
    for size in range(_FIRST_TURN + 1, len(records)):
        added = repair(records[:size], size - 1, answers)
        for kept in range(1, len(added) + 1):
            yield called(f"kill@{size}/kill@{kept}", "repair", records[:size] + added[:kept], size - 1, answers)


# --- what is right, and what is not ---------------------------------------------------------------


def _open_turn(records: list[Form]) -> list[Form]:
    """The records of the open turn; none where no turn is open."""
    for number in range(len(records) - 1, -1, -1):
        if records[number]["type"] == "turn/end":
            return []
        if records[number]["type"] == "turn/start":
            return records[number:]
    return []


def _begun(records: list[Form]) -> dict[str, tuple[int, Form]]:
    return {each["call_id"]: (at, each) for at, each in enumerate(records) if each["type"] == "tool/call"}


def _outcome(call: tuple[int, Form] | None, promised: int, answers: Form) -> Form:
    if call is None or call[0] > promised:
        return {"outcome": NOT_STARTED, "synthetic": True}
    key = call[1].get("key")
    if call[1]["policy"] != "keyed" or key not in answers:
        return {"outcome": UNKNOWN, "synthetic": True}
    if answers[key] is None:
        return {"outcome": NOT_STARTED, "synthetic": True}
    return {"outcome": DONE, "synthetic": False, "external_id": answers[key]}


def repair(records: list[Form], promised: int, answers: Form) -> list[Form]:
    """The records that are to be added."""
    turn = _open_turn(records)
    if not turn:
        return []
    answered = {each["call_id"] for each in turn if each["type"] == "tool/result"}
    named = [name for each in turn for name in each.get("calls", ())]
    begun = _begun(records)
    results = [
        {"type": "tool/result", "call_id": name, **_outcome(begun.get(name), promised, answers)}
        for name in named
        if name not in answered
    ]
    return [*results, {"type": "turn/end", "turn": turn[0]["turn"], "reason": "interrupted", "synthetic": True}]


def all_not_started(records: list[Form], _promised: int, _answers: Form) -> list[Form]:
    """One outcome for all."""
    return repair(records, -1, {})


def drop_turn(records: list[Form], promised: int, answers: Form) -> list[Form]:
    """No result for any call."""
    return repair(records, promised, answers)[-1:]


def rerun_unknown(records: list[Form], promised: int, answers: Form) -> list[Form]:
    """What nobody can tell is done again."""
    added = repair(records, promised, answers)
    return [{**each, "outcome": NOT_STARTED} if each.get("outcome") == UNKNOWN else each for each in added]


def second_outcome(records: list[Form], promised: int, answers: Form) -> list[Form]:
    """A result for each call of the turn, also where there is one."""
    first = len(records) - len(_open_turn(records))
    kept = [
        each if at < first or each["type"] != "tool/result" else {"type": "note"} for at, each in enumerate(records)
    ]
    return repair(kept, promised, answers)


def all_was_promised(records: list[Form], _promised: int, answers: Form) -> list[Form]:
    """Whatever can be read counts as promised."""
    return repair(records, len(records), answers)


DRILL = Drill(
    functions={"repair": repair},
    states=states,
    naive={
        "naive_all_not_started": {"repair": all_not_started},
        "naive_drop_turn": {"repair": drop_turn},
        "naive_rerun_unknown": {"repair": rerun_unknown},
        "naive_second_outcome": {"repair": second_outcome},
        "naive_all_was_promised": {"repair": all_was_promised},
    },
)
