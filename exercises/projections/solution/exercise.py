"""Three functions of one log."""

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


def pieces_of(way):
    """The way, with each summary in the place of what it sums up."""
    pieces = []
    for record in way:
        if record["type"] == "compaction":
            seqs = [piece["seq"] for piece in pieces]
            pieces[seqs.index(record["from"]) : seqs.index(record["until"]) + 1] = [record]
        else:
            pieces.append(record)
    return pieces


def messages(records):
    """What the model is sent."""
    found, results, texts, calls = [], {}, [], []

    def told():
        content = [results[name] for name in calls if name in results] + texts
        if content:
            found.append({"role": "user", "content": content})

    for piece in pieces_of(way_of(records)):
        if piece["type"] == "assistant/message":
            told()
            results, texts, calls = {}, [], [call["id"] for call in piece["calls"]]
            uses = [{"type": "tool_use", **call} for call in piece["calls"]]
            found.append({"role": "assistant", "content": [{"type": "text", "text": piece["text"]}, *uses]})
        elif piece["type"] == "tool/result":
            results[piece["call_id"]] = {"type": "tool_result", "id": piece["call_id"], "text": piece["text"]}
        else:
            texts.append({"type": "text", "text": piece["summary" if piece["type"] == "compaction" else "text"]})
    told()
    return found


def rows(records):
    """What a person sees."""
    way = way_of(records)
    own, shown = {record["seq"] for record in way}, {piece["seq"] for piece in pieces_of(way)}
    found = []
    for record in records:
        said, on_way = record["type"] in SAID, record["seq"] in own
        marks = {
            "abandoned": said and not on_way,
            "compacted": on_way and record["seq"] not in shown,
            "synthetic": record.get("synthetic"),
        }
        found.append([record["seq"], record["type"], [mark for mark, holds in marks.items() if holds]])
    return found


def effects(records):
    """What was done."""
    outcomes = {record["call_id"]: record["outcome"] for record in records if record["type"] == "tool/result"}
    begun = [record for record in records if record["type"] == "tool/call"]
    return [[record["call_id"], record["name"], outcomes.get(record["call_id"])] for record in begun]


def log():
    """A batch of two whose results came in the other way round, then a way that was left, then a summary."""
    calls = [{"id": "a", "name": "send"}, {"id": "b", "name": "send"}]
    forms = [
        {"type": "user/message", "parent": None, "text": "do"},
        {"type": "assistant/message", "parent": 0, "text": "both", "calls": calls},
        {"type": "tool/call", "call_id": "a", "name": "send"},
        {"type": "tool/call", "call_id": "b", "name": "send"},
        {"type": "tool/result", "parent": 1, "call_id": "b", "text": "B", "outcome": "done", "synthetic": False},
        {"type": "tool/result", "parent": 4, "call_id": "a", "text": "A", "outcome": "done", "synthetic": False},
        {"type": "branch/move", "to": 0},
        {"type": "assistant/message", "parent": 0, "text": "no", "calls": []},
        {"type": "compaction", "parent": 7, "summary": "sum", "from": 0, "until": 0},
    ]
    return [{"seq": seq, **form} for seq, form in enumerate(forms)]


def my_tests():
    """Examples that correct projections hold, and no wrong ones."""
    every = log()

    def text(words):
        return {"type": "text", "text": words}

    def result(name):
        return {"type": "tool_result", "id": name, "text": name.upper()}

    do, no = {"role": "user", "content": [text("do")]}, {"role": "assistant", "content": [text("no")]}
    uses = [{"type": "tool_use", "id": name, "name": "send"} for name in ("a", "b")]
    both = {"role": "assistant", "content": [text("both"), *uses]}
    answered = {"role": "user", "content": [result("a"), result("b")]}
    abandoned = [
        [record["seq"], record["type"], ["abandoned"] if number else []] for number, record in enumerate(every[:2])
    ]
    return [
        {"function": function, "given": [given], "expect": expect}
        for function, given, expect in [
            ("messages", every[:6], [do, both, answered]),
            ("messages", every[:7], [do]),
            ("messages", every, [{"role": "user", "content": [text("sum")]}, no]),
            ("rows", [*every[:2], {"seq": 2, "type": "branch/move", "to": 0}], [*abandoned, [2, "branch/move", []]]),
            ("effects", every, [["a", "send", "done"], ["b", "send", "done"]]),
        ]
    ]
