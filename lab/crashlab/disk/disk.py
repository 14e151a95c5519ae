"""A real file system on a disk of our own, and what a crash may leave of it.

The disk is one file of a FUSE file system in a process of its own (:mod:`crashlab.disk.server`),
under a loop device with direct I/O: each block write and each flush of ext4, xfs or btrfs arrives
there as it was issued, and is logged. Beside it lies a second disk that shows one crash image at a
time; it is mounted, the journal is replayed by the real kernel, and the files are read.

The mounts stand in a mount namespace of the calling thread's own, which the first disk makes:
processes that this thread starts afterwards see them, processes that ran before do not. They go with
the namespace, whatever kills its processes; see :func:`crashlab.disk.kernel.private_mounts`.

    with RealDisk("ext4") as disk:
        disk.mark(1)
        (disk.path / "dir" / "a").write_bytes(b"hello")
        kernel.sync_file_system(disk.path)
        disk.mark(2)
        trees = [disk.tree(image) for image in disk.images(disk.log(), 2, seed=1, count=50)]

What it does not show: see :mod:`crashlab.disk.log`; and the disk has no volatile cache that loses
*completed* writes at random sectors, only whole requests (or whole blocks, with ``torn``).
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

import crashlab
from crashlab import directory
from crashlab.disk import kernel
from crashlab.disk.available import missing
from crashlab.disk.kinds import kind_of
from crashlab.disk.log import BLOCK_BYTES, DiskLog, Image, images, unpack
from crashlab.disk.server import image_message
from crashlab.disk.sweep import clean, folder_prefix, sweep_left_over
from crashlab.disk.wire import Control, receive, send
from crashlab.errors import LabError, UsageError
from crashlab.recover.place import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from crashlab.tree import Tree

_PLACE_MODE = 0o755
_HOLD_S = 0.05
_START_LIMIT_S = 30.0


class RealDisk:
    """A mounted file system of ``kind`` with the three traced places, as a context manager.

    Raises UsageError where this machine cannot do it, and LabError where the kernel refuses.
    """

    def __init__(self, kind: str, *, folder: Path | None = None, hold_s: float = _HOLD_S) -> None:
        self.kind = kind
        self._kind = kind_of(kind)
        if why := missing(kind):
            raise UsageError(why)
        kernel.private_mounts()
        sweep_left_over(*([folder] if folder else ()))
        self._folder = os.path.abspath(tempfile.mkdtemp(prefix=folder_prefix(), dir=folder))
        self._hold_s = hold_s
        self.path = Path(self._folder, "live")
        self.control_socket = Path(self._folder, "control")
        self._image_path = Path(self._folder, "image")
        self._mounted = False
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    # --- start and end ---------------------------------------------------------------------------

    def _start(self) -> None:
        for name in ("fuse", "live", "image"):
            os.mkdir(f"{self._folder}/{name}")
        ours, theirs = socket.socketpair()
        arguments = [self._folder, str(self._kind.size), str(theirs.fileno())]
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "crashlab.disk.keeper", *arguments],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(crashlab.__file__).parents[1])},
        )
        theirs.close()
        self._line = ours
        ours.settimeout(_START_LIMIT_S)
        answer = receive(ours)
        if answer is None or answer[0] != "ok":
            words = answer[1].decode() if answer else "its keeper ended"
            text = f"cannot make a disk: {words}"
            raise LabError(text)
        self._live_device, self._image_device = answer[1].decode().split("\n")
        self._control = Control.to(self.control_socket)
        self._make()
        self.begin()

    def _make(self) -> None:
        """mkfs on an ordinary sparse file, which the disk takes in; then the three places."""
        plain = f"{self._folder}/plain"
        with open(plain, "wb") as file:
            file.truncate(self._kind.size)
        made = subprocess.run([*self._kind.make, plain], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            text = f"{self._kind.make[0]} failed: {made.stderr.strip()}"
            raise LabError(text)
        self._control.ask("load", os.fsencode(plain))
        os.unlink(plain)
        self._mount()
        for name in PLACES:
            os.mkdir(self.path / name)
        for path in (self.path, *(self.path / name for name in PLACES)):
            os.chmod(path, _PLACE_MODE)  # whatever the umask is
        if (self.path / "lost+found").exists():
            os.rmdir(self.path / "lost+found")
        self._unmount()
        self._control.ask("save")
        self._mount()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unmount, detach and remove everything. May be called twice."""
        if hasattr(self, "_control"):
            self._control.close()
        if hasattr(self, "_keeper") and self._keeper.returncode is None:
            with contextlib.suppress(OSError):  # the keeper may have been killed: then we clean up below
                send(self._line, "end")
            self._line.settimeout(_START_LIMIT_S)
            with contextlib.suppress(OSError):
                receive(self._line)
            self._line.close()
            self._keeper.wait()
        clean(self._folder)

    def _mount(self) -> None:
        kernel.mount(self._live_device, self.path, self._kind.name, options=self._kind.options)
        self._mounted = True

    def _must_be_free(self, device: str) -> None:
        """The bytes below are about to change: nobody may still have the old file system mounted."""
        if not kernel.is_free(device):
            text = (
                f"{device} is still mounted in the mount namespace of another process, which was started"
                " while the disk was mounted; end that process first (grep its name in /proc/*/mountinfo)"
            )
            raise LabError(text)

    def _unmount(self) -> None:
        kernel.unmount(self.path)
        self._mounted = False

    # --- a run -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a run: everything so far is made durable and becomes the base; the log is empty."""
        kernel.sync_file_system(self.path)
        self._control.ask("begin")

    def renew(self) -> None:
        """The file system as it was at the very first, in a run of its own: many workloads with one mkfs."""
        self.hold(on=False)
        self.fail(on=False)
        if self._mounted:
            self._unmount()
        self._must_be_free(self._live_device)
        self._control.ask("restore")
        self._mount()
        self.begin()

    def mark(self, name: int) -> None:
        """Set a mark: writes that arrive after this returns stand behind it in the log."""
        self._control.ask("mark", struct.pack("<q", name))

    def register(self, blocks: Iterable[bytes]) -> None:
        """Tell the disk which 4 KiB pages of files the workload will hold: these are its data writes.

        A shorter block is filled with zeros, as the page is; a page of zeros tells nothing.
        """
        padded = {block.ljust(BLOCK_BYTES, b"\0") for block in blocks} - {bytes(BLOCK_BYTES)}
        self._control.ask("known", b"".join(sorted(padded)))

    def hold(self, *, on: bool) -> None:
        """Hold back registered data writes, each for ``hold_s`` seconds, as a slow disk does."""
        self._control.ask("hold", struct.pack("<d", self._hold_s if on else 0.0))

    def fail(self, *, on: bool) -> None:
        """Answer registered data writes with EIO."""
        self._control.ask("fail", b"1" if on else b"0")

    def log(self) -> DiskLog:
        """The log of this run until now."""
        body = self._control.ask("log")
        (run,) = struct.unpack_from("<q", body)
        return DiskLog(run, unpack(body[8:]))

    # --- images ----------------------------------------------------------------------------------

    def images(self, log: DiskLog, upto_mark: int, *, seed: int, count: int, torn: bool = False) -> Iterator[Image]:
        """At most ``count`` distinct images of power lost at mark ``upto_mark``; all, where there are few."""
        return images(log, log.position(upto_mark), seed=seed, count=count, torn=torn)

    @contextlib.contextmanager
    def mounted(self, image: Image) -> Iterator[Path]:
        """The image, mounted for reading and writing; what is written goes with it.

        Raises LabError with the kernel's words where it refuses to mount.
        """
        self._must_be_free(self._image_device)
        self._control.ask("show", image_message(image))
        try:
            kernel.mount(
                self._image_device, self._image_path, self._kind.name, kernel.NO_ACCESS_TIMES, self._kind.image_options
            )
        except OSError as error:
            text = f"the kernel does not mount {image}: {error.strerror}; its reason stands in dmesg"
            raise LabError(text) from error
        try:
            yield self._image_path
        finally:
            kernel.unmount(self._image_path)

    def tree(self, image: Image) -> Tree:
        """What the file system shows of ``image`` once its journal is replayed."""
        with self.mounted(image) as path:
            return directory.read(path)
