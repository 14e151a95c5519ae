"""Projections that know nothing of batches, summaries and acts: exercise 7.3."""

SAID = ("user/message", "assistant/message", "tool/result", "compaction")


def way_of(records):
    """What was said on the way to the head, first to last."""
    seq = None
    for record in records:
        if record["type"] in SAID:
            seq = record["seq"]
        elif record["type"] == "branch/move":
            seq = record["to"]
    way = []
    while seq is not None:
        way.append(records[seq])
        seq = records[seq]["parent"]
    return way[::-1]


def messages(records):
    """What the model is sent."""
    # TODO: results of one answer belong into one message, in the order of the calls. And what was summed up?
    found = []
    for record in way_of(records):
        text = {"type": "text", "text": record.get("text")}
        if record["type"] == "assistant/message":
            calls = [{"type": "tool_use", **call} for call in record["calls"]]
            found.append({"role": "assistant", "content": [text, *calls]})
        elif record["type"] == "user/message":
            found.append({"role": "user", "content": [text]})
    return found


def rows(records):
    """What a person sees."""
    # TODO: what was left, and what was summed up, is to be seen and marked.
    return [[record["seq"], record["type"], []] for record in way_of(records)]


def effects(records):
    """What was done."""
    # TODO: nothing yet.
    return []


def my_tests():
    """Examples that correct projections hold, and no wrong ones."""
    # TODO: an empty log tells nothing.
    return [{"function": name, "given": [[]], "expect": []} for name in ("messages", "rows", "effects")]
