"""``crashlab.toml``: the subjects of a project, and what its checks are asked for.

::

    [defaults]                            # arguments of check, for every check of the project
    budget = "full"

    [subject.checkpoint]                  # crashlab check checkpoint
    object = "myapp.crash:checkpoint"     # a Store, Log, Subject or Commands

    [subject.agent]                       # or a program by its commands
    start = "node agent.js {dir}"
    resume = "node agent.js {dir} --resume"
    policy.kill.effects = "at-least-once"

A subject takes the fields of its kind and the arguments of :func:`crashlab.check`. Paths are relative to
the folder of the file; commands run there, and objects are imported from there. Reading checks every
key and every value, and executes nothing.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crashlab.crash.profiles import parse_profiles
from crashlab.errors import UsageError
from crashlab.faults import BUILT, parse_faults
from crashlab.settings import RECORDERS, Options
from crashlab.subject import BUDGETS, Budget, Commands, Policy
from crashlab.toml_file import joined, known_keys, parsed, wrong

Table = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One subject of the file: an import path with the fields that replace its own, or the commands of a program."""

    name: str
    path: str = ""
    fields: Table = dataclasses.field(default_factory=dict)
    commands: Commands | None = None
    options: Table = dataclasses.field(default_factory=dict)

    @property
    def about(self) -> str:
        """What it is, in a word for a list: the import path, or the command that starts it."""
        if self.commands is None:
            return self.path
        start = self.commands.start
        return start if isinstance(start, str) else " ".join(start)


