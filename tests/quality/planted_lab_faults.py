"""Subjects that sabotage the lab from inside: imported in its servers, they plant a fault there.

Each is a correct store. What is wrong is the lab around it, in the server that imports this module.
``PLANT`` in the environment says which fault.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from crashlab import Subject
from crashlab import trace as t
from crashlab.lab import Lab
from crashlab.record.python import RECORDER
from tests.quality import programs, stores

if TYPE_CHECKING:
    from collections.abc import Callable

PLANT = os.environ.get("PLANT", "")
_real_start = RECORDER.start


def _start_dropping(kind: type[t.Op]) -> Callable[..., None]:
    def start(*arguments: Any, emit: Callable[[t.Op], None], **fields: Any) -> None:
        numbers = iter(range(1, 1_000_000))

        def dropping(op: t.Op) -> None:
            if not isinstance(op, kind):
                emit(dataclasses.replace(op, n=next(numbers)))

        _real_start(*arguments, emit=dropping, **fields)

    return start


if PLANT == "drop writes":
    RECORDER.start = _start_dropping(t.Write)  # type: ignore[method-assign]  # the planted fault
elif PLANT == "drop fsyncs":
    RECORDER.start = _start_dropping(t.Fsync)  # type: ignore[method-assign]  # the planted fault
elif PLANT == "forget effects":
    Lab.history = staticmethod(lambda _effects: [])  # type: ignore[method-assign, assignment]  # the planted fault

STORE = stores.ATOMIC
KEYED = Subject(programs.pay_keyed)
