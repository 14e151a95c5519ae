"""What there is to try on the correct modules of the reference agent, and what was found: one row each.

A row is one subject, one of the model's two personas, one fault. What a row came to is kept as one line of JSON, with
the budget it had and the digest of the code that it tells of; so a long table can be made bit by bit, and a row of
older code or of another budget counts for nothing. A row that was cut short is kept too, and says so.

The correct modules of lessons 2, 3 and 4 are one harness (``tests/benchmarks`` holds them equal), and one row.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashlab import Budget, explore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from crashlab import Report

FAULTS = ("kill", "power", "error", "damage", "recovery", "race")
PROFILES = "ext4,xfs,btrfs,posix"
BUDGET = Budget(states=1_000_000, nested=60, real_kills=24, time_s=36_000.0)
"""The stated bound of the quick budget, without its limits of states and seconds."""
ALL_RECOVERIES = 1_000
"""Of a row of the fault ``recovery``: more than there are. With 60 of 186 a loss behind the first save was missed."""

HEAD = (
    "module",
    "model",
    "fault",
    "in the model",
    "left out",
    "distinct",
    "refused",
    "violations",
    "unknown",
    "seconds",
)
VERDICTS = {"consistent": "", "violation": "VIOLATION", "unmeasured": "UNMEASURED"}


@dataclass(frozen=True)
class Row:
    """One check: ``subject`` is its path, ``scene`` what is played around the module, "" for the plain run."""

    module: str
    subject: str
    persona: str
    fault: str
    scene: str = ""

    @property
    def name(self) -> str:
        """How people call it, and how it is chosen.

        >>> Row("effects", "longrun.effects.correct:subject", "hasty", "kill").name
        'effects, hasty, kill'
        """
        return ", ".join(filter(None, (self.module, self.scene, self.persona, self.fault)))


def _of(
    module: str, path: str, faults: Iterable[str], personas: Sequence[tuple[str, str]], scene: str = ""
) -> list[Row]:
    return [Row(module, f"{path}:{name}", persona, fault, scene) for persona, name in personas for fault in faults]


_BOTH = (("careful", "subject"), ("hasty", "subject_hasty"))
_SHORT = (("careful", "subject_short"), ("hasty", "subject_hasty_short"))
ONE_FILE = "checkpoint, resume, effects"
_CAPSTONE = "longrun.capstone.correct"

ROWS: tuple[Row, ...] = (
    *_of(ONE_FILE, "longrun.effects.correct", FAULTS, (("careful", "subject_careful"), ("hasty", "subject_hasty"))),
    *_of("resume/without_ledger", "longrun.resume.without_ledger", ("kill", "recovery"), _BOTH[:1]),
    *_of("rewind", "longrun.rewind.correct", FAULTS, _BOTH),
    *_of(
        "rewind",
        "longrun.rewind.correct",
        FAULTS,
        (("careful", "subject_beside"), ("hasty", "subject_beside_hasty")),
        "run and fork at once",
    ),
    *_of("capstone", _CAPSTONE, [fault for fault in FAULTS if fault != "damage"], _BOTH),
    *_of("capstone", _CAPSTONE, ["damage"], _SHORT, "short letters"),
    *_of("capstone", _CAPSTONE, ("kill", "recovery"), (("careful", "subject_fresh"),), "started again"),
    *_of(
        "capstone",
        _CAPSTONE,
        ("kill", "recovery"),
        (("careful", "subject_waiting"), ("hasty", "subject_waiting_hasty")),
        "a question",
    ),
    *_of("capstone", _CAPSTONE, ("kill", "recovery"), (("careful", "subject_turns"),), "a cap on turns"),
    *_of("capstone", _CAPSTONE, ("kill", "recovery"), (("careful", "subject_tokens"),), "a cap on tokens"),
    *_of("capstone", _CAPSTONE, ("kill",), (("careful", "subject_poison"),), "a poisonous call"),
)


@cache
def code_digest() -> str:
    """One number for the code that the rows tell of: all modules of the agent and of the lab."""
    lab = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(path for package in ("crashlab", "longrun") for path in (lab / package).rglob("*.py")):
        found.update(f"{path.relative_to(lab)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def tried(
    row: Row, budget: Budget, out: Path, *, seed: int, progress: Callable[[str, int, int], None]
) -> dict[str, Any]:
    """Check one row; what it came to, as it is kept."""
    budget = budget_of(row, budget)
    more: dict[str, Any] = {"profile": PROFILES} if row.fault in ("power", "recovery") else {}
    report = explore(row.subject, faults=row.fault, budget=budget, seed=seed, out=out, progress=progress, **more)
    return {**asked(row, budget, seed), **result_of(report, row.fault)}


def budget_of(row: Row, budget: Budget) -> Budget:
    """The budget of a row: how many recoveries are crashed changes no other fault."""
    return budget if row.fault == "recovery" else dataclasses.replace(budget, nested=BUDGET.nested)


def asked(row: Row, budget: Budget, seed: int) -> dict[str, Any]:
    """What tells one line from another: the row, its budget, the seed and the code."""
    budget = budget_of(row, budget)
    return {"row": dataclasses.asdict(row), "budget": dataclasses.asdict(budget), "seed": seed, "code": code_digest()}


def result_of(report: Report, fault: str) -> dict[str, Any]:
    """The figures of a check of one fault, and all that is not a pass, in words."""
    count = next((count for count in report.faults if count.fault == fault), None)
    return {
        "verdict": report.verdict,
        "count": dataclasses.asdict(count) if count else {},
        "findings": [f"{each.kind}: {each.summary} [{each.id}]" for each in report.findings],
        "unmeasured": [f"{each.code}: {each.detail}" for each in report.unmeasured],
        "notes": list(report.notes),
        "run": report.run,
    }


def keep(file: Path, line: dict[str, Any]) -> None:
    """Add a line, in one write: two processes may do so side by side."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


def kept(file: Path, rows: Iterable[Row], budget: Budget, seed: int) -> dict[Row, dict[str, Any]]:
    """The last line of each of ``rows`` that tells of this budget, this seed and this code.

    Raises ValueError, with the place, where a line is none of ours.
    """
    if not file.exists():
        return {}
    wanted = {json.dumps(asked(row, budget, seed), sort_keys=True): row for row in rows}
    found = {}
    for number, text in enumerate(file.read_text().splitlines(), start=1):
        try:
            line = json.loads(text)
            about = {name: line[name] for name in ("row", "budget", "seed", "code")}
        except (ValueError, TypeError, KeyError) as error:
            complaint = (
                f"{file}:{number} is no line of this tool ({error!r}): remove it, or name another file by --kept"
            )
            raise ValueError(complaint) from error
        if (row := wanted.get(json.dumps(about, sort_keys=True))) is not None:
            found[row] = line
    return found


def cells(row: Row, line: dict[str, Any] | None) -> tuple[str, ...]:
    """One row of the table; dashes where it has not been run."""
    names = (", ".join(filter(None, (row.module, row.scene))), row.persona, row.fault)
    if line is None or not line["count"]:
        return (*names, *["—"] * (len(HEAD) - len(names) - 1), "not run" if line is None else line["verdict"])
    count = line["count"]
    figures = [f"{count[name]:,}" for name in ("states", "skipped", "distinct", "refused", "violation", "unknown")]
    return (*names, *figures, " ".join(filter(None, (f"{count['seconds']:,.0f}", VERDICTS[line["verdict"]]))))
