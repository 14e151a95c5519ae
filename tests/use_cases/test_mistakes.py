"""Mistakes of a newcomer, at the command line: one sentence on standard error, and an exit code of its own.

What each message says in full is tested in tests/crashlab/test_ten_mistakes.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import crashlab
from crashlab import exits

LAB = Path(crashlab.__file__).parents[1]
MODULE = """
import json
import uuid
from pathlib import Path
from crashlab import Store, Subject

def load(folder):
    path = folder / "value.json"
    return json.loads(path.read_text()) if path.exists() else None


def save(folder, value):
    (folder / "value.json").write_text(json.dumps(value))


def turned_round(value, folder):
    save(folder, value)


def elsewhere(folder, value):
    Path("value.json").write_text(json.dumps(value))


def another_end(lab):
    save(lab.dir, 1)
    return {"run": uuid.uuid4().hex}


def odd_end(lab):
    save(lab.dir, 1)
    return object()


GOOD = Store(save, load)
TURNED_ROUND = Store(turned_round, load)
ELSEWHERE = Store(elsewhere, load)
ANOTHER_END = Subject(another_end)
ODD_END = Subject(odd_end)
TUPLE = Store(save, load, values=[{"xy": (1, 2)}])
"""


def crashlab_command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the command says in a fresh project."""
    (folder / "app.py").write_text(MODULE)
    command = [sys.executable, "-m", "crashlab", *arguments]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(LAB), "TMPDIR": str(folder), "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["app:GOOD", "--faults", "powerloss"], exits.MISUSE, "unknown fault 'powerloss'; did you mean 'power'?"),
        (["app:GOOD", "--profile", "etx4"], exits.MISUSE, "did you mean 'ext4'?"),
        (["app:GUD"], exits.MISUSE, "GUD"),
        (["app:GOOD", "--only", "power@99-3"], exits.MISUSE, "no op 99 in this recording"),
        (["app:TURNED_ROUND"], exits.MISUSE, "before any crash"),
        (["app:ODD_END"], exits.MISUSE, "no JSON form"),
        (["app:ELSEWHERE"], exits.UNMEASURED, "empty-trace"),
        (["app:ANOTHER_END"], exits.UNMEASURED, "runs-differ"),
        (["app:TUPLE"], exits.UNMEASURED, "round-trip"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_a_mistake_has_its_code_and_its_sentence(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    """Misuse is 64 and no verdict is 2; neither is 0 or 1, and no traceback is shown."""
    said = crashlab_command(tmp_path, "check", *arguments)
    shown = " ".join((said.stdout + said.stderr).split())
    assert (said.returncode, words in shown) == (code, True), said.stdout + said.stderr
    assert "Traceback" not in shown
    assert not list(tmp_path.glob("crashlab-*")), "nothing is left in the temporary folder"
