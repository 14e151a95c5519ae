"""What an fsync that failed leaves on real file systems: the facts under the model of ``error:failed-fsync``."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

import pytest

from crashlab.disk import kernel
from crashlab.disk.disk import RealDisk
from tests.crashlab.disk.needs import kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD, NEW, ZEROS = b"old." * 1024, b"new!" * 1024, bytes(4096)
KINDS = ("ext4", "xfs", "btrfs")
LOCKED = "ext4[dioread_lock]"


class Bench:
    """One disk that knows the pages NEW as data, and one file on it."""

    def __init__(self, disk: RealDisk) -> None:
        self.disk, self.marks = disk, 0
        disk.register([NEW])

    def file(self, name: str, durable: bytes = b"") -> int:
        """A file with durable bytes and a durable name; its descriptor."""
        directory = self.disk.path / "dir"
        descriptor = os.open(directory / name, os.O_RDWR | os.O_CREAT)
        os.pwrite(descriptor, durable, 0)
        for each in (descriptor, parent := os.open(directory, os.O_RDONLY)):
            os.fsync(each)
        os.close(parent)
        return descriptor

    def failed(self, descriptor: int, offset: int = 0) -> int:
        """Write NEW there while the disk refuses it; the errno of fsync."""
        self.disk.fail(on=True)
        os.pwrite(descriptor, NEW, offset)
        number = synced(descriptor)
        self.disk.fail(on=False)
        return number

    def after_restart(self, name: str) -> set[bytes]:
        """What the file holds where power fails now."""
        self.marks += 1
        self.disk.mark(self.marks)
        images = self.disk.images(self.disk.log(), self.marks, seed=1, count=6)
        nodes = [self.disk.tree(image).node(f"dir/{name}") for image in images]
        return {node.content.read() for node in nodes}


def synced(descriptor: int) -> int:
    """The errno of fsync, 0 where it succeeds."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


@contextlib.contextmanager
def bench(kind: str) -> Iterator[Bench]:
    with RealDisk(kind) as disk:
        yield Bench(disk)


@pytest.mark.parametrize("kind", kinds(*KINDS))
def test_the_second_fsync_succeeds_and_the_bytes_are_not_there(kind: str) -> None:
    """EIO once, then 0; read from the cache they are new, from the disk old; only writing again and syncing helps."""
    with bench(kind) as it:
        file = it.file("o", OLD)
        assert it.failed(file) == errno.EIO
        assert synced(file) == 0
        assert os.pread(file, 4096, 0) == NEW
        assert it.after_restart("o") == {OLD}
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        assert os.pread(file, 4096, 0) == OLD
        os.pwrite(file, NEW, 0)
        assert synced(file) == 0
        assert it.after_restart("o") == {NEW}
        os.close(file)


@pytest.mark.parametrize("kind", kinds(*KINDS))
def test_who_hears_of_it(kind: str) -> None:
    """Every descriptor that was open, once; one opened later only where nobody has heard."""
    with bench(kind) as it:
        file = it.file("o", OLD)
        other = os.open(it.disk.path / "dir" / "o", os.O_RDWR)
        assert it.failed(file) == errno.EIO
        assert [synced(other), synced(other)] == [errno.EIO, 0]
        later = os.open(it.disk.path / "dir" / "o", os.O_RDWR)
        assert synced(later) == 0
        unheard = it.file("u", OLD)
        it.disk.fail(on=True)
        os.pwrite(unheard, NEW, 0)
        os.close(unheard)
        with contextlib.suppress(OSError):
            kernel.sync_file_system(it.disk.path)
        it.disk.fail(on=False)
        first = os.open(it.disk.path / "dir" / "u", os.O_RDWR)
        assert [synced(first), synced(first)] == [errno.EIO, 0]
        for descriptor in (file, other, later, first):
            os.close(descriptor)


@pytest.mark.parametrize("kind", kinds(*KINDS))
def test_a_new_file_and_an_appended_page_are_zeros_or_missing(kind: str) -> None:
    """xfs shows the old size; ext4 and btrfs the new one, and zeros."""
    with bench(kind) as it:
        new, grown = it.file("n"), it.file("a", OLD)
        assert [it.failed(new), it.failed(grown, 4096)] == [errno.EIO, errno.EIO]
        assert [synced(new), synced(grown)] == [0, 0]
        rest = b"" if kind == "xfs" else ZEROS
        assert it.after_restart("n") == {rest}
        assert it.after_restart("a") == {OLD + rest}
        os.close(new)
        os.close(grown)


@pytest.mark.parametrize("kind", kinds(*KINDS, LOCKED))
@pytest.mark.parametrize("durable", [b"", OLD], ids=["new file", "appended"])
def test_written_again_a_new_page_is_durable_but_not_on_ext4(kind: str, durable: bytes) -> None:
    """The model's X5: on ext4 with default options the page reads as zeros, although its fsync returned 0."""
    with bench(kind) as it:
        file = it.file("n", durable)
        assert it.failed(file, len(durable)) == errno.EIO
        os.pwrite(file, NEW, len(durable))
        assert synced(file) == 0
        assert it.after_restart("n") == {durable + (ZEROS if kind == "ext4" else NEW)}
        os.close(file)


@pytest.mark.parametrize("kind", kinds(*KINDS, LOCKED))
@pytest.mark.parametrize("durable", [b"", OLD], ids=["new file", "appended"])
def test_cut_off_and_written_again_it_is_durable_everywhere(kind: str, durable: bytes) -> None:
    """What a log should do after an error: truncate to the old length, then append anew."""
    with bench(kind) as it:
        file = it.file("n", durable)
        assert it.failed(file, len(durable)) == errno.EIO
        os.ftruncate(file, len(durable))
        os.pwrite(file, NEW, len(durable))
        assert synced(file) == 0
        assert it.after_restart("n") == {durable + NEW}
        os.close(file)
