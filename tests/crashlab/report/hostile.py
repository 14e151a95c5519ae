"""Reports full of what a program under test may put into them, and what a page must not become by it."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser
from typing import Any

from crashlab.report.model import Difference, FileChange, Moment, Report
from tests.crashlab.report.samples import REASON, VIOLATION

TEXTS: dict[str, str] = {
    "script": "<script>alert(1)</script>",
    "closing tags": "</td></table></details></pre></code></main><h1>mine</h1>",
    "attributes": "\" onmouseover=\"alert(1)\" x='' autofocus onfocus=alert(1) '",
    "cdata": "]]> <![CDATA[ <!-- --> ]]>",
    "entities": "&lt;b&gt; &#60;script&#62; &amp",
    "template": "{{ 7 * 7 }} {% raw %} ${x}",
    "turned round": "safe\u202egpj.exe\u2066\u200b\ufeff",
    "half a character": "a\udc80\ud800b",
    "zero": "a\x00b\x01\x1f\x7f\x9b",
    "terminal": "\x1b[2J\x1b]0;title\x07\x1b[31mred",
    "lines": "a\nb\r\nc\u2028d\x85e",
    "very long": "<b>" * 20_000,
    "link": "javascript:alert(1) http://outside.example/x.png data:text/html,x",
    "markdown": "|`*_[x](http://y)_*`| @ada #1 ![i](http://z) ```\n</details> $a$ :smile: www.outside.example",
}

_FIXED = {
    *(
        "verdict",
        "note",
        "how",
        "step",
        "change",
        "type",
        "schema",
        "before",
        "inside",
        "after",
        "power",
        "error",
        "nested",
    ),
    *("contract", "confirmed", "op", "fault"),
}
"""Fields that hold one word of a list; :mod:`crashlab.report.load` or the drawing looks at them."""


def full_report() -> Report:
    """A violation with everything in it that a report can have."""
    change = FileChange(
        path="a",
        change="changed",
        before=40,
        after=3,
        differs=37,
        parts=(Difference(at=16, before="4142", after="43"),),
    )
    findings = tuple(
        dataclasses.replace(each, changes=(change, FileChange(path="b", change="gone", before=1)))
        for each in VIOLATION.findings
    )
    moments = tuple(Moment(n=n, op=op, text="t") for n, op in ((1, "save point"), (2, "effect"), (3, "ack")))
    return dataclasses.replace(
        VIOLATION, findings=findings, unmeasured=(REASON,), moments=moments, notes=("a note", "another")
    )


def poisoned(value: Any, text: str) -> Any:
    """The same report with ``text`` in the place of every text that is not one word of a list."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            each.name: poisoned(getattr(value, each.name), text)
            for each in dataclasses.fields(value)
            if each.name not in _FIXED and not isinstance(value, Difference)
        }
        return dataclasses.replace(value, **changed)
    if isinstance(value, str):
        return text if value else value
    if isinstance(value, tuple):
        return tuple(poisoned(each, text) for each in value)
    if isinstance(value, dict):
        return {poisoned(key, text): poisoned(each, text) for key, each in value.items()}
    return value


class Outline(HTMLParser):
    """The elements and attributes of a page, without its text: what a browser would act on."""

    VOID = frozenset({"meta", "link", "img", "br", "hr", "input", "base"})

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(page)
        self.close()
        self.wrong += [f"<{tag}> is never closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1:] == [tag]:
            self.open.pop()
        else:
            self.wrong.append(f"</{tag}> closes {self.open[-1:]}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        """All text of the page."""
        return " ".join(" ".join(self.text).split())


LOADS = {"src", "srcset", "href", "xlink:href", "action", "formaction", "poster", "data", "background", "ping", "code"}


def outside(page: str) -> list[str]:
    """Everything on the page that a browser would load, run or leave for: links within the page are allowed."""
    outline = Outline(page)
    found = [
        f"{tag} {name}={value}"
        for tag, name, value in outline.attributes
        if (name in LOADS and not value.startswith("#")) or name.startswith("on")
    ]
    found += [tag for tag, _ in outline.elements if tag in {"link", "base", "iframe", "object", "embed", "img"}]
    styles = page.split("<style>")[1].split("</style>", maxsplit=1)[0] if "<style>" in page else ""
    return found + [word for word in ("@import", "url(") if word in styles]
