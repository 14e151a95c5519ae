"""A program cannot tell that ``open`` and ``os`` are patched: the same probes, inside and outside of the recorder."""

from __future__ import annotations

import _io
import builtins
import functools
import gc
import io
import itertools
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

MODES = [
    *("r", "w", "a", "x", "r+", "w+", "a+", "x+", "rb", "wb", "ab", "xb", "rb+", "r+b", "bw", "w+b", "wt", "+tr"),
    *("", "b", "t", "+", "rw", "ww", "wbt", "U", "rU", "q", "wab", "w ", "W", None, 3, b"w"),
]
ODD_BUFFER = 0.5
"""Stands for a buffer with gaps, which cannot be pickled."""
LAYERS: list[dict[str, Any]] = [
    {},
    {"buffering": 0},
    {"buffering": 1},
    {"buffering": 10},
    {"buffering": -5},
    {"buffering": "1"},
]
SUPPORTS = ("supports_dir_fd", "supports_effective_ids", "supports_fd", "supports_follow_symlinks")
TEXTS: list[dict[str, Any]] = [
    {"encoding": "latin-1", "errors": "replace", "newline": ""},
    {"encoding": "no-such"},
    {"encoding": 3},
    {"newline": "x"},
    {"errors": "no-such"},
]


def outcome(d: str, call: Callable[[], Any]) -> dict[str, Any]:
    """What a caller can see of one call: the result and its layers, the error, the warnings."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = call()
            seen = look(result)
            if hasattr(result, "close"):
                result.close()
        except Exception as error:  # noqa: BLE001 - any error is an outcome
            message = str(error).replace(d, "D")
            named = [getattr(error, name, None) for name in ("errno", "filename", "filename2")]
            seen = {"error": type(error).__name__, "message": message, "named": repr(named).replace(d, "D")}
            del error
    return {
        **seen,
        "warned": [(each.category.__name__, str(each.message).replace(d, "D"), _line(each)) for each in warned],
        "files": sorted((name, os.path.getsize(os.path.join(d, name))) for name in os.listdir(d)),
    }


def _line(warned: warnings.WarningMessage) -> int:
    """The line that a warning blames; not for what the garbage collector says, whose moment is its own."""
    return 0 if warned.category is ResourceWarning else warned.lineno


def look(result: Any) -> dict[str, Any]:
    """Type and attributes of every layer of a file."""
    seen: dict[str, Any] = {"repr": repr(result).partition(" name")[0]}
    for layer in ("self", "buffer", "raw"):
        result = result if layer == "self" else getattr(result, layer, None)
        if result is None:
            continue
        seen[layer] = [type(result).__name__, type(result).__module__, isinstance(result, io.FileIO)]
        for name in ("name", "mode", "closefd", "encoding", "errors", "line_buffering", "write_through"):
            seen[f"{layer}.{name}"] = os.path.basename(str(getattr(result, name, "none")))
        seen[f"{layer}.can"] = [result.readable(), result.writable(), result.seekable(), result.isatty()]
    return seen


def open_it(name: str, mode: Any, option: dict[str, Any]) -> Any:
    """One call of ``open``, on one line: warnings name it."""
    return open(name, mode, **option)


def open_in_every_way(d: str) -> list[tuple[str, Any]]:
    """``open`` with sensible and senseless arguments."""
    outcomes = []
    options = [layer | text for layer, text in itertools.product(LAYERS, [{}, *TEXTS])]
    for number, (mode, option) in enumerate(itertools.product(MODES, options)):
        for name in (f"{d}/there", f"{d}/{number}", d) if number % 7 == 0 else (f"{d}/{number % 2}",):
            Path(d, "there").write_bytes(b"contents")
            call = functools.partial(open_it, name, mode, option)
            outcomes.append((f"{os.path.basename(name)} {mode} {option}", outcome(d, call)))
    return outcomes


BAD_CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [  # D is the directory
    ("open", (), {}),
    ("open", ("D/a", "w", -1, None, None, None, 1, None, 1), {}),
    ("open", ("D/a", "w"), {"nothing": 1}),
    ("open", (3.5, "w"), {}),
    ("open", (None, "w"), {}),
    ("open", ("D/a\0b", "w"), {}),
    ("open", (b"\0", "wb"), {}),
    ("open", ("", "w"), {}),
    ("open", (9999, "wb"), {}),
    ("open", (-1, "w"), {}),
    ("open", ("D/there", "wb"), {"closefd": False}),
    ("open", ("D/x", "wb"), {"opener": lambda *_: -1}),
    ("open", ("D/x", "wb"), {"opener": lambda *_: "x"}),
    ("open", ("D/x", "wb"), {"opener": 3}),
    ("open.write", ("D/there", "r"), {"then": "x"}),
    ("open.read", ("D/there", "w"), {"then": 1}),
    ("FileIO.read", ("D/there", "w"), {"then": 1}),
    ("FileIO.write", ("D/there", "r"), {"then": b"x"}),
    ("FileIO.truncate", ("D/there", "r"), {"then": 0}),
    ("FileIO", ("D/y", "rw"), {}),
    ("FileIO", ("D/y", "w"), {"closefd": False}),
    ("FileIO.write", ("D/y",), {"mode": "w", "then": "text"}),
    ("FileIO.write", ("D/y",), {"mode": "w", "then": ODD_BUFFER}),
    ("FileIO.truncate", ("D/y",), {"mode": "w", "then": -1}),
    ("FileIO.seekable", ("D/y",), {"mode": "w", "then": 1}),
    ("FileIO", (), {}),
    ("os.open", ("D/none", os.O_WRONLY), {}),
    ("os.open", (), {}),
    ("os.open", ("D/x", "w"), {}),
    ("write", (9999, b"x"), {}),
    ("write", (1, "text"), {}),
    ("writev", (9999, 3), {}),
    ("rename", ("D/none", "D/other"), {}),
    ("rename", (), {"src": "D/none", "dst": 3}),
    ("mkdir", ("D/there",), {}),
    ("mkdir", ("D/n", "mode"), {}),
    ("unlink", ("D",), {"dir_fd": 9999}),
    ("fsync", ("x",), {}),
    ("fsync", (9999,), {}),
    ("truncate", ("D/there",), {}),
    ("chmod", ("D/none", 0o600), {}),
    ("utime", ("D/there", (1, 2)), {"ns": (1, 2)}),
    ("link", ("D/there", "D/there"), {}),
    ("symlink", (None, "D/x"), {}),
    ("setxattr", ("D/there", "user.x", "text"), {}),
]


def call_badly(d: str) -> list[tuple[str, Any]]:
    """Arguments that no call takes, and files that are no paths."""
    Path(d, "there").write_bytes(b"contents")
    functions: dict[str, Any] = {**vars(os), "open": open, "FileIO": io.FileIO, "os.open": os.open}

    def call(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        function, _, method = name.rpartition(".") if name != "os.open" else (name, "", "")
        placed = [each.replace("D", d, 1) if isinstance(each, str) else each for each in arguments]
        named = {key: each.replace("D", d, 1) if isinstance(each, str) else each for key, each in options.items()}
        then = memoryview(bytes(10))[::2] if (value := named.pop("then", None)) == ODD_BUFFER else value
        file = functions[function or name](*placed, **named)
        return getattr(file, method)(then) if function and method else file

    outcomes = [
        (f"{number} {each[0]}", outcome(d, functools.partial(call, *each))) for number, each in enumerate(BAD_CALLS)
    ]
    gc.collect()
    return outcomes


def ask_about_the_functions(d: str) -> list[tuple[str, Any]]:
    """What the functions and types say of themselves."""
    import inspect  # noqa: PLC0415 - for this probe only

    answers: list[tuple[str, Any]] = []
    for name in ("open", "write", "rename", "fsync", "mkdir", "chmod", "utime", "unlink"):
        function = getattr(os, name)
        about = [function.__name__, function.__module__, repr(function), function.__text_signature__]
        supports = [function in getattr(os, each) for each in SUPPORTS]
        answers.append((name, [*about, supports, pickle.loads(pickle.dumps(function)) is function]))
    answers.append(("open", [repr(open), open.__name__, str(inspect.signature(open))]))
    answers.append(("same", [open is io.open, open is _io.open, builtins.open is io.open]))
    answers.append(("pickled", pickle.loads(pickle.dumps(open)) is open))
    answers.append(("rmtree", shutil.rmtree.avoids_symlink_attacks))

    class Holder:
        keep: Any = os.mkdir
        way: Any = open

    Holder().keep(f"{d}/kept")
    Holder().way(f"{d}/way", "w").close()
    answers.append(("held", sorted(os.listdir(d))))

    class Own(io.FileIO):
        """A subclass of the user's."""

    with open(f"{d}/way", "rb", buffering=0) as plain, Own(f"{d}/own", "w") as own:
        own.write(b"by my own class")
        answers.append(("types", [isinstance(plain, io.FileIO), isinstance(plain, Own), isinstance(own, Own)]))
        answers.append(("layers", [isinstance(own, io.RawIOBase), issubclass(Own, io.FileIO), io.FileIO.__doc__]))
    return answers


