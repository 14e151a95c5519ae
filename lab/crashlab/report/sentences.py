"""A verdict, a kind and a fault in plain words, for a reader who has never seen a report of this lab.

Nothing here judges: each sentence says again what the numbers of the report say.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from crashlab.kinds import gravity
from crashlab.report.accepted import accepted_lines
from crashlab.report.page import count
from crashlab.report.text import is_one_state, judged

if TYPE_CHECKING:
    from crashlab.report.model import Finding, Report

KIND_WORDS: dict[str, str] = {
    "accepted-damage": "damaged bytes were taken for good ones",
    "silent-reset": "damaged or unreadable files were taken for nothing there",
    "torn": "a value came back that nobody had saved",
    "lost": "something that had been reported as saved was gone, or could not be read",
    "evidence-destroyed": "the files that would show what happened were overwritten",
    "duplicate-effect": "something was done twice in the outside world",
    "missing-effect": "something was marked as done that the outside world never saw",
    "duplicate-entry": "one event was stored twice",
    "hole": "a list with a gap was presented as whole",
    "stale-write": "an owner that had been shut out still wrote",
    "invalid-transcript": "a conversation was continued in a way that a real server refuses",
    "guard-bypassed": "a guard was passed by",
    "diverged": "the resumed run came to another end than the uncrashed one",
    "needless-unknown": "an outcome was reported as unknown that the files could tell",
    "hang": "it did not come to an end",
    "stuck": "it refused where it had to go on",
    "left-process": "a process was left running",
}
"""What went wrong, kind by kind: the second half of a sentence."""

FAULT_WORDS: dict[str, str] = {
    "kill": "the program is killed; what it has written stays",
    "power": "the power fails; what no fsync forced may be lost",
    "error": "a read, a write or an fsync fails",
    "damage": "bytes at rest are not what was written",
    "recovery": "the recovery crashes as well",
    "connection": "a request or a reply is lost or torn",
    "server": "the server dies and comes back",
    "race": "a second owner enters",
}
CONTRACT_WORDS: dict[str, str] = {
    "PC": "prefix continuation",
    "EO": "effect exactly once",
    "FD": "fork determinism",
    "CV": "checkpoint validity",
    "CO": "consume once",
    "RD": "recovery determinism",
}
"""The properties of the Resume Contract by their letters."""

_FAULTS_NAMED = {"kill": "kills", "power": "power losses", "error": "I/O errors", "damage": "damage"}
_FAULTS_NAMED |= {"recovery": "crashes of its recovery", "connection": "broken connections"}
_FAULTS_NAMED |= {"server": "deaths of its server", "race": "second owners"}
_KINDS_TOLD = 3
_WHEN = {"race": "With a second owner", "error": "With this error", "damage": "With this damage"}


def kind_words(kind: str) -> str:
    """What a kind means; a kind that a user's check has named speaks for itself."""
    return KIND_WORDS.get(kind, kind)


def verdict_sentence(report: Report) -> str:
    """The verdict in one sentence, or two.

    >>> from crashlab.report.model import Report, Settings, SubjectInfo
    >>> verdict_sentence(Report(
    ...     verdict="unmeasured", subject=SubjectInfo(name="a", kind="Store"), settings=Settings(faults=())))
    'The lab could not judge this. That is not a pass.'
    """
    if report.verdict == "unmeasured":
        reason = f": {report.unmeasured[0].code}" if report.unmeasured else ""
        return f"The lab could not judge this{reason}. That is not a pass."
    total, names = judged(report), _faults_named(report)
    if report.verdict == "consistent":
        if is_one_state(report):
            return "The one crash state that was tried led to what was demanded. Nothing is claimed of the others."
        if report.accepted:
            failed = sum(each.violation for each in report.faults)
            return (
                f"After {failed:,} of {count(total, _state_word(report))} ({names}) it broke a promise, in "
                f"{count(len(report.accepted), 'finding')} that the project has accepted. All others led to what was "
                "demanded. This holds within the bound below, not beyond it."
            )
        tried = f"All {count(total, _state_word(report))} that were tried ({names})"
        return f"{tried} led to what was demanded. This holds within the bound below, not beyond it."
    failed = sum(each.violation for each in report.faults)
    kinds = sorted({finding.kind for finding in report.findings}, key=lambda kind: (gravity(kind), kind))
    told = "; ".join(kind_words(kind) for kind in kinds[:_KINDS_TOLD])
    more = "; and more" if len(kinds) > _KINDS_TOLD else ""
    where = f"After {failed:,} of {count(total, _state_word(report))} ({names})" if failed else "After a crash"
    return f"{where} it broke a promise: {told}{more}."


def _state_word(report: Report) -> str:
    """What was tried: an error, damage or a second owner is no crash."""
    crashed = any(each.judged and each.fault not in _WHEN for each in report.faults)
    return "crash state" if crashed or not any(each.judged for each in report.faults) else "state"


def stood_by(report: Report) -> Report:
    """The report without findings that it does not stand by: where the lab computed something false it accuses nobody.

    A note says that there were some. Accepted findings become notes. Any other report comes back as it is.
    """
    if report.accepted:
        lines = (f"accepted: {line}" for line in accepted_lines(report))
        report = dataclasses.replace(report, notes=(*report.notes, *lines))
    if report.verdict == "violation" or not report.findings:
        return report
    words = f"{count(len(report.findings), 'finding')} not shown: what they were computed from is not to be believed."
    return dataclasses.replace(report, findings=(), notes=(*report.notes, words))


def finding_sentence(finding: Finding) -> str:
    """What went wrong there, in plain words."""
    when = _WHEN.get(finding.fault, "After this crash")
    if finding.fault == "error" and "/power@" in finding.id:
        when = "After this error and a power loss"
    words = kind_words(finding.kind)
    if finding.kind == "diverged" and finding.contract == "RD":
        words = "doing the recovery a second time came to something else"
    return f"{when} {words}."


def _faults_named(report: Report) -> str:
    names = [_FAULTS_NAMED.get(each.fault, each.fault) for each in report.faults if each.judged]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "none"
