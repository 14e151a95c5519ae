"""The commands of a :class:`crashlab.subject.Commands`: run one, hear what it tells, say how it ended.

A program tells the lab what it does by lines in the file ``$CRASHLAB_EVENTS``. Before a recovery the file
holds the effects that were done before the crash, so that reading it is asking the outside world. What is
appended meanwhile are events of the recovery.

An exit code other than 0 becomes the exit code of the step, and a signal its end: so that what a program
did stands in the report as it was.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import resource
import shlex
import signal
import subprocess
from typing import TYPE_CHECKING, Any

from crashlab import directory
from crashlab.errors import UsageError
from crashlab.events import NOT_APPENDED, parse_line
from crashlab.recover import sweep
from crashlab.tree import describe as describe_node
from crashlab.values import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from crashlab.lab import EffectRecord, Lab
    from crashlab.subject import Command, Commands

EVENTS = "CRASHLAB_EVENTS"
PLACES = ("dir", "home", "tmp")
_SHOWN_CHARACTERS = 400
_NO_INPUT = ((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),)
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores and a program does not."""


class ProgramExit(SystemExit):
    """A command ended with another exit code than 0, or by the signal ``-code``; ``told`` is for the report."""

    def __init__(self, code: int, told: str) -> None:
        super().__init__(code)
        self.told = told


def filled(command: Command, root: str) -> list[str]:
    """The arguments of a command at ``root``. Raises UsageError where there is none.

    >>> filled("cat {dir}/a", "/r o")
    ['sh', '-c', "cat '/r o/dir'/a"]
    >>> filled(["cat", "{dir}/a"], "/r o")
    ['cat', '/r o/dir/a']
    """
    places = {name: os.path.join(root, name) for name in PLACES}
    if isinstance(command, str):
        parts, places = ["sh", "-c", command], {name: shlex.quote(place) for name, place in places.items()}
    else:
        parts = list(command)
    if not parts or not all(isinstance(part, str) for part in parts) or not parts[-1].strip():
        text = f"{command!r} is no command; write a text for sh, or a list of words"
        raise UsageError(text)
    for name, place in places.items():
        parts = [part.replace(f"{{{name}}}", place) for part in parts]
    return parts


def events_path(root: str) -> str:
    """Where this process keeps the events file: beside the root, so that it is no file of the program."""
    return os.path.join(os.path.dirname(root), f"events-{os.getpid()}")


def environment(events: str) -> dict[str, str]:
    """The variables of a command.

    Without those by which coverage.py, where it measures the checking process, would measure the program too:
    its files would be the program's own, outside of its directory.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    return {**kept, EVENTS: events}


class EventsFile:
    """The events file of one step: what is appended to it is told to the lab.

    It is held open, so that a program that empties or replaces it, and with it the events told before, is noticed:
    what it did to the outside world would not be counted.
    """

    def __init__(self, lab: Lab, root: str) -> None:
        self._lab = lab
        self.path = events_path(root)
        self._known = b"".join(history(lab.records()))
        _remove(self.path)  # of a step that was killed, whose process had the same number
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if self._known:
            os.write(self._file, self._known)

    def tell(self) -> None:
        """Tell the lab what was appended. Raises UsageError for a line that is none, and where lines are gone."""
        now = self._now()
        if not now.startswith(self._known):
            raise UsageError(NOT_APPENDED)
        for line in now[len(self._known) :].splitlines(keepends=True):
            self._known += line
            op_type, fields = parse_line(line)
            self._lab.told(op_type, fields)

    def _now(self) -> bytes:
        held = os.fstat(self._file)
        try:
            same = os.path.samestat(os.stat(self.path), held)
        except FileNotFoundError:
            same = False
        if not same:
            raise UsageError(NOT_APPENDED)
        return os.pread(self._file, held.st_size, 0) if held.st_size else b""

    @contextlib.contextmanager
    def with_acks(self, acked: list[Any]) -> Iterator[None]:
        """Add what was acked before the crash, as long as a ``check`` looks: a recovery must not read that."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps({"ack": value}) + "\n" for value in acked)
        try:
            yield
        finally:
            os.ftruncate(self._file, len(self._known))

    def close(self) -> None:
        """Nothing more is told; the file is gone."""
        os.close(self._file)
        _remove(self.path)


