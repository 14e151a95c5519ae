"""How far a learner has come: one small file in the work folder, replaced as the course teaches it.

The file is ``progress.json``: per exercise the best points, the latest status, how many hints were shown, and whether
the model answer was. One that cannot be read is refused and left alone, as a checkpoint is.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from crashcourse.result import Result

NAME = "progress.json"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the learner stands with one exercise. ``model_seen``: the model answer was shown before it was solved."""

    points: int = 0
    best: int = 0
    status: str = ""
    hints: int = 0
    model_seen: bool = False

    @property
    def word(self) -> str:
        """``done``, ``started`` or ``new``."""
        return "done" if self.status == "pass" else "started"


def load(folder: Path) -> dict[str, Standing]:
    """All standings, by slug. Raises UsageError for a file that is damaged or of another version."""
    path = folder / NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(_refusal(path, error)) from error
    try:
        form: Any = json.loads(text)
        if form["version"] != VERSION:
            message = f"version {form['version']}"
            raise ValueError(message)  # noqa: TRY301 - told with all other ways to be unreadable
        return {slug: Standing(**each) for slug, each in form["exercises"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(_refusal(path, error)) from error


def _refusal(path: Path, error: Exception) -> str:
    return f"{path} is not a progress file ({error}); move it away to begin anew, nothing was changed"


def keep(folder: Path, slug: str, standing: Standing) -> None:
    """Keep one standing, durably: the old file or the new one, never a mix."""
    known = {**load(folder), slug: standing}
    form = {"version": VERSION, "exercises": {name: dataclasses.asdict(each) for name, each in sorted(known.items())}}
    path = folder / NAME
    temporary = folder / f"{NAME}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(form, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def after(standing: Standing, result: Result) -> Standing:
    """The standing after a check."""
    return dataclasses.replace(
        standing, points=result.points, best=max(standing.best, result.points), status=result.status
    )
