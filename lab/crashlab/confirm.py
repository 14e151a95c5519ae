"""Real deaths beside the computed ones: the model is held against SIGKILL in every check.

A seeded sample of crash points is killed for real: the workload runs again under the recorder and its
process dies by SIGKILL after op n, or inside a write. The directory that is really there then must
be, byte for byte, what the ops of that very run give. A difference means that the lab must not be
believed here, and both trees are shown.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.crash.kill import cut_points
from crashlab.crash.states import Prefixes
from crashlab.errors import LabError, UsageError
from crashlab.record.proof import without_rebuilt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from crashlab.observation import RawRecording
    from crashlab.recover.host import Host


@dataclass(frozen=True, slots=True)
class Death:
    """One real kill: its id, and how the real directory differs from the computed one (empty: not at all)."""

    state: str
    difference: tuple[str, ...]


def sample(trace: t.Trace, *, count: int, seed: int) -> list[tuple[int, int]]:
    """Seeded kill points ``(n, cut)``: after op n, or ``cut`` bytes into op n. Cuts get half of the places.

    >>> from crashlab.tree import Tree
    >>> sample(t.Trace(root="/r", base=Tree.empty(), ops=()), count=3, seed=0)
    [(0, 0)]
    """
    inside = [(op.n, cut_bytes) for op in trace.ops for cut_bytes in cut_points(op)]
    between = [(n, 0) for n in range(len(trace.ops) + 1)]
    chooser = random.Random(seed)  # noqa: S311 - a reproducible sample, no secret
    cuts = chooser.sample(inside, min(len(inside), count // 2))
    return sorted(cuts + chooser.sample(between, min(len(between), count - len(cuts))))


def calls_at(recording: RawRecording, points: list[tuple[int, int]]) -> dict[int, tuple[str, int]]:
    """Of a run that was watched from outside: after which of these ops it can be killed for real, and by which call.

    Cuts inside a write are not among them. Raises UsageError where none can.
    """
    # Few checks watch from outside, and the others would load the whole recorder.
    from crashlab.record.python import Watched  # noqa: PLC0415 - see above
    from crashlab.record.strace.watching import Finished, kill_after  # noqa: PLC0415 - see above

    watched = Watched((), (), recording.threads)
    counts = {(pid, name): count for pid, name, count in recording.calls}
    finished = Finished(0, "", watched, origins=recording.origins, first=recording.first, counts=counts)
    found: dict[int, tuple[str, int]] = {}
    why = "no point between two ops was chosen"
    for n, cut_bytes in points:
        try:
            found.update({} if cut_bytes else {n: kill_after(finished, n)})
        except UsageError as error:
            why = str(error)
    if not found:
        raise UsageError(why)
    return found


def kill_traced_for_real(
    host: Host,
    calls: Mapping[int, tuple[str, int]],
    *,
    timeout_s: float,
    recovery: dict[str, Any] | None = None,
    progress: Callable[[int], None] = lambda _done: None,
) -> list[Death]:
    """Kill a program that is watched from outside at each of these calls, and compare; with ``recovery`` that one.

    How often a program makes a call may differ from run to run, so it may die elsewhere, or not at all. Each
    death is held against the ops of its own run, wherever it fell; a run that did not die is none.
    """
    deaths = []
    for done, call in enumerate(calls.values(), start=1):
        traced = {**(host.traced or {}), "kill_call": call}
        recording = host.record(traced=traced, recovery=recovery, timeout_s=timeout_s)
        if recording.how == "signal":
            deaths.append(compare(recording, len(recording.ops), 0, host.description["rebuilt"]))
        progress(done)
    return deaths


def kill_for_real(
    host: Host,
    points: list[tuple[int, int]],
    *,
    timeout_s: float,
    recovery: dict[str, Any] | None = None,
    progress: Callable[[int], None] = lambda _done: None,
) -> list[Death]:
    """Kill a real process at each point and compare; with ``recovery``, as :meth:`Host.record` takes it, that."""
    deaths = []
    for done, (n, cut_bytes) in enumerate(points, start=1):
        deaths.append(_die(host, n, cut_bytes, timeout_s, recovery))
        progress(done)
    return deaths


def _die(host: Host, n: int, cut_bytes: int, timeout_s: float, recovery: dict[str, Any] | None) -> Death:
    """One real death. A run that takes fewer ops this time is killed at its own end instead."""
    recording = host.record(kill=(n, cut_bytes), recovery=recovery, timeout_s=timeout_s)
    if recording.how == "returned" and (len(recording.ops) < n or cut_bytes):
        n, cut_bytes = min(n, len(recording.ops)), 0
        recording = host.record(kill=(n, cut_bytes), recovery=recovery, timeout_s=timeout_s)
    return compare(recording, n, cut_bytes)


def compare(recording: RawRecording, n: int, cut_bytes: int, rebuilt: Sequence[str] = ()) -> Death:
    """Hold the directory of a process that really died against the one computed from its own ops."""
    name = f"kill@{n}+{cut_bytes}" if cut_bytes else f"kill@{n}"
    if recording.how != "signal":
        return Death(name, (f"the process was to die at {name} and ended by {recording.how} instead",))
    trace = t.Trace(root=recording.root, base=recording.base, ops=recording.ops)
    if len(trace.ops) != n:
        return Death(name, (f"the process was to die at op {n}; {len(trace.ops)} ops were recorded",))
    try:
        computed = Prefixes(trace).tree(n)
    except (LabError, UsageError) as error:
        return Death(name, (str(error),))
    computed, last = (without_rebuilt(tree, rebuilt) for tree in (computed, recording.last))
    return Death(name, tuple(computed.difference(last)))
