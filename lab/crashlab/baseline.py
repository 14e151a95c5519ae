"""Accepted findings: what a project lives with for now, each with the reason, so that only new ones fail.

The file ``crashlab-baseline.toml`` lies beside ``crashlab.toml``::

    [[accepted]]
    subject = "agent"
    fault = "kill"
    kind = "duplicate-effect"
    at = "agent.py:send_mail"
    place = "turn5.tool2.effect+"
    reason = "the mail has no key yet, see the plan for May"

An entry knows its finding by the subject, the fault, the kind, the call site as file and function, and the
place; never by an id or a line number, which move with the code. So an entry hides one kind only: a graver
one at the same place is a new finding. Two findings that agree in all of these are one entry. Nothing is
hidden from the report: an accepted finding is shown as one, and an entry that no finding meets any more is told.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashlab import context
from crashlab.errors import LabError, UsageError
from crashlab.faults import BUILT
from crashlab.report.model import Acceptance
from crashlab.toml_file import known_keys, parsed, quoted, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashlab.report.model import Finding, Report
    from crashlab.subject import Budget

FILE = "crashlab-baseline.toml"
_KEYS = ("subject", "fault", "kind", "at", "place")
_HEAD = """\
# Findings that this project lives with for now, each with a reason. New ones fail.
# Written by: crashlab check --accept REASON. An entry that no finding meets any more is told; remove it then.
"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One accepted finding: all fields but ``reason`` must be those of a finding."""

    subject: str
    fault: str
    kind: str
    at: str
    place: str
    reason: str

    @property
    def key(self) -> tuple[str, ...]:
        """What a finding is known by."""
        return tuple(getattr(self, name) for name in _KEYS)

    @staticmethod
    def of(finding: Finding, subject: str, reason: str) -> Entry:
        """The entry that accepts this finding."""
        place = re.sub(r"@\d+", "@", finding.place)  # an offset moves with the size of the value
        at = call_site(finding)
        return Entry(subject=subject, fault=finding.fault, kind=finding.kind, at=at, place=place, reason=reason)

    def text(self) -> str:
        """The entry as TOML."""
        lines = [f"{name} = {quoted(getattr(self, name))}" for name in (*_KEYS, "reason")]
        return "\n".join(["[[accepted]]", *lines, ""])


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The entries of ``file``. With ``accept``, a reason, every finding of the check is accepted too."""

    file: Path
    entries: tuple[Entry, ...] = ()
    accept: str = ""

    @staticmethod
    def read(file: Path, *, accept: str | None = None, given: bool = True) -> Baseline:
        """What ``file`` holds; nothing where it is not there, unless it was ``given`` by name and nothing is accepted.

        Raises UsageError for a file that means nothing, and for a reason that is none.
        """
        if accept is not None and not accept.strip():
            text = "to accept findings takes a reason that others understand: --accept 'REASON'"
            raise UsageError(text)
        if not file.exists() and (accept is not None or not given):
            return Baseline(file=file, accept=accept or "")
        whole = parsed(file, option="--baseline")
        try:
            entries = _entries(whole)
        except UsageError as error:
            text = f"{os.path.relpath(file)}: {error}"
            raise UsageError(text) from error
        return Baseline(file=file, entries=entries, accept=accept or "")

    def concerns(self, subject: str) -> bool:
        """Whether findings of ``subject`` are accepted: then none may hide behind another."""
        return bool(self.accept) or any(each.subject == subject for each in self.entries)

    def budget(self, budget: Budget, subject: str) -> Budget:
        """The budget for ``subject``: where findings are accepted, no state may be left out because others failed.

        Among those left out could be a graver one, which is not accepted.
        """
        if self.concerns(subject):
            return dataclasses.replace(budget, violations=max(budget.violations, budget.states))
        return budget

    def applied(self, report: Report, *, whole: bool) -> Report:
        """``report`` with the accepted findings apart, and with its verdict on the others.

        ``whole`` is whether all states were tried: only then can an entry be out of date.
        """
        if report.verdict == "unmeasured" and report.findings:
            return report  # the recording is not to be believed, so neither are its findings
        reasons = {each.key: each.reason for each in self.entries}
        accepted, others, met = [], [], set()
        for finding in report.findings:
            key = Entry.of(finding, report.subject.name, "").key
            reason = reasons.get(key) or self.accept
            met.add(key)
            if reason:
                accepted.append(Acceptance(finding=finding, reason=reason))
            else:
                others.append(finding)
        verdict = report.verdict
        if verdict == "violation" and not others:
            verdict = "unmeasured" if report.unmeasured else "consistent"
        notes = (*report.notes, *(self._stale(report, met) if whole and not report.unmeasured else ()))
        return dataclasses.replace(
            report, verdict=verdict, findings=tuple(others), accepted=tuple(accepted), notes=notes
        )

    def _stale(self, report: Report, met: set[tuple[str, ...]]) -> list[str]:
        asked = {each.fault for each in report.faults}
        return [
            f"out of date? No finding of this check is {each.kind} by {each.fault} at "
            f"{each.place or each.at or 'that place'}. If a check as the one that accepted it, with the same faults, "
            f"profiles and budget, finds none either, remove its entry from {os.path.relpath(self.file)}."
            for each in self.entries
            if each.subject == report.subject.name and each.fault in asked and each.key not in met
        ]

    def keep(self, report: Report) -> int:
        """Write the accepted findings of ``report`` that the file does not have yet; returns how many.

        What stands in the file stays as it is, comments too. The file is the old one or the new one, never a mix,
        and of two processes that write at once, as workers of a test run do, none loses its entries.
        Raises UsageError where it may not be written.
        """
        new = [Entry.of(each.finding, report.subject.name, each.reason) for each in report.accepted]
        with _alone_in(self.file.parent):
            there = self.file.exists()
            known = {each.key for each in (Baseline.read(self.file).entries if there else ())}
            unknown = list({each.key: each for each in new if each.key not in known}.values())
            if unknown:
                text = self.file.read_text(encoding="utf-8") if there else _HEAD
                _replace(self.file, "\n".join([text.rstrip("\n"), "", *(each.text() for each in unknown)]))
        return len(unknown)


def _entries(whole: dict[str, Any]) -> tuple[Entry, ...]:
    known_keys("", whole, ("accepted",))
    rows = whole.get("accepted", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        text = "accepted is no list of tables; write each entry under [[accepted]]"
        raise UsageError(text)
    entries = []
    for number, row in enumerate(rows, start=1):
        place = f"accepted[{number}]"
        known_keys(place, row, (*_KEYS, "reason"))
        for name in (*_KEYS, "reason"):
            value = row.get(name)
            if not isinstance(value, str) or (not value.strip() and name not in ("at", "place")):
                text = f"{place}.{name} is {value!r}; expected text" + (
                    ": say why this is accepted" if name == "reason" else ", as crashlab check --accept writes it"
                )
                raise UsageError(text)
        if row["fault"] not in BUILT:  # no check would ever ask for it, so none would tell that nothing meets it
            wrong(f"{place}.fault", row["fault"], f"one of {', '.join(BUILT)}")
        entries.append(Entry(**row))
    return tuple(entries)


# --- call sites ------------------------------------------------------------------------------------


def call_site(finding: Finding) -> str:
    """Where the program was, as ``file.py:function``: at the op that was lost or cut, else the last one told.

    ``""`` where no op has a line, as of a program that is watched from outside.
    """
    told = [op for op in finding.ops if op.at]
    noted = [op for op in told if op.note]
    if not told:
        return ""
    return site_of((noted or told)[-1].at)


def site_of(at: str) -> str:
    """The call site of a line: ``store.py:save`` of ``store.py:12``; the file alone where no function is found."""
    file, _, line = at.rpartition(":")
    inside = _functions(os.path.abspath(context.placed(file)))
    name = next((name for first, last, name in inside if first <= int(line) <= last), "")
    return f"{file}:{name}" if name else file


@cache
def _functions(file: str) -> Sequence[tuple[int, int, str]]:
    """First line, last line and qualified name of each function of ``file``, the innermost first."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):  # it is elsewhere, or no longer what ran: the file alone has to do
        return ()
    found: list[tuple[int, int, str]] = []
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}".lstrip(".")
                if not isinstance(child, ast.ClassDef):
                    found.append((child.lineno, child.end_lineno or child.lineno, name))
            waiting.append((child, name))
    return sorted(found, key=lambda each: each[1] - each[0])


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes out that accept findings in this folder. Raises UsageError where there is no such folder."""
    import fcntl  # noqa: PLC0415 - Windows has none, and a check must come to where it says so

    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise _refused(folder, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # and with it the lock


def _replace(file: Path, text: str) -> None:
    file = Path(os.path.realpath(file))  # where it is a link, what it leads to is shared, and the link stays
    partial = file.with_name(f"~{file.name}-{os.getpid()}")
    try:
        with open(partial, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())  # before the rename: the name must never reach the disk without the bytes
        os.replace(partial, file)
        directory = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise _refused(file, error) from error


def _refused(path: Path, error: OSError) -> UsageError | LabError:
    text = f"cannot write {os.fspath(path)!r}: {error.strerror}; name another file: --baseline FILE"
    return (UsageError if isinstance(error, PermissionError | FileNotFoundError) else LabError)(text)
