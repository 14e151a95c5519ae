"""Running a program under strace and telling its ops while it runs.

The program is started by a small Python program of the lab, which asks the kernel to kill it when
strace ends (``PR_SET_PDEATHSIG``) and then becomes the program. strace itself dies with the lab's
thread that started it. Measured with strace 6.1: after a SIGKILL of strace its processes live on,
untraced. So whatever ends a recording ends them first, and children that outlive a killed *lab* are
left to the lab's sweep; from strace 6.3 on ``--kill-on-exit`` takes them along.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crashlab import directory
from crashlab.errors import LabError, UsageError
from crashlab.record.python import Watched
from crashlab.record.strace.decoder import HANDLERS, Decoder
from crashlab.record.strace.lines import Lines
from crashlab.record.strace.mirror import Mirror
from crashlab.record.strace.notices import launcher
from crashlab.record.strace.refusing import Refusals
from crashlab.record.strace.tool import Tool, available

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from crashlab import trace as t
    from crashlab.directory import NUMBER
    from crashlab.record.watch import Striker

STRING_LIMIT_BYTES = 1 << 28
"""A larger single write is noted as unseen. strace needs about five times a string as memory while it tells it."""
GRACE_S = 0.5
_PIPE_BYTES = 1 << 20
_MOST_INJECTED = 65_535
_COUNTED_ONLY = ("read", "readv")
_UNHELD = frozenset(
    {"read", "readv", "preadv2", "lseek", "close", "dup", "dup2", "dup3", "fcntl", "ioctl", "mprotect", "umask"}
)
_OPTIONAL = "?"
_LAUNCH = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
tracer = [line.split()[1] for line in open("/proc/self/status") if line.startswith("TracerPid:")]
if tracer != [str(os.getppid())]: os.kill(os.getpid(), signal.SIGKILL)
for number in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(number, signal.SIG_DFL)
#notices
environment = dict(os.environb)
if sys.argv[1] == "0": environment.pop(b"LC_CTYPE", None)
os.execve(sys.argv[2], sys.argv[3:], environment)
"""


