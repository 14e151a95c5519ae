"""Reads of real programs fail from a chosen one on, in every process of it, and below the root only."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from crashlab.live.program_reads import NUMBERS, ProgramReads
from crashlab.record.strace import notices
from tests.crashlab.here import needs_notices

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_notices

SCRIPT = """
read -r one <"$1/one" || one=none
two=$(cat "$1/two" 2>"$2/words") || two=none
read -r other <"$2/other" || other=none
echo "$one $two $other" >"$2/said"
exit 3
"""


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A root with two files, and a place beside it with one."""
    root, beside = tmp_path / "root", tmp_path / "beside"
    root.mkdir()
    beside.mkdir()
    (root / "one").write_text("1\n")
    (root / "two").write_text("2\n")
    (beside / "other").write_text("3\n")
    return root, beside


def said(places: tuple[Path, Path], at: int) -> tuple[str, ProgramReads]:
    root, beside = places
    met = ProgramReads(str(root), at)
    assert met.run(["sh", "-c", SCRIPT, "name", str(root), str(beside)], os.environ) == 3
    return (beside / "said").read_text(), met


def test_reads_are_counted(places: tuple[Path, Path]) -> None:
    """With 0 none fails; those of a child count too, those beside the root do not."""
    text, met = said(places, 0)
    assert text == "1 2 3\n"
    assert met.count >= 4  # two openings, and a read of each
    assert met.failed == 0


def test_from_the_chosen_read_on_all_fail(places: tuple[Path, Path]) -> None:
    """The first: nothing below the root can be read. The last ones: only the second file."""
    _, plain = said(places, 0)
    text, met = said(places, 1)
    assert text == "none none 3\n"
    assert met.failed == met.count > 0
    assert "Input/output error" in (places[1] / "words").read_text()
    text, met = said(places, plain.count - 1)
    assert text == "1 none 3\n"
    assert met.failed >= 1


def test_listings_and_relative_openings_are_reads(places: tuple[Path, Path]) -> None:
    """From a working directory, and through the descriptor of a directory."""
    code = """
import os, sys
os.chdir(sys.argv[1])
for act in (lambda: os.listdir("."), lambda: os.open("one", os.O_RDONLY)):
    try: act()
    except OSError as error: print(error.errno)
    else: sys.exit(1)
sys.exit(0)
"""
    argv = [sys.executable, "-S", "-E", "-c", code, str(places[0])]
    assert ProgramReads(str(places[0]), 1).run(argv, os.environ) == 0
    assert ProgramReads(str(places[0]), 0).run(argv, os.environ) == 1


def test_how_a_program_ends_is_told(tmp_path: Path) -> None:
    """A signal as a negative number; a program that is not there as an error."""
    assert ProgramReads(str(tmp_path), 1).run(["sh", "-c", "kill -TERM $$"], os.environ) == -signal.SIGTERM
    with pytest.raises(FileNotFoundError):
        ProgramReads(str(tmp_path), 1).run(["no-such-program"], os.environ)


def test_the_tables_agree() -> None:
    """A call that stands in both has one number."""
    for name in NUMBERS.keys() & notices.NUMBERS.keys():
        assert NUMBERS[name] == notices.NUMBERS[name]
