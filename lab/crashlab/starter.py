"""``crashlab init``: a first test file and a first ``crashlab.toml``, made from what a look at the code found.

Both are starting points to be read and changed. What is plain (two functions, a path among their
parameters) is written as code; all else stands in comments, with the place where it was found.
"""

from __future__ import annotations

import keyword
import os
import re
from typing import TYPE_CHECKING

from crashlab.context import PROJECT_FILE
from crashlab.errors import UsageError
from crashlab.survey import FILES_AT_MOST, Found, Survey, survey

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TEST_FILE = "test_crashes.py"
_FILE_NAMES = re.compile(r"path|file|filename|target|dest|destination|out|output|where")
_FOLDER_NAMES = re.compile(r"dir|folder|directory|root|base")
_LISTED_AT_MOST = 40
_TESTS_AT_MOST = 40
"""Each takes seconds, and all of them are to be read."""

_TOML = """\
# What crashlab checks in this project: crashlab check, or crashlab check NAME, or pytest.

[defaults]
# faults = "kill,power"        # or error, damage, recovery; "all"
# profile = "ext4,xfs,btrfs"   # file systems of a power loss
# budget = "quick"             # or "full"
{subjects}
# A program in any language, by its commands (Linux, strace):
# [subject.agent]
# start = "python agent.py {{dir}}"
# resume = "python agent.py {{dir}} --resume"
# view = "cat {{dir}}/answer.json"      # what must come out the same; without it the files in {{dir}}
"""

_TEST = '''\
"""What a crash leaves must load: the first tests, begun by crashlab init. Read and change them."""

from crashlab import Store, check
{imports}{body}'''

_EXAMPLE = """
# Nothing was found that plainly saves and loads. Describe it like this:
#
# from myapp import load_checkpoint, save_checkpoint
#
# checkpoint = Store(
#     save=lambda dir, value: save_checkpoint(dir / "checkpoint.json", value),
#     load=lambda dir: load_checkpoint(dir / "checkpoint.json"),
# )
#
# def test_checkpoint():
#     check(checkpoint)
"""


def start(folder: Path) -> str:
    """Look at ``folder``, write both files, and return what to tell.

    Raises UsageError where the folder is none, or one of the files is there already.
    """
    if not folder.is_dir():
        text = f"{os.fspath(folder)!r} is no folder; name the one that holds your project"
        raise UsageError(text)
    tests = folder / "tests" if (folder / "tests").is_dir() else folder
    config, test = folder / PROJECT_FILE, tests / TEST_FILE
    for path in (config, test):
        if os.path.lexists(path):
            text = f"{os.path.relpath(path)} is there already, and stays as it is; remove it, or write it yourself"
            raise UsageError(text)
    seen = survey(folder)
    pairs = [pair for pair in seen.pairs() if _is_plain(pair)]
    plain = _named(pairs[:_TESTS_AT_MOST])
    module = ".".join([*test.relative_to(folder).parts[:-1], test.stem])
    _write(test, _test_text(plain, seen))
    try:
        _write(config, _toml_text(list(plain), module))
    except UsageError:
        test.unlink()  # both or none
        raise
    return _told(seen, plain, config, test, left_out=len(pairs) - len(plain))


