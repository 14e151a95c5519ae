"""The numbered ops of one recorded run, and their JSON form.

A trace holds everything that a crash state is computed from: the tree before the run, every change
of a file under the traced places, every barrier, and the events that the subject told (calls,
effects, acks, save points). It does not hold reads: a crash cannot lose them.

Paths are relative to the *root*, the directory that holds the three traced places ``dir``,
``home`` and ``tmp``; their separator is ``/`` on every system, and bytes that are no UTF-8 are
kept as surrogates, as ``os.fsdecode`` does. Files are known by inode number: numbers of the trace,
not of the disk, so that a name that is used twice stays two files.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from crashlab.tree import Tree

SCHEMA = "crashlab.trace/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One numbered event of the trace. ``n`` counts from 1.

    ``thread`` is 0 for the thread that started the run, then 1, 2, … in order of their first op.
    ``at`` is the place in the subject's source that did it, as ``file.py:12``, or empty.
    """

    KIND: ClassVar[str] = ""

    n: int
    time_ns: int = 0
    thread: int = 0
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOp(Op):
    """An op on one inode; ``path`` is the name by which it was reached."""

    path: str
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(FileOp):
    """A new regular file of size 0 under a name that was free.

    ``path`` is ``""`` for a file without a name (``O_TMPFILE``); a later :class:`Link` names it.
    """

    KIND: ClassVar[str] = "create"
    mode: int = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(FileOp):
    """Bytes at the real file offset, also for an append.

    ``sync`` is ``"data"`` or ``"all"`` where the descriptor was opened ``O_DSYNC`` or ``O_SYNC``.
    """

    KIND: ClassVar[str] = "write"
    offset: int
    data: bytes
    sync: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(FileOp):
    """The size becomes ``size``: ``ftruncate``, or ``O_TRUNC`` of a file that was not empty."""

    KIND: ClassVar[str] = "truncate"
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocate(FileOp):
    """``posix_fallocate``: the size becomes at least ``size``, new bytes are zero."""

    KIND: ClassVar[str] = "allocate"
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeDirectory(FileOp):
    """A new empty directory."""

    KIND: ClassVar[str] = "mkdir"
    mode: int = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeSymlink(FileOp):
    """A new symbolic link that says ``target``."""

    KIND: ClassVar[str] = "symlink"
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeSpecial(FileOp):
    """A new ``fifo`` or ``socket``."""

    KIND: ClassVar[str] = "special"
    type: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(FileOp):
    """A further name ``path`` for the file ``inode``."""

    KIND: ClassVar[str] = "link"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename(FileOp):
    """``path`` becomes ``to``, replacing what was there. Not recorded where both are one inode."""

    KIND: ClassVar[str] = "rename"
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlink(FileOp):
    """The name goes; the inode lives on while another name or a descriptor holds it."""

    KIND: ClassVar[str] = "unlink"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDirectory(FileOp):
    """An empty directory goes."""

    KIND: ClassVar[str] = "rmdir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chmod(FileOp):
    """The permission bits become ``mode``."""

    KIND: ClassVar[str] = "chmod"
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimes(FileOp):
    """The modification time was set by hand."""

    KIND: ClassVar[str] = "utime"
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAttribute(FileOp):
    """An extended attribute ``user.*`` was set, or removed where ``value`` is None."""

    KIND: ClassVar[str] = "setxattr"
    name: str
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fsync(FileOp):
    """A barrier on one file or directory.

    ``data_only`` for ``fdatasync``; ``full`` for ``F_FULLFSYNC``, which on macOS is the only one
    that reaches the medium. ``failed``: it raised, since a write of file data failed below it. Then it is
    no barrier, and the pages that it should have written are given up: clean in the cache, never written again.
    """

    KIND: ClassVar[str] = "fsync"
    data_only: bool = False
    full: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync(Op):
    """A barrier on everything: ``sync``, ``syncfs``."""

    KIND: ClassVar[str] = "sync"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Op):
    """The lab called the subject: ``save``, ``append``. ``value`` is in tagged JSON form."""

    KIND: ClassVar[str] = "call"
    name: str
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect(Op):
    """Something done to the outside world. It survives every crash.

    ``counted`` is False where the outside world knew the key already and did nothing. ``line`` is what a program
    wrote down to tell it.
    """

    KIND: ClassVar[str] = "effect"
    name: str
    key: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    receipt: str = ""
    counted: bool = True
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Op):
    """The subject reported that an effect may have happened and a person must decide."""

    KIND: ClassVar[str] = "unknown"
    name: str
    key: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack(Op):
    """The subject told someone that ``value`` is saved; ``value`` is in tagged JSON form."""

    KIND: ClassVar[str] = "ack"
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavePoint(Op):
    """The subject says that its state is complete on disk here, under this name."""

    KIND: ClassVar[str] = "save-point"
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Op):
    """A call that was to change files failed, or took fewer bytes than it was given; it changed nothing.

    ``call`` is the name of the call and ``error`` that of the errno, or ``short``. An uncrashed run has none.
    """

    KIND: ClassVar[str] = "refused"
    call: str
    error: str
    path: str = ""


