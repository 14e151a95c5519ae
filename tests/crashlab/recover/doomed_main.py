"""A main process that is to be killed in the middle of what its argument says.

``ready`` is a FIFO: opening it tells the test that the moment has come.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

from crashlab import Subject
from crashlab import trace as t
from crashlab.recover import travel
from crashlab.recover.host import Host

MOMENT, READY = os.environ.get("DOOMED_MOMENT", ""), os.environ.get("DOOMED_READY", "")
IMPORTED_AGAIN = __name__ != "__main__"


def arrive() -> None:
    """Start a daemon, say that the moment has come, and never go on."""
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open(READY, "w"):
        pass
    threading.Event().wait()


def run(lab: Any) -> str:
    """The workload."""
    (lab.dir / "file").write_text("content")
    if MOMENT == "record":
        arrive()
    return "written"


def resume(_lab: Any) -> str:
    """The recovery."""
    if MOMENT.startswith("recover") or MOMENT == "race":
        arrive()
    return "written"


SUBJECT = Subject(run, resume)
if IMPORTED_AGAIN and MOMENT == "import":
    arrive()


def main() -> None:
    """Record and recover for ever."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # as a test runner has
    path = "tests.crashlab.recover.doomed_main:SUBJECT"
    sys.stdout.write("starting\n")
    sys.stdout.flush()
    with Host(travel.pack(path), jobs=2, interpreter=MOMENT == "recover in interpreters") as host:
        recording = host.record(timeout_s=60)
        trace = t.Trace(root=recording.root, base=recording.base, ops=recording.ops)
        host.prepare(trace)
        if MOMENT == "race":  # the first owner is stopped, the second one arrives
            host.race(after=1, switch=None, nothing=None, timeout_s=60.0, limit_s=60.0)
        while True:
            for _ in host.recover([{"state": "kill@1", "steps": [{"step": "first"}], "timeout_s": 60.0}]):
                pass


if __name__ == "__main__":
    main()
