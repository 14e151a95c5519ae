"""Text of a program inside Markdown: shown, and never obeyed, as a real parser of Markdown sees it."""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt

from crashlab.report import markdown
from crashlab.report.markdown import block, code, words
from crashlab.report.page import printable
from tests.crashlab.report.hostile import TEXTS, Outline


def read(text: str) -> Outline:
    """The page that Markdown becomes: CommonMark with tables, as GitHub has it."""
    return Outline(MarkdownIt("commonmark").enable("table").enable("strikethrough").render(text))


def shape(text: str) -> list[str]:
    """The elements of that page but for the spans that keep a sign apart."""
    return [tag for tag, _ in read(text).elements if tag != "span"]


def in_places(text: str) -> str:
    """``text`` wherever the views put it."""
    row = f"| a | b |\n|---|---|\n| {words(text)} | {code(text)} |"
    return f"# {words(text)}\n\n{row}\n\n- {words(text)}\n\n{block(text)}\n"


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_stays_text(text: str) -> None:
    """In a heading, a table, a list and a block the elements are those of a plain word, and the words are there."""
    assert shape(in_places(text)) == shape(in_places("plain"))
    assert read(in_places(text)).wrong == []


def test_escapes_left_out_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: where nothing is escaped, the test above has another outline."""
    monkeypatch.setattr(markdown, "_MARKUP", re.compile("(?!)"))
    assert shape(in_places(TEXTS["markdown"])) != shape(in_places("plain"))


@pytest.mark.parametrize("text", ["a|b", "<b>", "`x`", "[a](b)", "*a* _b_ a_b", "&lt;", "\\", "~~a~~", "$x$"])
def test_what_is_shown_is_what_was_said(text: str) -> None:
    """Character by character, as the reader sees it."""
    assert read(words(text)).words == text
    assert read(code(text)).words == text


def test_nobody_is_called_and_nothing_is_linked() -> None:
    """GitHub looks for @names, #numbers and addresses in what Markdown left of running text: none is whole there."""
    page = MarkdownIt("commonmark").render(words("@ada ada/repo#1 http://a.example www.a.example mailto:a@b.c"))
    pieces = [html.unescape(piece) for piece in re.split(r"<[^>]*>", page)]
    assert not any(re.search(r"@\w|#\d", piece) for piece in pieces)
    raw = words("http://a.example www.a.example mailto:x")
    assert not re.search(r"://|www\.|mailto:", raw), "an address is looked for in the source, before entities are read"


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    """So the text cannot end its block."""
    text = "a\n````\n# b\n```` `````` x"
    outline = read(block(text))
    assert [tag for tag, _ in outline.elements] == ["pre", "code"]
    assert "# b" in outline.words


def test_long_text_is_cut_and_says_so() -> None:
    """And what is left of it is printable."""
    assert words("x" * 5000).endswith(" … (4,000 characters cut)")
    assert printable(words("a\x00b")) == "a&#92;x00b"
