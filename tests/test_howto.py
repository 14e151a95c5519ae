"""``lab/HOWTO.md`` is true: each section is a project of its own, whose files are written and whose commands are run.

A comment before a block says what it is: ``file: NAME`` is written, ``run: CODE`` is run by a shell and exits with that
code, ``shown`` is what the run before it printed. ``needs: ...`` names what a machine may lack. What stands before the
first section is written for every section.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages import as_installed, shell

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "lab/HOWTO.md").read_text()
PACKAGES = {"node": "nodejs"}
BLOCK = re.compile(r"(?:^<!-- ([^>]*?) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block of the page: ``what`` is ``file``, ``run``, ``shown``, or something that nobody knows."""

    what: str
    argument: str
    language: str
    text: str


def blocks(text: str) -> list[Block]:
    """The blocks of a section."""
    found = []
    for said, language, body in BLOCK.findall(text):
        what, _, argument = said.partition(": ")
        found.append(Block(what, argument, language, body))
    return found


PREAMBLE, *SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
TITLES = [section.partition("\n")[0] for section in SECTIONS]


def missing(section: str) -> Iterator[str]:
    """What this machine lacks for the section, each with what to install."""
    for needed in " ".join(re.findall(r"^<!-- needs: (.*?) -->$", section, re.MULTILINE)).split():
        if "." in needed:
            if importlib.util.find_spec(needed) is None:
                yield f"{needed} is not part of this version"
        elif shutil.which(needed) is None:
            yield f"{needed} is not here: apt install {PACKAGES.get(needed, needed)}"


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables under which ``crashlab`` and ``pytest`` are those that are tested."""
    return as_installed(tmp_path_factory.mktemp("tools"))


def follow(section: str, folder: Path, variables: dict[str, str]) -> Iterator[str]:
    """Do what the section says; each thing that does not come out as it says is one complaint."""
    printed = ""
    for block in blocks(PREAMBLE) + blocks(section):
        if block.what == "file":
            (folder / block.argument).write_text(block.text)
        elif block.what == "run":
            done = shell(block.text, folder, variables)
            printed = done.stdout + done.stderr
            if done.returncode != int(block.argument):
                yield f"{block.text!r} exits with {done.returncode}, not {block.argument}:\n{printed}"
        else:
            lines = [line.strip() for line in block.text.splitlines()]
            seen = " ".join(printed.split())
            yield from (f"not shown: {line!r} in\n{printed}" for line in lines if " ".join(line.split()) not in seen)


@pytest.mark.parametrize("number", range(len(SECTIONS)), ids=[re.sub(r"\W+", "-", title) for title in TITLES])
def test_a_section_does_what_it_says(number: int, tmp_path: Path, tools: dict[str, str]) -> None:
    """Whoever copies its files and types its commands sees what it shows."""
    section = SECTIONS[number]
    if lacking := list(missing(section)):
        pytest.skip("; ".join(lacking))
    assert list(follow(section, tmp_path, tools)) == []


def test_every_block_of_the_page_is_written_run_or_shown() -> None:
    """No block is there only to be read."""
    found = blocks(PAGE)
    assert len(found) == PAGE.count("\n```") // 2
    assert {block.what for block in found} == {"file", "run", "shown"}
    assert {block.language for block in found if block.what == "run"} == {"sh"}


def test_every_section_runs_something() -> None:
    """Except those that only say that something is not there yet."""
    silent = [title for title, text in zip(TITLES, SECTIONS, strict=True) if "<!-- run: " not in text]
    assert silent == ["11. A course, and grading"]


def test_a_section_for_each_use_case() -> None:
    """Numbered as they are, without a gap."""
    numbers = [int(title.split(".")[0]) for title in TITLES if title[0].isdigit()]
    assert numbers == list(range(1, 19))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<!-- run: 1 -->\n```sh\ntrue\n```\n", "exits with 0"),
        ("<!-- run: 0 -->\n```sh\necho some thing\n```\n<!-- shown -->\n```text\nanother thing\n```\n", "not shown"),
        ("<!-- file: a.sh -->\n```sh\nexit 3\n```\n<!-- run: 0 -->\n```sh\nsh a.sh\n```\n", "exits with 3"),
    ],
)
def test_a_section_that_is_wrong_is_found(text: str, complaint: str, tmp_path: Path, tools: dict[str, str]) -> None:
    """Sabotage: another exit code, another output, a file that is not what the command needs."""
    (said,) = follow(text, tmp_path, tools)
    assert complaint in said
