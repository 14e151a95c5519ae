"""One finding as what its HTML shows: lists ready to be drawn, each with what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab.report.bytes_view import byte_lines
from crashlab.report.finding import (
    CONFIRMED,
    SHAPES,
    effects_told,
    has_source,
    note_of,
    observed_words,
    without_traceback,
)
from crashlab.report.legal import legal_words
from crashlab.report.page import count
from crashlab.report.sentences import CONTRACT_WORDS, FAULT_WORDS, finding_sentence
from crashlab.report.tables import LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab.report.model import DiskLine, FileChange, Finding, OpLine, SubjectInfo

_OPS_AT_MOST, _DISK_AT_MOST, _EFFECTS_AT_MOST, _OUTPUT_LINES, _SAME_AT_MOST = 60, 12, 16, 20, 12
_ALIVE = ("live", "first-owner", "second-owner")
"""Steps of processes that no crash had ended."""
_HEADS = {
    "": ("What ran, up to the crash", "What the crash left on disk", "Why a crash may leave this"),
    "error": ("What ran, with the error", "What lay on disk then", "Why this can happen"),
    "damage": ("What ran, before the damage", "What lay on disk, with the damage", "Why this can happen"),
    "race": ("What both owners did", "What both left on disk", "Why this can happen"),
}
"""What stands over the ops, over the files, and over the rules that allow them, by fault."""
_CHANGE_WORDS = {
    "same": "as the program saw it",
    "gone": "its name is gone",
    "back": "a name that the program had removed is there",
}


def finding_view(finding: Finding, subject: SubjectInfo, *, key: str, number: int, opened: bool) -> dict[str, Any]:
    """Everything that the template asks for. ``key`` is its anchor on the page, ``number`` its place in the report."""
    ops = list(_ops(finding))
    shown_ops = sum("op" in row for row in ops)
    effects, hidden_effects = _effects(finding)
    files, hidden_files = _files(finding)
    return {
        "finding": finding,
        "key": key,
        "number": number,
        "open": opened,
        "heads": _HEADS.get(finding.fault, _HEADS[""]),
        "recovered": "What came of it" if finding.observed.step in _ALIVE else "What recovery did",
        "letter": LETTERS[finding.verdict].upper(),
        "sentence": finding_sentence(finding),
        "about": [each for each in _about(finding, subject) if each[1]],
        "ops": ops,
        "hidden_ops": len(finding.ops) - shown_ops,
        "threads": len({op.thread for op in finding.ops}) > 1,
        "files": files,
        "hidden_files": hidden_files,
        "compared": bool(finding.changes),
        "diffs": [_diff(each, finding.directory) for each in finding.changes if each.parts],
        "observed": _sentence(observed_words(finding.observed, subject.kind)),
        "outputs": list(_outputs(finding)),
        "effects": effects,
        "hidden_effects": hidden_effects,
        "legal": legal_words(finding),
        "same_lead": f"{count(finding.same_count, 'more state')} of the same:",
        "same": _same(finding),
    }


def _sentence(words: str) -> str:
    return words if words.endswith((".", "…")) else f"{words}."


def _about(finding: Finding, subject: SubjectInfo) -> Iterator[tuple[str, str]]:
    yield "subject", "   ".join(each for each in (subject.source, SHAPES.get(subject.kind, subject.kind)) if each)
    yield "place", finding.place
    yield "fault", f"{finding.fault}: {FAULT_WORDS[finding.fault]}" if finding.fault in FAULT_WORDS else finding.fault
    plain = not any("[" in each or each == "posix" for each in finding.profiles)
    yield "possible on", ", ".join(finding.profiles) + (" with default options" if plain and finding.profiles else "")
    yield "contract", f"{finding.contract}, {CONTRACT_WORDS.get(finding.contract, '')}" if finding.contract else ""
    yield "confirmed", CONFIRMED.get(finding.confirmed or "", finding.confirmed or "")
    yield "digest", finding.digest
    yield "look", finding.directory


# --- ops -----------------------------------------------------------------------------------------


def _ops(finding: Finding) -> Iterator[dict[str, Any]]:
    """A row per op, gap and crash, in order: the last ops of a long list."""
    ops = finding.ops[-_OPS_AT_MOST:]
    previous, run = 0, ops[0].run if ops else 0
    if len(ops) < len(finding.ops) or (ops and ops[0].n > 1 and run == 0):
        yield _row(gap=True)
    for op in ops:
        if op.run != run:
            yield from (_row(line=line) for line in finding.crashes[run : op.run])
            previous, run = 0, op.run
        if previous and op.n > previous + 1:
            yield _row(gap=True)
        previous = op.n
        yield _row(op=op, note=note_of(finding, op)[1], at=op.at if has_source(op.at) else "")
    yield from (_row(line=line) for line in finding.crashes[run:])
    if finding.fault_line:
        yield _row(line=finding.fault_line)


def _row(
    *, op: OpLine | None = None, line: str = "", gap: bool = False, note: str = "", at: str = ""
) -> dict[str, Any]:
    row: dict[str, Any] = {"line": line, "gap": gap, "note": note, "at": at}
    return row if op is None else {**row, "op": op}


# --- files ---------------------------------------------------------------------------------------


def _files(finding: Finding) -> tuple[list[dict[str, Any]], int]:
    """A row per path: those compared with what the program saw, then further ones; and how many are left out."""
    left = {line.path: line for line in finding.disk}
    rows, hidden = [], 0
    for change in finding.changes:
        if change.change == "more":
            continue
        rows.append(_changed_file(change, left.pop(change.path, None)))
    rest = list(left.values())
    room = max(_DISK_AT_MOST - len(rows), 0)
    rows += [_other_file(line, compared=bool(finding.changes)) for line in rest[:room]]
    hidden += len(rest) - len(rest[:room])
    return rows, hidden


def _changed_file(change: FileChange, line: DiskLine | None) -> dict[str, Any]:
    words = [_CHANGE_WORDS.get(change.change) or f"{count(change.differs, 'byte')} differ"]
    if change.change == "changed" and not change.differs:
        words = ["its mode, its owner or its target differs" if change.type != "directory" else "changed"]
    if line is not None and line.state:
        words.append(line.state)
    return {
        "path": change.path,
        "before": _size(change.before, change.type),
        "after": _size(change.after, change.type),
        "words": "; ".join(words),
        "digest": line.digest[:8] if line is not None else "",
        "changed": change.change != "same",
    }


def _other_file(line: DiskLine, *, compared: bool) -> dict[str, Any]:
    return {
        "path": line.path,
        "before": "not compared" if compared else "",
        "after": _size(line.bytes, line.type),
        "words": line.state,
        "digest": line.digest[:8],
        "changed": False,
    }


def _size(size: int | None, kind: str) -> str:
    if size is None:
        return "not there"
    return count(size, "byte") if kind == "file" else kind


def _diff(change: FileChange, directory: str) -> dict[str, Any]:
    """The bytes of one file: its lines with None between stretches, and a caption that says what is cut off."""
    lines: list[Any] = []
    for part in change.parts:
        own = byte_lines(part)
        if lines and own and own[0].at > lines[-1].at + 16:
            lines.append(None)
        lines += own
    told = sum(_differing(part.before, part.after) for part in change.parts)
    words = {"back": "where the program saw no such name", "gone": "gone with the name"}.get(change.change, "differ")
    caption = f"{change.path}: {count(change.differs, 'byte')} {words}"
    if change.differs > told:
        where = f"; the file as it was left is below {directory}" if directory else ""
        caption += f", the first {told:,} of them are shown{where}"
    return {"path": change.path, "caption": caption, "lines": lines}


def _differing(before: str, after: str) -> int:
    old, new = bytes.fromhex(before), bytes.fromhex(after)
    return sum(old[n : n + 1] != new[n : n + 1] for n in range(max(len(old), len(new))))


# --- what recovery did -----------------------------------------------------------------------------


def _outputs(finding: Finding) -> Iterator[tuple[str, list[str], int]]:
    """What recovery printed: the last lines of each stream, and how many stand before them."""
    for name, text in (("stdout", finding.observed.stdout), ("stderr", without_traceback(finding.observed))):
        lines = text.rstrip().splitlines()
        if lines:
            yield name, lines[-_OUTPUT_LINES:], len(lines[:-_OUTPUT_LINES])


def _effects(finding: Finding) -> tuple[str | list[tuple[str, bool, str]], int]:
    told = effects_told(finding)
    if isinstance(told, str):
        return told, 0
    rows = sorted(((name, role == "dim", words) for name, role, words in told), key=lambda row: row[1])
    return rows[:_EFFECTS_AT_MOST], len(rows[_EFFECTS_AT_MOST:])


def _same(finding: Finding) -> str:
    if not finding.same_count:
        return ""
    some = ", ".join(finding.same[:_SAME_AT_MOST])
    return some + (", …" if finding.same_count > len(finding.same[:_SAME_AT_MOST]) else "")
