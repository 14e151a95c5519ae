"""``python -m crashcourse.drills torn-or-damaged cut@731``: a state of a drill, as a finding names it.

Printed is the function and what it is given, under the public seed: what a learner needs to call it at the desk.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from crashcourse.drills import DRILLS
from crashcourse.marking import PUBLIC_SEED

if TYPE_CHECKING:
    from collections.abc import Sequence

MISUSE = 64


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one state; 64 where there is no such drill or no such state."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    if len(asked) != 2 or asked[0] not in DRILLS:  # noqa: PLR2004 - a drill and a place
        sys.stderr.write(f"usage: python -m crashcourse.drills {'|'.join(DRILLS)} PLACE\n")
        return MISUSE
    for states in DRILLS[asked[0]].states(PUBLIC_SEED).values():
        for state in states:
            if state.place == asked[1]:
                form = {"function": state.function, "given": json.loads(state.given)}
                sys.stdout.write(json.dumps(form, indent=1) + "\n")
                return 0
    sys.stderr.write(f"{asked[0]} has no state {asked[1]!r}; a finding of crashcourse check names one\n")
    return MISUSE


if __name__ == "__main__":
    sys.exit(main())
