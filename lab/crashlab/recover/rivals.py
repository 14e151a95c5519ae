"""Two owners of one place at the same time: the worker starts both, stops them at their gates, and lets them go on.

Each has a nursery of its own, so that both live in the worker's namespace and all that one of them starts is found
and ended with it. In order: the first owner runs up to its op; the second one enters and runs to its end, or up to
an op of its own; the first goes on to its end; then the second does, if it was stopped.

A wait is no hang: where the one that runs waits for the one that is stopped (the kernel lists it as waiting for a
lock, or for :data:`PATIENCE_S` it told no op, mostly slept and met no slow disk), it is frozen as it waits (SIGSTOP),
and the other goes on to its end; then it goes on itself. Were it let wait, the release of a lock would let both run
at once, in an order that chance makes. What follows a release is tried all the same: by the points behind it. Only
where each waits for the other, both run. Taking a slow owner for a waiting one would be no lie, since that order is
possible too, but another race than the one that was asked for: it may hide a finding.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import directory
from crashlab.live.race import FIRST, SECOND
from crashlab.recover import place, sweep, wire
from crashlab.recover.child import Job
from crashlab.recover.nursery import Nursery
from crashlab.recover.watch import Ended, Follower, Output

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from crashlab.recover.nursery import LaunchFor
    from crashlab.recover.wire import Message

GLANCE_S = 0.02
"""So often, and no more often, it is looked whether the one that runs waits for somebody."""
PATIENCE_S = 0.5
"""An owner that tells no op for so long, did not compute for half of it, and was never seen to wait for a disk, waits
for the other one. A stall of the machine shows as one of these two; a sleep of its own for so long does not.
"""
_BUSY = 0.5
_KILL_AGAIN_S = 0.05
_GONE = getattr(select, "POLLRDHUP", 0)
_SECOND_NUMBERS_FROM = 1_000_000
"""Inodes that the second owner makes are numbered from here on, so that no two have one number."""
_FIFO_BYTES = 60_000
"""What a FIFO takes at once; numbers that need more are left out, and the files then are strangers to the recorder."""


class Gone(Exception):  # noqa: N818 - no accident: nobody waits for the answer any more
    """The main process closed the connection while owners were running."""


class _OwnerFollower(Follower):
    """Follows one owner; ``stopped`` once it stands at its gate, ``numbers`` those that it told last."""

    stopped = False
    numbers: Sequence[Sequence[int]] = ()

    def said(self, message: dict[str, Any]) -> None:
        self.numbers = message["numbers"]
        self.stopped = message.get("stopped", False)
        self.limit.deadline = math.inf if self.stopped else self.limit.deadline


class Seat:
    """One owner: its nursery and pipes, and what has come of it."""

    def __init__(self, name: str, launch_for: LaunchFor, unwanted: Callable[[], None], folder: str) -> None:
        self.name = name
        self.go = os.path.join(folder, f"go-{name}")
        self.output = Output()
        self.nursery = Nursery(launch_for, self.output, unwanted)
        self.follower: _OwnerFollower
        self.ended: Ended | None = Ended()  # nothing runs
        self.killed = False
        self.frozen: list[int] = []
        self.ops = 0
        self._gate = -1

    def start(self, job: Job, limit_s: float, import_limit_s: float, take: Callable[[Message], None]) -> None:
        """Start the owner. ``limit_s`` is for each of its stretches of running."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.go)
        os.mkfifo(self.go, 0o600)
        self._gate = os.open(self.go, os.O_RDWR | os.O_CLOEXEC)  # both ends: then it opens at once, on either side
        self.ended, self.killed, self.ops = None, False, 0

        def counted(op: Message) -> None:
            self.ops += 1
            take(op)

        deadline = time.monotonic() + limit_s + import_limit_s
        lines = wire.Lines(wire.FRAME_LIMIT_BYTES)
        self.follower = _OwnerFollower(self.nursery.answers, lines, counted, limit_s, deadline)
        self.follower.ready = not import_limit_s  # a fresh interpreter says when it has imported the subject
        self.nursery.start(vars(job))

    @property
    def stopped(self) -> bool:
        """Whether it stands at its gate."""
        return self.ended is None and self.follower.stopped

    @property
    def dying(self) -> bool:
        """Whether it stands at its gate, and somebody has sent it SIGKILL."""
        return self.stopped and sweep.CAN_SWEEP and all(map(sweep.is_dying, self.pids()[:1]))

    @property
    def running(self) -> bool:
        """Whether it lives and is neither stopped nor frozen."""
        return self.ended is None and not self.follower.stopped and not self.frozen

    @property
    def begun(self) -> bool:
        """Whether it has come to what the owner does."""
        return self.follower.ready

    def release(self, numbers: Sequence[Sequence[int]]) -> None:
        """Let it go on, with the numbers of inodes that the other one knows."""
        self._send(numbers, go=True)
        self.follower.stopped = False
        self.allow()

    def freeze(self) -> None:
        """Hold all its processes as they are, in the midst of a wait; also those that one of them was just making."""
        while more := sweep.freeze(pid for pid in self.pids() if pid not in self.frozen):
            self.frozen += more

    def thaw(self, numbers: Sequence[Sequence[int]]) -> None:
        """Let them go on, as :meth:`release` does."""
        self._send(numbers, go=False)  # it may have a gate yet to come to, and is to stop there
        sweep.thaw(self.frozen)
        self.frozen = []
        self.allow()

    def _send(self, numbers: Sequence[Sequence[int]], *, go: bool) -> None:
        text, bare = (json.dumps({"go": go, "numbers": each}).encode() + b"\n" for each in (list(numbers), []))
        os.write(self._gate, text if len(text) <= _FIFO_BYTES else bare)

    def allow(self) -> None:
        """A new time limit, from now on."""
        self.follower.limit.begin()

    def kill(self) -> None:
        """SIGKILL for the owner and all below it; its nursery tells the end as of any other process."""
        for pid in sweep.descendants(self.nursery.pid):
            sweep.kill(pid)
        if self.follower.pid:
            sweep.kill_group(self.follower.pid)
        self.follower.limit.deadline = time.monotonic() + _KILL_AGAIN_S

    def end(self) -> None:
        """Its nursery has told the end, or has died."""
        end = self.nursery.ended()
        self.killed = self.stopped or bool(self.frozen)  # it stood still: somebody has ended it
        self.frozen = []
        self.ended = self.follower.finish(None if end is None else end[0])
        self.ended.left = end[2] if end is not None and self.ended.how != "hang" else ()
        self.ended.stdout, self.ended.stderr = self.output.finish()
        os.close(self._gate)
        os.unlink(self.go)
        if end is None:
            for pid in sweep.descendants(self.nursery.pid):
                sweep.kill(pid)
            self.nursery.close()
            self.nursery.open()

    def pids(self) -> list[int]:
        """The owner's processes."""
        return sweep.descendants(self.nursery.pid)


