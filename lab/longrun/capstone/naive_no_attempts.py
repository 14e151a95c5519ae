"""The one fault: nobody counts how often a call was begun, so one that kills its process is made again for ever.

No kill of ours has to come in between: the process dies of the call itself, and the next one begins with it. The run
costs a process each time and never ends, and what was still to be done is never done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.capstone import correct, subjects
from longrun.resume import reconcile

if TYPE_CHECKING:
    from longrun.resume.reconcile import Decision, Evidence


def decide(evidence: Evidence) -> Decision:
    """The row of the table, as if the call had never been begun before."""
    return reconcile.decide(replace(evidence, attempts=0))


HARNESS = replace(correct.HARNESS, decide=decide)

subject = subjects.poisoned(HARNESS, name="capstone/naive_no_attempts")
