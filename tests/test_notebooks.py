"""The notebooks show what their files keep, hold to their frame, and would not get away with less.

Each runs in a fresh kernel, as a reader runs it; a cell asserts what must go wrong in it, so that an exhibit which has
stopped failing fails here. Kept anew: ``python -m tests.notebooks --write``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert import HTMLExporter

from crashcourse.catalog import LESSONS
from tests import notebooks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATHS = notebooks.paths()
NAMES = [path.stem for path in PATHS]
NEXT = "next: see whether that is right, then python -m tests.notebooks --write"


def small(*sources: str) -> Any:
    """A notebook with these cells of code, and nothing that they show."""
    cells = [nbformat.v4.new_code_cell(source, id=f"step-{at}") for at, source in enumerate(sources, start=1)]
    return nbformat.v4.new_notebook(cells=cells)


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_it_shows_what_it_keeps(path: Path, tmp_path: Path) -> None:
    """In a fresh kernel, with every cell run and none of them raising."""
    kept = notebooks.read(path)
    changes = notebooks.differences(kept, notebooks.run(kept, tmp_path))
    assert not changes, "\n".join([*changes, NEXT])


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_it_holds_to_the_frame(path: Path) -> None:
    """Nine steps, what the first and the last must say, nothing of one machine, no network, short cells, small."""
    assert not list(notebooks.complaints(notebooks.read(path), name=path.stem))
    assert path.stat().st_size < notebooks.SIZE_BYTES_AT_MOST
    nbformat.validate(json.loads(path.read_text()))


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_it_becomes_a_page(path: Path) -> None:
    """With its pictures and its answers to unfold, for readers who have no Jupyter."""
    page, _ = HTMLExporter().from_filename(str(path))
    assert page.count("data:image/svg+xml") >= 2
    assert "<details>" in page


def test_every_lesson_has_one() -> None:
    """And no other is there."""
    assert [int(name.partition("-")[0]) for name in NAMES] == list(LESSONS)


# --- sabotage: what the tests above must not let through ------------------------------------------------


def test_an_exhibit_that_stops_failing_is_found(tmp_path: Path) -> None:
    """Its assert raises, and that is an error of the run."""
    with pytest.raises(CellExecutionError, match="AssertionError"):
        notebooks.run(small("replies = 1", "assert replies == 2"), tmp_path)


def test_a_kernel_that_dies_is_found(tmp_path: Path) -> None:
    """A death is never a pass."""
    with pytest.raises(DeadKernelError):
        notebooks.run(small("import os; os._exit(0)"), tmp_path)


def test_another_output_is_found(tmp_path: Path) -> None:
    """And nothing is where only the number of messages differs."""
    notebook = small("print('one'); print('two')", "'three'")
    first = notebooks.run(notebook, tmp_path)
    assert notebooks.differences(first, first) == []
    assert [change.partition(":")[0] for change in notebooks.differences(notebook, first)] == [
        "cell step-1",
        "cell step-2",
    ]
    first.cells[0].outputs[0].text = "one \ntwo"
    assert notebooks.differences(first, notebooks.run(first, tmp_path)) == []
    first.cells[0].outputs[0].text = "one\nthree\n"
    assert "-three" in "".join(notebooks.differences(first, notebooks.run(first, tmp_path)))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda cells: cells.pop(), "not nine steps"),
        (lambda cells: cells.reverse(), "not nine steps"),
        (lambda cells: cells[0].update(source="# Lesson"), "how many minutes"),
        (lambda cells: cells[0].update(source=cells[0].source.replace("01-", "02-")), "lead to its lesson"),
        (lambda cells: cells[-1].update(source="## 9"), "no self-check"),
        (
            lambda cells: cells[-1].update(source=cells[-1].source + "\ncrashcourse start nothing"),
            "price-of-rerun, nothing, and the lesson has loss-inventory, price-of-rerun",
        ),
        (
            lambda cells: cells[-1].update(source=cells[-1].source.replace("start price-of-rerun", "list")),
            "the last cell starts loss-inventory, and the lesson has loss-inventory, price-of-rerun",
        ),
        (lambda cells: cells[0].update(metadata={"tags": ["raises-exception"]}), "asserts how"),
        (lambda cells: _code(cells).update(source="import requests"), "the network"),
        (lambda cells: _code(cells).update(source="a = 1\n" * 26), "more than 25 lines"),
        (lambda cells: _code(cells).update(execution_count=3), "an execution count"),
        (lambda cells: _shows(cells, "a folder: /tmp/crashcourse-x"), "one machine or moment"),
        (lambda cells: _shows(cells, "at 2026-01-01 12:00"), "one machine or moment"),
        (lambda cells: [cell.update(outputs=[]) for cell in cells if cell.cell_type == "code"], "keeps no output"),
    ],
)
def test_what_breaks_the_frame_is_found(change: Callable[[list[Any]], object], complaint: str) -> None:
    """Each planted into a notebook that is good."""
    notebook = notebooks.read(PATHS[0])
    assert not list(notebooks.complaints(notebook, name=NAMES[0]))
    change(notebook.cells)
    assert complaint in "\n".join(notebooks.complaints(notebook, name=NAMES[0]))


def _code(cells: list[Any]) -> Any:
    return next(cell for cell in cells if cell.cell_type == "code" and cell.outputs)


def _shows(cells: list[Any], text: str) -> None:
    _code(cells).outputs = [nbformat.v4.new_output("stream", text=text)]
