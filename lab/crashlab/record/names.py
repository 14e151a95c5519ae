"""Calls that change names and attributes: directories, links, renames, modes, times, extended attributes.

What did not change anything is no op: a rename of one inode onto itself, a chmod to the same mode.
Not recorded: owners. A file that is moved in from outside of the root is not seen into, and noted.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.record.watch import Change, Known, Plan, Planner, Watch, parent_time_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crashlab.record.places import Target

_SPECIAL = {stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket"}


def making(watch: Watch, target: Target, *, link_to: str = "") -> Plan | None:
    """A call that makes a new node at ``target``, of whatever kind turns out to be there."""
    path = target.path
    if path is None:
        return None

    def done(_: Any) -> Iterable[Change]:
        status = os.lstat(target.real)
        kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
        common = {"path": path, "inode": watch.new(status, path), "time_ns": status.st_mtime_ns}
        if kind == stat.S_IFDIR:
            return ((t.MakeDirectory, common | {"mode": mode}),)
        if kind == stat.S_IFLNK:
            return ((t.MakeSymlink, common | {"target": link_to}),)
        if kind == stat.S_IFREG:
            return ((t.Create, common | {"mode": mode}),)
        if kind in _SPECIAL:
            return ((t.MakeSpecial, common | {"type": _SPECIAL[kind], "mode": mode}),)
        return watch.note(f"{path} is a device; the lab models files, directories, links, FIFOs and sockets")

    return Plan(done)


def _make(watch: Watch, _real: Any, path: Any, *_rest: Any, dir_fd: int | None = None, **_options: Any) -> Plan | None:
    return making(watch, watch.places.resolve(path, dir_fd))


def _symlink(
    watch: Watch, _real: Any, src: Any, dst: Any, *_rest: Any, dir_fd: int | None = None, **_options: Any
) -> Plan | None:
    return making(watch, watch.places.resolve(dst, dir_fd), link_to=os.fsdecode(src))


def _link(watch: Watch, _real: Any, src: Any, dst: Any, **options: Any) -> Plan | None:
    target = watch.places.resolve(dst, options.get("dst_dir_fd"))
    path = target.path
    if path is None:
        return None
    source = watch.places.resolve(src, options.get("src_dir_fd"))
    for follow in (True, False):  # which of the two the call does differs between systems
        try:
            inode = watch.number(os.stat(source.real, follow_symlinks=follow))
        except OSError:  # a symbolic link that leads nowhere can still be linked itself
            continue
        if inode is not None:
            watch.tell_nameless(inode)

    def done(_: Any) -> Iterable[Change]:
        linked = watch.number(os.lstat(target.real))
        if linked is None:
            return watch.note(f"{path} is a link to {source.real}, which this recorder has not seen being made")
        watch.named(linked, path)
        return ((t.Link, {"path": path, "inode": linked, "time_ns": parent_time_ns(target)}),)

    return Plan(done)


def _rename(watch: Watch, _real: Any, src: Any, dst: Any, **dir_fds: int | None) -> Plan | None:
    source = watch.places.resolve(src, dir_fds.get("src_dir_fd"))
    target = watch.places.resolve(dst, dir_fds.get("dst_dir_fd"))
    if source.path is None:
        if target.path is None:
            return None
        text = f"{target.path} was moved in from {source.real}, outside of the traced places"
        return Plan(lambda _: watch.note(text))
    node = watch.by_target(source)
    if node is None or _same_inode(node, target):
        return None

    def done(_: Any) -> Iterable[Change]:
        if target.path is None:
            watch.note_outside(target)
            return (_gone(node, source),)
        watch.named(node.inode, target.path)
        return ((t.Rename, node.fields | {"to": target.path, "time_ns": parent_time_ns(target)}),)

    return Plan(done)


def _same_inode(node: Known, target: Target) -> bool:
    try:
        return os.path.samestat(node.before, os.lstat(target.real))
    except FileNotFoundError:
        return False


def _gone(node: Known, target: Target) -> Change:
    op_type = t.RemoveDirectory if stat.S_ISDIR(node.before.st_mode) else t.Unlink
    return op_type, node.fields | {"time_ns": parent_time_ns(target)}


def _remove(watch: Watch, _real: Any, path: Any, *, dir_fd: int | None = None) -> Plan | None:
    target = watch.places.resolve(path, dir_fd)
    node = None if target.path is None else watch.by_target(target)
    return None if node is None else Plan(lambda _: (_gone(node, target),))


# --- attributes ------------------------------------------------------------------------------------


def _changing_mode(node: Known | None) -> Plan | None:
    if node is None or stat.S_ISLNK(node.before.st_mode):
        return None

    def done(_: Any) -> Iterable[Change]:
        mode = stat.S_IMODE(node.now().st_mode)
        return () if mode == stat.S_IMODE(node.before.st_mode) else ((t.Chmod, node.fields | {"mode": mode}),)

    return Plan(done)


def _chmod(watch: Watch, _real: Any, path: Any, *_rest: Any, **options: Any) -> Plan | None:
    return _changing_mode(
        watch.by_path(path, options.get("dir_fd"), follow=options.get("follow_symlinks", True)),
    )


def _fchmod(watch: Watch, _real: Any, fd: int, mode: int) -> Plan | None:  # noqa: ARG001 - may be given by name
    return _changing_mode(watch.by_path(fd))


def _lchmod(watch: Watch, _real: Any, path: Any, mode: int) -> Plan | None:  # noqa: ARG001 - may be given by name
    return _changing_mode(watch.by_path(path, follow=False))


def _utime(watch: Watch, _real: Any, path: Any, *_rest: Any, **options: Any) -> Plan | None:
    node = watch.by_path(path, options.get("dir_fd"), follow=options.get("follow_symlinks", True))
    if node is None:
        return None

    def done(_: Any) -> Iterable[Change]:
        time_ns = os.stat(node.place, follow_symlinks=isinstance(node.place, int)).st_mtime_ns
        return () if time_ns == node.before.st_mtime_ns else ((t.SetTimes, node.fields | {"mtime_ns": time_ns}),)

    return Plan(done)


def _set_attribute(watch: Watch, _real: Any, path: Any, attribute: Any, *rest: Any, **options: Any) -> Plan | None:
    value = options.get("value", rest[0] if rest else None)  # None: it is removed
    copy = None if value is None else bytes(memoryview(value))
    name, node = os.fsdecode(attribute), watch.by_path(path, follow=options.get("follow_symlinks", True))
    if node is None or not name.startswith("user."):
        return None
    if copy is not None and name in os.listxattr(node.place) and os.getxattr(node.place, name) == copy:
        return None
    return Plan(lambda _: ((t.SetAttribute, node.fields | {"name": name, "value": copy}),))


OS_CALLS: dict[str, Planner] = {
    "mkdir": _make,
    "mkfifo": _make,
    "mknod": _make,
    "symlink": _symlink,
    "link": _link,
    "rename": _rename,
    "replace": _rename,
    "unlink": _remove,
    "remove": _remove,
    "rmdir": _remove,
    "chmod": _chmod,
    "fchmod": _fchmod,
    "lchmod": _lchmod,
    "utime": _utime,
    "setxattr": _set_attribute,
    "removexattr": _set_attribute,
}
