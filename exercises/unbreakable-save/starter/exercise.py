"""A save that no crash breaks. Replace what stands below each TODO."""

import json


class Damaged(Exception):
    """The files cannot be trusted."""


class UnsupportedVersion(Exception):
    """The file is of a version that nobody here knows."""


def save(dir, state):
    """Keep `state`; it is saved when this returns."""
    # TODO: killed in here, the file is empty or cut short, and the old state is gone as well
    with open(dir / "checkpoint.json", "w") as file:
        json.dump(state, file)


def load(dir):
    """The latest saved state, or None where nothing was saved. Raises Damaged or UnsupportedVersion."""
    # TODO: it believes whatever it finds, and knows nothing of version 1
    try:
        text = (dir / "checkpoint.json").read_text()
    except FileNotFoundError:
        return None
    return json.loads(text)
