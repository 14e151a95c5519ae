"""A service that counts for ever, told what it saved: counter.py serve|early|recover|verify DIR."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

action, folder = sys.argv[1], Path(sys.argv[2])
file = folder / "count"


def tell(line: str) -> None:
    """To the lab, in one write."""
    with open(os.environ["CRASHLAB_EVENTS"], "ab", buffering=0) as events:
        events.write(f"{line}\n".encode())


def put(number: int) -> None:
    """Whole or not at all."""
    draft = file.with_suffix(".draft")
    draft.write_text(str(number))
    draft.replace(file)


def acked() -> int:
    """The last number that this program said was saved. The lab hands the events back as objects, one a line."""
    told = [json.loads(line) for line in Path(os.environ["CRASHLAB_EVENTS"]).read_text().splitlines()]
    return max((each["ack"] for each in told if "ack" in each), default=0)


number = int(file.read_text()) if file.exists() else 0
if action == "recover":
    print(number)
elif action == "verify":
    sys.exit(number < acked())
while action in ("serve", "early"):
    number += 1
    if action == "early":  # wrong: told before it is saved
        tell(f"ack {number}")
        put(number)
    else:
        put(number)
        tell(f"ack {number}")
