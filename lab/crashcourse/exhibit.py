"""The frame of a lesson's demonstration: measure, hold against what the lesson says, print, draw.

A lesson's ``demo.py`` has three functions. ``measure(folder)`` breaks things and returns what came of it as plain
data; it raises :class:`Stale` where a thing that should go wrong went well, since an exhibit that has stopped failing
teaches what is not true. ``tell(data)`` says it in lines of text. ``pictures(data)`` draws it. The data of the last
``--write`` is kept beside the demonstration, so that text and pictures can be held against it at no cost.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crashcourse.folders import temporary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from crashcourse.pictures import Picture

    Task = TypeVar("Task")
    Found = TypeVar("Found")

MEASURED_NAME, PICTURES_NAME = "measured.json", "pictures"
Data = dict[str, Any]


class Stale(AssertionError):  # noqa: N818 - it says what the exhibit is
    """An exhibit no longer shows what its lesson says. Mend the lesson, or what it shows."""


def expect(found: object, wanted: object, what: str) -> None:
    """Raise Stale unless ``found`` is ``wanted``.

    >>> expect(2, 2, "replies")
    >>> expect(1, 2, "replies to T-101")
    Traceback (most recent call last):
    ...
    crashcourse.exhibit.Stale: replies to T-101: found 1, the lesson says 2
    """
    if found != wanted:
        text = f"{what}: found {found!r}, the lesson says {wanted!r}"
        raise Stale(text)


def together(work: Callable[[Task], Found], tasks: Iterable[Task]) -> list[Found]:
    """What ``work`` makes of each task, in their order; several at a time, since each mostly waits for a process."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(work, tasks))


@dataclass(frozen=True)
class Exhibit:
    """One lesson's demonstration; ``home`` is its folder, ``kept_in`` the file there that keeps what was measured."""

    home: Path
    measure: Callable[[Path], Data]
    tell: Callable[[Data], Iterable[str]]
    pictures: Callable[[Data], Mapping[str, Picture]]
    kept_in: str = MEASURED_NAME

    def measured(self) -> Data:
        """Measure now, in a folder that is gone afterwards; as it would be read back from JSON."""
        with temporary() as folder:
            data: Data = json.loads(json.dumps(self.measure(Path(folder))))
        return data

    def kept(self) -> Data:
        """What was measured when the lesson was written."""
        data: Data = json.loads((self.home / self.kept_in).read_text())
        return data

    def write(self, data: Data) -> None:
        """Keep the data, and draw the pictures from it."""
        (self.home / self.kept_in).write_text(json.dumps(data, indent=1) + "\n")
        folder = self.home / PICTURES_NAME
        folder.mkdir(exist_ok=True)
        for name, picture in self.pictures(data).items():
            (folder / f"{name}.svg").write_text(picture.svg)

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """The command line: show it; with ``--write`` keep it too."""
        parser = argparse.ArgumentParser(description="Show what this lesson opens with. It needs no key.")
        parser.add_argument("--write", action="store_true", help="keep what was measured, and draw the pictures anew")
        given = parser.parse_args(arguments)
        data = self.measured()
        for line in self.tell(data):
            sys.stdout.write(f"{line}\n")
        if given.write:
            self.write(data)
        return 0
