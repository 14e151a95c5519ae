"""Nothing escapes: every descendant of a process is found, named and ended, daemons included.

On Linux the lab's processes are *subreapers*: a process whose parent ends becomes their child, so
that ``waitpid`` raising ``ChildProcessError`` proves that nothing is left. That costs one call; only
where something does live is ``/proc`` read.

Not covered: systems without subreaper (macOS), where a process that made a session of its own and
lost its parent is out of reach; there only the process group of a step is ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shlex
import signal
import sys
import time
from typing import TYPE_CHECKING

from crashlab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 0.5
"""A process that is ending by itself (a resource tracker, a helper at its end of input) gets this long."""
_KILL_LIMIT_S = 10.0
_FREEZE_LIMIT_S = 5.0
CAN_SWEEP = sys.platform == "linux"
_ENDED = ("Z", "X", "")


def _prctl(option: int, argument: int) -> None:
    if CAN_SWEEP and ctypes.CDLL(None, use_errno=True).prctl(option, argument, 0, 0, 0) != 0:
        text = f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}"
        raise LabError(text)


def become_subreaper() -> None:
    """From now on orphaned descendants become children of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """SIGKILL for this process when its parent ``parent`` ends, also when it has ended already.

    The kernel watches the parent's *thread*: only for children of single-threaded processes.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """All living descendants of ``pid``, parents first; zombies do not live. Linux only, else none."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for child in _children(waiting.pop()):
            waiting.append(child)
            if _state(child) not in _ENDED:
                found.append(child)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found.extend(int(word) for word in file.read().split())
    except OSError:  # the process ended while it was looked at
        return found
    return found


def _state(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):  # the process ended while it was looked at
        return ""


def used_s(pid: int) -> float:
    """How many seconds ``pid`` has computed so far, in all its threads (proc(5): utime, stime); 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):  # the process ended while it was looked at
        return 0.0


def doing(pid: int) -> set[str]:
    """What the threads of ``pid`` do now, as letters of proc(5): R computes or would, D waits for a disk, S for others.

    Empty if it has ended.
    """
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:  # the process ended while it was looked at
        return set()
    return {_state(int(task)) for task in tasks}


def is_dying(pid: int) -> bool:
    """Whether ``pid`` has ended, or was sent a SIGKILL that it has not yet died of (proc(5): SigPnd, ShdPnd)."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = dict(line.split(b":", 1) for line in file.read().splitlines())
        waiting = int(lines[b"SigPnd"], 16) | int(lines[b"ShdPnd"], 16)
    except (OSError, KeyError):  # the process ended while it was looked at
        return CAN_SWEEP
    return bool(waiting >> (signal.SIGKILL - 1) & 1) or _state(pid) in _ENDED


def freeze(pids: Iterable[int]) -> list[int]:
    """SIGSTOP for these processes; returns when each stands still, whatever it was in the midst of, or has ended.

    Those that have ended are not among the returned ones. A lock that one of them waited for is not handed to it
    meanwhile: the wait begins anew (flock(2), fcntl(2)).
    """
    _tell(pids := list(pids), signal.SIGSTOP)
    deadline = time.monotonic() + _FREEZE_LIMIT_S
    while CAN_SWEEP and not all(map(_stands, pids)):
        if time.monotonic() > deadline:
            break  # deep in the kernel, where it does nothing of its own; it stops when it comes out
        os.sched_yield()  # a few microseconds: no event tells that somebody else's child has stopped
    return [pid for pid in pids if not CAN_SWEEP or _state(pid) not in _ENDED]


def thaw(pids: Iterable[int]) -> None:
    """SIGCONT for these processes."""
    _tell(pids, signal.SIGCONT)


def _stands(pid: int) -> bool:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:  # the process ended while it was looked at
        return True
    return all(_state(int(task)) in ("T", "t", *_ENDED) for task in tasks)


def _tell(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def command_line(pid: int) -> str:
    """What ``pid`` runs, without numbers that differ from run to run; "" where it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().rstrip(b"\0").split(b"\0")
        with open("/proc/self/cmdline", "rb") as file:
            ours = file.read().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    if words == ours:
        return "a fork of the subject"
    return shlex.join(os.fsdecode(word) for word in words if word)


def nothing_lives() -> bool:
    """Whether this process has no living child; dead ones are reaped. One call where there is none."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def sweep(*, grace_s: float = GRACE_S) -> tuple[str, ...]:
    """End every descendant of this process; the command lines of those that lived on, sorted.

    Raises LabError where one cannot be ended.
    """
    if nothing_lives() or not CAN_SWEEP:
        return ()
    let_end(grace_s=grace_s)
    names = sorted(name for pid in descendants(os.getpid()) if (name := command_line(pid)))
    end_all()
    return tuple(names)


def end_all(known: Iterable[int] = ()) -> None:
    """SIGKILL for every descendant until none is left. Raises LabError where one cannot be ended.

    ``known`` are children of this process: all that can be reached where there is no ``/proc``.
    """
    if not CAN_SWEEP:
        for pid in known:
            kill_group(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        return
    deadline = time.monotonic() + _KILL_LIMIT_S
    while not nothing_lives():
        living = descendants(os.getpid())
        for pid in living:
            kill(pid)
        _wait_for(living, deadline)
        if time.monotonic() > deadline:
            text = f"a process cannot be ended: {'; '.join(map(command_line, living))}"
            raise LabError(text)


def let_end(*, grace_s: float = GRACE_S) -> None:
    """Wait until no descendant of this process lives, at most ``grace_s`` seconds; dead ones are reaped."""
    deadline = time.monotonic() + grace_s
    while CAN_SWEEP and not nothing_lives() and time.monotonic() < deadline:
        _wait_for(descendants(os.getpid()), deadline)


def _wait_for(pids: list[int], deadline: float) -> None:
    """Return when every one of these processes has ended, or at the deadline."""
    poll = select.poll()
    waiting = {}
    try:
        for pid in pids:
            try:
                waiting[descriptor := os.pidfd_open(pid)] = pid
            except ProcessLookupError:
                continue
            poll.register(descriptor, select.POLLIN)
        rest = set(waiting)
        while rest and (left_s := deadline - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(left_s * 1000):
                poll.unregister(descriptor)
                rest.discard(descriptor)
    finally:
        for descriptor in waiting:
            os.close(descriptor)


def kill(pid: int) -> None:
    """SIGKILL for one process that may have ended already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def kill_group(pid: int) -> None:
    """SIGKILL for the session's first process group, and for its leader. The part that every POSIX system has."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # PermissionError: macOS says so of a group of zombies
        kill(pid)
