"""``lab/VERSIONS.md`` and ``lab/CHANGELOG.md`` say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import crashlab
from crashlab import stored, trace
from crashlab.report import model

LAB = Path(crashlab.__file__).parents[1]
VERSIONS = (LAB / "VERSIONS.md").read_text()
CHANGELOG = (LAB / "CHANGELOG.md").read_text()
HEADINGS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Not there yet"}


def test_the_forms_of_the_page_are_those_that_are_written() -> None:
    """Each stored form has its row, with the number that the code writes."""
    listed = set(re.findall(r"^\| `(crashlab\.\w+/\d+)` \|", VERSIONS, re.MULTILINE))
    assert listed == {model.SCHEMA, model.REPORTS_SCHEMA, trace.SCHEMA, stored.SCHEMA}


def test_the_errors_that_the_page_promises_exist() -> None:
    """And they are public."""
    (row,) = re.findall(r"^\| errors \| (.*?) \|", VERSIONS, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", row)) <= set(crashlab.__all__)


def test_the_changelog_begins_with_this_version() -> None:
    """Newest first; each entry has a date, or says that it is not out yet, and sections of known names."""
    versions = re.findall(r"^## \[([\d.]+)\] - (\d{4}-\d{2}-\d{2}|unreleased)$", CHANGELOG, re.MULTILINE)
    assert versions[0][0] == crashlab.__version__
    assert len(versions) == CHANGELOG.count("\n## ")
    assert set(re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE)) <= HEADINGS


def test_nothing_is_deprecated_unless_the_pages_say_so() -> None:
    """A warning in the code needs its line in the changelog, and the sentence in the rules goes."""
    warned = [path.name for path in (LAB / "crashlab").rglob("*.py") if "DeprecationWarning" in path.read_text()]
    assert bool(warned) == ("### Deprecated" in CHANGELOG)
    assert bool(warned) == ("Nothing is deprecated now." not in VERSIONS)
