"""What the cells of the notebooks share."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from crashcourse.notebook import difference, plain

MADE_UP = "checkpoint.json.0123456789abcdef.tmp"


@dataclass(frozen=True)
class Line:
    """Something with texts inside."""

    path: str
    more: tuple[dict[str, list[str]], ...] = ()


def test_a_folder_is_gone_with_its_process() -> None:
    """And is there before."""
    code = "from crashcourse.notebook import folder; f = folder(); (f / 'a').write_text(''); print(f, f.is_dir())"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert told[1] == "True"
    assert not Path(told[0]).exists()


def test_what_is_made_up_is_taken_out_at_any_depth() -> None:
    """And nothing else is."""
    line = Line(MADE_UP, ({MADE_UP: [f"rename {MADE_UP} -> checkpoint.json", "toolu_abc123, 0123456789abcdef"]},))
    star = "checkpoint.json.*.tmp"
    assert plain(line) == Line(star, ({star: [f"rename {star} -> checkpoint.json", "toolu_*, 0123456789abcdef"]},))
    assert plain(7) == 7


def naive(path: str) -> str:
    """Says what is wrong."""
    return path


def correct(path: str) -> str:
    """Says what is right."""
    assert path < "b"
    return path


def test_a_difference_has_the_code_without_docstrings() -> None:
    """In text and in HTML, where it is escaped."""
    found = difference(naive, correct)
    assert repr(found).splitlines() == [
        "-def naive(path: str) -> str:",
        "+def correct(path: str) -> str:",
        '+    assert path < "b"',
        "     return path",
    ]
    assert "path &lt; &quot;b&quot;" in found._repr_html_()
