"""The whole harness: each piece in its correct form, named, so that it can be read in one place.

=========== ==========================================================================================
save, load  each save is a point of its own, durable before anyone is told; the newest is the head (lessons 2, 5)
save_points what is to come is saved before it is done, what was done before it is built upon (lessons 2, 3)
accept      an answer that did not come whole is not used (lesson 2)
book        an answer is counted in the save that holds it (lesson 3)
reopen      each open call is kept, and answered once (lesson 3)
decide      by the evidence and the tool's nature; after three attempts a call is given up (lessons 3, 4)
act, key    marked, done, recorded, under one name whoever names it (lesson 4)
ledger      an act is recorded right after it was done, and no record is ever removed (lesson 4)
claim       nor is it done by two lines of one run (lesson 5)
lease       one writer, and a late one is fenced off
history     a plain start over a stored run is refused
cap         turns and tokens of the run, not of a process
=========== ==========================================================================================

What nobody can tell is asked: :mod:`longrun.questions`. The scenes of this lesson that a plain run does not show
are subjects of their own.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.booking import book
from longrun.caps import Caps
from longrun.capstone import subjects
from longrun.effects.acting import act, close
from longrun.harness import SAVE_POINTS, Harness
from longrun.inbox import SHORT_BODY_BYTES
from longrun.model import require_complete
from longrun.resume.reconcile import decide, reopen
from longrun.rewind import points, shared_ledger
from longrun.subjects import describe
from longrun.tools import act_key

HARNESS = Harness(
    save=points.save,
    load=points.load,
    save_points=SAVE_POINTS,
    convert=points.convert,
    accept=require_complete,
    book=book,
    reopen=reopen,
    decide=decide,
    key=act_key,
    act=act,
    close=close,
    ledger=shared_ledger.open_shared,
    claim=shared_ledger.claim,
    lease=points.take,
    history=points.history,
    clear=points.clear,
    cap=Caps(),
)

TURNS, TOKENS = 5, 2_000
"""Caps of the scenes: reached after a few turns of the short inbox."""

subject = describe(HARNESS, name="capstone/correct")
subject_hasty = describe(HARNESS, name="capstone/correct, hasty model", persona="hasty")
subject_short = describe(HARNESS, name="capstone/correct, short letters", body_bytes=SHORT_BODY_BYTES)
subject_hasty_short = describe(
    HARNESS, name="capstone/correct, short letters, hasty model", persona="hasty", body_bytes=SHORT_BODY_BYTES
)
subject_fresh = subjects.started_again(HARNESS, name="capstone/correct, started again")
subject_waiting = subjects.asking(HARNESS, desk=HARNESS, name="capstone/correct, a question")
subject_waiting_hasty = subjects.asking(
    HARNESS, desk=HARNESS, name="capstone/correct, a question, hasty model", persona="hasty"
)
subject_turns = subjects.capped(replace(HARNESS, cap=Caps(turns=TURNS)), name="capstone/correct, a cap on turns")
subject_tokens = subjects.capped(replace(HARNESS, cap=Caps(tokens=TOKENS)), name="capstone/correct, a cap on tokens")
subject_poison = subjects.poisoned(HARNESS, name="capstone/correct, a poisonous call")
