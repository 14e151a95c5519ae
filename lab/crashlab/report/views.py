"""Stored reports, drawn in the format that is asked for, to a stream or into a file.

A report is read from a run folder, from the folder that holds all runs, or from a file of what
``--json`` printed. Nothing is drawn from what is no report.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashlab.errors import UsageError
from crashlab.report.folder import RunFolder
from crashlab.report.load import dump, load
from crashlab.report.model import REPORTS_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab.report.model import Report

FORMATS = ("text", "json", "html", "junit", "github")
PAGE = "report.html"


def stored(path: Path | None, out: Path) -> tuple[list[Report], RunFolder | None]:
    """The reports at ``path``, or of the latest run below ``out``; and the run folder where there is one.

    Raises UsageError for a path that holds no report, and for one that is damaged or of an unknown schema.
    """
    if path is not None and path.is_file():
        return _from_file(path), None
    if path is not None and not (path / "report.json").exists() and os.path.lexists(path / "latest"):
        return stored(None, path)  # the folder of all runs was named
    try:
        run = RunFolder.open(path, out)
        report = load(run.report())
    except UsageError as error:
        text = str(error).replace("--run DIR", "crashlab report DIR")
        raise UsageError(text) from error
    return [report], run


def draw(reports: Sequence[Report], form: str, **view: Any) -> str:
    """The reports as text of that format; ``view`` is how a terminal is served, for ``text`` alone."""
    match form:  # each view is imported only when it is drawn
        case "json":
            return dump(reports) + "\n"
        case "html":
            from crashlab.report.html import render_html  # noqa: PLC0415 - as said above

            return render_html(reports)
        case "junit":
            from crashlab.report.junit import render_junit  # noqa: PLC0415 - as said above

            return render_junit(reports)
        case "github":
            from crashlab.report.github import render_github  # noqa: PLC0415 - as said above

            return render_github(reports)
    from crashlab.report.text import render_many  # noqa: PLC0415 - as said above

    return render_many(reports, **view)


def keep_page(report: Report) -> Path | None:
    """Write the page of a report into its run folder; None where it has none, as after a replay."""
    if not report.run or not os.path.isdir(report.run):
        return None
    return RunFolder(Path(report.run)).save_text(PAGE, draw([report], "html"))


def write(text: str, path: Path) -> None:
    """Put ``text`` at ``path``: there is the old file or the new one, never half of it.

    Raises UsageError where that cannot be written.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a pipe or a terminal; a directory is refused by the system
            return
        partial = target.with_name(f"~{target.name}-{os.getpid()}")
        try:
            with open(partial, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        message = f"cannot write {os.fspath(path)!r}: {error.strerror or error}; name another file with --output FILE"
        raise UsageError(message) from error


def _from_file(path: Path) -> list[Report]:
    name = repr(os.fspath(path))
    try:
        form = json.loads(path.read_bytes())
    except OSError as error:
        text = f"cannot read {name}: {error.strerror or error}"
        raise UsageError(text) from error
    except (ValueError, RecursionError) as error:
        text = f"{name} is no JSON ({error}); name a run folder, or a file of what --json printed"
        raise UsageError(text) from error
    if not isinstance(form, dict) or form.get("schema") != REPORTS_SCHEMA:
        return [load(form)]
    reports = form.get("reports")
    if not isinstance(reports, list) or not reports:
        text = f"{name} holds no report; name a run folder, or a file of what --json printed"
        raise UsageError(text)
    return [load(each) for each in reports]
