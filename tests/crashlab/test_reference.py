"""The recorded run of a program that is ended at an ack: it must stand between two calls when it dies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import pytest

from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.observation import RawRecording
from crashlab.record.strace.mapped import HOLD_US
from crashlab.recover.place import base_tree
from crashlab.reference import record_twice
from tests.crashlab.here import needs_strace

if TYPE_CHECKING:
    from crashlab.recover.host import Host

OPS = (t.Create(n=1, path="dir/a", inode=4, mode=0o644), t.Ack(n=2, value=1))
LAST = base_tree().apply(OPS[0])
LATER = LAST.apply(t.Create(n=3, path="dir/b", inode=5, mode=0o644))


class EndedAtAnAck:
    """A program that dies inside a call unless every call is held for ``long_enough_us``."""

    def __init__(self, how: str, long_enough_us: int) -> None:
        self.root, self.traced = "/r", cast("dict[str, int] | None", None)
        self.how, self.long_enough_us = how, long_enough_us
        fields = {"kind": "Commands", "stop_after_acks": 1, "has_check": True, "atomic": False, "rebuilt": ()}
        self.description: dict[str, Any] = {"timeout_s": 1.0, **fields}

    def record(self, **_: Any) -> RawRecording:
        """One run."""
        inside = (self.traced or {}).get("hold_us", 0) < self.long_enough_us
        last = LATER if inside and self.how == "file" else LAST
        unseen = ("process 7 was started by something that strace did not show",) if inside and last is LAST else ()
        return RawRecording(root="/r", base=base_tree(), ops=OPS, last=last, how="signal", unseen=unseen)


@needs_strace
@pytest.mark.parametrize("how", ["file", "process"])
def test_a_program_that_died_inside_a_call_is_held_at_its_calls(how: str) -> None:
    """What the call had done, or the child that it had made, nobody has told; held longer, it has not begun."""
    for long_enough_us in (0, HOLD_US, 4 * HOLD_US):
        host = EndedAtAnAck(how, long_enough_us)
        recorded = record_twice(cast("Host", host))
        assert recorded.usable, recorded.unmeasured
        assert (host.traced or {}).get("hold_us", 0) == long_enough_us


@needs_strace
def test_what_holding_does_not_mend_is_not_believed() -> None:
    """The loop has an end, and says so."""
    recorded = record_twice(cast("Host", EndedAtAnAck("file", 1 << 60)))
    assert [reason.code for reason in recorded.unmeasured] == ["unseen-writer"]
    assert "calls that strace shows" in recorded.unmeasured[0].next


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, math.nan, math.inf])
def test_a_time_limit_that_is_none_is_a_misuse(timeout_s: float) -> None:
    """Nothing runs, and nobody is said to have taken longer than less than no time."""
    host = EndedAtAnAck("file", 0)
    host.description["timeout_s"] = timeout_s
    with pytest.raises(UsageError, match="expected a number of seconds above 0"):
        record_twice(cast("Host", host))
