"""A check that follows one path: from the values with their crashes to an ordinary report.

A path that passes leaves no run folder: a property test follows hundreds of them. One that does not pass has
its folder, as every check has.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from crashlab.crash.places import Places
from crashlab.errors import Unmeasured, UsageError, Violation
from crashlab.explain import explain
from crashlab.explain_loss import why_lost
from crashlab.faults import FaultRequest
from crashlab.findings import Findings
from crashlab.kept_host import KeptHost, close_kept, give_back, kept_host, take
from crashlab.nested_finding import TWO_NAMES, marks_of, written_through
from crashlab.outcome import Outcome
from crashlab.path_story import program
from crashlab.paths import LIVE, Path
from crashlab.protocols import pattern_at
from crashlab.recover import travel
from crashlab.reference import Recorded
from crashlab.report import model
from crashlab.report.folder import RunFolder
from crashlab.settings import resolve
from crashlab.subject import Crash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from crashlab.crash.states import CrashState
    from crashlab.recover.host import Host
    from crashlab.settings import Asked, Options
    from crashlab.subject import Log, Store

around: list[Callable[[], contextlib.AbstractContextManager[bool]]] = []
"""Entered around each path by a test framework that measures time, and says whether anybody will see the outcome.

Of a failure that nobody sees, since it will be made smaller, neither folder nor text is made.
"""


def explore_path(subject: Store | Log, asked: Asked, name: str) -> model.Report:
    """Follow the path of ``subject`` with processes that are kept for the next one."""
    started = time.monotonic()
    _demand_a_path(asked, subject.stop_after_acks)
    assert subject.values is not None, "a crash stands among them"
    with contextlib.ExitStack() as stack:
        is_shown = all(tuple(stack.enter_context(enter()) for enter in around))
        kept = stack.enter_context(kept_host(packed(subject)))
        path = Path(kept, asked, carried)
        follow(path, subject.values)
        report = report_of(path, name, started, is_kept=is_shown)
    if report.run:
        close_kept()  # the stored run may be replayed, and that needs its place
    return report


def explore_named(host: Host, asked: Asked, name: str) -> model.Report:
    """Follow the path of a subject that is known by its import path only, and so has its values elsewhere."""
    started = time.monotonic()
    _demand_a_path(asked, host.description["stop_after_acks"])
    path = Path(KeptHost(host, ""), asked, lambda numbers: {"chosen": list(numbers)})
    markers = host.description["path"]
    follow(path, [number if crash is None else Crash(**crash) for number, crash in enumerate(markers)])
    return report_of(path, name, started)


class Walk:
    """A path step by step, with the processes in hand until :meth:`end`. ``options`` are those of a check.

    Each step raises Violation or Unmeasured as :func:`crashlab.check` does, and UsageError.
    """

    def __init__(self, subject: Store | Log, name: str, options: Options) -> None:
        self._asked, self._name = resolve(**options), name
        _demand_a_path(self._asked, subject.stop_after_acks)
        with contextlib.ExitStack() as stack:
            for enter in around:
                stack.enter_context(enter())
            self._kept = take(packed(subject))
        self.path = Path(self._kept, self._asked, carried)
        self._started = time.monotonic()
        self._sound = True

    def save(self, value: Any) -> None:
        """One more value, or batch."""
        self.path.save(value)

    def crash(self, crash: Crash) -> None:
        """Crash, recover, judge, and go on from there."""
        self._step(lambda: self.path.crash(crash))

    def look(self) -> None:
        """Judge what is there now."""
        self._step(self.path.look)

    def _step(self, act: Callable[[], None]) -> None:
        if self.path.is_over():
            return
        self._sound = False
        with contextlib.ExitStack() as stack:
            is_shown = all(tuple(stack.enter_context(enter()) for enter in around))
            act()
            self._sound = True
            if self.path.found is None and not self.path.unmeasured:
                return
            report = report_of(self.path, self._name, self._started, is_kept=is_shown)
        self._sound = not report.run  # a stored run may be replayed, and that needs its place
        raise_for(report)

    def end(self) -> None:
        """Give the processes back; end them where an error came out of a step, or a run was stored."""
        if self._sound or self._kept.refused:
            give_back(self._kept)
        else:
            self._kept.host.close()


def raise_for(report: model.Report) -> None:
    """The error of a path that does not pass."""
    if report.verdict == "violation":
        raise violation_of(report)
    if report.verdict == "unmeasured":
        raise Unmeasured(str(report), report=report)


def follow(path: Path, values: Iterable[Any]) -> None:
    """All values and crashes one after the other, up to the first violation."""
    for value in values:
        if isinstance(value, Crash):
            path.crash(value)
        else:
            path.save(value)
        if path.is_over():
            return
    path.look()


def packed(subject: Store | Log) -> dict[str, Any]:
    """The subject without its values, which travel with each path."""
    return travel.pack(dataclasses.replace(subject, values=None))


def carried(values: Sequence[Any]) -> dict[str, Any]:
    """What a step has to say of these values. Raises UsageError where they cannot be sent."""
    from crashlab.recover.culprit import dumps  # noqa: PLC0415 - loads cloudpickle

    try:
        return {"values": base64.b64encode(dumps(list(values))).decode()}
    except Exception as error:
        text = f"the values cannot be sent to a fresh process: {type(error).__name__}: {error}; use plain data"
        raise UsageError(text) from error


def _demand_a_path(asked: Asked, stop_after_acks: int | None) -> None:
    if stop_after_acks is not None:
        text = "stop_after_acks and crashes among the values exclude each other: the values say where a run ends"
        raise UsageError(text)
    if asked.only is not None:
        text = f"only={asked.only!r}: values with crashes follow one path; put the id there, as Crash({asked.only!r})"
        raise UsageError(text)


# --- the report ----------------------------------------------------------------------------------


def report_of(path: Path, name: str, started: float, *, is_kept: bool = True) -> model.Report:
    """What a path came to. Only one that does not pass gets a run folder, and where it ``is_kept``."""
    host, asked = path.kept.host, _as_followed(path)
    source = host.description.get("source", "")
    subject = model.SubjectInfo(name=name, kind=host.description["kind"], source=source)
    passed = path.found is None and not path.unmeasured
    folder = None if passed or not is_kept else RunFolder.create(asked.out, name)
    try:
        if folder is not None:
            folder.save_extra("path.json", path.carry(path.values))
        seconds = time.monotonic() - started
        return _outcome(path).report(_recorded(path), host, asked, subject, folder, seconds=seconds)
    except BaseException:
        if folder is not None:
            folder.discard()
        raise


def _as_followed(path: Path) -> Asked:
    """The settings with the faults that the path had."""
    faults = tuple(dict.fromkeys(fault for fault, _ in path.judged)) or ("kill",)
    return dataclasses.replace(path.asked, faults=tuple(FaultRequest(fault) for fault in faults))


def _recorded(path: Path) -> Recorded:
    """The first run, to which the ids of the states begin to count."""
    first = path.first
    return Recorded(
        reference=path.reference(first.trace),
        modules=path.modules,
        recorder="python" if path.kept.host.traced is None else "strace",
    )


def _outcome(path: Path) -> Outcome:
    counts = []
    for fault in dict.fromkeys(fault for fault, _ in path.judged):
        verdicts = Counter(verdict for each, verdict in path.judged if each == fault)
        total = verdicts.total()
        figures = dict.fromkeys(("points", "states", "distinct", "judged", "reached"), total)
        counts.append(
            model.FaultCount(fault=fault, **figures, **{str(name): number for name, number in verdicts.items()})
        )
    return Outcome(
        controls=list(path.controls),
        unmeasured=list(path.unmeasured),
        counts=counts,
        path=tuple(leg.state.id.rpartition("/")[2] for leg in path.legs if leg.state is not None),
        found=[_finding(path)] if path.found is not None else [],
    )


def _finding(path: Path) -> tuple[model.Finding, CrashState]:
    assert path.found is not None, "only a violation has a finding"
    judgement, answer = path.found
    state, first = judgement.state, path.first
    reference = path.reference(state.trace)
    findings = Findings(Places(first.trace), first.losses)
    findings.add(judgement, answer)
    ((finding, _),) = findings.finish(reference)
    story = program(path.told(), judgement, answer, reference, given=path.carry is carried)
    finding = dataclasses.replace(finding, program=story)
    if judgement.problems[0].step == LIVE:  # no recovery shows it again: only the program does
        finding = dataclasses.replace(finding, replay="")
    return (finding if state.within is None else _retold(path, finding)), state


def _retold(path: Path, finding: model.Finding) -> model.Finding:
    """A finding after several crashes, in the words of a run that went on, and not of a recovery that died."""
    assert path.found is not None, "only a violation has a finding"
    judgement = path.found[0]
    state = judgement.state
    flat = dataclasses.replace(judgement, state=dataclasses.replace(state, within=None))
    crashes = tuple(f"{line.partition(' during ')[0].partition(';')[0]}; then it went on" for line in finding.crashes)
    line = finding.fault_line.partition(" during ")[0]
    if name := written_through(state):
        why, advice = TWO_NAMES.why.format(path=name), TWO_NAMES.advice
    elif state.recipe is None:
        why, advice = (explained := explain(flat)).why, explained.advice
    else:
        why, advice = why_lost(flat, marks_of(state, None)), (pattern_at(flat.state),)
    return dataclasses.replace(finding, crashes=crashes, fault_line=line, why=why, advice=advice)


def violation_of(report: model.Report) -> Violation:
    """The error to raise for a violation on a path: complete where it is shown, else its program only."""
    first = report.findings[0]
    headline = f"VIOLATION {first.kind}: {first.summary} [{first.id}]"
    text = f"{headline}\n\n{report}" if report.run else "\n".join((headline, *first.program))
    seen = first.observed
    # What is raised from one cause is lost where it was acked, and stuck where it was not.
    cause = seen.error.partition(":")[0] if seen.how == "raised" else first.kind
    return violation_class(cause)(text, kind=first.kind, report=report)


_apart: dict[str, type[Violation]] = {}


def violation_class(cause: str) -> type[Violation]:
    """A class of Violation for each cause: Hypothesis takes errors of one class from one line for the same failure."""
    if cause not in _apart:
        parts = {"__module__": Violation.__module__, "__qualname__": "Violation", "__reduce__": _reduced}
        _apart[cause] = type("Violation", (Violation,), parts)
    return _apart[cause]


def _reduced(error: Violation) -> tuple[Any, ...]:
    return Violation, error.args, vars(error)
