"""From the lab's reports to outcomes of cases: what all judges share.

A violation belongs to exactly one case: to the one of its kind where the exercise has one (``once`` for a
duplicate effect), else to the one of the fault under which it came about.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashcourse.result import Outcome, Shown
from crashlab import Budget, explore
from crashlab.errors import UsageError
from crashlab.recover import travel
from crashlab.recover.host import Host
from crashlab.subject import PROGRAMS
from crashlab.values import shown as shown_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from crashcourse.catalog import Exercise
    from crashlab.observation import RawRecording
    from crashlab.report.model import Finding, Report
    from crashlab.subject import AnySubject

PROFILES = "ext4,xfs,btrfs,posix"
QUICK = Budget(subset=3, sample=20, violations=2, real_kills=8, anew=0, time_s=600.0)
"""What a check at the desk and a grading take: every kill, error and race, power losses up to 2^3 variants a cut.

The time is no measure of a submission: it only bounds one that waits for ever. A busy machine must not cut a good one
short, since what was cut short is unmeasured.
"""


EVERY = 4
"""Of damage, errors and races, which the first twin has met whole, the second meets one in so many of what is alike.

It is there for what depends on the values. What does so is drawn by a seed that no submission knows, of each kind of
damage to each file, of each error at each kind of call, of each stretch of the race; kills, power losses and all else
stay whole.
"""
LIMIT_S = 5.0
"""How long one recovery may take, seconds; the run that is recorded six times that. Exercises take milliseconds."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One submission on the bench: the exercise, the copied file, the seed of the twin, and where runs are kept.

    ``doubts`` asks whether the submission does the same when nobody records it (:mod:`crashcourse.unwatched`).
    ``cases`` are those that are wanted, all of them where it is None: a judge may leave the work for the others.
    """

    exercise: Exercise
    file: Path
    seed: int
    out: Path
    budget: Budget = QUICK
    jobs: int = 1
    cases: frozenset[str] | None = None
    doubts: bool = False
    progress: Callable[[str, int, int], None] = field(default=lambda *_: None)

    def wants(self, case: str) -> bool:
        """Whether this case is to be judged."""
        return self.cases is None or case in self.cases

    def faults(self, cases: Mapping[str, str], kinds: Iterable[str] = ()) -> dict[str, str]:
        """Of ``cases``, fault to case id, those that are wanted; all where a case that sees all faults is wanted."""
        every = any(map(self.wants, kinds))
        return {fault: case for fault, case in cases.items() if every or self.wants(case)}

    def explore(self, subject: AnySubject, faults: str, *, by_fault: bool = False, **options: Any) -> Report:
        """The lab's report on ``subject``. Raises UsageError where its uncrashed run already fails.

        ``by_fault``: each fault is a case of its own, and one that is lost may be left where the budget says so.
        """
        budget = self.budget if by_fault else dataclasses.replace(self.budget, lost=None)
        # Beside a first twin that was tried whole the samples of the second are its own: nobody can know them.
        chosen = {"profile": PROFILES, "budget": budget, "seed": self.seed if self.doubts else 0, **options}
        subject = dataclasses.replace(subject, timeout_s=min(subject.timeout_s, LIMIT_S))
        report = explore(subject, faults=faults, out=self.out, jobs=self.jobs, progress=self.progress, **chosen)
        if self.doubts and "only" not in options and report.verdict == "consistent":
            from crashcourse.unwatched import demanded  # noqa: PLC0415 - a check at the desk needs none of it

            return demanded(report, subject)
        return report

    def ended(self, subject: AnySubject) -> Any:
        """The end of one run of ``subject`` without a crash, in a place of its own. Raises UsageError if it fails."""
        recording = self.recorded(subject)
        assert recording.value is not None
        return recording.value["end"]

    def recorded(self, subject: AnySubject) -> RawRecording:
        """One run of ``subject`` without a crash, as the lab saw it. Raises UsageError if it fails."""
        with Host(travel.pack(subject), only_records=True) as host:
            recording = host.record(timeout_s=float(host.description["timeout_s"]))
        if recording.how != "returned" or recording.value is None:
            raise UsageError(recording.error or recording.how)
        return recording


def failed(exercise: Exercise, first: str, message: str) -> list[Outcome]:
    """Nothing could be judged: the uncrashed run fails, which loses its own case and leaves all others unmeasured."""
    rest = "not judged: the run without any crash fails already"
    return [
        Outcome(case=case.id, verdicts={"violation": 1}, message=message)
        if case.id == first
        else Outcome(case=case.id, verdicts={}, message=rest)
        for case in exercise.cases
    ]


def never_whole(report: Report) -> str:
    """Why the run without any crash is wrong, where it is: what was saved did not come back."""
    return next((reason.detail for reason in report.unmeasured if reason.code == "round-trip"), "")


def outcomes(report: Report, cases: Mapping[str, str], *, kinds: Mapping[str, str] | None = None) -> Iterator[Outcome]:
    """One outcome per case of a report. ``cases`` maps faults to case ids, ``kinds`` kinds of violations to them,
    each alone or under one fault: ``duplicate-effect@kill``.

    A case of a kind counts the states of all faults; a case of a fault those of that fault.
    """
    by_kind = dict(kinds or {})
    case_of = {_base(fault): case for fault, case in cases.items()}
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        case = by_kind.get(f"{finding.kind}@{finding.fault}") or by_kind.get(finding.kind) or case_of[finding.fault]
        found.setdefault(case, []).append(finding)
    unsure = "; ".join(f"{reason.code}: {reason.detail}" for reason in report.unmeasured)
    for case in dict.fromkeys([*cases.values(), *by_kind.values()]):
        counted = [count for count in report.faults if case_of[count.fault] == case] or list(report.faults)
        broken = sum(1 + finding.same_count for finding in found.get(case, ()))
        verdicts = Counter[str]()
        for count in counted:
            verdicts.update(
                consistent=count.consistent + count.violation, refused=count.refused, unmeasured=count.unmeasured
            )
        verdicts.update(violation=broken, consistent=-min(broken, verdicts["consistent"]))
        if unsure and not broken:
            verdicts["unmeasured"] += 1
        yield Outcome(
            case=case,
            family=next((fault for fault, name in case_of.items() if name == case), "all"),
            verdicts={name: number for name, number in verdicts.items() if number},
            finding=shown(found[case][0], program=report.subject.kind in PROGRAMS) if case in found else None,
            message=unsure if unsure and not broken else "",
            ms=round(1000 * sum(count.seconds for count in counted)),
        )


def merged(found: Iterable[Outcome]) -> list[Outcome]:
    """Outcomes of several reports, one a case: their states added up, the first finding and message kept."""
    by_case: dict[str, Outcome] = {}
    for each in found:
        before = by_case.setdefault(each.case, each)
        if before is not each:
            by_case[each.case] = dataclasses.replace(
                before,
                verdicts=dict(Counter(before.verdicts) + Counter(each.verdicts)),
                finding=before.finding or each.finding,
                message=before.message or each.message,
                ms=before.ms + each.ms,
            )
    return list(by_case.values())


def _base(fault: str) -> str:
    """The name of a fault that may be asked for in parts: ``error`` of ``error:EIO``."""
    return fault.partition(":")[0]


def shown(finding: Finding, *, program: bool = False) -> Shown:
    """A finding in the words of a message. Of a ``program`` the end is long, and what is wrong about it is short."""
    observed = finding.observed
    found = observed.error or (shown_value(observed.value) if observed.how == "returned" else observed.how)
    if program and observed.how == "returned":
        found = finding.summary
    return Shown(
        kind=finding.kind,
        state=finding.id,
        crash_point=finding.place,
        contract=finding.contract or "",
        expected="; ".join(finding.expected),
        found=found,
        why=finding.why or finding.summary,
        advice=" ".join(finding.advice),
        replay=finding.replay,
    )


def guarded(exercise: Exercise, report: Report, outcome: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes, unless the recorded run did too little to be judged: then none of them is a pass."""
    counts = {"ops": report.trace.ops, "acks": report.trace.acks, "effects": report.trace.effects}
    counts["save_points"] = report.trace.save_points
    missing = [
        f"{counts[name]} {name.replace('_', ' ')}, at least {least} are needed"
        for name, least in exercise.guard.items()
        if counts[name] < least
    ]
    if not missing:
        return list(outcome)
    text = f"the run did too little to be judged: {'; '.join(missing)}"
    return [
        each
        if each.verdicts.get("violation")
        else dataclasses.replace(each, verdicts={**each.verdicts, "unmeasured": 1}, message=text)
        for each in outcome
    ]


def timed(work: Callable[[], Outcome]) -> Outcome:
    """The outcome of ``work``, with the milliseconds that it took."""
    started = time.monotonic()
    outcome = work()
    return dataclasses.replace(outcome, ms=round(1000 * (time.monotonic() - started)))
