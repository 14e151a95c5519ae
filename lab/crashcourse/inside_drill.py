"""A drill in the child: small functions of the submission, each called on many prepared arguments.

What they give comes back as text; whether it is right is asked outside. Each call gets arguments of its own, so that
what one changes is not the next one's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashcourse.drills.drill import BYTES_AT_MOST, text_of
from crashcourse.inside import Later

if TYPE_CHECKING:
    from collections.abc import Sequence

_ERROR = 300
_LARGEST = 2**16
"""A value of a state is never as long as this."""


@dataclass(frozen=True)
class Calls:
    """All calls of all states: pairs of a function's name and its arguments, a list as JSON.

    ``tests`` is the function that gives the learner's own examples; "" where nobody asks for them.
    """

    path: str
    calls: Sequence[tuple[str, str]]
    tests: str

    def __call__(self, _lab: Any) -> dict[str, Any]:
        """What each gave: ``{"value": JSON}`` or ``{"error": text}``."""
        found = [self._gives(name, given, _LARGEST) for name, given in self.calls]
        return {"calls": found, "tests": self._gives(self.tests, "[]", BYTES_AT_MOST) if self.tests else None}

    def _gives(self, name: str, given: str, most: int) -> dict[str, str]:
        try:
            text = text_of(Later(self.path, name)(*json.loads(given)))
        except Exception as error:  # noqa: BLE001 - what a submission raises is an answer here
            return {"error": f"{type(error).__name__}: {error}"[:_ERROR]}
        if len(text) > most:
            return {"error": f"{name} gave {len(text):,} characters of JSON; at most {most:,} are looked at"}
        return {"value": text}
