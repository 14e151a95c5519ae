"""From what all stages found to the one report, and to the folder that keeps it."""

from __future__ import annotations

import dataclasses
import datetime
import platform
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashlab import __version__, context
from crashlab import trace as t
from crashlab.report import model
from crashlab.report.facts import moments_of
from crashlab.stored import SCHEMA as REFERENCE_SCHEMA
from crashlab.subject import Commands

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crashlab.crash.states import CrashState
    from crashlab.recover.host import Host
    from crashlab.reference import Recorded
    from crashlab.report.folder import RunFolder
    from crashlab.settings import Asked

FALSE_TRACE = ("real-kill-disagrees", "real-disk-disagrees", "unseen-writer")
"""What shows that the lab computed something false: then it accuses nobody."""


@dataclass
class Outcome:
    """What the stages found so far."""

    controls: list[model.Control] = field(default_factory=list)
    unmeasured: list[model.UnmeasuredReason] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: list[model.FaultCount] = field(default_factory=list)
    matrix: tuple[model.MatrixRow, ...] = ()
    found: Sequence[tuple[model.Finding, CrashState]] = ()
    path: tuple[str, ...] = ()

    def report(  # noqa: PLR0913 - what the report is made of, each once
        self,
        recorded: Recorded,
        host: Host,
        asked: Asked,
        subject: model.SubjectInfo,
        folder: RunFolder | None,
        *,
        seconds: float,
    ) -> model.Report:
        """The report, kept in ``folder``, if there is one, with the trace and all that a replay needs."""
        reasons = _once((*recorded.unmeasured, *self.unmeasured))
        verdict: model.Verdict = "violation" if self.found else "unmeasured" if reasons else "consistent"
        # Where the trace itself is not to be believed, what was found on it is no violation.
        if any(reason.code in FALSE_TRACE for reason in reasons):
            verdict = "unmeasured"
        if folder is not None:
            self._store(recorded, host, folder)
        report = model.Report(
            verdict=verdict,
            subject=subject,
            settings=dataclasses.replace(asked.shown(recovery=_way(host), recorder=recorded.recorder), path=self.path),
            versions=versions(),
            trace=_trace_info(recorded.reference.trace),
            faults=tuple(self.counts),
            controls=(*recorded.controls, *self.controls),
            findings=tuple(_saved(folder, finding, state) for finding, state in self.found),
            unmeasured=reasons,
            matrix=self.matrix,
            moments=moments_of(recorded.reference.trace),
            notes=(*recorded.notes, *self.notes, *(context.current.notes() if verdict != "consistent" else ())),
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            seconds=round(seconds, 3),
            run="" if folder is None else str(folder.path),
        )
        report = _with_accepted_apart(report, asked)
        if folder is not None:
            folder.finish(report)
        return report

    def _store(self, recorded: Recorded, host: Host, folder: RunFolder) -> None:
        folder.save_trace(recorded.reference.trace)
        folder.save_extra("reference.json", _stored(recorded, host))
        if recoveries := _recoveries(state for _, state in self.found):
            folder.save_extra("recoveries.json", recoveries)


def _with_accepted_apart(report: model.Report, asked: Asked) -> model.Report:
    return report if asked.baseline is None else asked.baseline.applied(report, whole=asked.only is None)


def _once(reasons: Iterable[model.UnmeasuredReason]) -> tuple[model.UnmeasuredReason, ...]:
    """What holds of a recovery under every fault is said once; under which it was seen first is no news."""
    told: list[model.UnmeasuredReason] = []
    for reason in reasons:
        if reason.code != "never-recovered" or all(each.code != reason.code for each in told):
            told.append(reason)
    return tuple(told)


def _way(host: Host) -> str:
    return "command" if host.description["kind"] == Commands.kind else host.mode


def _saved(folder: RunFolder | None, finding: model.Finding, state: CrashState) -> model.Finding:
    if folder is None:
        return dataclasses.replace(finding, replay="")
    # Always by name: the latest run may soon be another subject's, and then the same id means another state.
    if finding.replay:
        finding = dataclasses.replace(finding, replay=f"{finding.replay} --run {folder.path}")
    directory = folder.save_finding(finding, state.tree, stdout=finding.observed.stdout, stderr=finding.observed.stderr)
    return dataclasses.replace(finding, directory=directory)


def _stored(recorded: Recorded, host: Host) -> dict[str, Any]:
    """What a replay needs beside the trace."""
    reference = recorded.reference
    return {
        "schema": REFERENCE_SCHEMA,
        "subject": host.subject,
        "modules": list(recorded.modules),
        "end": reference.end,
        "ended": reference.ended,
        "nothing": reference.nothing,
        "rebuilt": list(reference.rebuilt),
        "traced": host.traced,
    }


def _recoveries(states: Iterable[CrashState]) -> dict[str, Any]:
    """The recorded recoveries whose crashes are among the findings, by the id of the crash that they recovered from."""
    stored: dict[str, Any] = {}
    for state in states:
        within = state.within
        while within is not None:
            stored[within.outer.id] = within.to_json()
            within = within.outer.within
    return stored


def _trace_info(trace: t.Trace) -> model.TraceInfo:
    kinds = Counter(type(op) for op in trace.ops)
    return model.TraceInfo(
        ops=len(trace.ops),
        effects=sum(isinstance(op, t.Effect) and op.counted for op in trace.ops),
        acks=kinds[t.Ack],
        save_points=kinds[t.SavePoint],
        digest=trace.digest,
    )


def versions() -> dict[str, str]:
    """Versions that a result depends on."""
    return {
        "crashlab": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
