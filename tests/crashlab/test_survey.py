"""What a look at a code base finds, and what it leaves alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from crashlab import survey as module
from crashlab.survey import survey

if TYPE_CHECKING:
    from pathlib import Path

CODE = {
    "save_checkpoint": (
        "save",
        'def save_checkpoint(path, state):\n    with open(path, "w") as f:\n        json.dump(state, f)\n',
    ),
    "load_checkpoint": ("load", "def load_checkpoint(path):\n    return json.loads(path.read_text())\n"),
    "publish": ("save", "def publish(a, b):\n    os.replace(a, b)\n"),
    "save_weights": ("save", "def save_weights(model, path):\n    torch.save(model, path)\n"),
    "write_state": ("save", "def write_state(p, s):\n    p.write_bytes(s)\n"),
    "append_event": ("save", 'async def append_event(log, e):\n    log.open("a").write(e)\n'),
    "persist": ("save", "def persist(db):\n    sqlite3.connect(db)\n"),
    "Keeper.save": ("save", "class Keeper:\n    def save(self, value):\n        pickle.dump(value, self.file)\n"),
    "restore": ("load", "def restore(path):\n    return pickle.load(open(path, 'rb'))\n"),
    "read_config": ("load", "def read_config(path):\n    return open(path).read()\n"),
}
HARMLESS = {
    "prints": "def save_me(text):\n    print(text)\n",
    "reads only": "def checkpoint_of(path):\n    return open(path).read()\n",
    "a connection that nobody saves by": "def connect(path):\n    return sqlite3.connect(path)\n",
    "text": 'TEXT = "def save(path): os.replace(path, path)"\n',
}


def found_in(folder: Path, text: str) -> dict[str, str]:
    (folder / "code.py").write_text(text)
    return {each.name: each.role for each in survey(folder).found}


@pytest.mark.parametrize(("name", "role", "text"), [(name, *each) for name, each in CODE.items()], ids=CODE)
def test_what_saves_or_loads_is_found(name: str, role: str, text: str, tmp_path: Path) -> None:
    """By its name and its calls, with its line and its parameters."""
    assert found_in(tmp_path, f"\n{text}") == {name: role}
    (each,) = survey(tmp_path).found
    assert (each.file, each.line) == ("code.py", 3 if "." in name else 2)
    assert "self" not in each.parameters
    assert each.calls


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_other_functions_are_left_alone(text: str, tmp_path: Path) -> None:
    """A name without a call, a call without a name, a text."""
    assert found_in(tmp_path, text) == {}


def test_nothing_is_imported_and_foreign_code_is_left_out(tmp_path: Path) -> None:
    """Tests, environments, hidden folders; a file that is no Python is told and does no harm."""
    saves = CODE["publish"][1]
    for name in (
        "app/a.py",
        "tests/b.py",
        "test_c.py",
        ".hidden/d.py",
        "node_modules/e.py",
        "mine/lib/f.py",
        "conftest.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"raise SystemExit\n{saves}")
    (tmp_path / "mine" / "pyvenv.cfg").write_text("")
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "null.py").write_bytes(b"\0")
    seen = survey(tmp_path)
    assert [each.file for each in seen.found] == ["app/a.py"]
    assert [each.split(":")[0] for each in seen.unread] == ["broken.py", "null.py"]


def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    """A FIFO would keep the look waiting for ever; a link that leads nowhere is told too."""
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "gone.py").symlink_to("nowhere")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "real.py").write_text("def save(path, value):\n    json.dump(value, path)\n")
    seen = survey(tmp_path)
    assert [each.name for each in seen.found] == ["save"]
    assert seen.unread == ("gone.py: not a file", "pipe.py: not a file")


def test_limits_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A huge file is not read, and of very many files not all."""
    for number in range(3):
        (tmp_path / f"a{number}.py").write_text(CODE["publish"][1])
    monkeypatch.setattr(module, "FILE_BYTES_AT_MOST", 10)
    assert len(survey(tmp_path).unread) == 3
    monkeypatch.undo()
    monkeypatch.setattr(module, "FILES_AT_MOST", 2)
    seen = survey(tmp_path)
    assert (seen.files, len(seen.found), seen.more) == (2, 2, True)


def test_pairs_are_those_of_one_module_class_and_thing(tmp_path: Path) -> None:
    """A checkpoint is not loaded by what loads weights."""
    load_weights = "def load_weights(path):\n    return torch.load(path)\n"
    (tmp_path / "a.py").write_text("".join(CODE[each][1] for each in ("save_checkpoint", "load_checkpoint", "publish")))
    (tmp_path / "b.py").write_text(CODE["save_checkpoint"][1] + load_weights)
    assert [(save.name, load.name, save.file) for save, load in survey(tmp_path).pairs()] == [
        ("save_checkpoint", "load_checkpoint", "a.py")
    ]


def test_modules_are_named_as_they_are_imported(tmp_path: Path) -> None:
    """Without the folder of the sources; a package by its own name."""
    for name in ("src/app/store.py", "app/__init__.py", "plain.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(CODE["publish"][1])
    assert {each.module for each in survey(tmp_path).found} == {"app.store", "app", "plain"}
