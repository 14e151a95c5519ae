"""A repair that closes the turn and says nothing of its calls: exercise 7.5."""


def repair(records, promised, answers):
    """The records that an opening adds."""
    for record in reversed(records):
        if record["type"] == "turn/end":
            return []
        if record["type"] == "turn/start":
            # TODO: each call that has no result gets one.
            return [{"type": "turn/end", "turn": record["turn"], "reason": "interrupted", "synthetic": True}]
    return []


def my_tests():
    """Examples that a correct repair holds, and no wrong one."""
    records = [{"type": "turn/start", "turn": 1}]
    end = {"type": "turn/end", "turn": 1, "reason": "interrupted", "synthetic": True}
    # TODO: a turn without calls tells nothing.
    return [{"function": "repair", "given": [records, 0, {}], "expect": [end]}]
