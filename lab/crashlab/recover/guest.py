"""Running what is judged as somebody else: another user, who finds nothing of the judge's and writes nowhere but here.

A grader holds what a submission must not have: a seed, the results of others, its own memory. As root it can run
the keeper, and with it every process of the lab that loads the subject, as a user of its own: :func:`housed`
says so for the labs that are made inside it, and the keeper moves over before it does anything else.

With ``namespaces`` the guest has, beside the other user, mounts, shared memory and a network of its own: the folders
of ``hidden`` are empty there, ``/tmp``, ``/run``, ``/var/tmp`` and ``/dev/shm`` cannot be written, there is no network,
and the temporary folder is a tmpfs that goes with the last of its processes. Most containers refuse that; the other
user alone is left there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab.errors import LabError
from crashlab.recover import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TREE_BYTES = 256 * 2**20
"""What a guest may keep in files at a time, below one root."""

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWNET = 0x0002_0000, 0x0800_0000, 0x4000_0000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_PR_SET_DUMPABLE = 4
_OWN = ("/dev/shm", "/var/tmp")  # noqa: S108 - these are hidden, not used
_SEALED = ("/tmp", "/run", "/var/lock")  # noqa: S108 - as above


@dataclass(frozen=True, kw_only=True)
class Guest:
    """Who runs the subject: the number of a user, the folder for temporary files, which must be the user's own."""

    user: int
    temporary: str
    hidden: tuple[str, ...] = ()
    namespaces: bool = False

    def form(self) -> dict[str, Any]:
        """As JSON."""
        return {**vars(self), "hidden": list(self.hidden)}

    @property
    def isolation(self) -> str:
        """How a report calls it."""
        return "user+namespaces" if self.namespaces else "user"


_current: list[Guest] = []


@contextlib.contextmanager
def housed(guest: Guest | None) -> Iterator[None]:
    """Every lab that is made inside runs its subject as ``guest``; as the user of this process where it is None."""
    if guest is None:
        yield
        return
    _current.append(guest)
    try:
        yield
    finally:
        _current.pop()


def current() -> Guest | None:
    """The guest of labs that are made now."""
    return _current[-1] if _current else None


def isolation() -> str:
    """How a report calls what separates the subject from its judge."""
    guest = current()
    return "same-user" if guest is None else guest.isolation


def enter(form: Mapping[str, Any]) -> None:
    """Become the guest, for good, in a process with one thread. Raises LabError or OSError where that is refused."""
    if form["namespaces"]:
        _enter_namespaces(form)
        place.quota = f"{TREE_BYTES}"
    os.setgroups([])
    os.setresgid(form["user"], form["user"], form["user"])
    os.setresuid(form["user"], form["user"], form["user"])
    # A process that has changed its user is closed to itself: it could make no user namespace of its own.
    dumpable(1)


def _enter_namespaces(form: Mapping[str, Any]) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    _done(library.unshare(_CLONE_NEWNS | _CLONE_NEWIPC | _CLONE_NEWNET), "unshare")
    _mount(library, "/", _MS_REC | _MS_PRIVATE)
    for path in filter(os.path.isdir, _SEALED):
        if not os.path.islink(path):
            _mount(library, path, _MS_BIND | _MS_REC, source=path)
            _mount(library, path, _MS_REMOUNT | _MS_BIND | _MS_RDONLY)
    for path in filter(os.path.isdir, (*_OWN, *form["hidden"])):
        _mount(library, path, _MS_NOSUID | _MS_NODEV | _MS_RDONLY, tmpfs="mode=0755,size=1m")
    own = f"uid={form['user']},gid={form['user']},mode=0700,size={TREE_BYTES}"
    _mount(library, form["temporary"], _MS_NOSUID | _MS_NODEV, tmpfs=own)


def _mount(library: ctypes.CDLL, target: str, flags: int, *, source: str = "none", tmpfs: str = "") -> None:
    """One mount: a tmpfs with these options, or a change of what is there, or a bind of ``source``."""
    kind, told = (b"tmpfs", tmpfs.encode()) if tmpfs else (None, None)
    _done(library.mount(os.fsencode(source), os.fsencode(target), kind, flags, told), f"mount on {target}")


def _done(code: int, what: str) -> None:
    if code != 0:
        text = f"{what}: {os.strerror(ctypes.get_errno())}"
        raise LabError(text)


def dumpable(value: int) -> None:
    """Whether others of the same user may read this process's memory and environment: 1 or 0. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, value, 0, 0, 0)
