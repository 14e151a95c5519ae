"""Programs that do not stay in one process, or never end: children, threads, a service."""

from __future__ import annotations

import subprocess
import threading
from typing import Any

from crashlab import Violation
from tests.use_cases.files import put, take

PARTS = ("lid", "box")
CAREFUL = 'echo "the $2" > "$1/$2.draft" && mv "$1/$2.draft" "$1/$2"'
HASTY = 'echo "the $2" > "$1/$2"'


def _build(lab: Any, script: str) -> Any:
    """Lets a child make each part that is not there yet."""
    missing = [part for part in PARTS if not (lab.dir / part).exists()]
    children = [subprocess.Popen(["sh", "-c", script, "sh", str(lab.dir), part]) for part in missing]
    assert [child.wait() for child in children] == [0] * len(children)
    return {part: (lab.dir / part).read_text() for part in PARTS}


def build(lab: Any) -> Any:
    """Each part appears when it is done."""
    return _build(lab, CAREFUL)


def build_hastily(lab: Any) -> Any:
    """Wrong: each part appears before it is done."""
    return _build(lab, HASTY)


def build_in_threads(lab: Any) -> Any:
    """The same by threads of this process."""
    missing = [part for part in PARTS if take(lab.dir / f"{part}.json") is None]
    threads = [threading.Thread(target=put, args=(lab.dir / f"{part}.json", part)) for part in missing]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [take(lab.dir / f"{part}.json") for part in PARTS]


# --- without an end ------------------------------------------------------------------------------------------


def _count(lab: Any, *, early: bool) -> None:
    """A thread in the background counts and saves for ever; the service itself waits for ever."""

    def counting() -> None:
        number = recover(lab)
        while True:
            number += 1
            if early:
                lab.ack(number)
            put(lab.dir / "count.json", number)
            if not early:
                lab.ack(number)

    threading.Thread(target=counting, daemon=True).start()
    threading.Event().wait()


def serve(lab: Any) -> None:
    """Says that a number is saved when it is."""
    _count(lab, early=False)


def serve_early(lab: Any) -> None:
    """Wrong: says so before."""
    _count(lab, early=True)


def recover(lab: Any) -> int:
    """Where the service would go on."""
    return take(lab.dir / "count.json") or 0


def keeps_what_it_told(lab: Any, number: int) -> None:
    """At least the last number that was acked."""
    told = max(lab.acked, default=0)
    if number < told:
        text = f"{told} was acked, {number} came back"
        raise Violation(text, kind="lost")
