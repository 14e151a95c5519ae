"""Where the course lies: lessons, notebooks and exercises, of a clone or inside the installed package.

Both are the same files: the wheel takes the three folders of the repository along.
"""

from __future__ import annotations

from pathlib import Path

from crashlab.errors import LabError

FOLDERS = ("lessons", "notebooks", "exercises")
_HERE = Path(__file__).resolve().parent


def root() -> Path:
    """The folder that holds ``lessons``, ``notebooks`` and ``exercises``. Raises LabError where they are missing."""
    for folder in (_HERE / "material", _HERE.parents[1]):
        if all((folder / name).is_dir() for name in FOLDERS):
            return folder
    text = f"the course is not there: no {', '.join(FOLDERS)} beside {_HERE}; install crashlab[course] again"
    raise LabError(text)