def _remove(path: str) -> None:
    """What lies there, also where a program has put a directory in its place: the next step needs the name."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError:
        if not os.path.isdir(path):
            raise
        directory.clear(path)
        os.rmdir(path)


def history(records: Iterable[EffectRecord]) -> Iterator[bytes]:
    """Lines that tell what was done to the outside world, as they were written; not what a known key did not do.

    What was done by a call of the lab, and not by a line, is told as a JSON object.
    """
    for record in records:
        key = {} if record.key is None else {"key": record.key}
        if record.counted:
            line = record.line or json.dumps({"effect": record.name, **key, **record.detail})
            yield line.encode() + b"\n"


@contextlib.contextmanager
def events_file(lab: Lab, root: str) -> Iterator[EventsFile]:
    """An events file that is gone afterwards."""
    file = EventsFile(lab, root)
    try:
        yield file
    finally:
        file.close()


def resume(subject: Commands, lab: Lab, step: dict[str, Any]) -> dict[str, Any]:
    """One step of the recovery: ``resume``, then the end, and what ``check`` says. To be called in a subreaper.

    ``{"step": "view"}`` does not resume: it is how the end of the recorded run is learned.
    """
    root = os.path.dirname(lab.dir)
    told: dict[str, int] = {}
    with events_file(lab, root) as events:
        if step["step"] != "view":
            told = _resumed(subject, root, events, reads=step.get("reads"))
        result = _end(subject, lab, root) | _checked(subject, lab, root, events)
        if step.get("again"):
            result["again"] = _again(subject, lab, root, events)
        return result | told


def _again(subject: Commands, lab: Lab, root: str, events: EventsFile) -> dict[str, Any]:
    try:
        _resumed(subject, root, events)
    except ProgramExit as error:
        return {"error": error.told}
    return _end(subject, lab, root) | _checked(subject, lab, root, events)


def _resumed(subject: Commands, root: str, events: EventsFile, *, reads: int | None = None) -> dict[str, int]:
    """Run it to its end; with ``reads`` its reads fail from that one on, 0 only counts them, and that is told."""
    command = subject.start if subject.resume is None else subject.resume
    told: dict[str, int] = {}
    try:
        if reads is None:
            code = _run(filled(command, root), _block(events.path), root)
        else:
            code, told = _starved(filled(command, root), events.path, root, reads)
        if not sweep.nothing_lives():
            sweep.let_end()  # as in the recorded run: what a process in the background still does belongs to it
    finally:
        events.tell()
    if code:
        raise ProgramExit(code, f"{shown(command)} {_ended(code)}")
    return told


def _starved(argv: list[str], events: str, root: str, reads: int) -> tuple[int, dict[str, int]]:
    from crashlab.live.program_reads import ProgramReads  # noqa: PLC0415 - only these steps need it

    met = ProgramReads(root, reads)
    try:
        code = met.run(argv, environment(events))
    except OSError as error:
        raise _cannot_start(argv, error) from error
    return code, {"reads": met.count, "failed": met.failed}


@functools.lru_cache(maxsize=1)
def _block(events: str) -> dict[bytes, bytes]:
    """:func:`environment` in bytes, made once for the many runs of one process, whose own environment stays."""
    return {os.fsencode(name): os.fsencode(value) for name, value in environment(events).items()}


def _run(argv: list[str], env: dict[bytes, bytes], root: str) -> int:
    """Run it to its end, with nothing to read: its exit code, or the signal that ended it as a negative number.

    Not by :class:`subprocess.Popen`, which takes as long as a small program. After :func:`keep_descriptors`.
    """
    try:
        pid = os.posix_spawn(_path_of(argv[0], root), argv, env, file_actions=_NO_INPUT, setsigdef=_RESTORED)
    except OSError as error:
        raise _cannot_start(argv, error) from error
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def keep_descriptors() -> None:
    """Let no program inherit what the subject's import or the lab has open; the standard descriptors aside."""
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # the one by which they were listed
            if int(name) > 2:  # noqa: PLR2004 - standard error
                os.set_inheritable(int(name), False)  # noqa: FBT003 - its only parameter


def _path_of(name: str, root: str) -> str:
    """Where the program lies, as execvp(3) looks for it: trying to start it everywhere takes longer than looking.

    What was found is remembered, unless the files of a crash state may decide what is found.
    """
    if "/" in name:
        return name
    places = os.environ.get("PATH", os.defpath)
    return (_found if _is_outside(places, root) else _found.__wrapped__)(name, places)


@functools.lru_cache(maxsize=1)
def _is_outside(places: str, root: str) -> bool:
    return all(os.path.isabs(place) and not place.startswith(root) for place in places.split(os.pathsep))


@functools.lru_cache(maxsize=8)
def _found(name: str, places: str) -> str:
    for place in places.split(os.pathsep):
        path = os.path.join(place, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _start(argv: list[str], events: str, **pipes: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=environment(events), **pipes)
    except OSError as error:
        raise _cannot_start(argv, error) from error


def _cannot_start(argv: list[str], error: OSError) -> UsageError:
    return UsageError(f"cannot start {argv[0]!r}: {error.strerror}; write the program's path, or a text for sh")


def die_by(number: int) -> None:
    """End this process by the signal that ended the program, without a core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pause()


def _end(subject: Commands, lab: Lab, root: str) -> dict[str, Any]:
    if subject.view is None:
        tree = directory.read(lab.dir)
        return {"end": {"$files": {path: describe_node(node) for path, _, node in tree.walk()}}}
    viewed = _start(filled(subject.view, root), "", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = viewed.communicate()
    if viewed.returncode:
        told = f"{shown(subject.view)} {_ended(viewed.returncode)}: {_text(errors).strip()[-_SHOWN_CHARACTERS:]}"
        return {"end": {"$view": told}, "view_failed": told}
    try:
        return {"end": encode(output.decode())}
    except UnicodeDecodeError:
        return {"end": encode(output)}


def _checked(subject: Commands, lab: Lab, root: str, events: EventsFile) -> dict[str, Any]:
    if subject.check is None:
        return {}
    with lab.checking():
        acked = lab.acked
    with events.with_acks(acked):
        asked = _start(filled(subject.check, root), events.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = _text(asked.communicate()[0]).strip()
    said = output.splitlines()[-1][:_SHOWN_CHARACTERS] if output else ""
    if asked.returncode == 0:
        return {"check": None}
    if asked.returncode == 1:
        return {"check": {"kind": "diverged", "text": said or f"{shown(subject.check)} exited with 1"}}
    return {
        "check": None,
        "check_error": f"{shown(subject.check)} {_ended(asked.returncode)}" + (f": {said}" if said else ""),
    }


def _ended(code: int) -> str:
    return f"exited with {code}" if code > 0 else f"was ended by signal {-code}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def shown(command: Command) -> str:
    """A command as a person would type it.

    >>> shown(["cat", "a b"])
    "cat 'a b'"
    """
    return command if isinstance(command, str) else shlex.join(command)
