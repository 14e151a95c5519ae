"""Programs for two owners; ``PLANT_RACE`` says how letting the second one in is sabotaged in the lab's servers."""

from __future__ import annotations

import os

from crashlab.live.race import OutsideRecord, RaceGate
from tests.quality import racing_stores

PLANT = os.environ.get("PLANT_RACE", "")

if PLANT == "never stops":
    RaceGate.before = lambda *_: None  # type: ignore[method-assign, assignment, misc]  # the planted fault
elif PLANT == "one world each":
    OutsideRecord.effects = lambda _: []  # type: ignore[method-assign, assignment, misc]  # the planted fault

STORE = racing_stores.FIXED_NAME
KEYED = racing_stores.KEYED
