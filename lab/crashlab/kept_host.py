"""The processes of one subject, kept from one path to the next.

To start them takes a second, a path some hundredths, and a property test follows hundreds. So the processes
of the last subject stay until another one comes, or until this process ends. They are kept only for the same
subject in the same surroundings: the pickled subject, the environment, the working directory, the module
path, and the source files that this process has loaded, by their times. The values travel with each path.

A host is in one hand at a time: whoever works takes it out, so that a second thread starts its own. A process
that was forked from here leaves it alone. Should this process be killed, the keeper ends everything.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import sysconfig
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashlab.errors import UsageError
from crashlab.recover.host import Host

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from crashlab.report.model import Control, UnmeasuredReason

REMEMBERED = 200
"""So many runs, and so many recoveries, are remembered."""

_VOLATILE = frozenset({"PYTEST_CURRENT_TEST"})
"""Variables that change without changing anything: pytest writes down the phase of each test."""


class Memory:
    """The latest things by their keys, a few of them: a search tries many paths that begin alike.

    A subject that does something else each time is then seen as it was seen first.
    """

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        """What is known under this key, or None."""
        if key in self._known:
            self._known[key] = self._known.pop(key)  # the latest stand at the end
        return self._known.get(key)

    def put(self, key: str, value: Any) -> None:
        """Remember it, and forget what was not asked for longest."""
        self._known[key] = value
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]


@dataclass
class KeptHost:
    """A host with what was learned of its subject. ``recovered`` counts states that one process took, ``failing``:
    the last one was a violation; ``come_back`` are values that are known to be loaded as they were saved. ``runs`` and
    ``answers`` are what the latest paths came to, by all that was before on each. ``refused``: the
    subject raised in a recorded run, which leaves its processes as they were; a search tries hundreds of these.
    """

    host: Host
    key: str
    owner: int = field(default_factory=os.getpid)
    prepared: bool = False
    nothing: dict[str, Any] = field(default_factory=dict)
    controls: list[Control] = field(default_factory=list)
    unusable: list[UnmeasuredReason] = field(default_factory=list)
    recovered: int = 0
    failing: bool = False
    come_back: set[str] = field(default_factory=set)
    runs: Memory = field(default_factory=Memory)
    answers: Memory = field(default_factory=Memory)
    refused: bool = False


_lock = threading.Lock()
_kept: list[KeptHost] = []
"""None or one."""


@contextlib.contextmanager
def kept_host(form: dict[str, Any]) -> Iterator[KeptHost]:
    """The host of the subject with this form of :func:`crashlab.recover.travel.pack`, in one hand.

    It is kept where the work ended well, and closed where an error came out of it. Raises as Host does.
    """
    kept = take(form)
    try:
        yield kept
    except UsageError:
        if not kept.refused:
            kept.host.close()
            raise
        give_back(kept)
        raise
    except BaseException:
        kept.host.close()
        raise
    give_back(kept)


def take(form: dict[str, Any]) -> KeptHost:
    """The kept host of this subject, or a new one; one of another subject is closed."""
    key = _key_of(form)
    with _lock:
        found = _kept.pop() if _kept else None
    if found is not None and found.owner == os.getpid():
        if found.key == key:
            return found
        found.host.close()
    return KeptHost(Host(form, jobs=1), key)


def give_back(kept: KeptHost) -> None:
    """Keep it for the next path; of two hosts the later one."""
    kept.refused = False
    with _lock:
        before = _kept.pop() if _kept else None
        _kept.append(kept)
    if before is not None and before.owner == os.getpid():
        before.host.close()


def close_kept() -> None:
    """End the processes that are kept, if any. Done at the end of this process, and harmless at any time."""
    with _lock:
        found = _kept.pop() if _kept else None
    if found is not None and found.owner == os.getpid():
        found.host.close()


atexit.register(close_kept)


def _key_of(form: Mapping[str, Any]) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _VOLATILE}
    return json.dumps([form, environment, os.getcwd(), _sources()], sort_keys=True)


def _sources() -> list[tuple[str, int, int]]:
    """The loaded source files outside of the installation, with time and size: an edited one is another subject."""
    installed = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    found = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and not file.startswith(installed):
            with contextlib.suppress(OSError):  # it is gone; then it was loaded, and cannot be edited
                told = os.stat(file)
                found.append((file, told.st_mtime_ns, told.st_size))
    return sorted(found)