def files_that_are_forgotten(d: str) -> list[tuple[str, Any]]:
    """Files that are never closed: flushed, and warned about."""

    def forget() -> None:
        file = open(f"{d}/forgotten", "w", encoding="ascii")  # noqa: SIM115 - the point
        file.write("flushed in the end")
        del file
        gc.collect()

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        forget()
    texts = [str(each.message).replace(d, "D") for each in warned]
    return [("warned", texts), ("size", os.path.getsize(f"{d}/forgotten"))]


def buffers(d: str) -> list[tuple[str, Any]]:
    """How much reaches the disk, write by write."""
    sizes = []
    for mode, buffering in itertools.product(("w", "wb", "r+", "a+b"), (-1, 1, 2, 100, 5000)):
        Path(d, "f").write_bytes(b"")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = open(f"{d}/f", mode, buffering)  # noqa: SIM115 - closed below
        for length in (1, 60, 60, 3000, 1500, 9000, 200, 200):
            text = "x" * length + "\n"
            file.write(text.encode() if "b" in mode else text)
            sizes.append((f"{mode} {buffering}", os.path.getsize(f"{d}/f")))
        file.close()
    return sizes


PROBES = (open_in_every_way, call_badly, ask_about_the_functions, files_that_are_forgotten, buffers)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_patches_cannot_be_told_from_the_real_thing(record: Any, tmp_path: Path, probe: Callable[..., Any]) -> None:
    """Results, attributes, errors, warnings and what is on disk are the same with and without the recorder."""
    folder = tmp_path / "dir"
    folder.mkdir()
    here = dict(probe(str(folder)))
    recorded = record(probe, look=False).prove()
    there = dict(recorded.value)
    assert here.keys() == there.keys()
    assert {name: (here[name], there[name]) for name in here if here[name] != there[name]} == {}
    assert len(here) > 3 or probe is files_that_are_forgotten


