"""The recorder inside the subject's own process: everything that Python code does to files.

It patches ``open``, ``io``, ``os`` and what else reaches the disk by way of Python, once per
process; between :meth:`Recorder.start` and :meth:`Recorder.stop` each change below the root becomes
one op, told the moment the real call has returned. The patches are process-wide and stay.

Not seen: what C libraries write by themselves (sqlite, h5py, ``tofile`` of numpy), stores into shared mappings, other
processes. Processes and mappings are noted in :attr:`Watched.unseen`; for the rest there is the
proof, :func:`crashlab.record.proof.replay_proof`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab.errors import LabError
from crashlab.record import files, names, unseen, writes
from crashlab.record.patch import REAL, Patched, Switch, replace_everywhere
from crashlab.record.watch import Gate, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from crashlab import trace as t
    from crashlab.directory import NUMBER

__all__ = ["RECORDER", "Gate", "Recorder", "Watched"]

_CALLS = {
    "os": files.OS_CALLS | writes.OS_CALLS | names.OS_CALLS | unseen.OS_CALLS,
    "posix": writes.POSIX_CALLS,
    "fcntl": writes.FCNTL_CALLS,
    "_posixsubprocess": unseen.SUBPROCESS_CALLS,
}


@dataclass(frozen=True)
class Watched:
    """What a recording noticed beside its ops.

    ``outside_writes`` are files outside of the root that were written; ``unseen`` says, in words,
    what the recorder knows that it could not see; ``threads`` is how many threads made an op.
    """

    outside_writes: tuple[str, ...]
    unseen: tuple[str, ...]
    threads: int


class Recorder:
    """Records one run at a time. There is one per process, :data:`RECORDER`."""

    def __init__(self) -> None:
        self._switch = Switch()
        self._installed = False

    def install(self) -> None:
        """Patch this process. Do it before the subject is imported; doing it again changes nothing."""
        if self._installed:
            return
        self._installed = True
        files.FileIO.switch = self._switch
        replace_everywhere(self._replacements())
        socket.socket.bind = unseen.bind_method(self._switch)  # type: ignore[method-assign]  # that is the patch
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._stop_in_child)

    def start(
        self,
        *,
        root: str,
        numbers: NUMBER,
        emit: Callable[[t.Op], None],
        gate: Gate | None = None,
        outside: Sequence[str] = (),
    ) -> None:
        """Record from now on. This thread is thread 0.

        ``numbers`` are those of :func:`crashlab.directory.read_numbered` for ``root`` as it is now.
        ``emit`` gets each op, under the recorder's lock, after the real call; ``outside`` are globs
        of files outside of the root that do not matter. Raises LabError while recording already.
        """
        if self._switch.watch is not None:
            text = "this process is being recorded already; stop that recording first"
            raise LabError(text)
        if not self._installed:
            text = "the recorder is not installed; call install() before the subject is imported"
            raise LabError(text)
        self._switch.watch = Watch(root=root, numbers=numbers, emit=emit, gate=gate, outside=outside)

    def stop(self) -> Watched:
        """End the recording. The patches stay, and let everything through."""
        watch = self._switch.watch
        if watch is None:
            text = "nothing is being recorded"
            raise LabError(text)
        with watch.lock:
            watch.stopped = True
            self._switch.watch = None
        return Watched(tuple(watch.outside_writes), tuple(watch.unseen), watch.threads)

    @contextlib.contextmanager
    def arriving(self) -> Iterator[None]:
        """Pass the gate now, and let no other thread make an op until the event that is to come has been taken."""
        watch = self._switch.watch
        if watch is None:
            yield
            return
        with watch.lock:
            watch.arrive()
            yield

    def numbers(self) -> list[tuple[int, int, int]]:
        """The numbers of all inodes so far, as device, inode, number."""
        watch = self._switch.watch
        return [] if watch is None else [(device, inode, n) for (device, inode), n in watch.numbers.items()]

    def learn(self, numbers: NUMBER) -> None:
        """Take the numbers that another recorder of the same place has given."""
        if self._switch.watch is not None:
            self._switch.watch.numbers.update(numbers)

    @property
    def count(self) -> int:
        """How many ops this recording has so far."""
        watch = self._switch.watch
        return 0 if watch is None else watch.count

    def event(self, event_type: type[t.Op], **fields: Any) -> None:
        """Take an event of the subject, as a :class:`crashlab.lab.Sink`. Dropped where nothing is recorded."""
        watch = self._switch.watch
        if watch is not None:
            watch.event(event_type, fields)

    def _stop_in_child(self) -> None:
        self._switch.watch = None  # the lock may be held by a thread that does not exist here

    def _replacements(self) -> Iterator[tuple[Any, Any]]:
        yield REAL.open_file, files.Open(self._switch)
        yield REAL.FileIO, files.FileIO
        for module_name, calls in _CALLS.items():
            module = _module(module_name)
            for name, plan in calls.items():
                real = getattr(module, name, None)
                if real is not None:
                    yield real, Patched(self._switch, real, plan)
        yield unseen.REAL_MMAP, unseen.mapping_type(self._switch)


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:  # another system has other modules
        return None


RECORDER = Recorder()
