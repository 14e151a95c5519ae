"""Answers damage as if nothing had ever been saved."""

# + solution

_load = load


def load(dir):
    try:
        return _load(dir)
    except Damaged:
        return None
