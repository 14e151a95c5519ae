"""The notebooks of the course: run one in a fresh kernel, hold what it shows against what its file keeps, keep it anew.

``python -m tests.notebooks`` compares all of them, ``python -m tests.notebooks --write 02`` runs those whose name
begins so and keeps what they show. Only what a reader sees is kept: no execution counts, no times, nothing of this
machine.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

from crashcourse.catalog import exercises

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOME = Path(__file__).parents[1] / "notebooks"
CELL_TIMEOUT_S = 900
"""For a machine that is very busy; on an idle one the slowest cell takes some seconds."""
SIZE_BYTES_AT_MOST = 200_000
CELL_LINES_AT_MOST = 25
CELL_COLUMNS_AT_MOST = 100
"""What does not fit beside the margin of a notebook is hidden until somebody scrolls."""
STEPS = 9
CODE_STEPS = (2, 3, 5, 6, 7, 8)
NETWORK = re.compile(r"^\s*(?:from|import)\s+(anthropic|aiohttp|http|httpx|requests|socket|urllib)\b", re.MULTILINE)
OF_A_MACHINE = re.compile(r"/(?:tmp|home|root|var)/|\bpid\b|0x[0-9a-f]{6,}|20\d\d-\d\d-\d\d[T ]\d")


def paths() -> list[Path]:
    """All notebooks, by their names."""
    return sorted(HOME.glob("*.ipynb"))


def read(path: Path) -> Any:
    """The notebook in a file."""
    return nbformat.read(path, as_version=4)


def run(notebook: Any, folder: Path) -> Any:
    """A copy with what its cells show now, each cell run in a kernel of its own in ``folder``.

    Raises CellExecutionError where a cell raises, CellTimeoutError and DeadKernelError. Settings of whoever runs this
    do not reach the kernel.
    """
    fresh = nbformat.from_dict(notebook)
    own = {"IPYTHONDIR": str(folder / ".ipython"), "JUPYTER_CONFIG_DIR": str(folder / ".jupyter"), "NO_COLOR": "1"}
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "CRASHLAB_"))}
    with tempfile.TemporaryDirectory(prefix="nb-") as sockets:  # a short name: that of a socket may have 107 letters
        client = NotebookClient(
            fresh,
            timeout=CELL_TIMEOUT_S,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            extra_arguments=["--HistoryManager.enabled=False", "--InteractiveShell.colors=NoColor"],
            record_timing=False,
            shutdown_kernel="graceful",
            # By files: a port could be taken by another test, and is open to everybody on the machine.
            config=Config({"KernelManager": {"transport": "ipc", "ip": os.path.join(sockets, "kernel")}}),
        )
        client.execute(env={**clean, **own})
    return kept(fresh)


def kept(notebook: Any) -> Any:
    """What of a notebook stands in its file."""
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = None
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel, "language_info": {"name": "python"}})
    return notebook


def shown(cell: Any) -> list[tuple[str, str]]:
    """What a cell shows: each form of each output, and its text without blanks at line ends."""
    forms: list[tuple[str, str]] = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            if forms and forms[-1][0] == output.name:  # whether one print or two came in a message is chance
                forms[-1] = (output.name, forms[-1][1] + output.text)
            else:
                forms.append((output.name, output.text))
        elif output.output_type == "error":
            forms.append(("error", f"{output.ename}: {output.evalue}"))
        else:
            forms += sorted((form, str(text)) for form, text in output.data.items())
    return [(form, "\n".join(line.rstrip() for line in text.strip().splitlines())) for form, text in forms]


def differences(old: Any, new: Any) -> list[str]:
    """Where a notebook shows now what its file does not keep; in words, with the cell's id."""
    found = []
    for before, after in zip(old.cells, new.cells, strict=True):
        was, now = (
            [line for form, text in shown(cell) for line in (f"[{form}]", *text.splitlines())]
            for cell in (before, after)
        )
        if was != now:
            lines = difflib.unified_diff(was, now, "kept", "shown now", lineterm="", n=1)
            found.append("\n".join([f"cell {before.id}:", *lines]))
    return found


# --- the frame -----------------------------------------------------------------------------------------


