"""Recoveries, recorded: each from one crash state, watched as the first run was, and proved as it was.

A recovery that the lab cannot see whole, or that ends otherwise than it does unwatched, is a reason
against a pass: its crash states would be made up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.asking import met
from crashlab.crash.ids import state_of
from crashlab.crash.losses import losses_of
from crashlab.crash.nested import Recovery, is_power
from crashlab.crash.profiles import parse_profiles
from crashlab.record.proof import replay_proof
from crashlab.reference import CHILD_STARTED, RECORDED_RUN_FACTOR
from crashlab.report.model import UnmeasuredReason
from crashlab.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashlab.crash.kill import Cut
    from crashlab.crash.losses import Losses
    from crashlab.crash.profiles import Profile
    from crashlab.crash.states import CrashState
    from crashlab.demands import Reference
    from crashlab.observation import RawRecording
    from crashlab.recover.host import Host

_IDLE = (t.Fsync, t.Sync, t.Call, t.Ack, t.SavePoint, t.Unknown)
"""Ops that leave disk and outside world as they are: a recovery of these alone cannot be caught half done."""


class Recoveries:
    """Records recoveries of one subject, or takes them from ``stored``: base and ops by the id of the crash.

    ``profiles`` is the list of file systems of a power loss; ``bounds`` are options of
    :class:`~crashlab.crash.losses.Losses`.
    """

    def __init__(
        self,
        host: Host,
        reference: Reference,
        *,
        profiles: str,
        at: Cut = "page",
        stored: Mapping[str, Any] | None = None,
        **bounds: Any,
    ) -> None:
        self._host, self._reference, self._at, self._bounds = host, reference, at, bounds
        self._profiles, self._stored = profiles, stored or {}
        self.unmeasured: list[UnmeasuredReason] = []
        self.recorded = 0
        self.latest: RawRecording | None = None

    def recovery(self, outer: CrashState) -> Recovery:
        """The recovery from ``outer``, and what crashes of it leave."""
        if stored := self._stored.get(outer.id):
            base, ops = Tree.from_json(stored["base"]), tuple(t.op_from_json(op) for op in stored["ops"])
        else:
            base, ops = self._record(outer)
        rebuilt = self._reference.rebuilt
        allowed = self._allowed(outer)
        return Recovery(outer, base, ops, profiles=allowed, rebuilt=rebuilt, at=self._at, **self._bounds)

    def follow(self, state_id: str) -> CrashState:
        """The state of an id of any depth. Raises UsageError where there is none."""
        first, *crashes = state_id.split("/")
        state = state_of(self._reference.trace, first, profile=self._profiles, rebuilt=self._reference.rebuilt)
        for crash in crashes:
            state = self.recovery(state).one(crash)
        return state

    def request(self, outer: CrashState) -> dict[str, Any]:
        """What :meth:`Host.record` needs to run the recovery from ``outer``."""
        step = {"step": "first", "nothing": self._reference.nothing.get("error")}
        return {**met(outer), "step": step, "expected": self._reference.end}

    @property
    def limit_s(self) -> float:
        """The time limit of one recording, in seconds."""
        return float(self._host.description["timeout_s"]) * RECORDED_RUN_FACTOR

    def _record(self, outer: CrashState) -> tuple[Tree, tuple[t.Op, ...]]:
        recording = self._host.record(recovery=self.request(outer), timeout_s=self.limit_s)
        self.recorded, self.latest = self.recorded + 1, recording
        trace = t.Trace(root=recording.root, base=recording.base, ops=recording.ops)
        self._look_at(outer, recording, replay_proof(trace, recording.last, self._reference.rebuilt))
        return recording.base, recording.ops

    def _allowed(self, outer: CrashState) -> tuple[Profile, ...]:
        """The file systems on which the first crash could leave this: a second one meets no other."""
        profiles, state = parse_profiles(self._profiles), outer
        while not is_power(state):
            if state.within is None:
                return profiles
            state = state.within.outer
        names = self._losses(state).possible(state)
        return tuple(each for each in profiles if str(each) in names)

    def _losses(self, state: CrashState) -> Losses:
        if state.within is not None:
            return state.within.losses
        return losses_of(self._reference.trace, parse_profiles(self._profiles), self._reference.rebuilt)

    def _look_at(self, outer: CrashState, recording: RawRecording, differing: tuple[str, ...]) -> None:
        """Note what makes a recording unfit to be crashed again."""
        hidden = tuple(text for text in recording.unseen if not text.startswith(CHILD_STARTED))
        where = f"recovery of {outer.id}"
        if differing or hidden:
            text = f"{where}: {'; '.join((differing or hidden)[:3])} (traced / real): no op explains it."
            advice = "From inside of Python only its own writes of that process are seen; recorder='strace' sees more."
            if self._host.watches_from_outside:
                advice = "Write these files by calls that strace shows with their bytes, such as write and rename."
            self._doubt("unseen-writer", text, advice)
        if recording.outside_writes:
            text = f"{where} wrote outside its directory: {', '.join(recording.outside_writes[:5])}."
            self._doubt("outside-write", text, "Move these files under lab.dir, or list them in outside=[…].")
        if recording.how == "hang":
            text = f"{where} did not end in {self.limit_s:g} s while it was recorded."
            self._doubt("time-limit", text, "Raise timeout_s where it is only slow.")
        elif recording.how != "returned":
            text = f"{where} returned unwatched, and under the recorder {recording.how}: {recording.error}"
            self._doubt("checker-failed", text, "Please report this with the run folder.")

    def _doubt(self, code: str, detail: str, advice: str) -> None:
        if not any(reason.code == code for reason in self.unmeasured):
            self.unmeasured.append(UnmeasuredReason(code=code, detail=detail, next=advice))


def acts(recovery: Recovery) -> bool:
    """Whether a recovery changes a file or does something outside."""
    return any(not isinstance(op, _IDLE) for op in recovery.ops)