def _write(path: Path, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        message = f"cannot write {os.fspath(path)!r}: {error.strerror}"
        raise UsageError(message) from error


# --- the texts -------------------------------------------------------------------------------------


def _is_plain(pair: tuple[Found, Found]) -> bool:
    """Whether the lambdas can be written down: two functions, with a path and, for the one that saves, a value."""
    save, load = pair
    importable = all(part.isidentifier() and not keyword.iskeyword(part) for part in save.module.split("."))
    return (
        importable
        and not (save.method_of or load.method_of)
        and len(save.parameters) == 2  # noqa: PLR2004 - a path and a value
        and len(load.parameters) == 1
        and not any(each.endswith("=") for each in (*save.parameters, *load.parameters))  # nobody knows with what
        # Both the same: a folder on one side and a file on the other leaves open which file that is.
        and [each for each in map(_path_argument, save.parameters) if each]
        == [_path_argument(load.parameters[0])]
        != [""]
    )


def _path_argument(parameter: str, file: str = "…") -> str:
    """What to pass for a parameter that means a path: the file, or the folder; ``""`` where it means something else."""
    if _FILE_NAMES.search(parameter):
        return f'dir / "{file}"'
    return "dir" if _FOLDER_NAMES.search(parameter) else ""


def _named(pairs: Sequence[tuple[Found, Found]]) -> dict[str, tuple[Found, Found]]:
    """Each pair under a name of its own, which is none that the file imports: it would hide what it is to call."""
    imported = {each.module.partition(".")[0] for pair in pairs for each in pair} | {"Store", "check"}
    named: dict[str, tuple[Found, Found]] = {}
    for pair in pairs:
        name = pair[0].about if pair[0].about.isidentifier() else pair[0].module.rpartition(".")[2]
        name = f"{name}_store" if keyword.iskeyword(name) or name in imported else name
        number = 1
        while (numbered := f"{name}{number}" if number > 1 else name) in named or numbered in imported:
            number += 1
        named[numbered] = pair
    return named


def _test_text(named: dict[str, tuple[Found, Found]], seen: Survey) -> str:
    imports = sorted({f"import {save.module}" for save, _ in named.values()})
    body = "".join(_subject_text(name, save, load) for name, (save, load) in named.items())
    paired = {each for pair in named.values() for each in pair}
    others = [each for each in seen.found if each not in paired]
    if others:
        listed = "".join(f"#   {_line(each)}\n" for each in others[:_LISTED_AT_MOST])
        body += (
            "\n\n# Also found. A class is described by Store(It.save, It.load, open=lambda lab: It(lab.dir)):\n"
            f"{listed}"
        )
    if not named:
        body = f"{_EXAMPLE}{body}"
    unused = "" if named else "  # noqa: F401 - for the example below"
    text = _TEST.format(imports="\n".join(["", *imports, ""]) if imports else "", body=body)
    return text.replace("import Store, check", f"import Store, check{unused}", 1).rstrip("\n") + "\n"


def _subject_text(name: str, save: Found, load: Found) -> str:
    file = f"{name}.data"
    arguments = ", ".join(_path_argument(each, file) or "value" for each in save.parameters)
    loaded = _path_argument(load.parameters[0], file)
    return f"""

# {_line(save)}
# {_line(load)}
{name} = Store(
    save=lambda dir, value: {save.module}.{save.name}({arguments}),
    load=lambda dir: {load.module}.{load.name}({loaded}),
)


def test_{name}():
    check({name})
"""


def _toml_text(names: Sequence[str], module: str) -> str:
    subjects = "".join(f'\n[subject.{name}]\nobject = "{module}:{name}"\n' for name in names)
    example = '\n# [subject.checkpoint]\n# object = "myapp.crash:checkpoint"   # a Store, Log, Subject or Commands\n'
    return _TOML.format(subjects=subjects or example)


def _line(found: Found) -> str:
    return f"{found.file}:{found.line}: {found.name}({', '.join(found.parameters)})  {', '.join(found.calls)}"


def _told(seen: Survey, plain: dict[str, tuple[Found, Found]], config: Path, test: Path, *, left_out: int) -> str:
    files = f"{seen.files:,} Python {'file' if seen.files == 1 else 'files'}"
    lines = [f"looked at {files}, found {len(seen.found)} functions that save or load"]
    lines += [f"  {each.role}  {_line(each)}" for each in seen.found[:_LISTED_AT_MOST]]
    if len(seen.found) > _LISTED_AT_MOST:
        lines.append(f"  and {len(seen.found) - _LISTED_AT_MOST} more, of which {os.path.relpath(test)} names some")
    if seen.more:
        lines.append(f"  looked no further after {FILES_AT_MOST:,} files; name a smaller folder for the rest")
    lines += [f"  not read: {each}" for each in seen.unread]
    tests = f"{len(plain)} {'test' if len(plain) == 1 else 'tests'}"
    if left_out:
        lines.append(
            f"  {left_out:,} more pairs got no test, which is enough to begin with; name a smaller folder for them"
        )
    if any(re.match(r"(src|lib)/", each.file) for pair in plain.values() for each in pair):
        lines.append("  some modules lie in src/ or lib/: install the project first, so that they can be imported")
    lines += [f"wrote {os.path.relpath(test)} ({tests}) and {os.path.relpath(config)}; read and change them, then:"]
    lines += [
        # pytest alone would look for modules beside the test, and not here
        f"  {'pytest' if test.parent == config.parent else 'python -m pytest'} {os.path.relpath(test)}",
        "  crashlab check" if plain else "  crashlab check module:object",
        "",
    ]
    return "\n".join(lines)
