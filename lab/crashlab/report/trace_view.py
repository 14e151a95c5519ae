"""The recorded ops as a list for a terminal: ``crashlab show --trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.findings import op_text
from crashlab.report.finding import has_source
from crashlab.report.page import Page, count

if TYPE_CHECKING:
    from crashlab.report.page import Part
    from crashlab.trace import Trace

_KIND_WIDTH, _TEXT_WIDTH = 14, 60


def render_trace(trace: Trace, *, color: bool, width: int = 100, ascii_only: bool = False) -> str:
    """Every op on a line: its number, kind, thread where there are several, what it did, and where."""
    page = Page(color=color, width=width, ascii_only=ascii_only)
    number = max(len(str(len(trace.ops))), 3) + 2
    kind = page.columns([op.KIND for op in trace.ops], _KIND_WIDTH)
    texts = [op_text(op) for op in trace.ops]
    text_width = page.columns(texts, _TEXT_WIDTH)
    for op, text in zip(trace.ops, texts, strict=True):
        parts: list[Part] = [f"{op.n:>{number}}  ", page.padded(op.KIND.replace("-", " "), kind), "  "]
        if trace.threads > 1:
            parts.append((f"t{op.thread}  ", "dim"))
        if has_source(op.at):
            parts += [page.padded(text, text_width), (f"   {op.at}", "dim")]
        else:
            parts.append(text)
        page.line(*parts)
    threads = f", made by {trace.threads} threads, one at a time" if trace.threads > 1 else ""
    page.line((f"  {count(len(trace.ops), 'op')} under {trace.root}{threads}", "dim"))
    return page.text()
