"""The one fault: resume runs every open call again, whatever the tool is and whatever the ledger says.

For a read that is right. A reply that was sent just before the kill is sent a second time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.resume.reconcile import Decision
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.resume.reconcile import Evidence


def decide(_evidence: Evidence) -> Decision:
    """Run it."""
    return Decision.RUN


HARNESS = replace(correct.HARNESS, decide=decide)

subject = describe(HARNESS, name="resume/naive_rerun_all", body_bytes=SHORT_BODY_BYTES)
