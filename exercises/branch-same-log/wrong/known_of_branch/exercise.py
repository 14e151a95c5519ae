"""The mistake: a fork that knows of the acts on its own way alone."""

SAID = ("user/message", "assistant/message", "tool/result", "compaction")


def way_to(records, seq):
    """What was said on the way to that record, first to last; nothing for None."""
    way = []
    while seq is not None:
        way.append(records[seq])
        seq = records[seq]["parent"]
    return way[::-1]


def head(records):
    """The record that the next thing said will follow."""
    for record in reversed(records):
        if record["type"] in SAID:
            return record["seq"]
        if record["type"] == "branch/move":
            return record["to"]
    return None


def complete(records, seq):
    """Whether each call on the way to that record has its result there."""
    way = way_to(records, seq)
    named = {call["id"] for record in way for call in record.get("calls", ())}
    return named <= {record["call_id"] for record in way if record["type"] == "tool/result"}


def targets(records):
    """The records behind which one may go on."""
    if not complete(records, head(records)):
        return []
    said = [record["seq"] for record in records if record["type"] in SAID]
    return [seq for seq in said if complete(records, seq)]


def known_acts(records):
    """What became of each act with a key."""
    outcomes = {record["call_id"]: record["outcome"] for record in records if record["type"] == "tool/result"}
    acts = [record for record in records if record["type"] == "tool/call" and "key" in record]
    return {act["key"]: outcomes.get(act["call_id"], "unknown") for act in acts}


def fork(records, to, session):
    """The records that a new session begins with."""
    way = way_to(records, to)
    new = {record["seq"]: number for number, record in enumerate(way, 1)}
    own = {call["id"] for record in way for call in record.get("calls", ())}
    known = known_acts([record for record in records if record.get("call_id") in own])
    found = [{"seq": 0, "type": "session/start", "parent": {"session": session, "seq": to}, "known": known}]
    for record in way:
        copy = {**record, "seq": new[record["seq"]], "parent": new.get(record["parent"])}
        for name in ("from", "until"):
            if name in copy:
                copy[name] = new[copy[name]]
        found.append(copy)
    return found


def log():
    """A question, two ways to answer it: one with two acts, and one with none."""
    calls = [{"id": "a", "name": "send"}, {"id": "b", "name": "send"}]
    forms = [
        {"type": "user/message", "parent": None, "text": "do"},
        {"type": "assistant/message", "parent": 0, "text": "both", "calls": calls},
        {"type": "tool/call", "call_id": "a", "name": "send", "key": "send/a"},
        {"type": "tool/call", "call_id": "b", "name": "send", "key": "send/b"},
        {"type": "tool/result", "parent": 1, "call_id": "b", "text": "B", "outcome": "done", "synthetic": False},
        {"type": "tool/result", "parent": 4, "call_id": "a", "text": "A", "outcome": "done", "synthetic": False},
        {"type": "branch/move", "to": 0},
    ]
    return [{"seq": seq, **form} for seq, form in enumerate(forms)]


def my_tests():
    """Examples that correct functions hold, and no wrong ones."""
    every = log()
    known = {"send/a": "done", "send/b": "done"}
    start = {"seq": 0, "type": "session/start", "parent": {"session": "s", "seq": 0}, "known": known}
    first = {"seq": 1, "type": "user/message", "parent": None, "text": "do"}
    return [
        {"function": "head", "given": [every], "expect": 0},
        {"function": "targets", "given": [every], "expect": [0, 5]},
        {"function": "targets", "given": [every[:5]], "expect": []},
        {"function": "fork", "given": [every, 0, "s"], "expect": [start, first]},
    ]
