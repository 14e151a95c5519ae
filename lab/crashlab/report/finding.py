"""One finding as a person reads it: what ran, where it died, what was left, what recovery did, why.

Long lists are cut to what explains the finding; the run folder holds the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from crashlab.report.page import LABEL_WIDTH, Page, count
from crashlab.subject import PROGRAMS
from crashlab.values import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab.report.model import DiskLine, Finding, Observed, OpLine, SubjectInfo
    from crashlab.report.page import Part

SHAPES: dict[str, str] = {
    "Store": "Store(save, load)",
    "Log": "Log(append, load)",
    "Subject": "Subject(run)",
    "Commands": "Commands",
}
_OPS_AT_MOST, _OPS_BEFORE_A_NOTE = 24, 2
_DISK_AT_MOST, _EFFECTS_AT_MOST, _RIGHT_EFFECTS_AT_MOST, _SAME_AT_MOST, _OUTPUT_LINES = 10, 8, 3, 6, 6
_VALUE_CHARACTERS = 120
_NOTE_COLUMN, _NARROW = 50, 72
_AGAIN = {"second": ", done again,", "third": ", after one more save,", "more": ", after one more save,"}
_UNKNOWN = "recovery reported unknown"
_WHEN = ("before the crash", "recovery that died", "recovery", _UNKNOWN, "first owner", "second owner")
_OWNERS = {"first-owner": "the first owner", "second-owner": "the second owner"}
_TRACEBACK = "Traceback (most recent call last):"
CONFIRMED = {"real-kill": "a real kill gave the same state", "real-disk": "a real disk gave the same state"}


def draw_finding(page: Page, finding: Finding, subject: SubjectInfo) -> None:
    """Add the whole finding to the page."""
    _draw_headline(page, finding)
    page.blank()
    origin = subject.name if "::" in subject.name else subject.source or subject.name  # a test is known by its id
    about = [origin, SHAPES.get(subject.kind, subject.kind), finding.contract, finding.place]
    page.line("  ", ("   ".join(part for part in about if part), "dim"))
    page.blank()
    if finding.program:
        for line in finding.program:
            page.whole(line, first=("    ",), role="strong")
        page.blank()
    _draw_ops(page, finding)
    _draw_disk(page, finding)
    _draw_recovery(page, finding, subject)
    page.blank()
    if finding.why:
        page.labelled("why", page.safe(finding.why))  # a line break in a file name must not end the line
    if finding.advice:
        page.labelled("advice", page.safe(" ".join(finding.advice)))
    _draw_identity(page, finding)


def _draw_headline(page: Page, finding: Finding) -> None:
    """One line that is complete by itself; a summary too long for it is told in full below."""
    lead, kind, state = f"{finding.verdict.upper()} ", f"{finding.kind}: ", f" [{finding.id}]"
    taken = page.columns([lead + kind], page.width // 2) + page.columns([state], page.width // 2)
    summary = page.fit(finding.summary, max(page.width - taken, page.width // 4))
    page.line((lead, "violation"), (kind + summary, "strong"), (state, "strong"))
    if summary != page.safe(finding.summary) and not _told_by_recovery(finding, len(summary)):
        page.blank()
        page.paragraph(finding.summary)


def _told_by_recovery(finding: Finding, kept: int) -> bool:
    """Whether the summary was cut inside the error at its end, which the line of the recovery has whole."""
    error = finding.observed.error
    return bool(error) and finding.summary.endswith(error) and kept > len(finding.summary) - len(error)


# --- what ran ------------------------------------------------------------------------------------


def _draw_ops(page: Page, finding: Finding) -> None:
    kept = _telling(finding.ops)
    number = max((len(str(op.n)) for op in kept), default=1) + 4
    kind = page.columns([_words(op.op) for op in kept], 14)
    threads = len({op.thread for op in kept}) > 1
    previous, run = None, 0
    for op, left_out in zip(kept, _left_out(finding.ops, kept), strict=True):
        if op.run != run:
            _draw_crashes(page, finding.crashes[run : op.run], number)
            previous, run = None, op.run
        if left_out or (previous is not None and op.n > previous + 1) or (previous is None and run == 0 and op.n > 1):
            page.line(" " * number, ("…", "dim"))
        previous = op.n
        parts: list[Part] = [f"{op.n:>{number}}  ", (page.padded(_words(op.op), kind), ""), "  "]
        if threads:
            parts.append((f"t{op.thread}  ", "dim"))
        _draw_op(page, parts, op, note_of(finding, op))
    _draw_crashes(page, (*finding.crashes[run:], *([finding.fault_line] if finding.fault_line else [])), number)
    page.blank()


def _left_out(ops: Sequence[OpLine], kept: Sequence[OpLine]) -> list[bool]:
    """For each op that is kept, whether some before it are not: a list that is cut must not look whole."""
    at = [next(n for n, op in enumerate(ops) if op is each) for each in kept]
    return [here > before + 1 for before, here in zip([-1, *at], at, strict=False)]


def _draw_crashes(page: Page, lines: Sequence[str], number: int) -> None:
    for line in lines:
        page.line(" " * (number + 2), (f"---------- {line} ----------", "fault"))


def _telling(ops: Sequence[OpLine]) -> list[OpLine]:
    """The ops worth showing: all of a short list, else the last ones and those with a note, led by a few."""
    if len(ops) <= _OPS_AT_MOST:
        return list(ops)
    kept = set(range(len(ops) - _OPS_AT_MOST // 2, len(ops)))
    noted = [position for position, op in enumerate(ops) if op.note or op.remark]
    for position in noted[-_OPS_AT_MOST // 4 :]:
        kept |= set(range(max(position - _OPS_BEFORE_A_NOTE, 0), position + 1))
    return [ops[position] for position in sorted(kept)]


def _draw_op(page: Page, parts: list[Part], op: OpLine, told: tuple[str, str]) -> None:
    text, note = told
    if not note:
        page.line(*parts, text, (f"   {op.at}" if has_source(op.at) else "", "dim"))
        return
    note = f"<-- {note}"
    if page.width < _NARROW:  # both do not fit, and what was lost is what it is about
        page.line(*parts, (text, "strong"))
        page.paragraph(note, indent=8, role="note")
        return
    taken = sum(len(part if isinstance(part, str) else part[0]) for part in parts)
    room = max(page.width - taken - len(note) - 1, _NOTE_COLUMN - taken)
    fitted = page.padded(text, max(_NOTE_COLUMN - taken, page.columns([text], room)))
    page.line(*parts, (fitted, "strong"), " ", (note, "note"))


def has_source(at: str) -> bool:
    """Whether ``at`` names a place in a file; ``<string>:1`` helps nobody."""
    return bool(at) and not at.startswith("<")


def _words(kind: str) -> str:
    return kind.replace("-", " ")


def note_of(finding: Finding, op: OpLine) -> tuple[str, str]:
    """The text of an op, and the remark that stands behind it."""
    if op.remark:
        return op.text, op.remark
    if op.note == "cut" and (match := re.search(r"\+(\d+)$", finding.id)):
        return op.text, f"cut after {count(int(match[1]), 'byte')}"
    return op.text, {"lost": "never reached the disk"}.get(op.note or "", "")


# --- what was left, and what recovery did ----------------------------------------------------------


def _draw_disk(page: Page, finding: Finding) -> None:
    width = page.columns([line.path for line in finding.disk], min(44, page.width // 3))
    label = "on disk"
    for line in finding.disk[:_DISK_AT_MOST]:
        about = _disk_words(line)
        digest = f"   {line.digest[:8]}" if line.digest else ""
        name: Part = page.padded(line.path, width)
        page.line("  ", (label.ljust(LABEL_WIDTH), "label"), name, "  ", about, (digest, "dim"))
        label = ""
    hidden = len(finding.disk) - _DISK_AT_MOST
    if hidden > 0:
        page.labelled("", f"… {hidden} more, all under look", role="dim")
    if not finding.disk:
        page.labelled("on disk", "nothing")


def _disk_words(line: DiskLine) -> str:
    size = count(line.bytes, "byte") if line.type == "file" else line.type
    joint = "; " if " has " in line.state else ", "
    return f"{size}{joint}{line.state}" if line.state else size


def _draw_recovery(page: Page, finding: Finding, subject: SubjectInfo) -> None:
    page.labelled("recovery", observed_words(finding.observed, subject.kind))
    for name, output in (("stdout", finding.observed.stdout), ("stderr", without_traceback(finding.observed))):
        lines = output.rstrip().splitlines()
        for line in lines[-_OUTPUT_LINES:]:
            page.line("  ", (name.ljust(LABEL_WIDTH), "label"), (line, "dim"))
            name = ""  # noqa: PLW2901 - the word stands before the first line only
    for position, line in enumerate(finding.expected):
        page.labelled("" if position else "expected", line)
    _draw_effects(page, finding)
    if finding.profiles:
        plain = not any("[" in each or each == "posix" for each in finding.profiles)
        page.labelled("possible", ", ".join(finding.profiles) + (" with default options" if plain else ""))


def without_traceback(observed: Observed) -> str:
    """What recovery told on stderr before it raised; the error itself has a line already."""
    return observed.stderr.partition(_TRACEBACK)[0] if observed.how == "raised" else observed.stderr


def observed_words(observed: Observed, kind: str) -> str:
    """What recovery did, as a sentence: ``load() raised JSONDecodeError: …``."""
    who = ("resume" if kind in PROGRAMS else "load()") + _AGAIN.get(observed.step, "")
    if observed.step == "live":  # the process that met the error
        who = "the run" if kind in PROGRAMS else "the call"
    who = _OWNERS.get(observed.step, who)
    error = f": {observed.error}" if observed.error else ""
    match observed.how:
        case "returned":
            value = (
                ""
                if observed.value is None and kind in PROGRAMS
                else f" {shown(observed.value, limit=_VALUE_CHARACTERS)}"
            )
            joint = error.replace(": then ", "; then ", 1) if error.startswith(": then ") else error
            return f"{who} returned{value}{joint}"
        case "raised":
            return f"{who} raised {observed.error}"
        case "exit":
            return f"{who} ended the process{error}"
        case "signal":
            return f"{who} was killed by a signal{error}"
        case "hang":
            return f"{who} did not end{error}"
    return f"{who} {observed.how}{error}"


def _draw_effects(page: Page, finding: Finding) -> None:
    told, about_effects = effects_told(finding), finding.kind.endswith(("-effect", "-unknown"))
    if isinstance(told, str):
        if told:
            page.labelled("effects", told, role="dim")
        return
    wrong, right = ([each for each in told if (each[1] == "dim") is calm] for calm in (False, True))
    shown_lines = [*wrong[:_EFFECTS_AT_MOST], *right[:_RIGHT_EFFECTS_AT_MOST]]
    room = page.width - LABEL_WIDTH - 4 - page.columns([words for _, _, words in shown_lines], page.width * 3 // 5)
    width = page.columns([name for name, _, _ in shown_lines], room)
    label = "effects"
    for name, role, words in shown_lines:
        serious = "violation" if role == "note" and about_effects else role
        page.line("  ", (label.ljust(LABEL_WIDTH), "label"), page.padded(name, width), "  ", (words, serious))
        label = ""
    if len(told) > len(shown_lines):
        page.labelled("", f"… {len(told) - len(shown_lines)} more", role="dim")


def effects_told(finding: Finding) -> str | list[tuple[str, str, str]]:
    """Each effect, ``note`` where its number is wrong, else ``dim``, and in words how often it was done and when.

    One sentence instead where recovery ended before it could have done the rest of them.
    """
    expected = Counter(finding.effects.expected)
    observed: dict[str, list[str]] = {name: [] for name in expected}
    for text in finding.effects.observed:
        when = next((each for each in _WHEN if text.startswith(each + ": ")), "")
        observed.setdefault(text.removeprefix(when + ": ") if when else text, []).append(when)
    if finding.observed.how != "returned" and not finding.kind.endswith(("-effect", "-unknown")):
        done = sum(when != _UNKNOWN for whens in observed.values() for when in whens)
        return f"{done} of {expected.total()} done so far" if observed else ""
    return [_effect_words(name, whens, expected[name]) for name, whens in observed.items()]


def _effect_words(name: str, whens: list[str], expected: int) -> tuple[str, str, str]:
    """An effect, its role in colours, and how often it was done, when, and how often was right."""
    done = [when for when in whens if when != _UNKNOWN]
    when = ", ".join(dict.fromkeys(each for each in done if each))
    wrong = len(done) != expected
    words = [_times(len(done))]
    words += ["reported unknown"] if _UNKNOWN in whens else []
    words += [f"uncrashed {_times(expected)}"] if wrong else []
    return name, "note" if wrong else "dim", ", ".join(words) + (f" ({when})" if when else "")


def _times(number: int) -> str:
    return {0: "never", 1: "once"}.get(number, f"{number} times")


# --- how to see it again ---------------------------------------------------------------------------


def _draw_identity(page: Page, finding: Finding) -> None:
    if finding.same_count:
        some = ", ".join(finding.same[:_SAME_AT_MOST])
        more = ", …" if finding.same_count > len(finding.same[:_SAME_AT_MOST]) else ""
        page.labelled("also", f"{count(finding.same_count, 'more state')}: {some}{more}")
    if finding.confirmed:
        page.labelled("confirmed", CONFIRMED.get(finding.confirmed, finding.confirmed))
    if finding.replay:
        page.whole(finding.replay, first=("  ", ("replay".ljust(LABEL_WIDTH), "label")), role="command")
    if finding.directory:
        page.whole(finding.directory, first=("  ", ("look".ljust(LABEL_WIDTH), "label")))
    if finding.digest:
        page.labelled("state", f"{finding.fault}, digest {finding.digest}", role="dim")
