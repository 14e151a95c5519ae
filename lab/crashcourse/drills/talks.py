"""The records of a conversation that goes back once, sums up its beginning and goes on: what a2 and a8 are tried on."""

from __future__ import annotations

import random
from typing import Any

Form = dict[str, Any]
SURFACE = ("user/message", "assistant/message", "tool/result", "compaction")


class Talk:
    """Adds records, each with the next number; a surface record follows the head."""

    def __init__(self) -> None:
        self.records: list[Form] = []
        self.head: int | None = None
        self._calls = 0

    def add(self, kind: str, **data: Any) -> int:
        """A record of that type."""
        seq = len(self.records)
        parent = {"parent": self.head} if kind in SURFACE else {}
        self.records.append({"seq": seq, "type": kind, **parent, **data})
        if kind in SURFACE:
            self.head = seq
        elif kind == "branch/move":
            self.head = data["to"]
        return seq

    def step(self, chance: random.Random, calls: int) -> int:
        """An answer with so many calls, all begun at once, results in any order; the last record's number."""
        word = chance.randrange(100)
        made = [self._named(chance) for _ in range(calls)]
        last = self.add("assistant/message", text=f"answer {word}", calls=made)
        for call in made:
            key = {} if call["name"] == "look" else {"key": f"{call['name']}/{call['id']}"}
            self.add("tool/call", call_id=call["id"], name=call["name"], **key)
        for call in chance.sample(made, calls):
            outcome = chance.choice(("done", "done", "unknown"))
            text = f"{outcome} {chance.randrange(100)}"
            last = self.add(
                "tool/result", call_id=call["id"], text=text, outcome=outcome, synthetic=outcome == "unknown"
            )
        return last

    def _named(self, chance: random.Random) -> Form:
        self._calls += 1
        return {"id": f"c{self._calls}", "name": chance.choice(("look", "send", "page"))}


def talk(seed: int, *, early: bool) -> list[Form]:
    """One conversation. ``early``: it goes back to behind the first results, else to the answer after them."""
    chance = random.Random(seed)  # noqa: S311 - the same twin for the same seed
    one = Talk()
    first = one.add("user/message", text=f"question {chance.randrange(100)}")
    results = one.step(chance, 3)
    answer = one.step(chance, 0)
    one.add("user/message", text="and more")
    one.step(chance, 2)
    one.step(chance, 0)
    to = results if early else answer
    one.add("branch/move", to=to)
    one.add("user/message", text=f"or {chance.randrange(100)}")
    one.step(chance, 1)
    one.step(chance, 0)
    one.add("compaction", summary="they have talked", **{"from": first, "until": to})
    one.add("user/message", text="go on")
    one.step(chance, 2)
    one.step(chance, 0)
    return one.records


def head(records: list[Form]) -> int | None:
    """The surface record that the next one follows."""
    for record in reversed(records):
        if record["type"] in SURFACE:
            return int(record["seq"])
        if record["type"] == "branch/move":
            to: int | None = record["to"]
            return to
    return None


def path(records: list[Form], last: int | None) -> list[Form]:
    """The surface records from the first to ``last``. Raises ValueError where a parent is no earlier record."""
    found: list[Form] = []
    while last is not None:
        if records[last]["seq"] != last or (found and last >= found[-1]["seq"]):
            text = "a record's number is its place, and its parent an earlier one"
            raise ValueError(text)
        found.append(records[last])
        last = records[last]["parent"]
    return found[::-1]