LOAD = "load"
"""Name of the call by which a run begins that goes on after a crash; its value is what was loaded."""

EVENTS = (Call, Effect, Unknown, Ack, SavePoint, Refused)
BARRIERS = (Fsync, Sync)

OP_TYPES: dict[str, type[Op]] = {
    op_type.KIND: op_type
    for op_type in (
        *(Create, Write, Truncate, Allocate, MakeDirectory, MakeSymlink, MakeSpecial, Link, Rename),
        *(Unlink, RemoveDirectory, Chmod, SetTimes, SetAttribute),
        *BARRIERS,
        *EVENTS,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One recorded run: the tree before it, and its ops in order.

    ``root`` is the absolute path at which it ran; ``threads`` how many threads made an op (more
    than one: their ops were serialised, and the trace is one interleaving of several).
    """

    root: str
    base: Tree
    ops: tuple[Op, ...]
    threads: int = 1

    def __post_init__(self) -> None:
        for position, op in enumerate(self.ops, start=1):
            if op.n != position:
                text = f"op {position} of the trace says that it is op {op.n}; ops count from 1 without a gap"
                raise UsageError(text)

    def op(self, n: int) -> Op:
        """Op ``n``. Raises UsageError where the trace has no such op.

        >>> from crashlab.tree import Tree
        >>> Trace(root="/r", base=Tree.empty(), ops=()).op(9)
        Traceback (most recent call last):
        ...
        crashlab.errors.UsageError: no op 9 in this recording (0 ops)
        """
        if not 1 <= n <= len(self.ops):
            text = f"no op {n} in this recording ({len(self.ops)} ops)"
            raise UsageError(text)
        return self.ops[n - 1]

    def before(self, done: int, *kinds: type[Op]) -> Iterator[Op]:
        """The ops of these kinds among the first ``done``, in order."""
        return (op for op in self.ops[:done] if isinstance(op, kinds))

    @property
    def digest(self) -> str:
        """Hash of base and ops without times: equal for two recordings of one deterministic run."""
        timeless = [{key: value for key, value in op_to_json(op).items() if key != "time_ns"} for op in self.ops]
        text = json.dumps([self.base.digest, timeless], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The versioned JSON form; :meth:`from_json` gives an equal Trace back."""
        return {
            "schema": SCHEMA,
            "root": self.root,
            "threads": self.threads,
            "base": self.base.to_json(),
            "ops": [op_to_json(op) for op in self.ops],
        }

    @staticmethod
    def from_json(form: Mapping[str, Any]) -> Trace:
        """Read a trace back. Raises UsageError for another schema or a form that is no trace."""
        from crashlab.tree import Tree  # noqa: PLC0415 - tree applies ops, so it imports this module

        if not isinstance(form, dict) or form.get("schema") != SCHEMA:
            found = form.get("schema") if isinstance(form, dict) else type(form).__name__
            text = f"not a trace that this crashlab can read: expected schema {SCHEMA!r}, found {found!r}; record again"
            raise UsageError(text)
        try:
            ops = tuple(op_from_json(op) for op in form["ops"])
            return Trace(root=form["root"], threads=form["threads"], base=Tree.from_json(form["base"]), ops=ops)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = f"damaged trace: {type(error).__name__}: {error}; record again"
            raise UsageError(text) from error


_BYTES_FIELDS = frozenset({"data", "value"})


def op_to_json(op: Op) -> dict[str, Any]:
    """One op as a JSON object; fields that have their default are left out.

    >>> op_to_json(Write(n=1, path="dir/a", inode=5, offset=0, data=b"hi"))
    {'op': 'write', 'n': 1, 'path': 'dir/a', 'inode': 5, 'offset': 0, 'data': {'base64': 'aGk='}}
    """
    form: dict[str, Any] = {"op": op.KIND}
    for name, default in _DEFAULTS[type(op)]:
        value = getattr(op, name)
        if value == default and type(value) is type(default):
            continue
        form[name] = {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
    return form


_DEFAULTS: dict[type[Op], tuple[tuple[str, Any], ...]] = {
    op_type: tuple(
        (each.name, each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default)
        for each in dataclasses.fields(op_type)
    )
    for op_type in OP_TYPES.values()
}
"""Each field of each type with its default, looked up once: every op of every recovery asks."""


def op_from_json(form: Mapping[str, Any]) -> Op:
    """The op that :func:`op_to_json` wrote. Raises KeyError or TypeError for anything else."""
    fields = dict(form)
    op_type = OP_TYPES[fields.pop("op")]
    if issubclass(op_type, (Write, SetAttribute)):
        for name in _BYTES_FIELDS & fields.keys():
            if fields[name] is not None:
                fields[name] = base64.b64decode(fields[name]["base64"], validate=True)
    return op_type(**fields)
