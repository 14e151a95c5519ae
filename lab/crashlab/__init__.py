"""A test lab that kills your program wherever it writes, and checks what it makes of the rest.

>>> from crashlab import Store, check                                     # doctest: +SKIP
>>> check(Store(save=save_checkpoint, load=load_checkpoint))              # doctest: +SKIP

Names are imported when they are first used: ``import crashlab`` loads no stage of the lab, since it
also happens in every process in which a subject runs and recovers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crashlab.errors import Unmeasured, UsageError, Violation
    from crashlab.lab import Lab
    from crashlab.pipeline import check, explore
    from crashlab.report.model import Finding, Report
    from crashlab.subject import Budget, Commands, Log, Policy, Store, Subject

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Commands",
    "Finding",
    "Lab",
    "Log",
    "Policy",
    "Report",
    "Store",
    "Subject",
    "Unmeasured",
    "UsageError",
    "Violation",
    "check",
    "explore",
]

_HOMES = {
    "crashlab.errors": ("Unmeasured", "UsageError", "Violation"),
    "crashlab.pipeline": ("check", "explore"),
    "crashlab.lab": ("Lab",),
    "crashlab.report.model": ("Finding", "Report"),
    "crashlab.subject": ("Budget", "Commands", "Log", "Policy", "Store", "Subject"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        text = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(text)
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
