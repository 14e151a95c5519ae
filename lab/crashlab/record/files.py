"""Opening files: ``open`` and ``FileIO`` that record, under the buffers and text layers of CPython itself.

What a buffer holds back is not on disk, so the buffers must be the real ones. ``open`` is built
again here as ``io.open`` is (see ``open`` in ``_pyio``), with a recording ``FileIO`` at its bottom. Files that
are opened only to read are left to the real ``open``.
"""

from __future__ import annotations

import functools
import io
import os
import stat
import sys
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from crashlab import trace as t
from crashlab.record.patch import REAL, Switch
from crashlab.record.watch import Change, Plan, Planner, Watch
from crashlab.record.writes import copy_of, resizing, sending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from crashlab.record.places import Target

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_TEMPORARY = getattr(os, "O_TMPFILE", 0)
_MODE_FLAGS = {
    "r": 0,
    "w": os.O_CREAT | os.O_TRUNC,
    "x": os.O_CREAT | os.O_EXCL,
    "a": os.O_CREAT | os.O_APPEND,
}
_WITH_BUFFERING = 3  # that many positional arguments
_LARGEST_BUFFER_BYTES = 8 << 20
_LARGE_BUFFERS = sys.version_info >= (3, 15)  # since then at least DEFAULT_BUFFER_SIZE


def opening(
    watch: Watch, path: Any, flags: int, descriptor: Callable[[Any], int], dir_fd: int | None = None
) -> Plan | None:
    """An opening of ``path``. ``descriptor`` finds the descriptor in what the call returned.

    None for one that cannot change anything, or that may have to wait for another process.
    """
    if not flags & _WRITING:
        return None
    if _TEMPORARY and flags & _TEMPORARY == _TEMPORARY:
        inside = watch.places.resolve(path, dir_fd, follow=True).path is not None
        return Plan(lambda result: watch.new_nameless(descriptor(result))) if inside else None
    exclusive = flags & os.O_CREAT and flags & os.O_EXCL
    target = watch.places.resolve(path, dir_fd, follow=not (exclusive or flags & _NO_FOLLOW))
    before = _status(target.real)
    if before is not None and not stat.S_ISREG(before.st_mode):
        return None
    if target.path is None:
        return Plan(lambda result: _outside(watch, target, os.stat(descriptor(result))), locked=False)
    does = "create" if before is None else "truncate" if flags & os.O_TRUNC and before.st_size else "open"
    return Plan(lambda result: _opened(watch, target, before, flags, descriptor(result)), does=does)


def _opened(
    watch: Watch, target: Target, before: os.stat_result | None, flags: int, descriptor: int
) -> Iterable[Change]:
    status = os.stat(descriptor)
    path = target.path
    assert path is not None
    if before is None:
        inode = watch.new(status, path)
        watch.opened(descriptor, inode, path)
        common = {"path": path, "inode": inode, "time_ns": status.st_mtime_ns}
        return ((t.Create, common | {"mode": stat.S_IMODE(status.st_mode)}),)
    known = watch.number(status)
    if known is None:
        watch.note_stranger(path)
        return ()
    watch.opened(descriptor, known, path)
    if flags & os.O_TRUNC and before.st_size:
        return ((t.Truncate, {"path": path, "inode": known, "size": 0, "time_ns": status.st_mtime_ns}),)
    return ()


def _outside(watch: Watch, target: Target, status: os.stat_result) -> Iterable[Change]:
    if stat.S_ISREG(status.st_mode):
        with watch.lock:
            watch.forget(status)
            watch.note_outside(target)
    return ()


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _os_open(
    watch: Watch, _real: Any, path: Any, flags: int, *_rest: Any, dir_fd: int | None = None, **_options: Any
) -> Plan | None:
    return opening(watch, path, flags, int, dir_fd)


OS_CALLS: dict[str, Planner] = {"open": _os_open}


# --- FileIO ------------------------------------------------------------------------------------------


def _file_open(
    file_io: FileIO, watch: Watch, _real: Any, file: Any, mode: str = "r", *rest: Any, **options: Any
) -> Plan | None:
    opener = options.get("opener", rest[1] if len(rest) > 1 else None)
    if isinstance(file, int) or opener is not None:
        return None  # nothing is opened here, or the opener opens it: by os.open, which records
    flags = os.O_RDWR if "+" in mode else os.O_WRONLY if set(mode) & set("wxa") else os.O_RDONLY
    flags |= next((_MODE_FLAGS[letter] for letter in mode if letter in _MODE_FLAGS), 0)
    return opening(watch, file, flags, lambda _: file_io.fileno())


def _file_write(file_io: FileIO, watch: Watch, real: Any, data: Any, /) -> Plan | None:
    file = watch.by_descriptor(file_io.fileno())
    return None if file is None else sending(file, copy_of(data), real)


def _file_truncate(file_io: FileIO, watch: Watch, *_: Any) -> Plan | None:
    file = watch.by_descriptor(file_io.fileno())
    return None if file is None else resizing(file)


