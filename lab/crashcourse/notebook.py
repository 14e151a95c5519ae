"""What the cells of a lesson's notebook share: a folder that goes away, names without chance, two functions compared.

A notebook's outputs are kept in its file and compared after each change, so nothing may stand in them that differs
from run to run. :func:`plain` takes out what is made up anew each time; :func:`difference` shows what a
naive function and the correct one do not share.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import dataclasses
import difflib
import html
import inspect
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crashcourse.folders import temporary
from crashcourse.pictures.svg import BAD, GOOD, INK, PANEL, RULE, TINTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Told = TypeVar("Told")

_MADE_UP = re.compile(r"(?<=\.)[0-9a-f]{16}(?=\.tmp\b)|(?<=\btoolu_)\w+")
_PRE = (
    f"background:{PANEL};color:{INK};border:1px solid {RULE};border-radius:6px;padding:8px;"
    "font-size:12px;line-height:1.4;white-space:pre;overflow-x:auto"
)
_LINE = "display:block;min-height:1.4em;font-family:monospace;white-space:pre"
_GROUND = {"-": f"background:{TINTS[BAD]}", "+": f"background:{TINTS[GOOD]}"}
_FOLDERS = contextlib.ExitStack()
atexit.register(_FOLDERS.close)


def folder() -> Path:
    """A new folder that is removed when this process, the kernel of a notebook, ends."""
    return Path(_FOLDERS.enter_context(temporary()))


def plain(value: Told) -> Told:
    """The same, with a ``*`` for what is unique in ids and in temporary names.

    It looks into data classes, dicts, tuples and lists, at any depth.

    >>> plain(("checkpoint.json.0123456789abcdef.tmp", 7))
    ('checkpoint.json.*.tmp', 7)
    """
    told: Any = value
    if isinstance(told, str):
        told = _MADE_UP.sub("*", told)
    elif isinstance(told, dict):
        told = {plain(key): plain(each) for key, each in told.items()}
    elif isinstance(told, tuple | list):
        told = type(told)(plain(each) for each in told)
    elif dataclasses.is_dataclass(told) and not isinstance(told, type):
        names = [field.name for field in dataclasses.fields(told) if field.init]
        told = dataclasses.replace(told, **{name: plain(getattr(told, name)) for name in names})
    result: Told = told
    return result


@dataclasses.dataclass(frozen=True, repr=False)
class Difference:
    """Lines that one text has and the other has not; coloured in a notebook."""

    lines: tuple[str, ...]

    def _repr_html_(self) -> str:
        lines = (f'<span style="{_LINE};{_GROUND.get(line[:1], "")}">{html.escape(line)}</span>' for line in self.lines)
        return f'<pre style="{_PRE}">{"".join(lines)}</pre>'

    def __repr__(self) -> str:
        return "\n".join(self.lines)


def difference(naive: Callable[..., Any] | ModuleType, correct: Callable[..., Any] | ModuleType) -> Difference:
    """From the naive function, or module, to the correct one: ``-`` stands only there, ``+`` only here.

    The docstrings are left out: what they say of the fault is the reader's to find.
    """
    old, new = (_code(inspect.getsource(each)) for each in (naive, correct))
    return Difference(tuple(line.rstrip() for line in list(difflib.unified_diff(old, new, n=9, lineterm=""))[3:]))


def _code(source: str) -> list[str]:
    """The lines of a function or module without its docstrings."""
    lines: list[str | None] = [*textwrap.dedent(source).splitlines()]
    for node in ast.walk(ast.parse("\n".join(map(str, lines)))):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            text = node.body[0]
            lines[text.lineno - 1 : text.end_lineno] = [None] * (1 + (text.end_lineno or 0) - text.lineno)
    return [line for line in lines if line is not None]
