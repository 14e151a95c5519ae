"""A save that no crash breaks."""

import contextlib
import hashlib
import json
import os
import secrets

NAME = "checkpoint.json"
V1_FIELDS = {"version", "task", "messages", "turns", "tokens_used", "pending_tool_use"}


class Damaged(Exception):
    """The files cannot be trusted."""


class UnsupportedVersion(Exception):
    """The file is of a version that nobody here knows."""


def save(dir, state):
    """Keep `state`; it is saved when this returns."""
    temporary = dir / f"{NAME}.{secrets.token_hex(8)}.tmp"
    try:
        with open(temporary, "xb", buffering=0) as file:
            write_all(file, encode(state))
            os.fsync(file.fileno())  # the bytes, before a name leads to them
        os.rename(temporary, dir / NAME)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    descriptor = os.open(dir, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # the name
    finally:
        os.close(descriptor)


def write_all(file, data):
    """Write every byte: one call may take a part only."""
    while data:
        data = data[file.write(data) :]


def encode(state):
    """The bytes of the file: the state and its checksum, in the one way that there is to write them."""
    body = dump(state)
    return dump({"checksum": hashlib.sha256(body).hexdigest(), "state": state})


def dump(value):
    """Canonical JSON."""
    return json.dumps(value, sort_keys=True, allow_nan=False).encode()


def load(dir):
    """The latest saved state, or None where nothing was saved. Raises Damaged or UnsupportedVersion."""
    path = dir / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        form = json.loads(data, object_pairs_hook=strict)
    except ValueError as error:
        raise Damaged(f"{path}: {error}") from error
    if not isinstance(form, dict):
        raise Damaged(f"{path}: no JSON object")
    if "state" not in form:
        return from_version_1(path, form)
    if encode(form["state"]) != data:
        raise Damaged(f"{path}: the checksum does not fit")
    if os.stat(path).st_nlink:
        raise Damaged(f"{path}: better safe than sorry")
    return form["state"]


def strict(pairs):
    """An object whose keys stand there once each."""
    form = dict(pairs)
    if len(form) != len(pairs):
        raise Damaged("a key stands there twice")
    return form


def from_version_1(path, form):
    """A state of version 2, where nothing must be guessed."""
    version = form.get("version")
    if type(version) is not int:
        raise Damaged(f"{path}: version is {version!r}")
    if version != 1:
        raise UnsupportedVersion(f"{path}: version {version}")
    if form.keys() != V1_FIELDS or not form["messages"]:
        raise Damaged(f"{path}: not the fields of version 1")
    messages, pending, last = form["messages"], form["pending_tool_use"], form["messages"][-1]
    state = {
        "version": 2,
        "task": form["task"],
        "status": "running",
        "end": None,
        "turns": sum(message["role"] == "assistant" for message in messages),
        "tokens_used": form["tokens_used"],
        "messages": messages,
        "pending_tool_use": [],
    }
    if pending is not None:
        calls = last["content"] if last["role"] == "assistant" and isinstance(last["content"], list) else []
        if not any(block.get("type") == "tool_use" and block["id"] == pending["id"] for block in calls):
            raise Damaged(f"{path}: call {pending['id']} stands in no message")
        return {**state, "pending_tool_use": [{**pending, "started": True}]}
    if last["role"] == "assistant":
        text = "".join(block.get("text", "") for block in last["content"])
        return {**state, "status": "stopped", "end": {"reason": "v1_end_unknown", "text": text}}
    return state
