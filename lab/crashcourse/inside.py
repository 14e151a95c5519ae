"""What runs in the child, beside the submission: the callables that the lab gets, and the fences around it.

A :class:`Function` is a function of the one file that was handed in, named by path: the judge's process never
imports that file. It is loaded in the lab's own fresh processes, after the fences are up: limits on the size of
a file and on the number of processes, and an import path on which neither the course nor its agents are found.
Fences stop accidents and cheap tricks. They do not stop an attacker, who shares a process with the lab's recorder;
``exercises/README.md`` says what does.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

MODULE = "exercise"
FILE_BYTES = 64 * 2**20
"""The largest file that a submission may write."""
PROCESSES = 256
"""How many processes its user may have beside those that run already; root is not held by this limit."""
FORBIDDEN = ("longrun", "crashcourse", "benchmarks")


class _Fence:
    """Refuses imports of what holds the answers, for whoever comes after the lab's own."""

    def find_spec(self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> None:
        """None for all but the forbidden ones, which raise ImportError."""
        if name.partition(".")[0] in FORBIDDEN:
            text = f"{name} is not there for exercises: build it yourself, or use what the task hands to you"
            raise ImportError(text)


def fence() -> None:
    """Put the limits and the import fence up in this process, once."""
    if any(isinstance(each, _Fence) for each in sys.meta_path):
        return
    for kind, limit in ((resource.RLIMIT_FSIZE, FILE_BYTES), (resource.RLIMIT_NPROC, _running() + PROCESSES)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    sys.meta_path.insert(0, _Fence())
    for name in [name for name in sys.modules if name.partition(".")[0] in FORBIDDEN]:
        if name != __name__:
            del sys.modules[name]


def _running() -> int:
    """Processes and threads of this user: at a desk, a browser alone has more than a submission may start."""
    found = 0
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            if os.stat(f"/proc/{pid}").st_uid == os.getuid():
                found += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:  # it has ended
            continue
    return found


def submitted(path: str) -> ModuleType:
    """The submission as a module, loaded once per process, its folder first on the path. Raises what it raises."""
    known = sys.modules.get(MODULE)
    if known is not None:
        return known
    fence()
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(path))
    sys.modules[MODULE] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[MODULE]
        raise
    return module


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the submission."""

    path: str
    name: str

    def __call__(self, *arguments: Any) -> Any:
        """What it returns. Raises AttributeError where the submission has no such function."""
        return getattr(submitted(self.path), self.name)(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return function, (self.path, self.name)  # whoever receives it has the submission loaded before any fork

    def __repr__(self) -> str:
        return f"{MODULE}.{self.name}"


@dataclass(frozen=True, slots=True)
class Later:
    """One function of the submission, which is loaded when it is called, and not before.

    For a function that only the recorded run calls: the processes that recover never load the submission.
    """

    path: str
    name: str

    def __call__(self, *arguments: Any) -> Any:
        """What it returns. Raises AttributeError where the submission has no such function."""
        return getattr(submitted(self.path), self.name)(*arguments)


def function(path: str, name: str) -> Function:
    """A function of a submission that is loaded now. Raises what loading raises, AttributeError where it is missing."""
    getattr(submitted(path), name)
    return Function(path, name)


@dataclass(frozen=True, slots=True)
class Loads:
    """A run of ``load`` on many prepared directories: what each gave, or which error.

    ``folders`` maps a name to the files of one directory. The end maps it to ``{"value": …}`` or ``{"error": type}``.
    """

    load: Function
    folders: Mapping[str, Mapping[str, str]]

    def __call__(self, lab: Any) -> dict[str, Any]:
        """Do it, in the directory of the lab."""
        found = {}
        for name, files in self.folders.items():
            folder = lab.dir / name
            folder.mkdir()
            for file, text in files.items():
                (folder / file).write_text(text)
            try:
                found[name] = {"value": self.load(folder)}
            except Exception as error:  # noqa: BLE001 - a refusal is an answer here
                found[name] = {"error": type(error).__name__, "text": f"{error}"[:200]}
        return found
