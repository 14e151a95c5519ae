"""Resume that answers every open call once: kept as they were saved, then reconciled one by one.

The table is :mod:`longrun.resume.reconcile`; the saves are those of :mod:`longrun.checkpoint.correct`.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.checkpoint import correct
from longrun.resume.reconcile import decide, reopen
from longrun.subjects import describe

HARNESS = replace(correct.HARNESS, reopen=reopen, decide=decide)

subject = describe(HARNESS, name="resume/correct")
subject_hasty = describe(HARNESS, name="resume/correct, hasty model", persona="hasty")
