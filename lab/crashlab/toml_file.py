"""Reading TOML for people: a broken file is told with line and column, an unknown key with the right one."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from typing import TYPE_CHECKING, Any, NoReturn

from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def parsed(file: Path, *, option: str) -> dict[str, Any]:
    """What ``file`` holds; ``option`` is how another one is named.

    Raises UsageError where it cannot be read, is no UTF-8 or no TOML.
    """
    shown = os.path.relpath(file)
    try:
        text = file.read_bytes().decode().removeprefix("\ufeff")  # the mark that editors of Windows put first
    except OSError as error:
        message = f"cannot read {shown}: {error.strerror}; name another file with {option} FILE"
        raise UsageError(message) from error
    except UnicodeDecodeError as error:
        message = f"{shown} is not UTF-8, which TOML demands, from byte {error.start} on; save it as UTF-8"
        raise UsageError(message) from error
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(_broken(shown, text, str(error))) from error
    except RecursionError as error:
        message = f"{shown} holds lists or tables that are nested too deep to be read; write them flat"
        raise UsageError(message) from error.with_traceback(None)


def _broken(file: str, text: str, error: str) -> str:
    """What is wrong where, and the line itself; tomllib tells the place at the end of its message."""
    what, _, _ = error.partition(" (at ")
    place = re.search(r"at line (\d+), column (\d+)", error)
    lines = text.splitlines() or [""]
    line, column = (int(place[1]), int(place[2])) if place else (len(lines), len(lines[-1]) + 1)
    shown = lines[line - 1].strip() if line <= len(lines) else ""
    return f"{file}:{line}:{column}: {what}; mend this line: {shown or '(the end of the file)'}"


def known_keys(place: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise UsageError for a key that is none of the ``known`` ones; ``place`` is the path of the table."""
    names = list(known)
    for name in table:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            text = f"{joined(place, name)}: unknown; {hint}Known: {', '.join(names)}"
            raise UsageError(text)


def joined(place: str, name: str) -> str:
    """The path of a key."""
    return f"{place}.{name}" if place else name


def wrong(place: str, value: Any, expected: str) -> NoReturn:
    """Raise UsageError for a value that is not what is ``expected``."""
    text = f"{place} is {value!r}; expected {expected}"
    raise UsageError(text)


def quoted(text: str) -> str:
    r"""``text`` as a string of TOML; what no file can hold, a lone surrogate, becomes a question mark.

    >>> quoted('a "b"\n')
    '"a \\"b\\"\\n"'
    """
    short = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    text = text.encode("utf-8", "replace").decode()
    inner = "".join(short.get(each) or (each if each.isprintable() else f"\\U{ord(each):08x}") for each in text)
    return f'"{inner}"'
