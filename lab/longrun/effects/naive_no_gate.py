"""The one fault: the ledger is asked for calls that a dead process had begun, and for no others.

A resume answers those rightly. A call that was not begun yet just runs, and the one with which the hasty model
names an unknown reply again is one of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.effects import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.resume import reconcile
from longrun.resume.reconcile import Decision
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.resume.reconcile import Evidence


def decide(evidence: Evidence) -> Decision:
    """The table for what was begun; anything else is run."""
    return reconcile.decide(evidence) if evidence.started else Decision.RUN


HARNESS = replace(correct.HARNESS, decide=decide)

subject = describe(HARNESS, name="effects/naive_no_gate", persona="hasty", body_bytes=SHORT_BODY_BYTES)
