"""The whole harness: each piece in its correct form, named, so that it can be read in one place.

======== ==========================================================================================
save     a checkpoint is replaced whole, and durable before anyone is told (lesson 2)
R A S B E what is to come is saved before it is done, what was done before it is built upon (lessons 2, 3)
reopen   each open call is kept, and answered once (lesson 3)
decide   by the evidence and the tool's nature; after three attempts it is given up (lessons 3, 4)
ledger   an act is recorded right after it was done, and no record is ever removed (lesson 4)
lease    one writer, and a late one is fenced off (lesson 6)
history  a plain start over a stored run is refused (lesson 6)
cap      turns and tokens of the run, not of a process (lesson 6)
======== ==========================================================================================

What nobody can tell is asked: :mod:`longrun.questions`. The scenes of this lesson that a plain run does not show
are subjects of their own.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.booking import book
from longrun.caps import Caps
from longrun.capstone import scenes
from longrun.harness import SAVE_POINTS
from longrun.lease import Lease
from longrun.ledger import open_ledger
from longrun.model import require_complete
from longrun.resume import correct
from longrun.resume.reconcile import decide, reopen
from longrun.subjects import describe

HARNESS = replace(
    correct.HARNESS,
    save_points=SAVE_POINTS,
    accept=require_complete,
    book=book,
    reopen=reopen,
    decide=decide,
    ledger=open_ledger,
    lease=Lease.take,
    cap=Caps(),
)

TURNS, TOKENS = 5, 2_000
"""Caps of the scenes: reached after a few turns of the short inbox."""

subject = describe(HARNESS, name="capstone/correct")
subject_hasty = describe(HARNESS, name="capstone/correct, hasty model", persona="hasty")
subject_fresh = scenes.started_again(HARNESS, name="capstone/correct, started again")
subject_waiting = scenes.asking(HARNESS, desk=HARNESS, name="capstone/correct, a question")
subject_waiting_hasty = scenes.asking(
    HARNESS, desk=HARNESS, name="capstone/correct, a question, hasty model", persona="hasty"
)
subject_turns = scenes.capped(replace(HARNESS, cap=Caps(turns=TURNS)), name="capstone/correct, a cap on turns")
subject_tokens = scenes.capped(replace(HARNESS, cap=Caps(tokens=TOKENS)), name="capstone/correct, a cap on tokens")
subject_poison = scenes.poisoned(HARNESS, name="capstone/correct, a poisonous call")
