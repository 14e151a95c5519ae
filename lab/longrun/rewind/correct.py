"""Rewind and fork that unsend nothing, forget nothing and share no head.

The points are :mod:`longrun.rewind.points`, going back is :mod:`longrun.rewind.timelines`, and the ledger that
all timelines share is :mod:`longrun.rewind.shared_ledger`.
"""

from __future__ import annotations

from longrun.harness import Harness
from longrun.rewind import points, shared_ledger
from longrun.rewind.subjects import Ways, describe, describe_beside

HARNESS = Harness(
    save=points.save,
    load=points.load,
    convert=points.convert,
    ledger=shared_ledger.open_shared,
    lease=points.take,
    history=points.history,
    clear=points.clear,
    claim=shared_ledger.claim,
)
WAYS = Ways(harness=HARNESS)

subject = describe(WAYS, name="rewind/correct")
subject_hasty = describe(WAYS, name="rewind/correct, hasty model", persona="hasty")
subject_beside = describe_beside(WAYS, name="rewind/correct, run and fork at once")
subject_beside_hasty = describe_beside(WAYS, name="rewind/correct, run and fork at once, hasty model", persona="hasty")
