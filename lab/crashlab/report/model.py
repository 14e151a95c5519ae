"""The one result model. Every view (text, JSON, HTML, JUnit, notebook) shows these dataclasses.

New fields keep the schema ``crashlab.report/1``; a removed or renamed one makes ``/2``. The JSON
Schema beside this module (``schema.json``) is checked against :meth:`Report.to_json` by the tests.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

CHANGES: tuple[str, ...] = ("same", "changed", "gone", "back", "more")
"""What a crash did to a path: nothing, other bytes, a lost name, a removed name that is there again; ``more``
stands for the paths that are not listed."""

SCHEMA = "crashlab.report/1"
REPORTS_SCHEMA = "crashlab.reports/1"

Verdict = Literal["consistent", "refused", "violation", "unmeasured"]

CONTRACT: dict[str, str] = {
    "accepted-damage": "CV",
    "silent-reset": "CV",
    "torn": "CV",
    "lost": "CV",
    "duplicate-effect": "EO",
    "missing-effect": "EO",
    "duplicate-entry": "CO",
    "hole": "PC",
    "diverged": "PC",
    "invalid-transcript": "PC",
    "stuck": "CV",
    "hang": "RD",
}
"""The property of the Resume Contract that a kind breaks, where it is one.

PC prefix continuation, EO effect exactly once, CV checkpoint validity, CO consume once, RD recovery
determinism; a second recovery that differs from the first is RD whatever its kind.
"""

UNMEASURED_CODES: tuple[str, ...] = (
    "empty-trace",
    "unseen-writer",
    "outside-write",
    "runs-differ",
    "round-trip",
    "bound",
    "time-limit",
    "no-ack",
    "never-recovered",
    "real-kill-disagrees",
    "real-disk-disagrees",
    "checker-failed",
    "tool-missing",
)

CONTROLS: tuple[str, ...] = (
    "replay-proof",
    "runs-agree",
    "round-trip",
    "empty-load",
    "pinned-path",
    "real-kill",
    "real-disk",
    "fresh-interpreter",
    "undamaged-twin",
)


@dataclass(frozen=True, kw_only=True)
class SubjectInfo:
    """Which subject: its name, its kind (``Store``, ``Log``, ``Subject``) and where it is defined."""

    name: str
    kind: str
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What was asked for. ``path``: the ids of the crashes of one path, where the values held crashes."""

    faults: tuple[str, ...]
    profile: tuple[str, ...] = ()
    disk: str = ""
    policy: dict[str, dict[str, Any]] = field(default_factory=dict)
    budget: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    recorder: str = "python"
    recovery: str = "isolated"
    path: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TraceInfo:
    """Counts of the recorded run."""

    ops: int = 0
    effects: int = 0
    acks: int = 0
    save_points: int = 0
    digest: str = ""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A save point, an effect or an ack of the recorded run: the op's number, its kind, and what it says."""

    n: int
    op: str
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class FaultCount:
    """What one fault came to.

    ``points`` are places in the trace, ``states`` all states of the model, ``reached`` those that were
    enumerated, ``skipped`` the rest, ``sampled`` the reached ones that were picked by chance.
    ``distinct`` are those with a digest of their own, ``inside`` the distinct ones that cut a write;
    each distinct one is judged once and is one of the four verdicts. ``known`` of them had been judged
    under an earlier fault. ``unknown`` are consistent ones whose recovery honestly reported an effect as unknown: a
    person must decide. The first violation was the ``first_violation``-th state to be judged, after
    ``first_violation_s`` seconds; 0 where there was none.
    """

    fault: str
    points: int = 0
    states: int = 0
    distinct: int = 0
    inside: int = 0
    judged: int = 0
    consistent: int = 0
    refused: int = 0
    violation: int = 0
    unmeasured: int = 0
    sampled: int = 0
    reached: int = 0
    skipped: int = 0
    known: int = 0
    unknown: int = 0
    first_violation: int = 0
    first_violation_s: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Control:
    """One check of the lab on itself."""

    control: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class OpLine:
    """One op of a finding, ready to be shown. ``text`` is what it did; ``note`` is ``lost``, ``cut`` or
    None; ``remark`` says in words what this op has to do with the finding. ``run`` is 0 for the recorded
    run, 1 for the recovery from its crash, and so on."""

    n: int
    op: str
    text: str
    path: str = ""
    to: str = ""
    at: str = ""
    bytes: int | None = None
    note: str | None = None
    remark: str = ""
    thread: int = 0
    run: int = 0


