"""An event log that is the only truth: what was promised is in its records, and so are repairs and branches."""

import contextlib
import hashlib
import json
import os

NAME = "log.jsonl"


def open_log(folder):
    """Open the log in this folder, and cut off what was never promised."""
    path = folder / NAME
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary(path))
    data = path.read_bytes() if path.exists() else b""
    forms = believed(path, data)
    # What was not synced may be gone with the next power loss, even though it can be read now: write it anew.
    renew(path, b"".join(line_of(form) for form in forms))
    file = os.open(path, os.O_RDWR | os.O_APPEND)
    return {
        "forms": forms,
        "queue": [],
        "head": forms[-1]["seq"] if forms else None,
        "durable": len(forms) - 1,
        "file": file,
        "size": os.fstat(file).st_size,
        "broken": False,
    }


def believed(path, data):
    """The records before the first bad line; ValueError where anything behind them was promised."""
    lines = data.split(b"\n")
    forms, number = [], 0
    for number, line in enumerate(lines):
        form = form_of(line)
        if form is None or form["seq"] != number:
            break
        forms.append(form)
    others = [form for form in map(form_of, lines) if form is not None]
    promised = max((form["durable"] for form in others), default=-1)
    if promised >= len(forms):
        raise ValueError(f"{path}: line {number + 1} is damaged: record {promised} was promised, and is behind it")
    return forms


def renew(path, data):
    """Replace the file at one stroke."""
    new = temporary(path)
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write(file, data)
        os.fsync(file)
    finally:
        os.close(file)
    os.rename(new, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def temporary(path):
    """The name that a new file has until it is whole."""
    return path.with_suffix(".tmp")


def write(file, data):
    """Write all of it, however much one call takes."""
    while data:
        data = data[os.write(file, data) :]


def line_of(form):
    """A record as its line, with a hash in front."""
    body = json.dumps(form, sort_keys=True)
    return f"{hashlib.sha256(body.encode()).hexdigest()[:16]} {body}\n".encode()


def form_of(line):
    """The record of a line; None where it is none."""
    found, _, body = line.partition(b" ")
    if not body or found != hashlib.sha256(body).hexdigest()[:16].encode():
        return None
    return json.loads(body)


def append(log, record):
    """Add a record behind the head; it is durable after the next flush."""
    return queue(log, record, log["head"])


def queue(log, record, parent):
    """Give the record its number and its parent, and keep it for the next flush."""
    if log["broken"]:
        raise OSError("a sync has failed: open the log again")
    seq = len(log["forms"]) + len(log["queue"])
    log["queue"].append({"seq": seq, "parent": parent, "durable": log["durable"], "record": record})
    log["head"] = seq
    return seq


def flush(log):
    """Make durable all that was added; where it raises, the log is as it was."""
    forms, log["queue"] = log["queue"], []
    data = b"".join(line_of(form) for form in forms)
    try:
        write(log["file"], data)
    except OSError:
        undo(log)
        os.ftruncate(log["file"], log["size"])
        raise
    try:
        os.fsync(log["file"])
    except OSError:
        undo(log)
        log["broken"] = True
        raise
    log["forms"] += forms
    log["size"] += len(data)
    log["durable"] = len(log["forms"]) - 1


def undo(log):
    """Go back to what is durable."""
    log["head"] = log["forms"][-1]["seq"] if log["forms"] else None


def path_of(log):
    """The records from the beginning of this branch to its head."""
    seq, found = log["forms"][-1]["seq"] if log["forms"] else None, []
    while seq is not None:
        found.append(log["forms"][seq]["record"])
        seq = log["forms"][seq]["parent"]
    return found[::-1]


def repair(log):
    """Give each call without a result one: not started, or unknown."""
    records = path_of(log)
    started = {record["id"] for record in records if record["type"] == "call"}
    answered = {record["id"] for record in records if record["type"] == "result"}
    for record in records:
        for call in record.get("calls", ()):
            if call["id"] not in answered:
                text = "unknown" if call["id"] in started else "not started"
                append(log, {"type": "result", "id": call["id"], "text": text})
    flush(log)


def project(log):
    """The conversation as messages."""
    messages = []
    for record in path_of(log):
        if record["type"] == "user":
            messages.append({"role": "user", "content": record["text"]})
        elif record["type"] == "assistant":
            calls = [{"type": "tool_use", **call} for call in record["calls"]]
            messages.append({"role": "assistant", "content": [{"type": "text", "text": record["text"]}, *calls]})
        elif record["type"] == "result":
            if messages[-1]["role"] == "assistant":
                messages.append({"role": "user", "content": []})
            block = {"type": "tool_result", "tool_use_id": record["id"], "content": record["text"]}
            messages[-1]["content"].append(block)
    return messages


def branch(log, seq):
    """Go on behind another record, for good."""
    queue(log, {"type": "move"}, seq)
    flush(log)
