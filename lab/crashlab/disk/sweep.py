"""Nothing is left: mounts, loop devices and folders of disks whose owner has died are taken away.

Everything that a disk makes carries the name of its folder, ``crashlab-disk-PID-START-RANDOM``, in
which PID and START say which process owns it: a mount by its mount point, a loop device by its
backing file. A living owner's things, and everything without that name, are never touched.

Not covered: an owner in another pid namespace looks dead from here; do not sweep across containers
that share one mount namespace.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from pathlib import Path

from crashlab.disk import kernel

PREFIX = "crashlab-disk-"
FILES = ("live", "image")
"""The files of the FUSE file system, one under each loop device."""
_NAME = re.compile(r"(?P<above>.*?)(?P<name>" + PREFIX + r"(?P<pid>\d+)-(?P<start>\d+)-[^/ ]+)")
_OCTAL = re.compile(r"\\([0-7]{3})")


def start_time(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 where it has ended. With the pid it names a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def folder_prefix() -> str:
    """What the name of a folder of this process's disks begins with."""
    return f"{PREFIX}{os.getpid()}-{start_time(os.getpid())}-"


def _dead_folder(text: str) -> str | None:
    """The folder that a path or label lies in, if it is a disk's and its owner is dead."""
    match = _NAME.match(text)
    if match is None or start_time(int(match["pid"])) == int(match["start"]):
        return None
    return match["above"] + match["name"]


def mounts() -> list[str]:
    """Mount points of this mount namespace, oldest first."""
    lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    return [_OCTAL.sub(lambda match: chr(int(match[1], 8)), line.split(" ")[4]) for line in lines]


def loops() -> dict[str, str]:
    """Each loop device in use, with the path of its backing file, or, for a disk whose namespace died, its label.

    Then the path has lost all but its last part, and the device itself must be asked. A device of
    somebody else, or of a living disk, is not opened.
    """
    found = {}
    for path in sorted(Path("/sys/block").glob("loop*/loop/backing_file")):
        with contextlib.suppress(OSError):  # detached while it was looked at
            device, backing = f"/dev/{path.parts[3]}", path.read_text(errors="surrogateescape").rstrip("\n")
            found[device] = kernel.label_of(device) if backing.removeprefix("/") in FILES else backing
    return found


def sweep_left_over(*places: str | Path) -> list[str]:
    """Take away what dead owners left, and say what it was, one line each.

    Folders are looked for in the system's temporary directory and in ``places``; mounts and loop
    devices everywhere.
    """
    looked = {tempfile.gettempdir(), *map(str, places)}
    folders = [str(path) for place in looked for path in Path(place).glob(f"{PREFIX}*")]
    left = {folder for text in (*mounts(), *loops().values(), *folders) if (folder := _dead_folder(text))}
    return [line for folder in sorted(left) for line in clean(folder)]


def clean(folder: str) -> list[str]:
    """Unmount everything below ``folder``, free its loop devices, remove it. What was done, one line each."""
    done = []
    fuse = f"{folder}/fuse"
    for point in reversed([each for each in mounts() if each.startswith(f"{folder}/") and each != fuse]):
        _unmount(point)
        done.append(f"unmounted {point}")
    for device, backing in loops().items():
        if backing.startswith((f"{fuse}/", f"{os.path.basename(folder)}/")):
            kernel.detach(device)
            done.append(f"detached {device}")
    if fuse in mounts():  # last: the paths of the backing files lie below it
        _unmount(fuse)
        done.append(f"unmounted {fuse}")
    if os.path.isdir(folder):
        shutil.rmtree(folder)
        done.append(f"removed {folder}")
    return done


def _unmount(point: str) -> None:
    """Take a mount away; lazily where a process still uses it: it keeps what it has open, and no name is left."""
    try:
        kernel.unmount(point)
    except OSError as error:
        if error.errno == errno.EINVAL:  # somebody was quicker
            return
        if error.errno != errno.EBUSY:
            raise
        kernel.unmount(point, lazy=True)
