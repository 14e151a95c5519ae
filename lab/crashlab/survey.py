"""Looking at a code base for what saves and what loads, by reading it: nothing is imported and nothing is run.

A function is taken for one that saves or loads by its name and by what it calls; both must agree, or the
call alone must be plain enough (``os.replace``, ``pickle.dump``). What is found are places to look at, not
findings: whether they survive a crash is what a check tells.
"""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES_AT_MOST = 5_000
FILE_BYTES_AT_MOST = 1_000_000

_SAVES = re.compile(r"(^|_)(save|dump|write|persist|checkpoint|store|commit|append|record)")
_LOADS = re.compile(r"(^|_)(load|read|restore|resume|recover|open|get)")
_WRITES = {
    *(
        "os.replace",
        "os.rename",
        "shutil.move",
        "json.dump",
        "pickle.dump",
        "marshal.dump",
        "yaml.dump",
        "yaml.safe_dump",
    ),
    *(
        "torch.save",
        "numpy.save",
        "np.save",
        "np.savez",
        "joblib.dump",
        "sqlite3.connect",
        "shelve.open",
        "tomli_w.dump",
    ),
}
_READS = {
    *("json.load", "json.loads", "pickle.load", "pickle.loads", "marshal.load", "yaml.load", "yaml.safe_load"),
    *("torch.load", "numpy.load", "np.load", "joblib.load", "sqlite3.connect", "shelve.open", "tomllib.load"),
}
_WRITING_METHODS = {"write_text", "write_bytes", "savez", "to_parquet", "to_csv", "to_json"}
_READING_METHODS = {"read_text", "read_bytes"}
_PLAIN = _WRITES - {"sqlite3.connect", "shelve.open", "shutil.move", "os.rename"}
"""Calls that say by themselves that something is saved, whatever the function is called."""

_FOREIGN = {"node_modules", "site-packages", "build", "dist", "__pycache__", "tests", "test", "venv", "env"}
Role = Literal["save", "load"]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A function that saves or loads. ``file`` is relative to the folder that was looked at.

    ``parameters`` are those by position, then as ``indent=`` those by name that have no default.
    """

    file: str
    line: int
    name: str
    role: Role
    calls: tuple[str, ...]
    parameters: tuple[str, ...]

    @property
    def module(self) -> str:
        """The name by which the module is imported: without ``src/``, as most projects are laid out."""
        path = re.sub(r"^(src|lib)/", "", self.file).removesuffix(".py").removesuffix("/__init__")
        return path.replace("/", ".")

    @property
    def method_of(self) -> str:
        """The class that it belongs to, or ``""``."""
        return self.name.rpartition(".")[0]

    @property
    def about(self) -> str:
        """What it is about: ``checkpoint`` of ``save_checkpoint``; ``""`` of ``save``."""
        last = self.name.rpartition(".")[2]
        pattern = _SAVES if self.role == "save" else _LOADS
        return pattern.sub("", last, count=1).strip("_")


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What was found, in the order of the files; and the files that could not be read, with the reason."""

    found: tuple[Found, ...]
    files: int
    unread: tuple[str, ...] = ()
    more: bool = False

    def pairs(self) -> list[tuple[Found, Found]]:
        """Each function that saves with the one that loads the same, from the same module and class."""
        pairs = []
        for save in self.found:
            mates = [
                each
                for each in self.found
                if (each.role, each.file, each.method_of, each.about) == ("load", save.file, save.method_of, save.about)
            ]
            if save.role == "save" and mates:
                pairs.append((save, mates[0]))
        return pairs


def survey(folder: Path) -> Survey:
    """Read every Python file below ``folder`` but tests and what belongs to others."""
    found: list[Found] = []
    unread: list[str] = []
    files = 0
    for path in _files(folder):
        if files == FILES_AT_MOST:
            return Survey(found=tuple(found), files=files, unread=tuple(unread), more=True)
        files += 1
        shown = path.relative_to(folder).as_posix()
        try:
            if not path.is_file():  # a FIFO would keep us waiting for whoever writes to it
                unread.append(f"{shown}: not a file")
                continue
            if path.stat().st_size > FILE_BYTES_AT_MOST:
                unread.append(f"{shown}: larger than {FILE_BYTES_AT_MOST:,} bytes")
                continue
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            unread.append(f"{shown}: {type(error).__name__}: {error}")
            continue
        found += _in_module(tree, shown)
    return Survey(found=tuple(found), files=files, unread=tuple(unread))


def _files(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _FOREIGN and not name.startswith(".") and not os.path.exists(f"{here}/{name}/pyvenv.cfg")
        )
        for name in sorted(names):
            if name.endswith(".py") and not name.startswith("test_") and name not in ("conftest.py", "setup.py"):
                yield Path(here, name)


def _in_module(tree: ast.Module, file: str) -> Iterator[Found]:
    for name, function in _functions(tree, ""):
        calls = tuple(dict.fromkeys(_calls(function)))
        last = name.rpartition(".")[2]
        writes = [
            call for call in calls if call in _WRITES or call.endswith("to write") or _ends(call, _WRITING_METHODS)
        ]
        reads = [call for call in calls if call in _READS or call.endswith("to read") or _ends(call, _READING_METHODS)]
        role: Role | None = None
        if writes and (_SAVES.search(last) or any(call in _PLAIN for call in writes)) and not _LOADS.match(last):
            role = "save"
        elif reads and _LOADS.search(last):
            role = "load"
        if role is not None:
            arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            by_name = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
            arguments += [f"{each.arg}=" for each, default in by_name if default is None]
            parameters = tuple(each for each in arguments if each not in ("self", "cls"))
            seen = tuple(writes if role == "save" else reads)
            yield Found(file=file, line=function.lineno, name=name, role=role, calls=seen, parameters=parameters)


def _ends(call: str, methods: set[str]) -> bool:
    return call.rpartition(".")[2] in methods


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions of a module and of its classes; one inside another belongs to that one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try):
            yield from _functions(child, prefix)


def _calls(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("open", "io.open", "os.fdopen") or name.endswith(".open"):
                yield (
                    f"{name} to write"
                    if re.search("[wax+]", _mode(node, method=name.endswith(".open")))
                    else f"{name} to read"
                )
            yield name


def _mode(call: ast.Call, *, method: bool) -> str:
    """The mode of ``open``; of ``path.open`` it stands first."""
    given = [each.value for each in call.keywords if each.arg == "mode"] + call.args[0 if method else 1 :]
    first = given[0] if given else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else "r"
