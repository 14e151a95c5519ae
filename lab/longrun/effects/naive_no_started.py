"""The one fault: no mark (S) is saved before an act, so a resume must take every open call for one that was begun.

That is safe, and it asks a person about pages that nobody has begun to send. Which calls were begun is what a
process knows best, and it takes one save to say so.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.effects import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.resume.without_ledger import reopen
from longrun.subjects import describe

HARNESS = replace(correct.HARNESS, save_points=correct.HARNESS.save_points - {"S"}, reopen=reopen)

subject = describe(HARNESS, name="effects/naive_no_started", persona="hasty", body_bytes=SHORT_BODY_BYTES)
