"""The one fault: there is no ledger, and with it nothing to ask before an act that is named again.

What was begun is still marked, so a resume answers "outcome unknown", and truly. The hasty model names the reply
again, under a new id, and nobody knows that it was ever sent.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.effects import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.resume.without_ledger import NoLedger
from longrun.subjects import describe

HARNESS = replace(correct.HARNESS, ledger=NoLedger.open)

subject = describe(HARNESS, name="effects/naive_no_ledger", persona="hasty", body_bytes=SHORT_BODY_BYTES)
