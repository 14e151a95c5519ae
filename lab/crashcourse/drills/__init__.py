"""The small exercises beside a lesson's graded pair: :data:`DRILLS` maps the name of each to its drill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.drills import branches, mending, torn, views

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashcourse.drills.drill import Drill

DRILLS: Mapping[str, Drill] = {
    "projections": views.DRILL,
    "torn-or-damaged": torn.DRILL,
    "repair-as-fact": mending.DRILL,
    "branch-same-log": branches.DRILL,
}