@dataclass(frozen=True, kw_only=True)
class Project:
    """What ``crashlab.toml`` says. ``defaults`` are arguments of check; ``subjects`` are in the order of the file."""

    file: Path
    defaults: Table = dataclasses.field(default_factory=dict)
    subjects: Mapping[str, Declared] = dataclasses.field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where commands run and objects are imported from."""
        return self.file.parent


def read(file: Path) -> Project:
    """The project that ``file`` describes.

    Raises UsageError for a file that is no TOML, with line and column, and for a key or a value that means
    nothing, with the path of the key and what was probably meant.
    """
    file = Path(os.path.abspath(file))  # not resolved: a link to a file stands in the folder where it is
    whole = parsed(file, option="--config")
    try:
        known_keys("", whole, ("defaults", "subject"))
        defaults = _options("defaults", _table("defaults", whole.get("defaults", {})), file.parent)
        subjects = _table("subject", whole.get("subject", {}))
        declared = {name: _declared(name, each, file.parent) for name, each in subjects.items()}
    except UsageError as error:
        text = f"{os.path.relpath(file)}: {error}"
        raise UsageError(text) from error
    out = {"out": str(_place(file.parent, ".crashlab"))}
    return Project(file=file, defaults={**out, **defaults}, subjects=declared)


# --- what may stand where --------------------------------------------------------------------------


def _table(place: str, value: Any) -> Table:
    if not isinstance(value, dict):
        wrong(place, value, "a table")
    return value


def _one_of(place: str, value: Any, choices: Iterable[Any]) -> Any:
    names = list(choices)
    if value not in names or isinstance(value, bool) != isinstance(names[0], bool):
        near = difflib.get_close_matches(value, names, n=1) if isinstance(value, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        wrong(place, value, " or ".join(repr(each) for each in names) + hint)
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_COMMAND = ("a command, or a list of words", lambda value: _is_text(value) or (_is_texts(value) and bool(value)))
_TEXT = ("text", _is_text)
_TEXTS = ("a list of texts", _is_texts)
_SWITCH = ("true or false", lambda value: isinstance(value, bool))
_ENV = (
    'a table of texts, as in env = { APP_HOME = "{dir}" }',
    lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
)
_Shape = tuple[str, Callable[[Any], bool]]
_FIELDS: dict[str, _Shape] = {
    "name": _TEXT,
    "start": _COMMAND,
    "resume": _COMMAND,
    "view": _COMMAND,
    "check": _COMMAND,
    "env": _ENV,
    "timeout_s": ("a number of seconds", _is_number),
    "rebuilt": _TEXTS,
    "outside": _TEXTS,
    "stop_after_acks": ("a whole number from 1 on", lambda value: _is_whole(value) and value > 0),
    "values": ("a list", lambda value: isinstance(value, list)),
    "atomic": _SWITCH,
}
_OF_COMMANDS = tuple(each.name for each in dataclasses.fields(Commands))
_IN_OBJECT = ("view", "check", "resume", "start", "run", "save", "load", "append", "open", "close", "key")
_OF_OBJECT = tuple(name for name in _FIELDS if name not in _IN_OBJECT)
_OPTIONS: dict[str, _Shape] = {
    "faults": ('a list in one text, as in faults = "kill,power"', _is_text),
    "profile": ('a list in one text, as in profile = "ext4,xfs"', _is_text),
    "policy": ("a table", lambda value: isinstance(value, dict)),
    "budget": ("a name or a table", lambda value: _is_text(value) or isinstance(value, dict)),
    "seed": ("a whole number", _is_whole),
    "jobs": ("a whole number from 1 on", lambda value: _is_whole(value) and value > 0),
    "recorder": _TEXT,
    "only": _TEXT,
    "disk": _TEXT,
    "redundant": _SWITCH,
    "out": _TEXT,
    "baseline": _TEXT,
}
OPTIONS = tuple(name for name in _OPTIONS if name in Options.__annotations__)


# --- values --------------------------------------------------------------------------------------


def _shaped(place: str, table: Table, shapes: Mapping[str, _Shape]) -> None:
    for name, value in table.items():
        expected, fits = shapes[name]
        if not fits(value):
            wrong(joined(place, name), value, expected)


def _declared(name: str, value: Any, folder: Path) -> Declared:
    place = f"subject.{name}"
    table = _table(place, value)
    if ":" in name:
        text = f"{place}: a name without ':' is needed, since module:object means an object on the command line"
        raise UsageError(text)
    if ("object" in table) == ("start" in table):
        text = f'{place} needs either object = "module:object", or start = "COMMAND"'
        raise UsageError(text)
    fields = _OF_OBJECT if "object" in table else _OF_COMMANDS
    for each in table:
        if "object" in table and each in _IN_OBJECT:
            text = (
                f"{place}.{each}: belongs to a program that is given by its commands; here {table['object']!r} says it"
            )
            raise UsageError(text)
    known_keys(place, table, ("object", *fields, *OPTIONS) if "object" in table else (*fields, *OPTIONS))
    given = {each: table[each] for each in fields if each in table}
    _shaped(place, given, _FIELDS)
    options = _options(place, {each: table[each] for each in OPTIONS if each in table}, folder)
    if "object" not in table:
        return Declared(name=name, commands=Commands(**{"name": name, **given}), options=options)
    path = table["object"]
    if not (_is_text(path) and re.fullmatch(r"[\w.]+:[\w.]+", path)):
        wrong(f"{place}.object", path, 'module:object, as in "myapp.crash:checkpoint"')
    return Declared(name=name, path=path, fields=given, options=options)


def _options(place: str, table: Table, folder: Path) -> Table:
    known_keys(place, table, OPTIONS)
    _shaped(place, table, _OPTIONS)
    options = dict(table)
    for name, parse in (("faults", parse_faults), ("profile", parse_profiles)):
        if name in options:
            _meant(joined(place, name), parse, options[name])
    if "recorder" in options:
        _one_of(f"{place}.recorder", options["recorder"], RECORDERS)
    if "budget" in options:
        options["budget"] = _budget(f"{place}.budget", options["budget"])
    if "policy" in options:
        options["policy"] = _policies(f"{place}.policy", options["policy"])
    for name in ("out", "baseline"):
        if name in options:
            options[name] = str(_place(folder, options[name]))
    return options


def _meant(place: str, parse: Callable[[str], Any], value: str) -> None:
    try:
        parse(value)
    except UsageError as error:
        text = f"{place}: {error}"
        raise UsageError(text) from error


def _place(folder: Path, path: str) -> Path:
    """A path of the file, told from where we are if that is its folder."""
    return Path(path) if folder == Path.cwd() else folder / path


def _budget(place: str, value: Any) -> str | Budget:
    if isinstance(value, str):
        return str(_one_of(place, value, BUDGETS))
    defaults = dataclasses.asdict(Budget())
    known_keys(place, value, defaults)
    for name, each in value.items():
        if name == "cuts":
            _one_of(f"{place}.cuts", each, ("edges", "blocks"))
        elif not (_is_number(each) if name == "time_s" else _is_whole(each)):
            wrong(joined(place, name), each, "a number of seconds" if name == "time_s" else "a whole number")
    return Budget(**value)


def _policies(place: str, value: Table) -> dict[str, Policy]:
    known_keys(place, value, BUILT)
    hints = typing.get_type_hints(Policy)
    policies = {}
    for fault, table in value.items():
        here = joined(place, fault)
        known_keys(here, _table(here, table), hints)
        for name, each in table.items():
            kind = typing.get_args(hints[name])[0]
            _one_of(joined(here, name), each, (True, False) if kind is bool else typing.get_args(kind))
        policies[fault] = Policy(**table)
    return policies
