"""A correct store and a program; ``PLANT_ERRORS`` says how the injector of errors is sabotaged in the lab's servers."""

from __future__ import annotations

import os

from crashlab import Commands
from crashlab.live.errors import ErrorGate
from crashlab.live.reads import Reads
from crashlab.record.strace.refusing import Refusals
from tests.quality import failing_stores

PLANT = os.environ.get("PLANT_ERRORS", "")

if PLANT == "never":
    ErrorGate.strike = lambda *_: None  # type: ignore[method-assign, assignment, misc]  # the planted fault
elif PLANT == "reads":
    Reads.met = lambda *_: None  # type: ignore[method-assign, assignment, misc]  # the planted fault
elif PLANT == "untold":
    setattr(Refusals, "_refused", lambda *_: None)  # noqa: B010 - the planted fault

STORE = failing_stores.RIGHT
PROGRAM = Commands("cd {dir} && echo 1 >state", name="writes")
