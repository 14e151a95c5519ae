"""One module per kind of exercise: :data:`JUDGES` maps the name in ``exercise.toml`` to what judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.judges import loss_inventory, missing_fields, rerun_price, save_points, saves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crashcourse.judging import Bench
    from crashcourse.result import Outcome

Judge = "Callable[[Bench], list[Outcome]]"
JUDGES: Mapping[str, Callable[[Bench], list[Outcome]]] = {
    "loss_inventory": loss_inventory.judge,
    "missing_fields": missing_fields.judge,
    "rerun_price": rerun_price.judge,
    "saves": saves.judge,
    "save_points": save_points.judge,
}
