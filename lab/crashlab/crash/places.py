"""Readable names of crash points: ``turn5.tool2.effect+``, ``save4.data@4096``.

An id says which ops were completed; a place says what the subject was doing. Ops belong to the call
that the lab made (``save4``), else to the save point that follows them (``turn3.B``: the files are
written first, then the save point is told). An effect belongs to the dotted scope of the save point
before it (``turn5.tool2`` of ``turn5.tool2.S``). ``+`` is just after, ``@4096`` a write cut at that
file offset, ``start`` before the first op.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.tree import Directory

if TYPE_CHECKING:
    from crashlab.crash.states import CrashState

_PARTS: dict[type[t.Op], str] = {t.Write: "data", t.SavePoint: "saved", t.MakeDirectory: "mkdir"}


@dataclass(frozen=True, slots=True)
class Span:
    """Ops ``first`` to ``last`` that belong together: one save, one effect, one call."""

    name: str
    first: int
    last: int


class Places:
    """Names for every op of one trace.

    >>> from crashlab.tree import Tree
    >>> ops = (t.Call(n=1, name="save"), t.Create(n=2, path="dir/a", inode=1), t.Ack(n=3))
    >>> places = Places(t.Trace(root="/r", base=Tree.empty(), ops=ops))
    >>> [places.after(done) for done in range(4)]
    ['start', 'save1.call+', 'save1.create+', 'save1.ack+']
    """

    def __init__(self, trace: t.Trace) -> None:
        self._trace = trace
        self._directories = {inode for inode, node in trace.base.nodes.items() if isinstance(node, Directory)}
        self._directories |= {op.inode for op in trace.ops if isinstance(op, t.MakeDirectory)}
        self._scopes = _scopes(trace.ops)

    def scope(self, n: int) -> str:
        """What op ``n`` belongs to."""
        return self._scopes[n - 1]

    def op(self, n: int) -> str:
        """The name of op ``n`` without a sign: ``save4.rename``."""
        scope, op = self.scope(n), self._trace.op(n)
        if isinstance(op, t.Effect):
            return scope
        if isinstance(op, t.SavePoint) and scope == op.name:
            return scope
        part = _PARTS.get(type(op), op.KIND)
        if isinstance(op, t.Fsync) and op.inode in self._directories:
            part = "dirsync"
        return f"{scope}.{part}" if scope else part

    def after(self, done: int) -> str:
        """The place just after op ``done``."""
        return f"{self.op(done)}+" if done else "start"

    def of(self, state: CrashState) -> str:
        """The place of a crash state."""
        if state.cut_bytes is None:
            return self.after(state.done)
        op = self._trace.op(state.done + 1)
        assert isinstance(op, t.Write)
        return f"{self.op(op.n)}@{op.offset + state.cut_bytes}"

    def spans(self) -> list[Span]:
        """The trace cut into runs of ops that belong together, in order: the rows of the crash matrix."""
        spans: list[Span] = []
        for n, scope in enumerate(self._scopes, start=1):
            if spans and spans[-1].name == scope:
                spans[-1] = Span(scope, spans[-1].first, n)
            else:
                spans.append(Span(scope, n, n))
        return spans


def _scopes(ops: tuple[t.Op, ...]) -> list[str]:
    following = _following_save_points(ops)
    scopes: list[str] = []
    call, told, last_save_point = "", "", ""
    calls: dict[str, int] = {}
    effects: dict[str, int] = {}
    for op in ops:
        match op:
            case t.Call():
                calls[op.name] = calls.get(op.name, 0) + 1
                call = f"{op.name}{calls[op.name]}"
                scopes.append(call)
            case t.Effect():
                effects[op.name] = effects.get(op.name, 0) + 1
                prefix, dot, _ = last_save_point.rpartition(".")
                scopes.append(f"{prefix}.effect" if dot else f"{op.name}{effects[op.name]}")
            case t.SavePoint():
                told = last_save_point = op.name
                scopes.append(call or op.name)
            case t.Ack():
                scopes.append(call or told)
                call = ""
            case _:
                scopes.append(call or following[op.n - 1])
    return scopes


def _following_save_points(ops: tuple[t.Op, ...]) -> list[str]:
    """Per op the name of the next save point, or "" where an effect, a call or the end comes first."""
    names: list[str] = []
    name = ""
    for op in reversed(ops):
        if isinstance(op, t.SavePoint):
            name = op.name
        elif isinstance(op, (t.Effect, t.Call)):
            name = ""
        names.append(name)
    return names[::-1]


def place_path(path: str) -> str:
    """A path of the trace as people read it: relative to ``lab.dir`` where it is below it.

    >>> place_path("dir/a"), place_path("home/b"), place_path("dir"), place_path("")
    ('a', '~home/b', '.', 'the file without a name')
    """
    if path in ("", "dir"):
        return "." if path else "the file without a name"
    return path.removeprefix("dir/") if path.startswith("dir/") else f"~{path}"
