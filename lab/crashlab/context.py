"""What stands around a check and has a say in it: the test that runs it, its marker, a command line, the environment.

The pytest plugin sets :data:`current` for the time of a test; outside of one there is the environment alone,
and ``crashlab.toml`` where there is one. A process runs one test at a time, so one context is enough; that
it is a plain global lets a check in a thread of the test see it too.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from crashlab.report.model import Report

PROJECT_FILE = "crashlab.toml"
_REPOSITORY = (".git", ".hg", ".jj", ".svn")

ENVIRONMENT = {
    "budget": "CRASHLAB_BUDGET",
    "faults": "CRASHLAB_FAULTS",
    "out": "CRASHLAB_OUT",
    "jobs": "CRASHLAB_JOBS",
}
"""Arguments of a check that the environment may give, by the name of the variable."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """What surrounds a check.

    ``test`` is the id of the test that runs it. ``marker`` and ``command`` are arguments of
    :func:`crashlab.check` that a marker and a command line give; ``only`` wins over every other. ``notes``
    gives remarks for a report that is no pass, ``seen`` is told of each report. ``project`` is the file that
    describes the project, looked for where it is None; ``subject`` is what it calls this subject, and
    ``declared`` are the arguments that it gives there. ``folder`` is where the run of tests began: what belongs to
    the project is looked for and kept there, wherever a test or a fixture has gone since; None: where we are.
    """

    test: str = ""
    folder: Path | None = None
    project: Path | None = None
    subject: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict)
    marker: Mapping[str, Any] = field(default_factory=dict)
    command: Mapping[str, Any] = field(default_factory=dict)
    only: str | None = None
    notes: Callable[[], Sequence[str]] = tuple
    seen: Callable[[Report], None] | None = None


current = Context()
"""The context of this process, now."""


@contextlib.contextmanager
def surrounded(context: Context) -> Iterator[None]:
    """Let this be the context for a while."""
    global current  # noqa: PLW0603 - one process runs one test at a time
    before, current = current, context
    try:
        yield
    finally:
        current = before


def running_test() -> str:
    """The id of the test that runs now, as pytest gives it to everybody; ``""`` outside of one.

    Cited: docs.pytest.org, PYTEST_CURRENT_TEST: the id, a blank, the phase in brackets.
    """
    return current.test or os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]


def merged(given: Mapping[str, Any], *below: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a check: each from the first that has one.

    In this order: ``given``, the marker, the command line, the environment, what a declared subject says,
    then ``below``. ``None`` is no value.

    >>> with surrounded(Context(marker={"seed": 1, "budget": "full"}, command={"seed": 2, "jobs": 3})):
    ...     merged({"budget": "quick", "seed": None}, {"jobs": 4, "profile": "xfs"})
    {'profile': 'xfs', 'jobs': 3, 'seed': 1, 'budget': 'quick'}
    """
    environment = {name: os.environ.get(variable) for name, variable in ENVIRONMENT.items()}
    below = (current.declared, *below)
    only = {"only": current.only}
    result: dict[str, Any] = {}
    for layer in (*reversed(below), environment, current.command, current.marker, given, only):
        for name, value in layer.items():
            if value is not None:
                result.pop(name, None)  # named last where it was found last
                result[name] = value
    return result


def placed(path: str | os.PathLike[str] = "") -> Path:
    """A path of the project, told from where we are if that is the folder where all began.

    >>> with surrounded(Context(folder=Path("/project"))):
    ...     print(placed(".crashlab").as_posix())
    /project/.crashlab
    >>> print(placed(".crashlab"))
    .crashlab
    """
    folder = current.folder
    return Path(path) if folder is None or folder == Path.cwd() else folder / path


def project_file() -> Path | None:
    """``crashlab.toml`` of this project: here or in a folder above, up to the root of a repository; None without one.

    A file above the repository belongs to something else.
    """
    if current.project is not None:
        return current.project
    here = current.folder or Path.cwd()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
        if any((folder / name).exists() for name in _REPOSITORY):
            return None
    return None


def told(report: Report) -> None:
    """Tell whoever surrounds the check of its report."""
    if current.seen is not None:
        current.seen(report)
