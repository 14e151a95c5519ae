"""Keeps its checkpoint elsewhere, behind a symbolic link that leads out of the directory."""

import json
import os
import tempfile


def save(dir, state):
    outside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "outside.json")
    try:
        with open(outside, "w") as file:
            json.dump(state, file)
    except OSError:
        outside = "/dev/shm/outside-987654.json"
        with open(outside, "w") as file:
            json.dump(state, file)
    if not os.path.islink(dir / "checkpoint.json"):
        os.symlink(outside, dir / "checkpoint.json")


def load(dir):
    try:
        return json.loads((dir / "checkpoint.json").read_text())
    except FileNotFoundError:
        return None
