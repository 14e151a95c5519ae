"""Putting our functions in the place of the interpreter's, everywhere that they can be reached from.

Names are replaced by identity, in every module that is loaded: ``os.open`` is also ``posix.open``,
and ``from os import replace`` or a default argument such as ``unlink=os.unlink`` keeps its own
reference. A module that is imported later finds the replaced ones. What stays unreached: a
reference inside a container or an object, and calls that C code makes by itself.
"""

from __future__ import annotations

import _io
import builtins
import functools
import os
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from crashlab.record.watch import Planner, Watch

try:
    from fcntl import fcntl as _fcntl
except ImportError:  # Windows
    _fcntl = None  # type: ignore[assignment]  # mypy reads the stubs of one system

_OWN = "crashlab.record."
_SUPPORT_SETS = ("supports_dir_fd", "supports_effective_ids", "supports_fd", "supports_follow_symlinks")


class _Real:
    """The functions as the interpreter made them, for the recorder's own use."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    open_file = staticmethod(builtins.open)
    FileIO = _io.FileIO
    fcntl = staticmethod(_fcntl)


REAL: Any = _Real


class Switch:
    """Holds what is being recorded now: None, and every patched call goes straight through."""

    def __init__(self) -> None:
        self.watch: Watch | None = None


class Patched:
    """A callable in the place of a built-in function.

    An instance rather than a function, because a built-in that is stored on a class does not
    become a method, and neither does this.
    """

    def __init__(self, switch: Switch, real: Callable[..., Any], plan: Planner) -> None:
        functools.update_wrapper(self, real)
        self._switch = switch
        self._real = real
        self._plan = plan

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the real function, and let the recording look on, where there is one."""
        watch = self._switch.watch
        if watch is None:
            return self._real(*args, **kwargs)
        return watch.run(self._plan, self._real, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __repr__(self) -> str:
        return repr(self._real)

    def __reduce__(self) -> str:
        return self._real.__qualname__


def replace_everywhere(replacements: Iterable[tuple[Any, Any]]) -> None:
    """Put the second of each pair wherever a loaded module holds the first."""
    pairs = list(replacements)
    table = {id(old): new for old, new in pairs}
    modules: list[Any] = list(sys.modules.values())  # a program may put anything there
    for module in modules:
        if isinstance(module, ModuleType) and not module.__name__.startswith(_OWN):
            _replace_in(vars(module), module.__name__, table)
    for name in _SUPPORT_SETS:  # shutil asks these sets what a function can do
        functions = getattr(os, name)
        functions.update([new for old, new in pairs if old in functions])


def _replace_in(names: dict[str, Any], module: str, table: Mapping[int, Any]) -> None:
    for name, value in list(names.items()):
        if id(value) in table:
            names[name] = table[id(value)]
        elif isinstance(value, FunctionType):
            _replace_defaults(value, table)
        elif isinstance(value, type) and value.__module__ == module:
            for member in list(vars(value).values()):
                if isinstance(member, FunctionType):
                    _replace_defaults(member, table)


def _replace_defaults(function: FunctionType, table: Mapping[int, Any]) -> None:
    defaults = function.__defaults__
    if defaults and any(id(value) in table for value in defaults):
        function.__defaults__ = tuple(table.get(id(value), value) for value in defaults)
    keywords = function.__kwdefaults__
    if keywords:
        keywords.update({name: table[id(value)] for name, value in keywords.items() if id(value) in table})
