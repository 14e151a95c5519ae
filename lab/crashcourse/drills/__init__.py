"""The small exercises beside a lesson's graded pair: :data:`DRILLS` maps the name of each to its drill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.drills import branches, mending, torn, views

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashcourse.drills.drill import Drill

DRILLS: Mapping[str, Drill] = {
    "a2_three_projections": views.DRILL,
    "a4_torn_or_damaged": torn.DRILL,
    "a5_repair_as_fact": mending.DRILL,
    "a8_branch_same_log": branches.DRILL,
}
