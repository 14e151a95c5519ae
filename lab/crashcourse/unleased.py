"""The whole harness without a lease, its run kept in one file: what two owners do where nothing else stops them.

Beside points a missing lease is half as bad: a number that is taken is refused, and so is an act under the lock of the
shared ledger. In one file the later save wins, whoever makes it.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.capstone.naive_no_lease import Unowned
from longrun.checkpoint import correct

HARNESS = replace(correct.HARNESS, lease=Unowned)
