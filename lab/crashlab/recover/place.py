"""The pinned place: every recovery meets its state at the absolute path at which it was recorded.

A worker gets a mount namespace of its own and an empty tmpfs on the root, so that several workers
use one path at the same time and nothing of it outlives them. As another user than root the
namespace needs a user namespace, in which the worker gives its extra rights away again after the
mount, so that permission bits mean to the subject what they always meant.

Where the system refuses (containers, macOS) :func:`pin` says why, and the caller uses the root
itself, one worker at a time. The calls go through ctypes: ``os.unshare`` came with Python 3.12.
"""

from __future__ import annotations

import ctypes
import os
import sys

from crashlab import directory
from crashlab.errors import LabError
from crashlab.tree import Directory, Tree

PLACES = ("dir", "home", "tmp")
NO_NAMESPACE = "CRASHLAB_NO_NAMESPACE"
"""Environment switch: ``1`` uses the root itself, one recovery at a time."""

quota = "50%"
"""How large the tmpfs of a root may get: at most half of the memory, so that who fills the disk meets ENOSPC first."""

_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWUSER = 0x1000_0000
_MS_NOSUID = 2
_MS_NODEV = 4
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_PRIVATE = 0x4_0000
_MNT_DETACH = 2
_CAPABILITY_VERSION_3 = 0x2008_0522


def base_tree() -> Tree:
    """The tree before every recorded run: the three traced places, empty."""
    places = {name: Directory(mode=0o755) for name in PLACES}
    top = Directory({name: number for number, name in enumerate(PLACES, start=1)}, mode=0o755)
    return Tree({0: top, **dict(enumerate(places.values(), start=1))})


def make_root(root: str) -> None:
    """Create ``root`` with its three places. Raises OSError where it is there already."""
    os.mkdir(root, 0o700)
    for name in PLACES:
        os.mkdir(os.path.join(root, name))


def pin(root: str) -> str:
    """Mount a tmpfs of this process's own on ``root``. "" where that worked, else why it was refused.

    To be called in a process with one thread; its children share the mount.
    """
    if os.environ.get(NO_NAMESPACE) == "1":
        return f"{NO_NAMESPACE}=1"
    if sys.platform != "linux":
        return f"no mount namespaces on {sys.platform}"
    library = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNS if user == 0 else _CLONE_NEWNS | _CLONE_NEWUSER
    if library.unshare(flags) != 0:
        return f"unshare: {os.strerror(ctypes.get_errno())}"
    if user != 0 and (refused := _map_identity(user, group)):
        return refused
    if library.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        return f"mount --make-rprivate /: {os.strerror(ctypes.get_errno())}"
    data = f"mode=0700,size={quota}".encode()
    if library.mount(b"crashlab", os.fsencode(root), b"tmpfs", _MS_NOSUID | _MS_NODEV, data) != 0:
        return f"mount -t tmpfs {root}: {os.strerror(ctypes.get_errno())}"
    if user != 0:
        _give_rights_away(library)
    os.chdir(os.getcwd())  # a working directory below the root is the one of the new mount from here on
    return ""


def _map_identity(user: int, group: int) -> str:
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "wb", buffering=0) as file:
                file.write(text.encode())
    except OSError as error:
        return f"user namespace: {error}"
    return ""


def _give_rights_away(library: ctypes.CDLL) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    library.capset(ctypes.byref(header), ctypes.byref(nothing))


def put_on(root: str, path: str) -> None:
    """Show the directory ``path``, on another file system, at ``root``. Raises LabError where that is refused."""
    if sys.platform != "linux" or os.environ.get(NO_NAMESPACE) == "1":
        text = "a real disk needs a mount namespace, which is switched off or not to be had here"
        raise LabError(text)
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(os.fsencode(path), os.fsencode(root), None, _MS_BIND, None) != 0:
        text = f"cannot show {path} at {root}: {os.strerror(ctypes.get_errno())}"
        raise LabError(text)


def take_off(root: str) -> None:
    """Undo :func:`put_on`."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.umount2(os.fsencode(root), _MNT_DETACH) != 0:
        text = f"cannot take the disk off {root}: {os.strerror(ctypes.get_errno())}"
        raise LabError(text)


def refill(root: str, tree: Tree) -> None:
    """Make ``root`` hold exactly ``tree``. Raises LabError where the disk refuses."""
    directory.clear(root)
    directory.write(tree, root)
