"""A subject gets into a fresh process as it is, or the message says which variable keeps it from going."""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import subprocess
import sys
import threading
import types
from typing import TYPE_CHECKING, Any

import pytest

import crashlab
from crashlab import Log, Store, Subject, UsageError
from crashlab.recover import travel

if TYPE_CHECKING:
    from pathlib import Path

UNPACK = (
    "import json, sys; from crashlab.recover import travel; "
    "subject = travel.unpack(json.load(sys.stdin)); print(subject.load('x'), subject.load.__code__.co_filename)"
)
LOCK = threading.Lock()


def loads(subject: Any, cwd: Path) -> list[str]:
    """What ``load("x")`` gives in a fresh process, and the file its code says it is from."""
    lab = os.path.dirname(os.path.dirname(crashlab.__file__))
    done = subprocess.run(
        [sys.executable, "-c", UNPACK],
        input=json.dumps(travel.pack(subject)),
        env={**os.environ, "PYTHONPATH": lab},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def helper(text: str) -> str:
    """A function of a test module."""
    return f"helped-{text}"


def test_lambdas_closures_and_helpers_travel(tmp_path: Path) -> None:
    """By value, with what they close over, and with the file that they are from."""
    word = "closed"
    subject = Store(print, lambda handle: f"{word}-{helper(handle)}")
    assert loads(subject, tmp_path) == ["closed-helped-x", __file__]


def test_a_module_that_only_its_file_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded from a file off the module path, as pytest's importlib mode does: it is found by that file."""
    file = tmp_path / "somewhere" / "hidden.py"
    file.parent.mkdir()
    file.write_text(
        "from crashlab import Store\ndef load(handle):\n    return 'hidden-' + handle\nSTORE = Store(print, load)\n"
    )
    import importlib.util  # noqa: PLC0415 - only this test plays pytest

    spec = importlib.util.spec_from_file_location("odd.place.hidden", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "odd", types.ModuleType("odd"))
    monkeypatch.setitem(sys.modules, "odd.place.hidden", module)
    spec.loader.exec_module(module)
    assert loads(module.STORE, tmp_path) == ["hidden-x", str(file)]


def test_a_module_without_a_file_travels_by_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by exec, as notebooks do: no other process could load it again."""
    module = types.ModuleType("made_up")
    monkeypatch.setitem(sys.modules, "made_up", module)
    exec("def load(handle):\n    return 'made-up-' + handle\n", vars(module))  # noqa: S102 - what is tested
    assert loads(Store(print, module.load), tmp_path)[0] == "made-up-x"


def test_the_working_directory_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``module:object`` is looked for as ``python -m`` does, attributes of attributes included."""
    (tmp_path / "json5000.py").write_text(
        "from crashlab import Store\nclass Subjects:\n    store = Store(print, lambda handle: 'here')\n"
    )
    monkeypatch.chdir(tmp_path)
    assert loads("json5000:Subjects.store", tmp_path)[0] == "here"


def closing_over_a_connection() -> Store:
    """The likeliest mistake."""
    connection = sqlite3.connect(":memory:")
    connection.close()  # its kind is what cannot travel; an open one would be complained about when it is collected

    def save(_dir: Any, value: Any) -> None:
        connection.execute("insert into t values (?)", (value,))

    return Store(save, print)


class Bound:
    """An object with a lock, whose methods are the callables."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def run(self, _lab: Any) -> None:
        """Bound to it."""


def test_the_closed_over_variable_is_named() -> None:
    """The whole text, as the specification of the interface has it."""
    with pytest.raises(UsageError) as caught:
        travel.pack(closing_over_a_connection())
    assert str(caught.value) == (
        "save cannot be sent to a fresh process: it closes over connection (sqlite3.Connection). "
        "Recovery after a crash never has that object. "
        'Open it inside: Store(save, load, open=lambda lab: sqlite3.connect(lab.dir / "x.db"))'
    )


def nested(log: bool) -> Any:
    """A lock two functions and a list deep."""
    locks = [threading.Lock()]
    inner = functools.partial(lambda lock, _handle: lock, locks)

    def load(handle: Any) -> Any:
        return inner(handle)

    return Log(print, load) if log else Store(print, load)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (
            Store(print, lambda _dir: LOCK),
            ["load cannot", "it uses the global LOCK (_thread.lock)", "Store(save, load, open="],
        ),
        (nested(log=True), ["load cannot", "it closes over inner", "_thread.lock", "Log(append, load, open="]),
        (Subject(Bound().run), ["run cannot", "is bound to its Bound.lock (_thread.lock)", "Open it inside run(lab)"]),
    ],
)
def test_other_ways_to_hold_what_cannot_travel(subject: Any, expected: list[str]) -> None:
    """Globals, objects of bound methods, arguments of partials: each is named with its type."""
    with pytest.raises(UsageError) as caught:
        travel.pack(subject)
    assert [part for part in expected if part not in str(caught.value)] == []


@pytest.mark.parametrize("path", ["module", "module:", ":object", "", ".relative:object"])
def test_a_path_that_is_none(path: str) -> None:
    """The message shows the form that is expected."""
    with pytest.raises(UsageError, match="names no subject: expected module:object"):
        travel.pack(path)


@pytest.mark.parametrize(
    ("value", "shown"), [(7, "7 (an int)"), (helper, "helper (a function)"), (Store, "the class Store")]
)
def test_an_object_that_is_no_subject(value: Any, shown: str) -> None:
    """The message says what it is."""
    with pytest.raises(UsageError, match="what was passed is") as caught:
        travel.pack(value)
    assert shown in str(caught.value)
