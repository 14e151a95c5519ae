"""An event log that is written, and never synced: exercise 7.2."""

import json
import os

NAME = "log.jsonl"


def open_log(folder):
    """Open the log in this folder, and cut off what was never promised."""
    path = folder / NAME
    data = path.read_bytes() if path.exists() else b""
    # TODO: a kill leaves half a line at the end, a power loss pages of zeros, a bad disk anything anywhere.
    forms = [json.loads(line) for line in data.splitlines()]
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    return {"forms": forms, "queue": [], "head": forms[-1]["seq"] if forms else None, "file": file}


def append(log, record):
    """Add a record behind the head; it is durable after the next flush."""
    # TODO: say in each record what was durable when it was made.
    seq = len(log["forms"]) + len(log["queue"])
    log["queue"].append({"seq": seq, "parent": log["head"], "record": record})
    log["head"] = seq
    return seq


def flush(log):
    """Make durable all that was added; where it raises, the log is as it was."""
    # TODO: neither yet.
    forms, log["queue"] = log["queue"], []
    for form in forms:
        os.write(log["file"], json.dumps(form).encode() + b"\n")
    log["forms"] += forms


def repair(log):
    """Give each call without a result one: not started, or unknown."""
    # TODO: nothing yet.


def path_of(log):
    """The records from the first one to the head."""
    seq, found = log["head"], []
    while seq is not None:
        found.append(log["forms"][seq]["record"])
        seq = log["forms"][seq]["parent"]
    return found[::-1]


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
    # TODO: after a crash nobody knows of this.
    log["head"] = seq
