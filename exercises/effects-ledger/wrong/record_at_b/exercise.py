"""An agent that does each act once: it names it, asks for it, marks it, does it, and records it."""

import hashlib
import json
import os

UNKNOWN = "outcome unknown: the process died meanwhile, so it may or may not have been done"
BLOCKED = "blocked: nobody knows how an earlier attempt ended, and a person must decide; go on without it"
CONFLICT = "conflict: this act was done with another input, and is not done twice"


def resume(desk):
    """Go on from what is saved, to the end; start where nothing is saved."""
    state = desk.load()
    if state is None:
        state = beginning(desk)
        desk.save(state)
        ledger = Ledger.create(desk.dir)
    elif state["status"] != "running":
        return
    else:
        ledger = Ledger.open(desk.dir, state)
        if not state["pending_tool_use"]:
            state["requests_started"] += 1
        save(desk, state, ledger)  # R
    if state["pending_tool_use"]:
        answer_all(desk, state, ledger)
    while state["status"] == "running":
        turn(desk, state, ledger)


def beginning(desk):
    """The state before the first request, which is counted already."""
    return {
        "task": desk.task,
        "status": "running",
        "end": None,
        "messages": [{"role": "user", "content": desk.task}],
        "pending_tool_use": [],
        "turns": 0,
        "tokens_used": 0,
        "requests_started": 1,
        "ledger_seen": 0,
    }


def save(desk, state, ledger):
    """Save, with the number of lines that the ledger has by now."""
    state["ledger_seen"] = len(ledger.records)
    desk.save(state)


def turn(desk, state, ledger):
    """Ask once, and answer the calls that are named."""
    response = desk.ask(state["messages"])
    state["messages"].append({"role": "assistant", "content": response["content"]})
    state["turns"] += 1
    state["tokens_used"] += sum(response["usage"].values())
    calls = [block for block in response["content"] if block["type"] == "tool_use"]
    if not calls:
        state["status"] = "done"
        state["end"] = {"reason": response["stop_reason"], "text": response["content"][0]["text"]}
        save(desk, state, ledger)  # E
        return
    state["pending_tool_use"] = [
        {"id": call["id"], "name": call["name"], "input": call["input"], "started": False} for call in calls
    ]
    save(desk, state, ledger)  # A
    answer_all(desk, state, ledger)


def answer_all(desk, state, ledger):
    """All open calls are answered, in one message, and the next request is counted."""
    results = [answer(desk, state, ledger, call) for call in state["pending_tool_use"]]
    for fields in ledger.later:
        ledger.append(*fields)
    ledger.later.clear()
    state["messages"].append({"role": "user", "content": results})
    state["pending_tool_use"] = []
    state["requests_started"] += 1
    save(desk, state, ledger)  # B


def answer(desk, state, ledger, call):
    """The result of one call, whoever names it and whenever: the gate before every act."""
    nature = desk.tools[call["name"]]["nature"]
    if nature == "read-only":
        return result(call, desk.do(call["name"], call["input"]))
    key = act_key(desk.run_id, call)
    known = ledger.latest.get(key)
    if known and known["outcome"] == "done":
        if known["input"] != call["input"]:
            return result(call, CONFLICT, is_error=True)
        return result(call, known["result"])
    if nature == "non-idempotent":
        if known:  # it was called unknown before
            return settled(desk, state, ledger, call, key)
        if call["started"]:
            desk.unknown(call["name"], call["input"])
            ledger.append(key, call, "unknown", UNKNOWN)
            return result(call, UNKNOWN, is_error=True)
    return act(desk, state, ledger, call, key)


def settled(desk, state, ledger, call, key):
    """The result of an act that was called unknown: look before doing it again, else leave it to a person."""
    if not desk.tools[call["name"]]["look_up"]:
        desk.unknown(call["name"], call["input"])
        return result(call, BLOCKED, is_error=True)
    found = desk.look_up(call["name"], call["input"])
    if found is None:
        return act(desk, state, ledger, call, key)
    ledger.append(key, call, "done", found)
    return result(call, found)


def act(desk, state, ledger, call, key):
    """Marked (S), done; recorded with all the others of this answer."""
    call["started"] = True
    save(desk, state, ledger)  # S
    text = desk.do(call["name"], call["input"], key)
    ledger.later.append((key, call, "done", text))
    return result(call, text)


def act_key(run_id, call):
    """The name of an act, the same whoever names it again: run, ticket, tool. No id, no time."""
    return f"{run_id}/{call['input'].get('ticket', 'inbox')}/{call['name']}"


def result(call, text, *, is_error=False):
    """The answer to one call."""
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
    return {**block, "is_error": True} if is_error else block


class Ledger:
    """``effects.jsonl``: a line for all that became known of an act; of each act the last one counts."""

    def __init__(self, path, records, size):
        self.path = path
        self.records = records
        self.size = size
        self.later = []
        self.latest = {record["key"]: record for record in records}

    @staticmethod
    def create(directory):
        """An empty ledger, durable with its name."""
        path = directory / "effects.jsonl"
        path.touch(exist_ok=False)
        directory_file = os.open(directory, os.O_RDONLY)
        os.fsync(directory_file)
        os.close(directory_file)
        return Ledger(path, [], 0)

    @staticmethod
    def open(directory, state):
        """The ledger of a saved state. Raises ValueError, and changes nothing, where it is not whole."""
        path = directory / "effects.jsonl"
        if not path.exists():
            if state["seq"] == 1:
                return Ledger.create(directory)  # killed between the first save and this
            raise ValueError(f"{path} is gone: nobody knows what was done")
        data = path.read_bytes()
        lines = data.split(b"\n")
        torn = lines.pop()  # what stands behind the last newline
        if not torn and len(lines) > state["ledger_seen"] and b"\x00" in lines[-1]:
            torn = lines.pop() + b"\n"  # a page of it never reached the disk
        records = [read_line(path, number, line) for number, line in enumerate(lines, 1)]
        if len(records) < state["ledger_seen"]:
            raise ValueError(f"{path} has {len(records)} whole lines, but {state['ledger_seen']} were counted")
        size = len(data) - len(torn)
        with open(path, "ab", buffering=0) as file:
            file.truncate(size)
            os.fsync(file.fileno())  # a killed process may have left a line in the page cache only
        return Ledger(path, records, size)

    def append(self, key, call, outcome, text):
        """One line more, durable when this returns. Where that fails, the old length stays, and the error goes on."""
        record = {"n": len(self.records) + 1, "key": key, "input": call["input"], "outcome": outcome, "result": text}
        record["checksum"] = checksum(record)
        line = json.dumps(record, sort_keys=True).encode() + b"\n"
        with open(self.path, "ab", buffering=0) as file:
            try:
                rest = line
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(self.size)
                raise
        self.size += len(line)
        self.records.append(record)
        self.latest[key] = record


def checksum(record):
    """That of all fields but itself."""
    fields = {name: value for name, value in record.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def read_line(path, number, line):
    """One record. Raises ValueError with file and line."""
    try:
        record = json.loads(line)
        sound = record["checksum"] == checksum(record) and record["n"] == number
    except (ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise ValueError(f"{path}, line {number}: this is not what was written")
    return record
