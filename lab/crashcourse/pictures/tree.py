"""Two directory trees side by side: what the program saw before the crash, and what lies there afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.pictures.svg import (
    BAD,
    DIM,
    DOUBT,
    GOOD,
    MARGIN,
    RULE,
    TOP,
    WIDTH,
    Board,
    Picture,
    cut,
    letters_in,
    plain,
    steady,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crashlab import Finding

_ROW = 26
_COLORS = {"same": GOOD, "changed": BAD, "gone": BAD, "new": DOUBT}


def tree(
    title: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    heads: tuple[str, str] = ("before the crash", "after it"),
    notes: Sequence[str] = (),
) -> Picture:
    """Each path with a word on it, such as its size, before and after; below them the ``notes``.

    >>> print(tree("A cut", {"a.json": "9 bytes"}, {"a.json": "0 bytes"}, notes=["load() raised Damaged"]))
    A cut
    <BLANKLINE>
              before the crash   after it
      a.json  9 bytes            0 bytes   changed
    <BLANKLINE>
      load() raised Damaged
    <BLANKLINE>
    """
    rows = [
        (path, before.get(path, "-"), after.get(path, "-"), _change(before.get(path), after.get(path)))
        for path in sorted({*before, *after})
    ]
    board, columns = Board(), (MARGIN, MARGIN + 330, MARGIN + 530, MARGIN + 720)
    for x, head in zip(columns[1:], heads, strict=False):
        board.text(x, TOP, head, color=DIM)
    y: float = TOP + _ROW
    for path, was, now, word in rows:
        board.line(MARGIN, y - 18, WIDTH - MARGIN, y - 18, color=RULE)
        depth = path.rstrip("/").count("/")
        board.text(columns[0] + 14 * depth, y, cut(path.rpartition("/")[2] if depth else path, 40))
        board.text(columns[1], y, cut(was, letters_in(190)), color=DIM)
        board.text(columns[2], y, cut(now, letters_in(180)))
        board.pill(columns[3], y, word, color=_COLORS[word], wide=90)
        y += _ROW
    y += 8 if notes else 0
    for note in notes:
        board.text(MARGIN, y, cut(note, letters_in(WIDTH - 2 * MARGIN)))
        y += 22
    return board.picture(title, _text([("", *heads, ""), *rows], notes), height=y)


def _text(table: Sequence[tuple[str, str, str, str]], notes: Sequence[str]) -> str:
    wide = [max(len(plain(row[at])) for row in table) for at in range(3)]
    lines = [
        "  " + f"{plain(a):{wide[0]}}  {plain(b):{wide[1]}}   {plain(c):{wide[2]}}  {word}".rstrip()
        for a, b, c, word in table
    ]
    return "\n".join([*lines, *([""] if notes else []), *(f"  {plain(note)}" for note in notes)])


def _change(was: str | None, now: str | None) -> str:
    if was == now:
        return "same"
    return "gone" if now is None else "new" if was is None else "changed"


def tree_of(title: str, finding: Finding) -> Picture:
    """What the crash of a finding did to the files that the program saw, and what the recovery made of it."""
    before = {steady(each.path): f"{each.before:,} bytes" for each in finding.changes if each.before is not None}
    after = {steady(each.path): f"{each.after:,} bytes" for each in finding.changes if each.after is not None}
    for line in finding.disk:
        path = steady(line.path)
        if path not in before and path not in after and line.type == "file":
            before[path] = after[path] = f"{line.bytes:,} bytes"
    told = steady(finding.observed.error or finding.observed.how)
    return tree(title, before, after, notes=[f"then recovery: {told}", f"that is: {finding.kind}"])
