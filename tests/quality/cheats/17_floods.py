"""Floods the output, a file and the tree."""

import sys

# + solution

_save = save


def save(dir, state):
    for _ in range(64):
        sys.stdout.write("x" * 2**20)
    _save(dir, state)
    for number in range(20):
        with open(dir / f"flood-{number}", "wb") as file:
            for _ in range(65):
                file.write(b"x" * 2**20)
