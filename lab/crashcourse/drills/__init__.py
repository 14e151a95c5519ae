"""The small exercises beside a lesson's graded pair: :data:`DRILLS` maps the name of each to its drill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.drills import torn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashcourse.drills.drill import Drill

DRILLS: Mapping[str, Drill] = {
    "a4_torn_or_damaged": torn.DRILL,
}
