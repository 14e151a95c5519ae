"""Branches that a restart forgets: exercise 7.6."""

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
    # TODO: and if somebody went back?
    said = [record["seq"] for record in records if record["type"] in SAID]
    return said[-1] if said else None


def targets(records):
    """The records behind which one may go on."""
    # TODO: not amid a batch of calls.
    return [record["seq"] for record in records if record["type"] in SAID]


def fork(records, to, session):
    """The records that a new session begins with."""
    # TODO: what was done, and new numbers.
    start = {"seq": 0, "type": "session/start", "parent": {"session": session, "seq": to}, "known": {}}
    return [start, *way_to(records, to)]


def my_tests():
    """Examples that correct functions hold, and no wrong ones."""
    # TODO: an empty log tells nothing.
    return [{"function": "head", "given": [[]], "expect": None}, {"function": "targets", "given": [[]], "expect": []}]
