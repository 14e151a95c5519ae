"""The whole harness: an agent that may be killed, cut off from power, started twice, or left without an answer."""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets

MOST_ATTEMPTS = 3
UNKNOWN = "outcome unknown: nobody knows whether this was done"
BLOCKED = "blocked: nobody knows how an earlier attempt ended, and a person must decide; go on without it"
CONFLICT = "conflict: this act was done with another input, and is not done twice"
GAVE_UP = "gave up: three attempts did not come to an end"
FOUND_OUT = {"done": "it happened", "absent": "it did not happen"}


def start(desk):
    """A run from the beginning. Raises FileExistsError where there is one already."""
    with lease(desk.dir):
        if (desk.dir / "checkpoint.json").exists() or (desk.dir / "effects.jsonl").exists():
            raise FileExistsError(f"{desk.dir} holds a run already: resume it, or take another directory")
        return go_on(desk)


def resume(desk):
    """Go on from what is stored, to the end; start where nothing is stored."""
    with lease(desk.dir):
        return go_on(desk)


@contextlib.contextmanager
def lease(directory):
    """The directory is ours alone in this block; a kill frees it. Raises BlockingIOError where it is another's."""
    descriptor = os.open(directory / "lease.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def go_on(desk):
    """Open what is there, and work until the run is over or waits for a person."""
    state = load(desk.dir)
    ledger = Ledger.open(desk.dir, state)
    remove_temporary(desk.dir)
    if state is None:
        state = beginning(desk)
    elif not opened(desk, state, ledger):
        return state
    save(desk, state, ledger)  # R
    if not ledger.there:
        ledger.create()
    while state["status"] == "running":
        if state["pending_tool_use"]:
            answer_all(desk, state, ledger)
        elif state["turns"] >= desk.turn_limit:  # the run's own turns: a crash does not bring them back
            over(desk, state, ledger, {"reason": "turn_limit", "text": ""})
        else:
            ask(desk, state, ledger)
    return state


def opened(desk, state, ledger):
    """Whether there is anything to go on with; what an opening changes is changed, and not saved yet."""
    if state["status"] == "waiting":
        return answered(desk, state, ledger)
    if state["status"] != "running":
        return False
    if state["pending_tool_use"]:
        for call in state["pending_tool_use"]:
            call["attempts"] += is_read(desk, call)  # an act is marked right before it is done
    else:
        state["requests_started"] += 1  # the one that was counted may have been sent
    return True


def beginning(desk):
    """The state before the first request, which is counted already."""
    return {
        "seq": 0,
        "run_id": secrets.token_hex(8),
        "status": "running",
        "end": None,
        "messages": [{"role": "user", "content": desk.task}],
        "pending_tool_use": [],
        "turns": 0,
        "tokens_used": 0,
        "requests_started": 1,
        "ledger_seen": 0,
    }


def is_read(desk, call):
    """Whether a call changes nothing."""
    return desk.tools[call["name"]]["nature"] == "read-only"


# --- asking and answering -------------------------------------------------------------------------


def ask(desk, state, ledger):
    """Ask once. An answer is saved with what it cost before its calls are made (A)."""
    response = desk.ask(state["messages"])
    if response["stop_reason"] not in ("tool_use", "end_turn"):
        raise RuntimeError("half an answer: nothing of it may be used")
    state["messages"].append({"role": "assistant", "content": response["content"]})
    state["turns"] += 1
    state["tokens_used"] += sum(response["usage"].values())
    calls = [block for block in response["content"] if block["type"] == "tool_use"]
    if calls:
        state["pending_tool_use"] = [pending(desk, call) for call in calls]
        save(desk, state, ledger)  # A
    else:
        text = "".join(block["text"] for block in response["content"])
        over(desk, state, ledger, {"reason": response["stop_reason"], "text": text})


def pending(desk, call):
    """An open call. A read carries the mark of its first attempt already."""
    named = {name: call[name] for name in ("id", "name", "input")}
    return {**named, "started": False, "attempts": int(is_read(desk, call))}


def over(desk, state, ledger, end):
    """The run has come to its end, or a person must decide something first."""
    capped = end["reason"] == "turn_limit"
    if ledger.unknown() and not capped:
        state["status"] = "waiting"
    else:
        state.update(status="stopped" if capped else "done", end=end)
        clean_up(desk, ledger)
    save(desk, state, ledger)  # E
    tell(desk, ledger)


def clean_up(desk, ledger):
    """A clean place for the end: no old files, and the ledger written anew."""
    data = ledger.path.read_bytes()
    ledger.path.unlink()
    (desk.dir / "checkpoint.json").unlink()
    with open(ledger.path, "xb", buffering=0) as file:
        write_all(file, data)
        os.fsync(file.fileno())
    sync(desk.dir)


def tell(desk, ledger):
    """Tell a person of each act that nobody knows the outcome of."""
    for record in ledger.unknown():
        desk.unknown(record["name"], record["input"])


def answered(desk, state, ledger):
    """Whether a person has decided all that the run waits for. The answers are records, and the user's next words."""
    answers = [(record, desk.answer(record["name"], record["input"])) for record in ledger.unknown()]
    if any(said is None for _, said in answers):
        tell(desk, ledger)
        return False
    for record, said in answers:
        ledger.append(record["key"], record, said, f"a person says: {FOUND_OUT[said]}")
    decided = [record for record in ledger.records[state["ledger_seen"] :] if record["outcome"] in FOUND_OUT]
    lines = [
        f"- {record['name']} {record['input'].get('ticket', '')}: {FOUND_OUT[record['outcome']]}" for record in decided
    ]
    state["messages"].append({"role": "user", "content": "\n".join(["A person has looked:", *lines])})
    state["status"] = "running"
    state["requests_started"] += 1
    return True


def answer_all(desk, state, ledger):
    """All open calls are answered in one message, and the next request is counted (B)."""
    results = [answer(desk, state, ledger, call) for call in state["pending_tool_use"]]
    state["messages"].append({"role": "user", "content": results})
    state["pending_tool_use"] = []
    state["requests_started"] += 1
    save(desk, state, ledger)  # B


def answer(desk, state, ledger, call):
    """The result of one call: the gate before whatever is done."""
    if is_read(desk, call):
        if call["attempts"] > MOST_ATTEMPTS:
            return result(call, GAVE_UP, is_error=True)
        return result(call, desk.do(call["name"], call["input"], ""))
    key = f"{state['run_id']}/{call['input'].get('ticket', 'inbox')}/{call['name']}"
    known = ledger.latest.get(key)
    outcome = known["outcome"] if known else None
    if outcome == "done":
        same = known["input"] == call["input"]
        return result(call, known["result"]) if same else result(call, CONFLICT, is_error=True)
    if desk.tools[call["name"]]["nature"] == "idempotent":
        if call["attempts"] >= MOST_ATTEMPTS:
            return result(call, GAVE_UP, is_error=True)
    elif outcome == "unknown" or call["started"]:
        if not desk.tools[call["name"]]["look_up"]:
            return result(call, BLOCKED if outcome == "unknown" else unknown(ledger, key, call), is_error=True)
        found = desk.look_up(call["name"], call["input"])
        if found is not None:
            ledger.append(key, call, "done", found)
            return result(call, found)
    return act(desk, state, ledger, key, call)


def act(desk, state, ledger, key, call):
    """Marked (S), done, recorded: each is durable before the next."""
    call["started"] = True
    call["attempts"] += 1
    save(desk, state, ledger)  # S
    try:
        text = desk.do(call["name"], call["input"], key)
    except TimeoutError:  # it may have been done
        return result(call, unknown(ledger, key, call), is_error=True)
    ledger.append(key, call, "done", text)
    return result(call, text)


def unknown(ledger, key, call):
    """Record that nobody knows."""
    ledger.append(key, call, "unknown", UNKNOWN)
    return UNKNOWN


def result(call, text, *, is_error=False):
    """The answer to one call."""
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
    return {**block, "is_error": True} if is_error else block


# --- files ----------------------------------------------------------------------------------------


def save(desk, state, ledger):
    """Keep the state; it is durable, and promised, when this returns."""
    state["seq"] += 1
    state["ledger_seen"] = len(ledger.records)
    path = desk.dir / "checkpoint.json"
    temporary = f"{path}.{secrets.token_hex(8)}.tmp"
    try:
        with open(temporary, "xb", buffering=0) as file:
            write_all(file, encode(state))
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync(desk.dir)
    desk.ack(state)


def load(directory):
    """The state that was saved last, None where nothing was. Raises ValueError where it is not what was written."""
    path = directory / "checkpoint.json"
    if not path.exists():
        return None
    data = path.read_bytes()
    try:
        state = json.loads(data)["state"]
        sound = encode(state) == data
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise ValueError(f"{path}: this is not what was written")
    return state


def encode(value):
    """The bytes of a state or a record, with their checksum."""
    body = json.dumps(value, sort_keys=True).encode()
    return json.dumps({"checksum": hashlib.sha256(body).hexdigest(), "state": value}, sort_keys=True).encode()


def write_all(file, data):
    """Write every byte: one call may take a part only."""
    while data:
        data = data[file.write(data) :]


def sync(directory):
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporary(directory):
    """Remove what a killed process left half written, and make the name that was read durable."""
    for path in directory.glob("*.tmp"):
        path.unlink()
    sync(directory)


class Ledger:
    """``effects.jsonl``: a line for all that became known of an act; of each act the last one counts."""

    def __init__(self, path):
        self.path = path
        self.there = path.exists()
        self.records = []
        self.size = 0
        self.latest = {}

    @staticmethod
    def open(directory, state):
        """The ledger that belongs to a state. Raises ValueError, and changes nothing, where it does not."""
        ledger = Ledger(directory / "effects.jsonl")
        if not ledger.there:
            if state is not None and state["seq"] > 1:
                raise ValueError(f"{ledger.path} is gone: nobody knows what was done")
            return ledger
        if state is None:
            raise ValueError(f"{ledger.path} is there, and no saved state: it was lost")
        ledger.read(state["ledger_seen"])
        return ledger

    def read(self, seen):
        """Take in the whole lines; a last one that did not arrive whole was promised to nobody, and is cut off."""
        data = self.path.read_bytes()
        lines = data.split(b"\n")
        torn = lines.pop()
        if not torn and len(lines) > seen and b"\x00" in lines[-1]:
            torn = lines.pop() + b"\n"  # a page of it never reached the disk
        for number, line in enumerate(lines, 1):
            self.take(number, line)
        if len(self.records) < seen:
            raise ValueError(f"{self.path} has {len(self.records)} whole lines, but {seen} were counted")
        self.size = len(data) - len(torn)
        with open(self.path, "ab", buffering=0) as file:
            file.truncate(self.size)
            os.fsync(file.fileno())

    def take(self, number, line):
        """One line. Raises ValueError where it is not what was written."""
        try:
            record = json.loads(line)["state"]
            sound = encode(record) == line and record["n"] == number
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            raise ValueError(f"{self.path}, line {number}: this is not what was written")
        self.records.append(record)
        self.latest[record["key"]] = record

    def create(self):
        """An empty ledger, durable with its name."""
        with open(self.path, "xb", buffering=0) as file:
            os.fsync(file.fileno())
        sync(self.path.parent)

    def append(self, key, call, outcome, text):
        """One line more, durable when this returns. Where that fails, the old length stays, and the error goes on."""
        record = {"n": len(self.records) + 1, "key": key, "name": call["name"], "input": call["input"]}
        record |= {"outcome": outcome, "result": text}
        line = encode(record) + b"\n"
        with open(self.path, "ab", buffering=0) as file:
            try:
                write_all(file, line)
                os.fsync(file.fileno())
            except OSError:
                file.truncate(self.size)
                raise
        self.size += len(line)
        self.records.append(record)
        self.latest[key] = record

    def unknown(self):
        """The acts whose outcome nobody knows."""
        return [record for record in self.latest.values() if record["outcome"] == "unknown"]
