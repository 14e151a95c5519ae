"""One module per kind of exercise: :data:`JUDGES` maps the name in ``exercise.toml`` to what judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.judges import (
    effects_ledger,
    loss_inventory,
    missing_fields,
    rerun_price,
    resume_loop,
    save_points,
    saves,
    twice,
    ways_back,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crashcourse.judging import Bench
    from crashcourse.result import Outcome

Judge = "Callable[[Bench], list[Outcome]]"
JUDGES: Mapping[str, Callable[[Bench], list[Outcome]]] = {
    "effects_ledger": effects_ledger.judge,
    "loss_inventory": loss_inventory.judge,
    "missing_fields": missing_fields.judge,
    "rerun_price": rerun_price.judge,
    "resume_loop": resume_loop.judge,
    "saves": saves.judge,
    "save_points": save_points.judge,
    "twice": twice.judge,
    "ways_back": ways_back.judge,
}
