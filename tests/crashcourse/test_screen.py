"""The screen: as wide, as colourful and as rich in letters as the stream says, and never obeyed."""

from __future__ import annotations

import io

import pytest

from crashcourse import screen
from crashcourse.screen import NARROWEST, WIDEST, Screen


class Terminal(io.TextIOWrapper):
    """A stream that says that it is a terminal, and does not know how wide."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals_that_want_it(environment: dict[str, str], colour: bool) -> None:
    """An empty NO_COLOR says nothing, as no-color.org has it."""
    assert screen.of(Terminal("utf-8"), environment).colour is colour
    assert not screen.of(io.TextIOWrapper(io.BytesIO()), environment).colour


@pytest.mark.parametrize(
    ("columns", "width"), [("60", 60), ("7", NARROWEST), ("900", WIDEST), ("0", WIDEST), ("wide", WIDEST), ("", WIDEST)]
)
def test_the_width_is_bounded(columns: str, width: int) -> None:
    """Too narrow a page cannot be read, too wide a one neither; one that is not known is wide."""
    assert screen.of(Terminal("utf-8"), {"COLUMNS": columns}).width == width
    assert screen.of(io.TextIOWrapper(io.BytesIO()), {"COLUMNS": columns}).width == WIDEST


@pytest.mark.parametrize(("encoding", "ascii_only"), [("utf-8", False), ("ascii", True), ("latin-1", True)])
def test_letters_are_those_of_the_encoding(encoding: str, ascii_only: bool) -> None:
    """What cannot be encoded would end the command with a traceback."""
    assert screen.of(Terminal(encoding), {}).ascii_only is ascii_only


def test_a_closed_stream_is_a_plain_screen() -> None:
    """As in ``crashcourse list >&-``."""
    assert screen.of(None) == Screen()


def test_prose_is_folded_and_words_are_whole() -> None:
    """Lines stand below each other; a path that is wider than the screen stays in one piece."""
    path = "/a" * 30
    assert list(Screen(width=40).folded("  why  ", f"it is in {path} and nowhere else, says the lab")) == [
        "  why  it is in",
        f"       {path}",
        "       and nowhere else, says the lab",
    ]
    assert list(Screen().folded("  why  ", "")) == ["  why"]
