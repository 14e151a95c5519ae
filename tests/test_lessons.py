"""The lessons are true: their shape, what they quote, their pictures, and the demonstrations that they tell of.

What a demonstration measured is kept beside it. Text and pictures are held against that here, at no cost; and that it
is measured anew, and comes out the same, is held against the world: two demonstrations in each run of the tests, all of
them in the full profile.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crashcourse.catalog import LESSONS
from crashcourse.exhibit import Stale

if TYPE_CHECKING:
    from crashcourse.exhibit import Exhibit

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path for path in (ROOT / "lessons").iterdir() if path.is_dir())
DEMOS = [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))]
HEADINGS = [
    "Goals",
    "Invariants",
    "Predict",
    "Break",
    "Mend",
    "Check",
    "Exercises",
    "One bug that would still pass",
    "Sources",
]
QUOTED = re.compile(r"<!-- shown by: ([\w.]+) -->\n```text\n(.*?)```", re.DOTALL)
PAGE_COLUMNS_AT_MOST = 88
QUICK = {"03-resume"}
"""What is measured anew in each run of the tests takes some seconds; lesson 1 is run by its path."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "lessons").as_posix()


@cache
def exhibit(path: Path) -> Exhibit:
    """The exhibit of a demonstration, loaded from its file."""
    spec = importlib.util.spec_from_file_location(f"demo_{path.parent.name[:2]}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Exhibit = module.exhibit
    return found


def page(folder: Path) -> str:
    return (folder / "README.md").read_text()


def section(text: str, heading: str) -> str:
    return text.split(f"\n## {heading}\n")[1].split("\n## ", 1)[0]


def printed(path: Path, data: dict[str, Any]) -> list[str]:
    """The lines of a demonstration, without the space around them."""
    return [line.strip() for line in "\n".join(exhibit(path).tell(data)).splitlines()]


def missing(quoted: str, lines: list[str]) -> list[str]:
    """The quoted lines that are not printed, one after the other."""
    rest = iter(lines)
    return [line for line in quoted.strip("\n").splitlines() if line.strip() not in rest]


# --- shape -----------------------------------------------------------------------------------------


def test_each_lesson_has_its_folder() -> None:
    """Numbered as in the catalog of exercises, each with a page, a demonstration and what it measured."""
    assert [int(folder.name[:2]) for folder in FOLDERS] == list(LESSONS)
    for folder in FOLDERS:
        assert page(folder).startswith(f"# Lesson {int(folder.name[:2])}: {LESSONS[int(folder.name[:2])]}\n")
        assert (folder / "demo.py").exists()
        assert (folder / "measured.json").exists()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_lesson_has_its_parts_in_order(folder: Path) -> None:
    """Predictions come before what they are about; their answers are folded away, as those of the check are."""
    found = [heading for heading in re.findall(r"^## (.*)$", page(folder), re.MULTILINE) if heading in HEADINGS]
    assert found == HEADINGS
    for heading in ("Predict", "Check"):
        assert section(page(folder), heading).count("<details>") == 1
        assert "<details>" in section(page(folder), heading)
    before_break = page(folder).split("\n## Break\n")[0]
    folded = re.sub(r"<details>.*?</details>", "", before_break, flags=re.DOTALL)
    assert len(re.findall(r"^\d\. ", section(folded + "\n## ", "Predict"), re.MULTILINE)) >= 2


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_check_has_three_answers_each_with_its_reason(folder: Path) -> None:
    """One is right and two are wrong, and each says why."""
    question, answers = section(page(folder), "Check").split("<details>")
    assert re.findall(r"^- \((\w)\) \*", question, re.MULTILINE) == ["a", "b", "c"]
    verdicts = re.findall(r"^- \(\w\) is (right|wrong)", answers, re.MULTILINE)
    assert sorted(verdicts) == ["right", "wrong", "wrong"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_lesson_shows_two_pictures_at_least_and_all_that_it_has(folder: Path) -> None:
    """Each with words in its place for who cannot see it."""
    shown = re.findall(r"!\[([^\]]{10,})\]\(pictures/([\w-]+)\.svg\)", page(folder))
    assert sorted(name for _, name in shown) == sorted(path.stem for path in (folder / "pictures").glob("*.svg"))
    assert len(shown) >= 2


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_nothing_of_a_lesson_is_cut_off(folder: Path) -> None:
    """What stands in a block is not wrapped by a page, and so much fits into a window of 800 points."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page(folder), re.MULTILINE | re.DOTALL)
    assert blocks
    assert [line for block in blocks for line in block.splitlines() if len(line) > PAGE_COLUMNS_AT_MOST] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_lesson_leads_to_its_notebook(folder: Path) -> None:
    """To the one of its name, which is there."""
    (found,) = re.findall(r"\(\.\./\.\./notebooks/([\w-]+)\.ipynb\)", page(folder))
    assert found == folder.name
    assert (ROOT / "notebooks" / f"{found}.ipynb").exists()


def test_the_index_names_each_lesson_and_its_exercises() -> None:
    """The map of the lessons leads to each of them, and names the exercises that its page names, or says "none yet"."""
    rows = re.findall(
        r"^\| \[(\d) [^\]]+\]\(([\w-]+)/README\.md\) \|.*?\| ((?:`[\w-]+`(?:, )?)+|none yet) \|",
        page(ROOT / "lessons"),
        re.MULTILINE,
    )
    assert [folder for _, folder, _ in rows] == [folder.name for folder in FOLDERS]
    for number, folder, slugs in rows:
        table = section(page(ROOT / "lessons" / folder), "Exercises")
        assert re.findall(rf"^\| {number}\.\d `([\w-]+)` \|", table, re.MULTILINE) == re.findall(r"`([\w-]+)`", slugs)


def test_each_exercise_belongs_to_its_lesson() -> None:
    """What can be started is named, under the same number, by the lesson that it belongs to, with its command."""
    started = {path.parent.name: path.read_text() for path in (ROOT / "exercises").glob("*/exercise.toml")}
    assert started
    for slug, text in started.items():
        number = re.search(r'^number = "(\d\.\d)"$', text, re.MULTILINE)
        assert number, slug
        lesson = next(folder for folder in FOLDERS if int(folder.name[:2]) == int(number[1][0]))
        assert f"| {number[1]} `{slug}` |" in section(page(lesson), "Exercises")
        assert f"\ncrashcourse start {slug}\n" in section(page(lesson), "Exercises")


def test_the_first_page_needs_no_words_of_disks() -> None:
    """Up to its first prediction lesson 1 speaks to somebody who has never heard of these."""
    first = page(FOLDERS[0]).split("\n## Predict\n")[0].lower()
    assert [word for word in ("fsync", "inode", "page cache", "journal", "idempoten", "ledger") if word in first] == []


# --- what is quoted and drawn ----------------------------------------------------------------------


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_a_lesson_quotes_was_printed(folder: Path) -> None:
    """Each quoted block, line after line, from the measurements that are kept."""
    blocks = QUOTED.findall(page(folder))
    assert len(blocks) >= 3
    for program, block in blocks:
        path = folder / program
        assert missing(block, printed(path, exhibit(path).kept())) == []


def test_a_wrong_quotation_is_noticed() -> None:
    """Sabotage: a line that is not printed, and one out of its order, are named."""
    assert missing("  a\n  c\n", ["a", "b"]) == ["  c"]
    assert missing("b\na\n", ["a", "b"]) == ["a"]


@pytest.mark.parametrize("path", DEMOS, ids=name_of)
def test_pictures_are_what_was_measured(path: Path) -> None:
    """Drawn again from what is kept, they are the same to the last byte; none is left over."""
    drawn = exhibit(path).pictures(exhibit(path).kept())
    for name, picture in drawn.items():
        assert (path.parent / "pictures" / f"{name}.svg").read_text() == picture.svg, f"draw it anew: {path} --write"
    others = {
        name
        for other in DEMOS
        if other.parent == path.parent
        for name in exhibit(other).pictures(exhibit(other).kept())
    }
    assert {each.stem for each in (path.parent / "pictures").iterdir()} == others


# --- measured anew -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.parent.name in QUICK else [pytest.mark.full], id=name_of(path))
        for path in DEMOS
    ],
)
def test_a_demonstration_shows_what_it_showed(path: Path) -> None:
    """Measured anew it gives the same data, so the same text and pictures; what should fail still fails."""
    assert exhibit(path).measured() == exhibit(path).kept()


def test_an_exhibit_that_has_stopped_failing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: with the correct harness in the place of the naive ones, lesson 3 says which way goes well."""
    lesson = exhibit(FOLDERS[2] / "demo.py").measure.__globals__
    monkeypatch.setitem(lesson, "_module", lambda _name: lesson["CORRECT"])
    with pytest.raises(Stale, match="way: drop the call"):
        lesson["_ways"](tmp_path, lesson["AFTER_REPLY"])


def test_a_demonstration_runs_by_its_path(tmp_path: Path) -> None:
    """From any folder, as a learner starts it, with nothing but its text on stdout."""
    path = FOLDERS[0] / "demo.py"
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(f"{line}\n" for line in exhibit(path).tell(exhibit(path).kept()))
    assert list(tmp_path.iterdir()) == []