@dataclass(frozen=True, kw_only=True)
class DiskLine:
    """One surviving file. ``state`` says what it is in words, for example ``as at op 6``."""

    path: str
    type: str
    bytes: int = 0
    digest: str = ""
    state: str = ""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A stretch of a file that the crash changed: its offset, and its bytes before and after, in hexadecimal."""

    at: int
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One path as the running program saw it, and as the crash left it.

    ``before`` and ``after`` are sizes in bytes, None where the path is not there; ``change`` is a word of
    :data:`CHANGES`; ``differs`` counts the bytes that differ, and ``parts`` shows the first of them.
    """

    path: str
    change: str
    type: str = "file"
    before: int | None = None
    after: int | None = None
    differs: int = 0
    parts: tuple[Difference, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What recovery did. ``how`` is ``returned``, ``raised``, ``exit``, ``signal`` or ``hang``; ``value``
    is in tagged JSON form; ``step`` says which of the recoveries: ``first``, ``second`` or ``more``."""

    how: str
    value: Any = None
    error: str = ""
    stdout: str = ""
    stderr: str = ""
    step: str = "first"


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Effects in words: those of the uncrashed run, and those that the outside world saw."""

    expected: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One distinct fault of the subject, at its smallest crash state.

    ``place`` is the readable name of the crash point (``turn5.tool2.effect+``); ``same`` are further
    state ids with the same kind and place group; ``fault_line`` is what stands between the ops and
    the rest (``killed``, ``killed inside op 6``); ``changes`` is what the crash took from the files that
    the program saw, up to a limit. Where the recovery crashed too, ``crashes`` are the
    earlier crashes, one after the ops of each run. Where one path was followed, ``program`` is that path in
    lines that a person could type.
    """

    id: str
    verdict: Verdict
    kind: str
    fault: str
    summary: str
    place: str = ""
    contract: str | None = None
    profiles: tuple[str, ...] = ()
    ops: tuple[OpLine, ...] = ()
    fault_line: str = ""
    crashes: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    disk: tuple[DiskLine, ...] = ()
    changes: tuple[FileChange, ...] = ()
    observed: Observed = field(default_factory=lambda: Observed(how="returned"))
    expected: tuple[str, ...] = ()
    effects: Effects = field(default_factory=Effects)
    why: str = ""
    advice: tuple[str, ...] = ()
    same_count: int = 0
    same: tuple[str, ...] = ()
    digest: str = ""
    confirmed: str | None = None
    replay: str = ""
    directory: str = ""

    def _repr_html_(self) -> str:
        from crashlab.report.notebook import finding_html  # noqa: PLC0415 - jinja2 is imported only when drawn

        return finding_html(self)


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """A finding that the project has accepted, and its reason."""

    finding: Finding
    reason: str


@dataclass(frozen=True, kw_only=True)
class UnmeasuredReason:
    """Why there is no verdict: a code of :data:`UNMEASURED_CODES`, what was seen, what to do next."""

    code: str
    detail: str
    next: str = ""


@dataclass(frozen=True, kw_only=True)
class MatrixRow:
    """One row of the crash matrix: a save point, an effect or a group of ops, in trace order.

    ``before``, ``inside`` and ``after`` hold the worst verdict of a kill just before it, inside it and
    just after it, ``power`` that of a power loss at or after one of its ops, ``error`` that of an I/O error at one of
    them, ``nested`` that of a crash of the recovery after a crash there: a verdict, or ``""`` where
    there is no such state; ``kinds`` are the violation kinds in the row.
    """

    place: str
    first_op: int
    last_op: int
    before: str = ""
    inside: str = ""
    after: str = ""
    power: str = ""
    error: str = ""
    nested: str = ""
    states: int = 0
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of one check. ``moments`` are the first save points, effects and acks, for a time line."""

    verdict: Verdict
    subject: SubjectInfo
    settings: Settings
    versions: dict[str, str] = field(default_factory=dict)
    trace: TraceInfo = field(default_factory=TraceInfo)
    faults: tuple[FaultCount, ...] = ()
    controls: tuple[Control, ...] = ()
    findings: tuple[Finding, ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    unmeasured: tuple[UnmeasuredReason, ...] = ()
    matrix: tuple[MatrixRow, ...] = ()
    moments: tuple[Moment, ...] = ()
    notes: tuple[str, ...] = ()
    created: str = ""
    seconds: float = 0.0
    run: str = ""
    schema: str = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """A JSON object that fits ``schema.json``."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        from crashlab.report.text import render  # noqa: PLC0415 - rich is imported only when something is drawn

        return render(self, color=False)

    def _repr_html_(self) -> str:
        from crashlab.report.notebook import report_html  # noqa: PLC0415 - jinja2 is imported only when drawn

        return report_html(self)
