"""One run of a subject in a process that nobody records, or that is recorded as the lab does it: for a comparison.

Started by :mod:`crashcourse.unwatched`, which sees the files change from outside. Of the lab this process has what a
recovery has; it is not traced, and the lab's changes of Python's file functions are not loaded unless it is asked.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from crashlab import directory, workload
from crashlab.lab import Lab
from crashlab.recover import guest, place, travel
from crashlab.subject import Commands


def main() -> None:
    """Make the place, say where it is, wait for the word, run, end."""
    form = json.loads(sys.argv[3])
    if form["guest"] is not None:
        guest.enter(form["guest"])
    root = os.path.join(form["temporary"], f"crashlab-{os.urandom(8).hex()}")
    place.make_root(root)
    home, temporary, where = (os.path.join(root, name) for name in ("home", "tmp", "dir"))
    os.environ.update(HOME=home, TMPDIR=temporary, CRASHLAB_DIR=where)
    sys.dont_write_bytecode = True
    sys.argv = ["crashlab"]
    if form["recorded"]:
        from crashlab.record.python import RECORDER  # noqa: PLC0415 - the other run must not have it

        RECORDER.install()
    subject = travel.unpack(form["subject"])
    assert not isinstance(subject, Commands), "a submission is a file of Python"
    acks = workload.describe(subject)["stop_after_acks"]
    os.write(form["saying"], f"{root}\n".encode())
    os.close(form["saying"])
    if not os.read(0, 1):
        return
    if form["recorded"]:
        RECORDER.start(root=root, numbers=directory.read_numbered(root)[1], emit=_forget)
    sink = _forget if acks is None else workload.stop_after(_forget, acks)
    try:
        workload.record(subject, Lab(Path(root, "dir"), sink), sink)
    finally:
        os._exit(0)


def _forget(*_: Any, **__: Any) -> None:
    """What happens is seen from outside."""
