"""Points that are never written over, and two ways back to one of them."""

import json
import os
import secrets


def save(line, state):
    """Add a point; it is durable when this returns."""
    folder = line.dir / "points"
    if not folder.is_dir():
        folder.mkdir()
        sync(line.dir)
    path = folder / f"{state['seq']:08d}.json"
    temporary = f"{path}.{secrets.token_hex(8)}.tmp"
    with open(temporary, "xb", buffering=0) as file:
        file.write(json.dumps(state).encode())
        os.fsync(file.fileno())
    os.rename(temporary, path)
    sync(folder)


def sync(folder):
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def points(line):
    """The numbers of the points of a line, smallest first. What a killed process has left is no point."""
    folder = line.dir / "points"
    return sorted(int(path.stem) for path in folder.glob("*.json")) if folder.is_dir() else []


def read(line, seq):
    """One point."""
    return json.loads((line.dir / "points" / f"{seq:08d}.json").read_bytes())


def load(line):
    """The head: the point with the highest number. None where there is none."""
    found = points(line)
    return read(line, found[-1]) if found else None


def ledger(line):
    """The file with what was done. The world is one, so all lines of a run share it."""
    return line.run / "effects.jsonl"


def rewind(line, turn):
    """Go back to the end of a turn: what came after it is removed, so that it is the newest one."""
    copy = copy_of(line, turn)
    for seq in reversed(points(line)):
        if seq > copy["parent"]:
            os.unlink(line.dir / "points" / f"{seq:08d}.json")
    seq = copy["parent"] + 1
    save(line, {**copy, "seq": seq, "timeline": f"main@{seq}"})


def fork(line, name, turn):
    """Begin a line of its own at the end of a turn: a copy of that point is its first one."""
    copy = copy_of(line, turn)
    save(Fork(line.run / "forks" / name), {**copy, "seq": copy["parent"] + 1, "timeline": name})


class Fork:
    """A line whose directory is known."""

    def __init__(self, directory):
        self.dir = directory


def copy_of(line, turn):
    """The point at the end of a turn, on the line of the head, with what was paid until now."""
    head = point = load(line)
    while point["turns"] != turn or point["pending"]:
        point = read(line, point["parent"])
    paid = {name: head[name] for name in ("tokens_used", "requests_started")}
    return {**point, **paid, "parent": point["seq"]}
