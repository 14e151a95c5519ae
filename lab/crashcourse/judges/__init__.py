"""One module per kind of exercise: :data:`JUDGES` maps the name in ``exercise.toml`` to what judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.judges import (
    audit,
    drill,
    effects_ledger,
    lines,
    log_and_repair,
    loss_inventory,
    missing_fields,
    rerun_price,
    resume_loop,
    save_points,
    saves,
    scenes,
    tail_or_damage,
    twice,
    ways_back,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crashcourse.judging import Bench
    from crashcourse.result import Outcome

Judge = "Callable[[Bench], list[Outcome]]"
JUDGES: Mapping[str, Callable[[Bench], list[Outcome]]] = {
    "audit": audit.judge,
    "drill": drill.judge,
    "effects_ledger": effects_ledger.judge,
    "lines": lines.judge,
    "log_and_repair": log_and_repair.judge,
    "loss_inventory": loss_inventory.judge,
    "missing_fields": missing_fields.judge,
    "rerun_price": rerun_price.judge,
    "resume_loop": resume_loop.judge,
    "save_points": save_points.judge,
    "saves": saves.judge,
    "scenes": scenes.judge,
    "tail_or_damage": tail_or_damage.judge,
    "twice": twice.judge,
    "ways_back": ways_back.judge,
    "whole": whole.judge,
}
