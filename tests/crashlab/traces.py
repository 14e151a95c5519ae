"""Small traces by hand, for tests of the stages that work on traces."""

from __future__ import annotations

from typing import Any

from crashlab import trace as t
from crashlab.tree import Tree

ROOT = "/root-of-the-test"
BASE = (
    Tree.empty()
    .apply(t.MakeDirectory(n=1, path="dir", inode=1))
    .apply(t.MakeDirectory(n=2, path="home", inode=2))
    .apply(t.MakeDirectory(n=3, path="tmp", inode=3))
)


def trace_of(*ops: tuple[type[t.Op], dict[str, Any]]) -> t.Trace:
    """A trace of these ops, numbered in order."""
    numbered = tuple(op_type(n=n, time_ns=n, **fields) for n, (op_type, fields) in enumerate(ops, start=1))
    return t.Trace(root=ROOT, base=BASE, ops=numbered)


def create(path: str, inode: int) -> tuple[type[t.Op], dict[str, Any]]:
    """A new file."""
    return t.Create, {"path": f"dir/{path}", "inode": inode}


def write(path: str, inode: int, data: bytes, offset: int = 0) -> tuple[type[t.Op], dict[str, Any]]:
    """A write."""
    return t.Write, {"path": f"dir/{path}", "inode": inode, "offset": offset, "data": data}


def call(value: Any, name: str = "save") -> tuple[type[t.Op], dict[str, Any]]:
    """The lab calls the subject."""
    return t.Call, {"name": name, "value": value}


def ack(value: Any = None) -> tuple[type[t.Op], dict[str, Any]]:
    """The value is acked."""
    return t.Ack, {"value": value}


def effect(name: str, **detail: Any) -> tuple[type[t.Op], dict[str, Any]]:
    """Something is done outside."""
    return t.Effect, {"name": name, "detail": detail, "receipt": f"{name}-1"}


def save_point(name: str) -> tuple[type[t.Op], dict[str, Any]]:
    """The subject tells a save point."""
    return t.SavePoint, {"name": name}
