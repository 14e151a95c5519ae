"""How a subject gets into a fresh process: by its import path, or by cloudpickle.

``"module:object"`` is imported there, with the working directory first on the module path, as
``python -m`` does. A subject object is pickled: functions that have an import path travel as that
path, all others (lambdas, closures, functions of ``__main__``) by value. Modules that were loaded
from a file which the module path does not reach, as pytest's ``importlib`` mode does, travel as
their name and file.

What cannot travel is what a crash destroys: open connections, locks, sockets. The error names the
field and the variable that holds such an object.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import importlib.util
import os
import pickle
import sys
import traceback
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from crashlab.errors import UsageError
from crashlab.subject import AnySubject, Commands, Log, Store, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

_LAB_PATH = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUBJECTS = (Store, Log, Subject, Commands)
importing = False
"""Whether this process is importing a subject right now: a check started meanwhile would never end."""


def pack(subject: AnySubject | str) -> dict[str, Any]:
    """A JSON object that :func:`unpack` turns into the subject in another process.

    Raises UsageError for a path that is none, an object that is no subject, and a subject that
    holds what cannot be sent.
    """
    path = [os.path.abspath(entry) for entry in sys.path]
    if isinstance(subject, str):
        _split(subject)
        return {"import": subject, "sys_path": [os.getcwd(), *path], "modules": {}}
    _demand_subject(subject, "what was passed")
    from crashlab.recover.culprit import dumps, explain  # noqa: PLC0415 - loads cloudpickle, which a server may not need

    try:
        data = dumps(subject)
    except Exception as error:
        raise UsageError(explain(subject, error)) from error
    return {"pickle": base64.b64encode(data).decode(), "sys_path": path, "modules": _modules_by_file(path)}


def _split(path: str) -> tuple[str, str]:
    module, colon, name = path.partition(":")
    if not (colon and name and module) or module.startswith("."):
        text = f"{path!r} names no subject: expected module:object, for example myapp.crash:checkpoint"
        raise UsageError(text)
    return module, name


def _shown(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    article = "an" if kind[0].lower() in "aeiou" else "a"
    return f"{getattr(value, '__qualname__', None) or ascii(value)[:60]} ({article} {kind})"


def _modules_by_file(path: Sequence[str]) -> dict[str, str]:
    """Modules of this process whose file is not where the module path would find that name."""
    known = set(path)
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "__main__" or not isinstance(file, str) or not file.endswith(".py"):
            continue
        stem = file.removesuffix(".py").removesuffix(f"{os.sep}__init__")
        below = os.sep + name.replace(".", os.sep)
        if not stem.endswith(below) or stem.removesuffix(below) not in known:
            found[name] = os.path.abspath(file)
    return found


def unpack(form: Mapping[str, Any]) -> AnySubject:
    """The subject, in the process that is to run it.

    Raises UsageError where it cannot be imported or is no subject; the text says what failed where.
    """
    global importing  # noqa: PLW0603 - one process imports one subject
    sys.path[:] = [*form["sys_path"], *(() if _LAB_PATH in form["sys_path"] else (_LAB_PATH,))]
    sys.meta_path.append(_FileFinder(form["modules"]))
    importing = True
    try:
        subject = _imported(form["import"]) if "import" in form else _unpickled(form["pickle"])
    finally:
        importing = False
    return _demand_subject(subject, form.get("import", "what came out of the pickle"))


def _demand_subject(value: Any, name: str) -> AnySubject:
    if isinstance(value, SUBJECTS):
        return value
    text = f"{name} is {_shown(value)}, not a Store, Log, Subject or Commands"
    raise UsageError(text)


def imported(path: str) -> AnySubject:
    """The subject at ``module:object``, imported into this process. Raises UsageError like :func:`unpack`."""
    return _demand_subject(_imported(path), path)


class _FileFinder:
    """Finds modules that nothing else found by the file that they had in the main process."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of ``name``, or None."""
        file = self._files.get(name)
        if file is None and any(each.startswith(f"{name}.") for each in self._files):
            return ModuleSpec(name, None, is_package=True)  # a package that holds one of them, and has no file itself
        if file is None:
            return None
        package = [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else None
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=package)