def _lock_waiters() -> set[int]:
    """The processes that wait for a lock of a file: the lines with an arrow in ``/proc/locks`` (proc(5))."""
    try:
        with open("/proc/locks", encoding="ascii") as file:
            words = [line.split() for line in file]
    except OSError:  # no such file on this system
        return set()
    return {int(line[5]) for line in words if len(line) > 5 and line[1] == "->" and line[5].isdigit()}  # noqa: PLR2004 - the sixth word is the process


class Patience:
    """Finds out whether one owner waits for the other, asked when :attr:`is_due`."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._looked = time.monotonic()
        self._begin(seat.pids())

    def _begin(self, pids: Sequence[int]) -> None:
        """A new stretch of time, which is judged by what is seen in it alone."""
        self._since, self._ops = time.monotonic(), self._seat.ops
        self._used_s = sum(sweep.used_s(pid) for pid in pids)
        self._looks, self._busy, self._disk = 0, 0, False

    @property
    def is_due(self) -> bool:
        """Whether the last look is so long ago that another one is worth its price."""
        return time.monotonic() - self._looked >= GLANCE_S

    def is_over(self) -> bool:
        """Whether it waits: the kernel says so, or it has told nothing for too long, and was not held up itself."""
        self._looked, pids = time.monotonic(), self._seat.pids()
        if set(pids) & _lock_waiters():
            return True
        doing = set().union(*map(sweep.doing, pids))
        self._looks += 1
        self._busy += "R" in doing
        self._disk = self._disk or "D" in doing
        for_s = time.monotonic() - self._since
        if for_s < PATIENCE_S and self._seat.ops == self._ops:
            return False
        used_s = sum(sweep.used_s(pid) for pid in pids) - self._used_s
        idle = used_s < _BUSY * for_s and self._busy < _BUSY * self._looks and not self._disk
        waits = idle and self._seat.ops == self._ops and self._seat.begun
        self._begin(pids)
        return waits


class Rivals:
    """Runs pairs of owners for one worker."""

    def __init__(
        self,
        control: socket.socket,
        root: str,
        launch_for: LaunchFor,
        import_limit_s: float,
        forget: Callable[[], None],
    ) -> None:
        self._control, self._root, self._import_limit_s = control, root, import_limit_s
        self._forget = forget
        self._folder = os.path.dirname(root)
        self._record = os.path.join(self._folder, "outside-record")
        self._seats: list[Seat] = []
        for name in (FIRST, SECOND):
            self._seats.append(Seat(name, launch_for, self._forget_all, self._folder))
        self.first, self.second = self._seats
        self._ops: list[tuple[str, Message]] = []
        self._turns: list[tuple[str, int]] = []

    def _forget_all(self) -> None:
        """In a nursery: close what belongs to the worker and to the other nursery."""
        self._forget()
        for seat in self._seats:
            seat.nursery.link.close()

    def run(self, request: Message) -> Message:
        """Two owners, as the request says, and everything that came of them."""
        place.refill(self._root, place.base_tree())
        base, numbers = directory.read_numbered(self._root)
        with open(self._record, "wb"):
            pass  # empty
        self._ops, self._turns = [], []
        known = [(device, inode, number) for (device, inode), number in numbers.items()]
        self._turn(FIRST)
        self._start(self.first, request, request["after"], known)
        self._follow([self.first], lambda: self.first.stopped or self.first.ended is not None)
        reached = self.first.ops if self.first.stopped else None
        waited = ""
        if reached is not None:
            waited = self._both(request)
        with open(self._record, "rb") as file:
            record = [json.loads(line) for line in file]
        os.unlink(self._record)
        assert self.first.ended is not None
        return {
            "base": base.to_json(),
            "last": directory.read(self._root).to_json(),
            "ops": [[who, op] for who, op in self._ops],
            "turns": self._turns,
            "record": record,
            "reached": reached,
            "waited": waited,
            "owners": [
                {**seat.ended.form(), "watched": seat.ended.watched, "killed": seat.killed}
                for seat in self._seats
                if reached is not None and seat.ended is not None
            ],
        }

    def _both(self, request: Message) -> str:
        """From the stop of the first owner to the end of both. Returns who waited for the other one, "" for nobody."""
        first, second = self.first, self.second
        known = [*first.follower.numbers, (0, 0, _SECOND_NUMBERS_FROM)]
        self._turn(SECOND)
        self._start(second, request, request["switch"], known)
        if not self._follow([second], lambda: second.stopped or second.ended is not None, waits=True):
            self._alone(first, second)
            return SECOND
        stopped = second.stopped
        self._go(first, second.follower.numbers)
        if not self._follow([first], lambda: first.ended is not None, waits=stopped):
            self._alone(second, first)
            return FIRST
        if second.stopped:
            self._go(second, first.follower.numbers)
        self._to_the_end()
        return ""

    def _alone(self, seat: Seat, waiting: Seat) -> None:
        """``waiting`` waits for ``seat``, which goes on alone until it ends or waits in its turn; then both run."""
        waiting.freeze()
        self._go(seat, ())
        self._follow([seat], lambda: seat.ended is not None, waits=True)
        if waiting.frozen:  # else the other one has ended it
            self._turn(waiting.name)
            waiting.thaw(seat.follower.numbers)
        self._to_the_end()

    def _go(self, seat: Seat, numbers: Sequence[Sequence[int]]) -> None:
        if seat.dying:  # the other owner has ended it, and nobody has told yet
            self._follow([seat], lambda: seat.ended is not None)
        if seat.stopped:
            self._turn(seat.name)
            seat.release(numbers)

    def _turn(self, who: str) -> None:
        """From here on ``who`` runs, beside whoever runs already."""
        self._turns.append((who, len(self._ops)))

    def _to_the_end(self) -> None:
        """All that live run. One that outlives the other gets its time again: it may have waited for that end.

        One that has waited before it came to its gate does not stop there: the other one has gone on already.
        """
        while alive := [seat for seat in self._seats if seat.ended is None]:
            for seat in alive:
                if seat.stopped:
                    seat.release(())
                seat.allow()
            self._follow(alive, partial(self._changed, alive))

    @staticmethod
    def _changed(seats: Sequence[Seat]) -> bool:
        return any(seat.stopped or seat.ended is not None for seat in seats)

    def _start(self, seat: Seat, request: Message, after: int | None, numbers: Sequence[Sequence[int]]) -> None:
        form = {
            "who": seat.name,
            "after": after,
            "go": seat.go,
            "record": self._record,
            "nothing": request["nothing"],
        }
        job = Job(
            race=form,
            numbers=tuple(tuple(each) for each in numbers),
            outside=tuple(request["outside"]),
            stop_after_acks=request["stop_after_acks"],
        )
        limit_s = request["limit_s"] if seat is self.first else request["timeout_s"]
        seat.start(job, limit_s, self._import_limit_s, lambda op: self._ops.append((seat.name, op)))

    def _follow(self, seats: Sequence[Seat], until: Callable[[], bool], *, waits: bool = False) -> bool:
        """Read what both say until ``until()``; the time of these ``seats`` counts.

        With ``waits``: False as soon as the first of them waits for the other owner.
        """
        poll, readers = self._polled()
        patience = Patience(seats[0]) if waits else None
        while not until():
            now = time.monotonic()
            running = [seat for seat in seats if seat.running]
            for seat in running:
                if seat.follower.limit.deadline <= now and seat.follower.is_over(seat.pids):
                    seat.kill()
            wait_s = min((seat.follower.limit.deadline for seat in running), default=math.inf) - now
            wait_s = min(wait_s, GLANCE_S) if waits else wait_s
            for descriptor, _ in poll.poll(None if wait_s == math.inf else max(wait_s, 0) * 1000):
                readers[descriptor]()
            if patience is not None and seats[0].running and patience.is_due and patience.is_over():
                return False
        return True

    def _polled(self) -> tuple[select.poll, Mapping[int, Callable[[], object]]]:
        def gone() -> None:
            raise Gone

        """What to read, of both: a stopped owner may be ended by the other one."""
        poll, readers = select.poll(), dict[int, Any]()
        poll.register(self._control, _GONE)
        readers[self._control.fileno()] = gone
        for seat in self._seats:
            if seat.ended is not None:
                continue
            readers[seat.nursery.answers] = seat.follower.read
            readers[seat.nursery.link.fileno()] = seat.end
            for reader in seat.output.readers:
                readers[reader] = lambda output=seat.output, reader=reader: output.read(reader)
        for descriptor in readers:
            if descriptor != self._control.fileno():
                poll.register(descriptor, select.POLLIN)
        return poll, readers