@dataclass(frozen=True)
class Finished:
    """How the program ended, and what was noticed beside its ops.

    ``code`` is None where a signal ended it, whose name ``signal`` is. ``mapped``: a traced file was mapped
    shared and writable, and the recording did not look into it;
    ``late``: it did, but not always in time; ``left`` are pids of what outlived the
    program and was ended. ``origins`` says for each op which call of which process made it.
    """

    code: int | None
    signal: str
    watched: Watched
    mapped: bool = False
    late: bool = False
    left: tuple[int, ...] = ()
    origins: tuple[tuple[int, str, int], ...] = ()
    first: int = 0
    counts: Mapping[tuple[int, str], int] | None = None


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to run, and how.

    ``streams`` has ``stdin``, ``stdout``, ``stderr`` as :class:`subprocess.Popen` takes them. ``events_path`` is
    the file of :mod:`crashlab.events`; ``outside`` are globs of files outside of the root that do not matter,
    ``rebuilt`` of those that the program builds anew: into their mappings nobody looks.
    ``hold_us`` holds every call for so many microseconds to see stores into mappings, see
    :mod:`crashlab.record.strace.mapped`; where :attr:`Finished.late` says that this was too short, hold
    longer. ``kill`` is a result of :func:`kill_after`. ``striker`` says which calls fail, see
    :mod:`crashlab.record.strace.refusing`. ``asked`` is a descriptor and what to call when it is readable, with the
    number of ops so far.
    """

    argv: Sequence[str]
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    streams: Mapping[str, Any] | None = None
    pass_fds: Sequence[int] = ()
    events_path: str = ""
    outside: Sequence[str] = ()
    rebuilt: Sequence[str] = ()
    hold_us: int = 0
    kill: tuple[str, int] | None = None
    striker: Striker | None = None
    asked: tuple[int, Callable[[int], None]] | None = None


def watch(
    program: Program, *, root: str, numbers: NUMBER, emit: Callable[[t.Op], None], tool: Tool | None = None
) -> Finished:
    """Run a program and tell its ops, and those of all its descendants, to ``emit`` as they happen.

    ``root`` and ``numbers`` are as for :meth:`crashlab.record.python.Recorder.start`. Returns when nothing of
    the program lives any more. Raises ToolMissing, or UsageError for a program that is not there or tells
    events wrongly.
    """
    tool = tool or available()
    where = os.path.abspath(program.cwd or os.getcwd())
    launch = _launch(program)
    decoder = Decoder(
        mirror=_mirror(root, numbers),
        emit=emit,
        directory=where,
        umask=_umask(),
        outside=program.outside,
        rebuilt=program.rebuilt,
        events_path=program.events_path,
        delay_ns=program.hold_us * 1000,
    )
    with contextlib.ExitStack() as stack:
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        stack.callback(os.close, writing)
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        refusals = None if program.striker is None else Refusals(program.striker, decoder)
        if refusals is not None:
            stack.callback(refusals.notices.close)
            program = _asking(program, refusals.notices.theirs.fileno())
        process = _start(program, [tool.path, *_options(tool, writing, program), "--", *launch], where)
        run = _Run(process, reading, decoder, refusals, program.asked)
        stack.callback(run.end)
        run.follow()
    return run.finished()


def _asking(program: Program, way: int) -> Program:
    """The program with the way by which its launcher hands over the notices of its calls."""
    environment = os.environ if program.env is None else program.env
    return replace(program, env={**environment, "CRASHLAB_NOTICES": str(way)}, pass_fds=[*program.pass_fds, way])


def _launch(program: Program) -> list[str]:
    argv, environment = program.argv, os.environ if program.env is None else program.env
    path = shutil.which(argv[0], path=environment.get("PATH")) if argv else None
    if path is None:
        text = f"no program {argv[0] if argv else ''!r} can be started; give its path"
        raise UsageError(text)
    code = _LAUNCH if program.striker is None else _LAUNCH.replace("#notices", launcher())
    return [sys.executable, "-I", "-S", "-c", code, str(int("LC_CTYPE" in environment)), path, *argv]


def _start(program: Program, command: list[str], where: str) -> subprocess.Popen[Any]:
    return subprocess.Popen(
        command,
        env=program.env,
        cwd=where,
        pass_fds=program.pass_fds,
        preexec_fn=_dies_with(os.getpid()),  # noqa: PLW1509 - it makes two system calls and takes no lock
        **(program.streams or {}),
    )


def kill_after(finished: Finished, n: int) -> tuple[str, int]:
    """What to give :class:`Program` as ``kill`` so that the program dies for real after op ``n`` and before the next.

    ``finished`` is an undisturbed run of the same program. Raises UsageError where strace cannot do it:
    where more than one process or thread made ops, or where no call stands between op ``n`` and the next.
    """
    origins = finished.origins
    if any(origin[0] != finished.first for origin in origins):
        text = "a real kill under strace needs a program whose ops are all made by its first thread; this one has more"
        raise UsageError(text)
    if not 0 <= n <= len(origins):
        text = f"no op {n} in this recording ({len(origins)} ops)"
        raise UsageError(text)
    _, name, index = origins[n] if n < len(origins) else (finished.first, "exit_group", 1)
    others = (count for (pid, each), count in (finished.counts or {}).items() if pid != finished.first and each == name)
    if max(others, default=0) >= index:
        text = f"op {n + 1} is {name} number {index}, which another process makes too; strace would kill that one"
        raise UsageError(text)
    if not name or (0 < n < len(origins) and origins[n - 1] == origins[n]):
        text = f"no system call stands between op {n} and op {n + 1}; a real kill under strace falls between calls"
        raise UsageError(text)
    if index > _MOST_INJECTED:
        text = f"op {n + 1} is {name} number {index}; strace counts to {_MOST_INJECTED}"
        raise UsageError(text)
    return name, index


def _options(tool: Tool, writing: int, program: Program) -> list[str]:
    kill, hold_us = program.kill, program.hold_us
    names = sorted(HANDLERS.keys() | {"exit_group"})
    # Measured with strace 6.1: an injected signal is lost with --seccomp-bpf, an injected delay is not; and a call
    # that waits for an answer (crashlab.record.strace.notices) is then not shown.
    filters = ["--seccomp-bpf"] if kill is None and program.striker is None else []
    options = ["-f", *filters, "-q", "-xx", "-y", "-s", str(STRING_LIMIT_BYTES)]
    options += ["--absolute-timestamps=format:unix,precision:ns", "-e", f"raw={','.join(_COUNTED_ONLY)}"]
    options += ["-e", f"trace={','.join(_OPTIONAL + name for name in names)}"]
    options += ["-o", f"/proc/{os.getpid()}/fd/{writing}"]
    if tool.kills_on_exit:
        options.append("--kill-on-exit")
    killed = kill[0] if kill is not None else ""
    if hold_us:
        held = [_OPTIONAL + name for name in names if name not in _UNHELD and name not in (killed, "mmap")]
        options += ["-e", f"inject={','.join(held)}:delay_enter={hold_us}"]
        options += ["-e", f"inject=mmap:delay_enter={hold_us}:delay_exit={hold_us}"]
    if kill is not None:
        options += ["-e", f"inject={kill[0]}:signal=SIGKILL:when={kill[1]}"]
    return options


def _mirror(root: str, numbers: NUMBER) -> Mirror:
    base, found = directory.read_numbered(root)
    try:
        known = {number: numbers[identity] for identity, number in found.items()}
    except KeyError as error:
        text = f"the tree under {root!r} changed between its numbering and the start of the program: {error}"
        raise LabError(text) from error
    mirror = Mirror(os.path.realpath(root), base, known)
    mirror.next_number = max(numbers.values(), default=0) + 1
    return mirror


def _umask() -> int:
    with open("/proc/self/status", encoding="utf-8") as file:
        found = re.search(r"^Umask:\s*([0-7]+)$", file.read(), re.MULTILINE)
    assert found is not None
    return int(found[1], 8)


def _dies_with(parent: int) -> Callable[[], None]:
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def prepare() -> None:
        prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return prepare


class _Run:
    """One strace, from its start to the end of everything that it watches."""

    def __init__(
        self,
        process: subprocess.Popen[Any],
        reading: int,
        decoder: Decoder,
        refusals: Refusals | None,
        asked: tuple[int, Callable[[int], None]] | None,
    ) -> None:
        self._asked = asked
        self._process, self._reading, self._decoder, self._refusals = process, reading, decoder, refusals
        if refusals is not None:
            refusals.notices.started()
        self._lines = Lines()
        self._left: tuple[int, ...] = ()

    def follow(self) -> None:
        """Decode until strace has ended, and everything that it wrote is read."""
        poll, ended = select.poll(), os.pidfd_open(self._process.pid)
        try:
            poll.register(self._reading, select.POLLIN)
            poll.register(ended, select.POLLIN)
            if self._refusals is not None:
                self._refusals.register(poll)
            if self._asked is not None:
                poll.register(self._asked[0], select.POLLIN)
            alone_at = 0.0
            while True:
                limit_s = max(0.0, alone_at - time.monotonic()) if alone_at else None
                ready = dict(poll.poll(None if limit_s is None else limit_s * 1000))
                if self._reading in ready:
                    self._decode(os.read(self._reading, _PIPE_BYTES))
                elif self._served(poll, ready):
                    continue
                elif ended in ready:
                    break
                if self._decoder.first_end is not None and not alone_at:
                    alone_at = time.monotonic() + GRACE_S
                elif alone_at and time.monotonic() >= alone_at and not self._left:
                    self._left = self._kill_tracees()
                    alone_at = time.monotonic() + GRACE_S
        finally:
            os.close(ended)
        if self._lines.left_over():
            text = "strace ended in the middle of a line: the recording has a gap"
            raise LabError(text)
        self._decoder.close()

    def _served(self, poll: select.poll, ready: dict[int, int]) -> bool:
        """Answer whoever waits for an answer; whether somebody did."""
        if self._refusals is not None and self._refusals.serve(poll, ready, self._read):
            return True
        if self._asked is None or self._asked[0] not in ready:
            return False
        while self._read(0.0):
            pass
        self._asked[1](self._decoder.count)
        return True

    def _read(self, limit_s: float) -> bool:
        """Decode what strace tells within this time; whether there was anything."""
        poll = select.poll()
        poll.register(self._reading, select.POLLIN)
        if not poll.poll(limit_s * 1000):
            return False
        self._decode(os.read(self._reading, _PIPE_BYTES))
        return True

    def _decode(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._decoder.take(line)
        if self._decoder.delay_ns and (begun := self._lines.begun()) is not None:
            self._decoder.begun(begun[0], begun[1])

    def _kill_tracees(self) -> tuple[int, ...]:
        pids = tuple(tracees(self._process.pid))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return pids

    def end(self) -> None:
        """End everything: first what is watched, as long as strace can name it, then strace."""
        while self._process.poll() is None:
            self._kill_tracees()
            _drain(self._reading)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.05)
        self._process.wait()

    def finished(self) -> Finished:
        """The result. Raises LabError where strace did not tell how the program ended."""
        decoder, end = self._decoder, self._decoder.first_end
        if end is None:
            text = f"strace ended with exit code {self._process.returncode} before the program did"
            raise LabError(text)
        watched = Watched(tuple(decoder.outside_writes), tuple(decoder.unseen), decoder.threads)
        result = Finished(end.code, end.signal, watched, mapped=decoder.mapped, left=self._left)
        return replace(
            result, origins=tuple(decoder.origins), first=decoder.first or 0, late=decoder.late, counts=decoder.counts
        )


def _drain(reading: int) -> None:
    """Make room in the pipe, so that strace can go on; the recording has failed by now."""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    while poll.poll(0):
        os.read(reading, _PIPE_BYTES)


def tracees(tracer: int) -> Iterable[int]:
    """Every process that ``tracer`` traces now."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/status", "rb") as file:
                if f"\nTracerPid:\t{tracer}\n".encode() in file.read():
                    yield int(name)
