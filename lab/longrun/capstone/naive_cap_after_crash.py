"""The one fault: a cap goes by the turns of this process, so it begins anew after each crash.

One crash gives a run up to twice its turns, so one is enough to see it; a loop of crashes never comes to the cap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longrun.caps import Caps
from longrun.capstone import correct, subjects

if TYPE_CHECKING:
    from longrun.protocol import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsOfOneProcess:
    """The caps, held against what came since this process was started."""

    caps: Caps

    def __call__(self, state: Checkpoint, opened: Checkpoint | None) -> dict[str, str] | None:
        """The end, where this process alone has reached it."""
        before = opened.turns if opened else 0
        return self.caps(replace(state, turns=state.turns - before), opened)


HARNESS = replace(correct.HARNESS, cap=CapsOfOneProcess(caps=Caps(turns=correct.TURNS)))

subject = subjects.capped(HARNESS, name="capstone/naive_cap_after_crash")