def _imported(path: str) -> Any:
    module_name, name = _split(path)
    try:
        value: Any = importlib.import_module(module_name)
    except BaseException as error:
        raise UsageError(_import_failure(module_name, error)) from error
    done = module_name
    for part in name.split("."):
        if not hasattr(value, part):
            raise UsageError(_no_attribute(value, done, part))
        value, done = getattr(value, part), f"{done}.{part}"
    return value


def _no_attribute(value: Any, done: str, part: str) -> str:
    names = [each for each in dir(value) if not each.startswith("__")]
    subjects = [each for each in names if isinstance(getattr(value, each, None), SUBJECTS)]
    import difflib  # noqa: PLC0415 - every process of the subject would carry it

    close = difflib.get_close_matches(part, names, n=3)
    text = f"{done} has no {part!r}"
    if close:
        return f"{text}; did you mean {' or '.join(map(repr, close))}?"
    return f"{text}. Subjects there: {', '.join(subjects) or 'none'}"


def _import_failure(module: str, error: BaseException) -> str:
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    text = f"cannot import {module!r} in a fresh process: {what}"
    place = _last_user_line(error)
    if place:
        return f"{text}\n  {place}"
    if isinstance(error, ModuleNotFoundError) and error.name and _top(module) == _top(error.name):
        return f"{text}. It was looked for in {os.getcwd()} and on the module path; run from the folder that holds it."
    return text


def _top(module: str) -> str:
    return module.partition(".")[0]


def _last_user_line(error: BaseException) -> str:
    """The last place of the traceback that is neither the import machinery nor the lab."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {(error.text or '').strip()}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(("<frozen", os.path.dirname(__file__))) and "importlib" not in frame.filename:
            return f"{frame.filename}:{frame.lineno}: {frame.line}"
    return ""


def _unpickled(data: str) -> Any:
    try:
        return pickle.loads(base64.b64decode(data))  # noqa: S301 - the user's own objects, on the way to the user's own code
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing:
            raise UsageError(_import_failure(missing, error)) from error
        what = f"{type(error).__name__}: {error}"
        place = _last_user_line(error)
        text = f"the subject cannot be rebuilt in a fresh process: {what}" + (f"\n  {place}" if place else "")
        raise UsageError(text) from error


def found_again(names: Iterable[str]) -> list[str]:
    """Those of the loaded modules that an import by name finds at the same place, sorted.

    One that was loaded from a file of the program's own choice may bear a name that leads elsewhere.
    """
    return [name for name in sorted(names) if _leads_to(name, sys.modules.get(name))]


def _leads_to(name: str, module: ModuleType | None) -> bool:
    try:
        parent, _, _ = name.rpartition(".")
        path = sys.modules[parent].__path__ if parent else None
        specs = (finder.find_spec(name, path) for finder in list(sys.meta_path))
        spec = next((each for each in specs if each is not None), None)
    except BaseException:  # noqa: BLE001 - a finder is the program's own; what it cannot find is not imported beforehand
        return False
    return spec is not None and spec.origin == getattr(getattr(module, "__spec__", None), "origin", None)


def fields_of(subject: AnySubject) -> Iterator[tuple[str, Any]]:
    """The fields that hold something, with their names."""
    return ((name, value) for name, value in vars(subject).items() if value is not None)


@contextlib.contextmanager
def no_check_inside() -> Iterator[None]:
    """Refuse to start a lab while a subject is being imported in a fresh process: that would start the next one."""
    if importing:
        text = (
            "a check was started while the module was imported in a fresh process. "
            "Put it into a function, or below: if __name__ == '__main__':"
        )
        raise UsageError(text)
    yield