def test_the_patches_cannot_be_told_when_nothing_is_recorded(record: Any, tmp_path: Path) -> None:
    """Between recordings the patched process behaves as any other."""

    def stopped(d: str) -> Any:
        from crashlab.record.python import RECORDER  # noqa: PLC0415 - that of the recorded process

        switch = RECORDER._switch
        watch, switch.watch = switch.watch, None
        try:
            return call_badly(d) + buffers(d)
        finally:
            switch.watch = watch

    folder = tmp_path / "dir"
    folder.mkdir()
    here = dict(call_badly(str(folder)) + buffers(str(folder)))
    recorded = record(stopped)
    assert recorded.error == ""
    assert recorded.kinds == []
    assert dict(recorded.value) == here


def test_a_missing_encoding_is_warned_about_in_the_name_of_the_caller(tmp_path: Path) -> None:
    """With -X warn_default_encoding the warning names the subject's line, not one of the lab's."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM_WITHOUT_ENCODINGS)
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    places = re.findall(r"^(\S+): (\w+):", done.stderr, re.MULTILINE)
    assert places == [
        (f"{program}:{line}", warning)
        for line, warning in [(5, "EncodingWarning"), (6, "EncodingWarning"), (7, "RuntimeWarning")] * 2
    ]


PROGRAM_WITHOUT_ENCODINGS = """
import os, sys, warnings
from crashlab.record.python import RECORDER
def work():
    open("x", "w").close()
    open("x").close()
    open("x", "wb", 1).close()
warnings.simplefilter("always")
RECORDER.install()
work()
RECORDER.start(root=os.getcwd(), numbers={}, emit=lambda op: None)
work()
"""


def test_the_real_open_is_untouched_here() -> None:
    """Pytest's own process is not patched by any of this."""
    assert "built-in" in repr(builtins.open)
    assert type(builtins.open).__name__ == "builtin_function_or_method"
    assert tempfile.TemporaryFile.__module__ == "tempfile"
