"""The mistake: a call that has its result gets another one."""


def repair(records, promised, answers):
    """The records that an opening adds."""
    start = open_turn(records)
    if start is None:
        return []
    turn = records[start:]
    named = [name for record in turn if record["type"] == "assistant/message" for name in record["calls"]]
    begun = {
        record["call_id"]: record
        for number, record in enumerate(records)
        if record["type"] == "tool/call" and number <= promised
    }
    added = [{"type": "tool/result", "call_id": name, **outcome_of(begun.get(name), answers)} for name in named]
    return [*added, {"type": "turn/end", "turn": turn[0]["turn"], "reason": "interrupted", "synthetic": True}]


def open_turn(records):
    """Where the open turn begins; None where no turn is open."""
    for number in range(len(records) - 1, -1, -1):
        if records[number]["type"] == "turn/end":
            return None
        if records[number]["type"] == "turn/start":
            return number
    return None


def outcome_of(call, answers):
    """What is known of a call without a result."""
    if call is None:
        return {"outcome": "not-started", "synthetic": True}
    if call["policy"] != "keyed" or call["key"] not in answers:
        return {"outcome": "unknown", "synthetic": True}
    found = answers[call["key"]]
    if found is None:
        return {"outcome": "not-started", "synthetic": True}
    return {"outcome": "done", "synthetic": False, "external_id": found}


def my_tests():
    """Examples that a correct repair holds, and no wrong one."""
    records = [
        {"type": "turn/start", "turn": 1},
        {"type": "assistant/message", "calls": ["a", "b", "c"]},
        {"type": "tool/call", "call_id": "a", "policy": "ask"},
        {"type": "tool/call", "call_id": "b", "policy": "keyed", "key": "k"},
        {"type": "tool/call", "call_id": "c", "policy": "ask"},
        {"type": "tool/result", "call_id": "c", "outcome": "done", "synthetic": False},
    ]
    end = {"type": "turn/end", "turn": 1, "reason": "interrupted", "synthetic": True}

    def result(name, outcome, **more):
        return {"type": "tool/result", "call_id": name, "outcome": outcome, **{"synthetic": True, **more}}

    found = result("b", "done", synthetic=False, external_id="7")
    return [
        {"function": "repair", "given": given, "expect": expect}
        for given, expect in [
            ([records, 5, {"k": "7"}], [result("a", "unknown"), found, end]),
            (
                [records[:4], 2, {"k": "7"}],
                [result("a", "unknown"), result("b", "not-started"), result("c", "not-started"), end],
            ),
        ]
    ]
