"""The exit codes of the command line, and what each error comes to."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

from crashlab.errors import LabError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

CONSISTENT, VIOLATION, UNMEASURED, LAB_FAILED, MISUSE, INTERRUPTED = 0, 1, 2, 3, 64, 130


def guarded(work: Callable[[], int], program: str = "crashlab") -> int:
    """Do ``work`` and return its exit code, or that of the error it raised, which ``program`` tells on stderr."""
    try:
        return work()
    except UsageError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return MISUSE
    except LabError as error:
        print(f"{program}: the lab failed: {error}", file=sys.stderr)
        return LAB_FAILED
    except Exception:  # noqa: BLE001 - whatever else escapes is a fault of the lab, told with all it takes to mend it
        traceback.print_exc()
        print(f"{program}: the lab failed; please report this with the lines above", file=sys.stderr)
        return LAB_FAILED
