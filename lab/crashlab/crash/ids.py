"""From the id of a crash state to the state: ``kill@7``, ``kill@7+4096``, ``power@9-3,5d2``, ``damage@a.json:bit:137``.

A crash of a recovery names one crash after the other, ``kill@7/kill@2``. What the recovery did is not in
the trace of the run, so that :mod:`crashlab.crash.nested` follows what stands behind the first stroke; its
docstring tells how such an id is read.

An id is a recipe and no hash, so it means the same on every machine. One of a power loss is read under
the profiles that were asked for: they say what was forced, and so what can be lost at all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crashlab.crash.states import CrashState, no_such_op, prefixes_of
from crashlab.errors import UsageError
from crashlab.subject import REBUILT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab import trace as t

_KILL = re.compile(r"kill@(?P<done>\d+)(?:\+(?P<cut>\d+))?")
_POWER = re.compile(r"power@(?P<done>\d+)(?:-[^/]+)?")


def state_of(
    trace: t.Trace, state_id: str, *, profile: str | None = None, rebuilt: Sequence[str] = REBUILT
) -> CrashState:
    """Follow the recipe ``state_id``. Raises UsageError where it is none, or not one of this trace.

    ``profile`` is a list as :func:`crashlab.check` takes it; the first one that knows the state counts.

    >>> from crashlab import trace as t
    >>> from crashlab.tree import Tree
    >>> state_of(t.Trace(root="/r", base=Tree.empty(), ops=()), "kill@0").done
    0
    """
    if state_id.startswith("damage@"):
        from crashlab.crash.damage import damaged  # noqa: PLC0415 - as below

        return damaged(trace, state_id)
    kill, power = _KILL.fullmatch(state_id), _POWER.fullmatch(state_id)
    match = kill or power
    if match is None:
        nested = " a crash during recovery needs its recorded recovery;" if "/" in state_id else ""
        expected = "kill@7, kill@7+4096, power@9-3 or damage@checkpoint.json:bit:137"
        text = f"{state_id!r} is no state id that this version knows;{nested} expected {expected}"
        raise UsageError(text)
    number = int(match["done"])
    if number > len(trace.ops) or (kill is not None and kill["cut"] is not None and number < 1):
        raise no_such_op(trace, state_id, number)
    if kill is None:
        # Every process that is forked to judge would carry what these modules need.
        from crashlab.crash.losses import losses_of  # noqa: PLC0415 - see above
        from crashlab.crash.profiles import parse_profiles  # noqa: PLC0415 - see above

        return losses_of(trace, parse_profiles(profile), tuple(rebuilt)).one(state_id)
    prefixes = prefixes_of(trace)
    return prefixes.killed(number) if kill["cut"] is None else prefixes.killed(number - 1, int(kill["cut"]))
