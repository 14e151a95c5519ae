"""Pickling a subject, and finding the object in it that cannot be pickled.

Looks where functions keep things: closures, globals they use, defaults, the object of a bound
method, the arguments of a ``functools.partial``; then into containers and attributes of these.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import io
import sys
import types
from typing import TYPE_CHECKING, Any, ClassVar

import cloudpickle

from crashlab.recover.travel import fields_of
from crashlab.subject import AnySubject, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEPTH = 6


def dumps(value: Any) -> bytes:
    """Pickle ``value``; functions of modules that no file holds travel by value."""
    with contextlib.ExitStack() as stack:
        for module in _homeless_modules(value):
            cloudpickle.register_pickle_by_value(module)
            stack.callback(cloudpickle.unregister_pickle_by_value, module)
        buffer = io.BytesIO()
        _Pickler(buffer).dump(value)
    return buffer.getvalue()


def _reduce_code(code: types.CodeType) -> tuple[Any, ...]:
    """As cloudpickle does, but with the file that the code is from: traces and tracebacks show it."""
    make, arguments = cloudpickle.Pickler.dispatch_table[types.CodeType](code)
    return make, tuple(code.co_filename if each == "<dynamic-code>" else each for each in arguments)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    dispatch_table: ClassVar[Any] = collections.ChainMap(
        {types.CodeType: _reduce_code}, cloudpickle.Pickler.dispatch_table
    )


def _homeless_modules(value: Any) -> set[Any]:
    """Modules in which the subject's callables were defined and which nobody can load again: they have no file."""
    names = {getattr(inner, "__module__", None) for _, inner in getattr(value, "__dict__", {}).items()}
    found = (sys.modules.get(name) for name in names if isinstance(name, str) and name != "__main__")
    registered = cloudpickle.list_registry_pickle_by_value()
    return {
        module
        for module in found
        if module is not None
        and getattr(module, "__file__", None) is None
        and getattr(module, "__spec__", None) is None
        and module.__name__ not in registered
    }


def explain(subject: AnySubject, error: BaseException) -> str:
    """Why ``subject`` cannot be sent: the field, the variable, the object, and what to write instead."""
    for field, value in fields_of(subject):
        if _fails(value):
            way, culprit = _culprit(value, _DEPTH)
            kind = f"{type(culprit).__module__}.{type(culprit).__qualname__}".removeprefix("builtins.")
            where = f"it {way} ({kind})" if way else f"it is a {kind}, and {type(error).__name__}: {error}"
            return f"{field} cannot be sent to a fresh process: {where}. {_advice(subject, kind)}"
    return f"the subject cannot be sent to a fresh process: {type(error).__name__}: {error}"


_OPENED = dict.fromkeys(("sqlite3.Connection", "sqlite3.Cursor"), 'sqlite3.connect(lab.dir / "x.db")')
"""How the handle of such an object is opened; of others nobody can tell."""


def _advice(subject: AnySubject, kind: str) -> str:
    inside = "run(lab) and resume(lab)" if isinstance(subject, Subject) else ""
    if inside:
        return f"Recovery after a crash never has that object. Open it inside {inside}."
    names = "append, load" if subject.kind == "Log" else "save, load"
    opened = f"open=lambda lab: {_OPENED.get(kind, '…')}"
    return f"Recovery after a crash never has that object. Open it inside: {subject.kind}({names}, {opened})"


def _fails(value: Any) -> bool:
    try:
        dumps(value)
    except Exception:  # noqa: BLE001 - pickling runs methods of the user's objects, which raise anything
        return True
    return False


def _culprit(value: Any, depth: int) -> tuple[str, Any]:
    """How the deepest object that cannot be pickled is reached, in words, and that object."""
    for way, inner in _held(value):
        if depth and inner is not value and _fails(inner):
            further, culprit = _culprit(inner, depth - 1)
            # The innermost variable is the one to change; a plain attribute or item says too little by itself.
            named = further if further.startswith(("closes over", "uses the global")) else way + further
            return named, culprit
    return "", value


def _held(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, functools.partial):
        yield from ((" through its arguments", each) for each in (value.func, *value.args, *value.keywords.values()))
    elif inspect.ismethod(value):
        yield f"is bound to its {type(value.__self__).__name__}", value.__self__
    elif inspect.isfunction(value):
        yield from _held_by_function(value)
    elif isinstance(value, dict):
        yield from ((f"[{key!r}]", each) for key, each in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{index}]", each) for index, each in enumerate(value))
    elif hasattr(value, "__dict__") and not inspect.ismodule(value):
        yield from ((f".{name}", each) for name, each in vars(value).items())


def _held_by_function(function: Any) -> Iterator[tuple[str, Any]]:
    variables = inspect.getclosurevars(function)
    yield from ((f"closes over {name}", each) for name, each in variables.nonlocals.items())
    yield from ((f"uses the global {name}", each) for name, each in variables.globals.items())
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    yield from (("has a default", each) for each in defaults)
