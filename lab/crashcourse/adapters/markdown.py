"""A summary in Markdown, for the student: made from the public result, and the points that were given in the end.

Whatever a submission said is put between backquotes, so that it cannot become a heading, a link or HTML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashcourse.adapters.words import details, headline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def rendered(whole: Mapping[str, Any], public: Mapping[str, Any]) -> str:
    """The text of the file."""
    return "\n".join(_lines(whole, public)) + "\n"


def _lines(whole: Mapping[str, Any], public: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {public['exercise']}: {whole['points']} of {whole['points_max']} points"
    yield ""
    if public["error"]:
        yield f"Not judged: {public['error']}."
        yield ""
    elif public["points"] != whole["points"]:
        yield (
            f"With the seed that you know it is {public['points']}. The rest was lost with other tickets, ids and "
            "amounts: what holds for one seed only does not hold."
        )
        yield ""
    yield "| case | what must hold | verdict | points |"
    yield "|---|---|---|---|"
    for case in public["cases"]:
        yield f"| {case['id']} | {case['invariant']} | {headline(case)} | {case['points']}/{case['points_max']} |"
    for case in public["cases"]:
        text = details(case)
        if text:
            yield ""
            yield f"## {case['id']}"
            yield ""
            yield from ("    " + line for line in _safe(text).splitlines())
    for notice in public["notices"]:
        yield ""
        yield f"Note: {notice}."


def _safe(text: str) -> str:
    """Text that stays inside an indented block: no control characters."""
    return "".join(each if each == "\n" or each.isprintable() else ascii(each)[1:-1] for each in text)
