"""Points that are never written over, and two ways back to one of them."""

import json
import os
import secrets


def save(line, state):
    """Keep the state; it is durable when this returns."""
    # TODO: a point of its own, points/<seq, 8 digits>.json: this one file is written over with each save
    path = line.dir / "state.json"
    temporary = f"{path}.{secrets.token_hex(8)}.tmp"
    with open(temporary, "xb", buffering=0) as file:
        file.write(json.dumps(state).encode())
        os.fsync(file.fileno())
    os.rename(temporary, path)
    sync(line.dir)


def sync(folder):
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def load(line):
    """The head of the line, None where there is none."""
    path = line.dir / "state.json"
    return json.loads(path.read_bytes()) if path.exists() else None


def ledger(line):
    """The file with what was done."""
    return line.dir / "effects.jsonl"  # TODO: is what a fork finds here all that was done to the world?


def rewind(line, turn):
    """Go back to the end of a turn."""
    # TODO: the state of that turn was written over long ago


def fork(line, name, turn):
    """Begin a line of its own at the end of a turn, in line.run / "forks" / name."""
    # TODO