def complaints(notebook: Any, *, name: str) -> Iterator[str]:
    """What breaks the frame of nine steps, or a rule for what a notebook may hold."""
    cells = notebook.cells
    yield from _of_steps(cells)
    yield from _of_first(cells[0].source, name)
    yield from _of_last(cells[-1].source, int(name[:2]))
    if not any("image/svg+xml" in dict(shown(cell)) for cell in cells):
        yield "it keeps no picture"
    for cell in cells:
        yield from (f"cell {cell.id}: {words}" for words in _of_cell(cell))


def _of_steps(cells: Sequence[Any]) -> Iterator[str]:
    ids = [cell.id for cell in cells]
    steps = [int(each) for each in re.findall(r"^step-(\d)", "\n".join(ids), re.MULTILINE)]
    if sorted(set(steps)) != list(range(1, STEPS + 1)) or len(steps) != len(ids) or steps != sorted(steps):
        yield f"its cells are {', '.join(ids)}: not nine steps in order, step-1 to step-9"
    code = {step for step, cell in zip(steps, cells, strict=False) if cell.cell_type == "code"}
    if code != set(CODE_STEPS):
        yield f"code in steps {sorted(code)}, not in {CODE_STEPS}"
    for step in CODE_STEPS[1:]:
        if not any(cell.get("outputs") for cell in cells if cell.id.startswith(f"step-{step}")):
            yield f"step {step} keeps no output"


def _of_first(text: str, name: str) -> Iterator[str]:
    if not re.search(r"\d+ minutes", text) or "no API key needed" not in text:
        yield "the first cell does not say how many minutes it takes and that no API key is needed"
    if not re.search(rf"lessons/{name}/README\.md", text):
        yield "the first cell does not lead to its lesson"


def _of_last(text: str, lesson: int) -> Iterator[str]:
    if "## 9" not in text or "<details>" not in text:
        yield "the last cell has no self-check with answers"
    started = re.findall(r"^crashcourse start ([\w-]+)", text, re.MULTILINE)
    belong = [exercise.slug for exercise in exercises() if exercise.lesson == lesson]
    if started != belong:
        yield f"the last cell starts {', '.join(started) or 'no exercise'}, and the lesson has {', '.join(belong)}"


def _of_cell(cell: Any) -> Iterator[str]:
    if cell.metadata:
        yield f"has metadata {dict(cell.metadata)}; a cell that should go wrong asserts how"
    if cell.cell_type != "code":
        return
    lines = cell.source.splitlines()
    if len(lines) > CELL_LINES_AT_MOST or max(map(len, lines)) > CELL_COLUMNS_AT_MOST:
        yield f"has more than {CELL_LINES_AT_MOST} lines, or one of more than {CELL_COLUMNS_AT_MOST} letters"
    if cell.execution_count is not None:
        yield "keeps an execution count"
    if found := NETWORK.search(cell.source):
        yield f"can speak to the network: {found[0].strip()}"
    for form, text in shown(cell):
        if form in ("error", "stderr"):
            yield f"keeps {form}: {text[:200]}"
        if found := OF_A_MACHINE.search(text):
            yield f"keeps what belongs to one machine or moment: {found[0]}"
        if form == "image/svg+xml" and "text/plain" not in dict(shown(cell)):
            yield "shows a picture without its twin in text"


# --- the command -----------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the notebooks; 1 where one shows now what it does not keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.notebooks", description=__doc__)
    parser.add_argument("names", nargs="*", help="how the names of those begin that are run, such as 02; all if none")
    parser.add_argument("--write", action="store_true", help="keep what they show")
    given = parser.parse_args(arguments)
    status = 0
    for path in paths():
        if given.names and not path.name.startswith(tuple(given.names)):
            continue
        started, old = time.monotonic(), read(path)
        with tempfile.TemporaryDirectory() as folder:
            new = run(old, Path(folder))
        changes = differences(old, new)
        if given.write:
            nbformat.write(new, path)
        status |= bool(changes) and not given.write
        sys.stdout.write("\n".join([*changes, f"{path.name}: {time.monotonic() - started:.0f} s", ""]))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
