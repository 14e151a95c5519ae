"""The one fault: an act that is not in the ledger has not been done, so it is run, begun or not.

Between the act and its record the ledger does not know of it yet. Killed there, the process has sent the reply,
and the next one sends it again: the mark that says "begun" is saved, and is not read.
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
    """The table, but for the one row on what was begun and is not recorded."""
    return Decision.RUN if evidence.record is None else reconcile.decide(evidence)


HARNESS = replace(correct.HARNESS, decide=decide)

subject = describe(HARNESS, name="effects/naive_miss_runs", persona="hasty", body_bytes=SHORT_BODY_BYTES)