class _SameType(type(REAL.FileIO)):  # type: ignore[misc]  # the metaclass of a class that mypy sees as Any
    """Files that were opened by the real ``open``, for reading, are instances too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, REAL.FileIO) if cls is FileIO else type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, REAL.FileIO) if cls is FileIO else type.__subclasscheck__(cls, subclass)


class FileIO(REAL.FileIO, metaclass=_SameType):  # type: ignore[misc]  # mypy sees the real one as Any
    """``io.FileIO`` that records. Its own documentation is put back below."""

    switch: ClassVar[Switch] = Switch()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._through(_file_open, REAL.FileIO.__init__, *args, **kwargs)

    def write(self, *args: Any) -> Any:
        """Write bytes, and let the recording look on."""
        return self._through(_file_write, REAL.FileIO.write, *args)

    def truncate(self, *args: Any) -> Any:
        """Truncate the file, and let the recording look on."""
        return self._through(_file_truncate, REAL.FileIO.truncate, *args)

    def __repr__(self) -> str:
        text: str = REAL.FileIO.__repr__(self)
        return text if text.startswith("<_io.") else f"<_io.{text[1:]}"

    def _through(self, plan: Any, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        watch = FileIO.switch.watch
        if watch is None:
            return real(self, *args, **kwargs)
        return watch.run(functools.partial(plan, self), functools.partial(real, self), args, kwargs)


FileIO.__module__, FileIO.__doc__ = REAL.FileIO.__module__, REAL.FileIO.__doc__


# --- open --------------------------------------------------------------------------------------------


class _Arguments(NamedTuple):
    """The arguments of ``open``."""

    file: Any
    mode: Any = "r"
    buffering: Any = -1
    encoding: Any = None
    errors: Any = None
    newline: Any = None
    closefd: Any = True
    opener: Any = None


class Open:
    """A callable in the place of ``open``."""

    def __init__(self, switch: Switch) -> None:
        functools.update_wrapper(self, REAL.open_file)
        self._switch = switch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Open a file as the real ``open`` does; where it is recorded and written, with our FileIO."""
        if len(args) < _WITH_BUFFERING and "buffering" not in kwargs and not sys.flags.warn_default_encoding:
            mode = args[1] if len(args) > 1 else kwargs.get("mode", "r")
            if self._switch.watch is None or mode in ("r", "rb"):  # by far the most calls
                return REAL.open_file(*args, **kwargs)
        try:
            call = _Arguments(*args, **kwargs)
        except TypeError:
            return REAL.open_file(*args, **kwargs)  # it says what is wrong in its own words
        letters = _accepted(call)
        if letters and (call.buffering == 1 or sys.flags.warn_default_encoding):
            call = _warned(call)
        if self._switch.watch is None or letters.isdisjoint("wxa+"):
            return REAL.open_file(*call)
        return _open(call, letters)

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL.open_file, name)

    def __repr__(self) -> str:
        return repr(REAL.open_file)

    def __reduce__(self) -> str:
        return "open"


def _accepted(call: _Arguments) -> set[str]:
    """The letters of the mode; none where ``open`` refuses these arguments before it opens anything."""
    mode, texts = call.mode, (call.encoding, call.errors, call.newline)
    if not isinstance(mode, str) or not isinstance(call.buffering, int):
        return set()
    letters = set(mode)
    if len(letters) != len(mode) or letters - set("axrwb+t") or len(letters & set("axrw")) > 1:
        return set()
    if not all(text is None or isinstance(text, str) for text in texts):
        return set()
    if "b" in letters and ("t" in letters or any(text is not None for text in texts)):
        return set()
    return letters


def _warned(call: _Arguments) -> _Arguments:
    """Warn as ``open`` does, in the name of its caller: two frames of ours stand between."""
    binary = "b" in call.mode
    if binary and call.buffering == 1:
        text = "line buffering (buffering=1) isn't supported in binary mode, the default buffer size will be used"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
        return call._replace(buffering=-1)
    if not binary and call.encoding is None:
        return call._replace(encoding=io.text_encoding(None, 3))
    return call


def _open(call: _Arguments, letters: set[str]) -> Any:
    numeric = any(hasattr(type(call.file), name) for name in ("__index__", "__int__", "__float__"))
    file = call.file if numeric else os.fspath(call.file)
    raw_mode = "".join(letter for letter in "xrwa+" if letter in letters)
    raw = FileIO(file, raw_mode, bool(call.closefd), call.opener)
    result: Any = raw
    try:
        line_buffering = call.buffering == 1 or (call.buffering < 0 and raw.isatty())
        size = _buffer_bytes(raw) if call.buffering < 0 or line_buffering else call.buffering
        if size == 0:
            if "b" in letters:
                return result
            text = "can't have unbuffered text I/O"
            raise ValueError(text)  # noqa: TRY301 - as open does: the file is open by now, and is closed again
        result = (io.BufferedRandom if "+" in letters else io.BufferedWriter)(raw, size)
        if "b" in letters:
            return result
        result = io.TextIOWrapper(result, call.encoding, call.errors, call.newline, line_buffering)
        result.mode = call.mode
    except BaseException:
        result.close()
        raise
    return result


def _buffer_bytes(raw: FileIO) -> int:
    size: int = raw._blksize  # noqa: SLF001 - where io.open takes it from
    return max(min(size, _LARGEST_BUFFER_BYTES), io.DEFAULT_BUFFER_SIZE) if _LARGE_BUFFERS else size
