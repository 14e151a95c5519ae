"""Verdicts, kinds and rules in plain words: every kind has some, and no sentence claims more than the numbers."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crashlab.errors import UsageError
from crashlab.faults import DESIGNED
from crashlab.kinds import KINDS
from crashlab.report import legal, sentences
from crashlab.report.folder import RunFolder
from crashlab.report.github import render_github
from crashlab.report.html import render_html
from crashlab.report.issue import render_issue
from crashlab.report.junit import render_junit
from crashlab.report.legal import legal_words
from crashlab.report.model import CONTRACT
from crashlab.report.sentences import CONTRACT_WORDS, FAULT_WORDS, KIND_WORDS, kind_words, verdict_sentence
from tests.crashlab.report.samples import CUT, DUPLICATE, PASS, REASON, UNMEASURED, VIOLATION, count, report

if TYPE_CHECKING:
    from crashlab.report.model import Report


def test_every_kind_fault_and_property_has_words() -> None:
    """A new one gets a sentence with it."""
    assert set(KIND_WORDS) == set(KINDS)
    assert set(FAULT_WORDS) == set(DESIGNED)
    assert {*CONTRACT.values(), "FD", "RD"} == set(CONTRACT_WORDS)
    assert kind_words("named-by-a-check") == "named-by-a-check"


BROKEN = "something that had been reported as saved was gone, or could not be read; something was done twice in the"


@pytest.mark.parametrize(
    ("each", "sentence"),
    [
        (PASS, "All 31 crash states that were tried (kills) led to what was demanded."),
        (VIOLATION, f"After 9 of 31 crash states (kills) it broke a promise: {BROKEN} outside world."),
        (UNMEASURED, "The lab could not judge this: unseen-writer. That is not a pass."),
        (report(faults=(count(states=1, judged=1),)), "The one crash state that was tried led to what was demanded."),
        (dataclasses.replace(VIOLATION, faults=()), f"After a crash it broke a promise: {BROKEN} outside world."),
    ],
    ids=["pass", "violation", "unmeasured", "one state", "uncounted"],
)
def test_the_verdict_in_a_sentence(each: Report, sentence: str) -> None:
    """With the numbers of the report; a pass is followed by how far it reaches."""
    said = verdict_sentence(each)
    assert said.startswith(sentence)
    assert (said != sentence) == (each.verdict == "consistent")


def test_where_the_lab_was_wrong_no_view_accuses_anybody(tmp_path: Path) -> None:
    """A report that is unmeasured because its trace is false keeps its findings in JSON, and shows none."""
    false = dataclasses.replace(VIOLATION, verdict="unmeasured", unmeasured=(REASON,))
    assert false.findings
    for text in (render_html([false]), render_github([false]), render_junit([false]), false._repr_html_()):
        assert "mail to=ada" not in text
        assert "2 findings not shown" in text
    assert "<failure" not in render_junit([false])
    assert "<error" in render_junit([false])
    with pytest.raises(UsageError, match=r"kill@7 is no violation: the run is unmeasured, unseen-writer"):
        render_issue(RunFolder(tmp_path), false, DUPLICATE)
    assert "mail to=ada" in render_html([VIOLATION]), "the words are there where they are true"


def test_a_violation_with_a_reason_beside_it_is_a_violation() -> None:
    """As in the exit code."""
    assert verdict_sentence(dataclasses.replace(VIOLATION, unmeasured=(REASON,))).startswith("After 9 of 31")


LOSS = {"id": "power@9-3", "fault": "power"}


@pytest.mark.parametrize(
    ("fields", "said", "unsaid"),
    [
        ({"id": "kill@7"}, ("belong to the kernel",), ("may be cut", "ext4")),
        ({**LOSS, "profiles": ("ext4[data=journal]", "btrfs")}, ("ext4:", "btrfs:"), ("xfs",)),
        ({**LOSS, "why": "The file is changed in place: x"}, ("ordered with nothing",), ()),
        ({"id": "error@7:EIO", "fault": "error"}, ("Any call may fail",), ("belong to the kernel",)),
        ({"id": "damage@a:bit:1", "fault": "damage"}, ("Bytes at rest change",), ()),
        ({"id": "power@9-3/kill@2", "fault": "recovery", "profiles": ("xfs",)}, ("A recovery is", "xfs:"), ()),
    ],
)
def test_each_crash_has_its_rule(fields: dict[str, object], said: tuple[str, ...], unsaid: tuple[str, ...]) -> None:
    """Those of its fault and of the file systems that allow it, and no others; each with its source."""
    told = legal_words(dataclasses.replace(DUPLICATE, **fields))  # type: ignore[arg-type]  # any field
    text = " ".join(told)
    assert all(each in text for each in said)
    assert not any(each in text for each in unsaid)
    assert all(any(word in each for word in ("easured", "ited", "ssumed")) for each in told)


def test_the_rules_that_are_named_stand_in_the_fault_model() -> None:
    """A letter and a number lead to a row of the table there."""
    page = (Path(sentences.__file__).parents[2] / "FAULT_MODEL.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\(([JXFB]\d)\)", " ".join(legal._PROFILES.values())))
    assert named
    assert {name for name in named if f"\n| {name} | " not in page} == set()


def test_a_cut_is_explained_where_there_is_one() -> None:
    """And only there."""
    assert any("may be cut at a page" in each for each in legal_words(CUT))
    assert not any("may be cut" in each for each in legal_words(DUPLICATE))
