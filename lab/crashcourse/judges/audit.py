"""Exercise 6.1: witnesses against a harness with eight faulty pieces (:mod:`crashcourse.audited`).

A witness names a family, a crash state and a kind. It is replayed, and must come to that kind; then the pieces are
mended, one at a time. It counts for the one piece whose mend makes that kind go from there; the other faults may
still show at the same place. A piece is tried only in the families that can show it, which saves replays: a witness
that no mend clears counts for none.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from crashcourse.audited import FAULTY, audited
from crashcourse.desk import inbox_seed
from crashcourse.explain import Table, answers, judged
from crashcourse.judging import failed
from crashcourse.result import Shown
from crashlab import trace as t
from crashlab.crash.damage import damage_of, damaged, file_at
from crashlab.crash.states import prefixes_of
from crashlab.errors import UsageError
from crashlab.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crashcourse.judging import Bench
    from crashcourse.result import Outcome

MOST = 10
WITNESSES = [f"w{number}" for number in range(1, MOST + 1)]
CANDIDATES: Mapping[str, tuple[str, ...]] = {
    "kill": ("book", "key", "act"),
    "power": ("save", "book", "key", "act"),
    "error": ("save", "book", "key", "act"),
    "damage": ("load", "ledger"),
    "recovery": ("reconcile", "book", "key", "act"),
    "race": ("lease",),
}
ALTERS = ("save", "lease")
"""Pieces whose mend adds file operations: ids are others then, so the whole family is tried with it."""
NESTED, RACES = 2, 0
CASES = {f"fault.{number}": piece for number, piece in enumerate(FAULTY, 1)}


@dataclass(frozen=True)
class Witness:
    """What a learner claims."""

    family: str
    point: str
    kind: str


@dataclass
class Court:
    """Where witnesses are heard, each claim once."""

    bench: Bench
    seed: int
    heard: dict[Witness, str] = field(default_factory=dict)
    _runs: list[t.Trace] = field(default_factory=list)

    def fault_of(self, claim: Witness) -> str:
        """The piece that it counts for. Raises UsageError where it is none, or where no single mend clears it."""
        if claim not in self.heard:
            self.heard[claim] = self._heard(claim)
        return self.heard[claim]

    def _heard(self, claim: Witness) -> str:
        self._require_same_byte(claim.point)
        kinds = self._kinds(claim, "", claim.point)
        if claim.kind not in kinds:
            found = " and ".join(sorted(kinds)) or "consistent"
            text = f"at {claim.point} the harness is {found} under {claim.family}, not {claim.kind}"
            raise UsageError(text)
        cleared = [piece for piece in CANDIDATES[claim.family] if self._clears(claim, piece)]
        if len(cleared) != 1:
            text = f"{len(cleared)} single mends make {claim.kind} go from {claim.point}; it must be one"
            raise UsageError(text)
        return cleared[0]

    def _require_same_byte(self, point: str) -> None:
        """A flipped bit must lie in what each run writes alike."""
        found = [_flipped(trace, point) for trace in self._two_runs()]
        if found[0] != found[1]:
            text = f"{point}: the byte there is another one in each run, as in an id or a checksum; name another bit"
            raise UsageError(text)

    def _two_runs(self) -> list[t.Trace]:
        if not self._runs:
            runs = [self.bench.recorded(audited(self.seed)) for _ in range(2)]
            self._runs = [t.Trace(root=run.root, base=run.base, ops=run.ops) for run in runs]
        return self._runs

    def _clears(self, claim: Witness, piece: str) -> bool:
        """Whether that kind is gone from there once the piece is mended."""
        same = piece not in ALTERS or claim.point.endswith("@0")  # before everything is the same place in any trace
        return claim.kind not in self._kinds(claim, piece, claim.point if same else None)

    def _kinds(self, claim: Witness, piece: str, only: str | None) -> set[str]:
        budget = dataclasses.replace(self.bench.budget, nested=NESTED, sample=RACES, real_kills=0)
        subject = audited(self.seed, mended=piece)
        report = self.bench.explore(subject, claim.family, only=only, budget=budget)
        return {finding.kind for finding in report.findings}


def _flipped(trace: t.Trace, point: str) -> int | None:
    """The byte whose bit is flipped there; None where it is no such point."""
    damage = damage_of(trace, point)
    if damage is None or damage.kind != "bit":
        return None
    damaged(trace, point)  # raises for a place that is not there
    content = file_at(prefixes_of(trace).tree(damage.at), damage.path)
    assert content is not None
    return content.content.read()[int(damage.argument) // 8]


# --- what was claimed -----------------------------------------------------------------------------


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    try:
        form = answers(bench.file, WITNESSES)
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    if not form:
        text = "there is no witness: [w1] with family, point and kind is the first"
        return failed(bench.exercise, bench.exercise.cases[0].id, text)
    asked = {piece for case, piece in CASES.items() if bench.wants(case)}
    claims = [name for name in WITNESSES if name in form and (bench.wants("precision") or _may_show(form[name], asked))]
    court = Court(bench, inbox_seed(bench.seed, same=True))
    shown, wrong = {}, {}
    for name in claims:
        try:
            shown[name] = court.fault_of(_claim(form, name))
        except UsageError as error:
            wrong[name] = str(error)
    parts: dict[str, Mapping[str, Callable[[], Shown | str | None]]] = {
        case: {case: partial(_fault, piece, shown, wrong)} for case, piece in CASES.items()
    }
    parts["precision"] = {name: partial(wrong.get, name) for name in claims}
    return [judged(case, work) for case, work in parts.items() if bench.wants(case)]


def _may_show(form: Any, asked: set[str]) -> bool:
    """Whether a claim of that family can count for one of these pieces; what is no claim is looked at in any case."""
    family = form.get("family") if isinstance(form, dict) else None
    return not isinstance(family, str) or family not in CANDIDATES or not asked.isdisjoint(CANDIDATES[family])


def _claim(form: Mapping[str, Any], name: str) -> Witness:
    table = Table.of(form, name, ("family", "point", "kind"))
    return Witness(table.text("family", list(CANDIDATES)), table.text("point"), table.text("kind", KINDS))


def _fault(piece: str, shown: Mapping[str, str], wrong: Mapping[str, str]) -> Shown | None:
    """What is told where no witness shows a fault: how many others there are, and what is wrong about the first."""
    if piece in shown.values():
        return None
    found = len(set(shown.values()))
    told = next((f"; {name}: {text}" for name, text in wrong.items()), "")
    return Shown(
        kind="wrong-answer",
        expected="a witness that this one mend clears, and no other",
        found=f"{len(shown)} witnesses count, for {found} of {len(FAULTY)} faults{told}",
    )
