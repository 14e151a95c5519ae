"""Acts that are done once, or honestly unknown: named by what they are, marked, done, recorded, asked for before each.

The order is :mod:`longrun.effects.acting`, the gate is :mod:`longrun.resume.reconcile`, the record is
:mod:`longrun.ledger`, and the name of an act is :func:`longrun.tools.act_key`. From this lesson on a
harness is judged with the hasty model.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.checkpoint import correct
from longrun.effects.acting import act, close
from longrun.ledger import open_ledger
from longrun.resume.reconcile import decide
from longrun.subjects import describe
from longrun.tools import act_key

HARNESS = replace(correct.HARNESS, key=act_key, decide=decide, act=act, close=close, ledger=open_ledger)

subject = subject_hasty = describe(HARNESS, name="effects/correct, hasty model", persona="hasty")
subject_careful = describe(HARNESS, name="effects/correct")
