"""Where two uncrashed runs differ, if they do: told from the first place on at which they do.

Compared are the ends and the effects. Where the end is the files themselves, the first file that differs is named, with
the first byte that does; of texts only what surrounds the first difference is shown.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.honesty import identity
from crashlab.report.model import UnmeasuredReason
from crashlab.subject import Commands
from crashlab.tree import File, describe
from crashlab.values import canonical, shown

if TYPE_CHECKING:
    from crashlab.observation import RawRecording

_SHOWN_BEFORE, _SHOWN_CHARACTERS = 12, 36
_FILES = "$files"


def difference(first: RawRecording, second: RawRecording) -> str:
    """How two uncrashed runs differ in end or effects; "" where they agree."""
    ends = [(each.value or {}).get("end") for each in (first, second)]
    if canonical(ends[0]) != canonical(ends[1]):
        if all(isinstance(end, dict) and _FILES in end for end in ends):
            return _first_file(first, second)
        return _first_difference(ends[0], ends[1])
    effects = [Counter(identity(op) for op in each.ops if isinstance(op, t.Effect)) for each in (first, second)]
    if effects[0] != effects[1]:
        odd = next(iter((effects[0] - effects[1]) + (effects[1] - effects[0])))
        return f"effect {odd[0]} {odd[1]}"
    return ""


def runs_differ(told: str, recording: RawRecording, kind: str) -> UnmeasuredReason:
    """The reason against a pass, with what to do about it for a subject of this kind."""
    are_files = _FILES in str((recording.value or {}).get("end"))
    if kind == Commands.kind:
        what = "the files" if are_files else "the rest"
        advice = (
            f"If that is allowed, compare something else than {what}: --view 'COMMAND' (view=…) prints what counts, "
            "--check 'COMMAND' (check=…) judges the end. Else give the program fixed seeds, times and names."
        )
    elif are_files:
        advice = "If that is allowed, let run return what counts instead of None, or give check=…."
    else:
        advice = 'If that is allowed, compare the rest: view=lambda end: {"n": end["n"]}.'
    return UnmeasuredReason(code="runs-differ", detail=f"two uncrashed runs ended differently: {told}.", next=advice)


def _first_file(first: RawRecording, second: RawRecording) -> str:
    """The first path that differs in the directory of the program, and how."""
    trees = [
        {path.removeprefix("dir/"): node for path, _, node in each.last.walk() if path.startswith("dir/")}
        for each in (first, second)
    ]
    for path in sorted(trees[0].keys() | trees[1].keys()):
        one, other = trees[0].get(path), trees[1].get(path)
        if one is None or other is None:
            return f"{path} is there after the {'second' if one is None else 'first'} run only"
        if describe(one) == describe(other):
            continue
        if isinstance(one, File) and isinstance(other, File) and one.content.digest != other.content.digest:
            return f"{path} differs {_first_byte(one.content.read(), other.content.read())}"
        return f"{path} is {describe(one)} / {describe(other)}"
    return "the files of their directories"


def _first_byte(one: bytes, other: bytes) -> str:
    at = _common(one, other)
    start = max(0, at - _SHOWN_BEFORE)
    parts = [repr(data[start : start + _SHOWN_CHARACTERS])[1:] for data in (one, other)]
    sizes = "" if len(one) == len(other) else f" ({len(one):,} / {len(other):,} bytes)"
    return f"from byte {at:,} on{sizes}: {parts[0]} / {parts[1]}"


def _common(one: Any, other: Any) -> int:
    """How many items two sequences have in common at their beginning."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _first_difference(first: Any, second: Any, where: str = "") -> str:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            if canonical(first.get(key)) != canonical(second.get(key)):
                return _first_difference(first.get(key), second.get(key), f"{where}.{key}" if where else key)
    told = f"{where} " if where else ""
    one, other = (shown(each, limit=1 << 20) for each in (first, second))
    start = max(0, _common(one, other) - _SHOWN_BEFORE) if max(len(one), len(other)) > _SHOWN_CHARACTERS else 0
    return f"{told}{_piece(one, start)} / {_piece(other, start)}"


def _piece(text: str, start: int) -> str:
    end = start + _SHOWN_CHARACTERS
    return f"{'…' * (start > 0)}{text[start:end]}{'…' * (end < len(text))}"
