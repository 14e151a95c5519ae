"""The page about the fault model says what the code does, and the tool behind its tables does what it says."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from benchmarks import fault_model, fault_tables
from benchmarks.dangers import DANGERS
from benchmarks.lies import LIES
from benchmarks.programs import PATTERNS
from benchmarks.validation import KINDS, Tally, states_in_model
from crashlab.crash import rules

if TYPE_CHECKING:
    from pathlib import Path

PAGE = fault_model.PAGE.read_text()
GENERATED = PAGE.partition(fault_tables.BEGIN)[2].partition(fault_tables.END)[0]
HEADS = (
    fault_tables.pattern_head(KINDS),
    fault_tables.total_head(KINDS),
    fault_tables.DANGER_HEAD,
    fault_tables.LIE_HEAD,
)


def rows(text: str) -> list[list[str]]:
    return [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]


def test_every_rule_of_the_code_stands_on_the_page() -> None:
    """Each tag in a docstring of a rule has a row of its own in the text that is written by hand."""
    functions = inspect.getmembers(rules, inspect.isfunction)
    tags = {tag for _, function in functions for tag in re.findall(r"\b[JXFB]\d\b", function.__doc__ or "")}
    assert len(tags) > 15
    assert {row[0].strip() for row in rows(PAGE) if re.fullmatch(r" [JXFB]\d ", row[0])} == tags


def test_the_tables_on_the_page_are_those_that_the_tool_writes() -> None:
    """Heads, and the first cells of every row, in their order: a new pattern or danger asks for a new run."""
    found = rows(GENERATED)
    assert [row for row in found if tuple(row) in HEADS] == [list(head) for head in HEADS]
    names = {row[0] for row in found}
    assert names >= {*PATTERNS, *(danger.name for danger in DANGERS), *(lie.name for lie in LIES)}
    tallies = [Tally(kind) for kind in KINDS]
    fresh = [row for text in (fault_tables.dangers(tallies), fault_tables.lies(tallies)) for row in rows(text)]
    assert [row[:3] for row in fresh] == [row[:3] for row in found[-len(fresh) :]]
    assert re.search(r"Linux \d+\.\d+\S* on \S+, \d{4}-\d\d-\d\d, seed \d+: [\d,]+ images, 0 outside\.", GENERATED)


def test_what_the_page_claims_was_reached() -> None:
    """Nothing outside, every danger seen, every false promise refuted, and no more seen than the model has."""
    found = rows(GENERATED)
    assert next(row for row in found if row[0] == "outside of the model")[1:] == ["0"] * len(KINDS)
    seen = {(row[0], row[1]): row[3] for row in found if row[0] in {danger.name for danger in DANGERS}}
    assert seen == {(danger.name, kind): "yes" for danger in DANGERS for kind in danger.kinds}
    refuted = {(row[0], row[1]): row[3] for row in found if row[0] in {lie.name for lie in LIES}}
    assert refuted.keys() == {(lie.name, lie.kind) for lie in LIES}
    assert not [text for text in refuted.values() if text.startswith("0 of")]
    for row in found:
        if row[0] in PATTERNS:
            pairs = [tuple(int(number) for number in cell.split("/")) for cell in row[1:]]
            assert [states for _, states in pairs] == [states_in_model(kind, row[0]) for kind in KINDS]
            assert all(0 < number <= states for number, states in pairs)


def test_writing_replaces_what_is_between_the_markers_only(tmp_path: Path) -> None:
    """Text before and behind stays; a page without markers is an error, not an overwritten page."""
    page = tmp_path / "page.md"
    page.write_text(f"a\n{fault_tables.BEGIN}\nold\n{fault_tables.END}\nb\n")
    fault_tables.write(page, "new")
    assert page.read_text() == f"a\n{fault_tables.BEGIN}\n\nnew\n\n{fault_tables.END}\nb\n"
    page.write_text("by hand")
    with pytest.raises(ValueError, match="has no part between"):
        fault_tables.write(page, "new")
    assert page.read_text() == "by hand"


Validate = Callable[..., None]


@pytest.fixture
def validated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Validate], Path]:
    """Puts another function in the place of the validation, where no disk is needed to see what is made of it."""

    def put(validate: Validate) -> Path:
        monkeypatch.setattr(fault_model, "validate", validate)
        monkeypatch.setattr(fault_model, "missing", lambda _kind: "")
        monkeypatch.setattr(fault_model, "PAGE", tmp_path / "page.md")
        monkeypatch.chdir(tmp_path)
        (tmp_path / "page.md").write_text(f"{fault_tables.BEGIN}\n{fault_tables.END}\n")
        return tmp_path / "page.md"

    return put


def reach_all(tally: Tally, images: int, *_: object) -> None:
    """As if everything had been seen."""
    tally.images["random"] += images
    for danger in tally.dangers:
        tally.showings[danger.name] = 1
    for lie in tally.lies:
        tally.refuted[lie.name] = 1


def test_all_inside_is_0_and_written(validated: Callable[[Validate], Path], capsys: pytest.CaptureFixture[str]) -> None:
    """With --write the tables go to stdout and to the page."""
    page = validated(reach_all)
    assert fault_model.main(["--images", "7", "--write"]) == 0
    assert f"{7 * len(KINDS)} images, 0 outside." in page.read_text()
    assert "|outside of the model|0|" in capsys.readouterr().out


def test_an_image_outside_is_1_and_kept_in_a_file(
    validated: Callable[[Validate], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page is left alone, and stderr says where the file is and how the trees differ."""
    form = {"program": "rename", "moment": [3, 3], "difference": ["dir/a: absent / file 3 bytes"]}

    def one_outside(tally: Tally, images: int, *_: object) -> None:
        reach_all(tally, images)
        tally.outside.append(form)

    page = validated(one_outside)
    before = page.read_text()
    assert fault_model.main(["--write"]) == 1
    assert page.read_text() == before
    assert json.loads((tmp_path / ".crashlab/outside-xfs-1.json").read_text()) == form
    assert "OUTSIDE on xfs, rename, at [3, 3]" in (told := capsys.readouterr().err)
    assert "dir/a: absent / file 3 bytes" in told


def test_a_danger_that_is_not_seen_is_1(
    validated: Callable[[Validate], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that shows nothing proves nothing."""
    validated(lambda *_: None)
    assert fault_model.main(["--kinds", "xfs"]) == 1
    assert "not shown on xfs: the old size with a zeroed tail" in capsys.readouterr().err


def test_an_interrupted_run_says_what_was_reached(
    validated: Callable[[Validate], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C in the second kind: the tables of both are printed, and nothing is written to the page."""

    def interrupted(tally: Tally, images: int, *_: object) -> None:
        reach_all(tally, images)
        if tally.kind == "xfs":
            raise KeyboardInterrupt

    page = validated(interrupted)
    before = page.read_text()
    assert fault_model.main(["--images", "5", "--write"]) == 130
    shown = capsys.readouterr()
    assert "interrupted" in shown.err
    assert "|all images|5|5|5|5|" in shown.out
    assert page.read_text() == before


def test_wrong_usage_is_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown kind, and one that this machine cannot make, are told before anything is run."""
    assert fault_model.main(["--kinds", "zfs"]) == 2
    assert "unknown profile 'zfs'" in capsys.readouterr().err
    monkeypatch.setattr(fault_model, "missing", lambda kind: f"no {kind} here")
    assert fault_model.main(["--kinds", "btrfs"]) == 2
    assert capsys.readouterr().err == "btrfs: no btrfs here\n"
    with pytest.raises(SystemExit, match="2"):
        fault_model.main(["--kinds", "xfs", "--write"])
