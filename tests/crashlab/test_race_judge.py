"""What is demanded of two owners: one row per rule, on races that are written down and not run."""

from __future__ import annotations

from typing import Any

import pytest

from crashlab import Policy, Subject, explore
from crashlab import trace as t
from crashlab.demands import Reference
from crashlab.error_judge import LiveHonesty, Shapes
from crashlab.observation import Answer, Step
from crashlab.race_judge import RaceJudge
from crashlab.race_points import OwnerEnd, Race, RacePoint, RaceState
from crashlab.tree import Tree
from tests.crashlab.here import needs_strace

ONE = t.Trace(
    root="/r",
    base=Tree.empty(),
    ops=(t.Effect(n=1, name="mail", key=None, detail={"to": "ada"}, receipt="mail-1"), t.Ack(n=2, value=1)),
)
DONE = {"end": "done"}


def owner(who: str, how: str = "returned", **fields: Any) -> OwnerEnd:
    """How one owner ended."""
    value = {"value": DONE} if how == "returned" else {}
    return OwnerEnd(**{"who": who, "how": how, **value, **fields})


def ruled(  # noqa: PLR0913 - all by keyword
    *,
    kind: str = "Subject",
    first: OwnerEnd | None = None,
    second: OwnerEnd | None = None,
    effects: int = 1,
    found: Any = None,
    refuse: bool | None = None,
    opens: bool = False,
    record: tuple[dict[str, Any], ...] = (),
) -> list[str]:
    """The kinds that are found; the verdict alone where there are none."""
    mail = ONE.ops[0]
    ops = tuple(t.Effect(n=n, name=mail.name, key=None, detail=mail.detail, receipt="r") for n in range(1, effects + 1))  # type: ignore[attr-defined]  # it is an effect
    trace = t.Trace(root="/r", base=Tree.empty(), ops=ops)
    race = Race(
        point=RacePoint(1),
        trace=trace,
        owners=("first",) * effects,
        turns=(("first", 0),),
        record=record,
        reached=1,
        waited="",
        last=Tree.empty(),
        first=first or owner("first"),
        second=second or owner("second"),
    )
    state = RaceState(id="race@1", fault="race", trace=trace, tree=Tree.empty(), done=effects, race=race)
    reference = Reference(kind=kind, trace=ONE, end="done", nothing={"value": None})
    policy = Policy(refuse=refuse).over(Policy.default("race"))
    judge = RaceJudge(
        reference, policy, LiveHonesty(ONE, Shapes(ONE), lenient=True), opens=opens, keyed=False, ends=False
    )
    value = {"end": "done"} if kind == "Subject" else {"value": found, "keys": []}
    judgement = judge.ruling(state, Answer(state="0", steps=(Step(step="first", how="returned", value=value),)))
    return [problem.kind for problem in judgement.problems] or [judgement.verdict]


REFUSED = {"how": "raised", "error": "LostLease: somebody else"}


@pytest.mark.parametrize(
    ("told", "kinds"),
    [
        ({}, ["consistent"]),
        ({"second": owner("second", **REFUSED)}, ["refused"]),
        ({"first": owner("first", **REFUSED)}, ["refused"]),
        ({"first": owner("first", **REFUSED), "second": owner("second", **REFUSED)}, ["stuck"]),
        ({"effects": 2}, ["duplicate-effect"]),
        ({"effects": 0}, ["missing-effect"]),
        ({"second": owner("second", "hang")}, ["hang"]),
        ({"second": owner("second", "signal")}, ["stuck"]),
        ({"first": owner("first", "signal", killed=True)}, ["consistent"]),
        ({"second": owner("second", "exit", exit_code=3)}, ["stuck"]),
        ({"second": owner("second", "exit", exit_code=3, stderr="busy\n")}, ["refused"]),
        ({"second": owner("second", left=("sleep 9",))}, ["left-process"]),
        ({"first": owner("first", value={"end": "other"})}, ["diverged"]),
    ],
)
def test_a_program_with_two_owners(told: dict[str, Any], kinds: list[str]) -> None:
    """One stays out or the other is refused, aloud; effects once; the same end."""
    assert ruled(**told) == kinds


def calls(*values: Any) -> tuple[dict[str, Any], ...]:
    """The first owner saves these, one after the other."""
    lines = []
    for value in values:
        lines += [{"op": "call", "n": 1, "name": "save", "value": value}, {"op": "ack", "n": 2, "value": value}]
    return tuple({"who": "first", "op": line} for line in lines)


RAISED = owner("first", value={"what": "save", "raised": "FileNotFoundError: state.tmp"})


@pytest.mark.parametrize(
    ("told", "kinds"),
    [
        ({"found": 2, "record": calls(1, 2)}, ["consistent"]),
        ({"found": 1, "record": calls(1, 2)}, ["lost"]),
        ({"found": 12, "record": calls(1, 2)}, ["torn"]),
        ({"found": None, "record": calls(1, 2)}, ["lost"]),
        ({"found": None}, ["consistent"]),
        ({"found": 1, "record": calls(1), "first": RAISED}, ["stuck"]),  # a bare save has no owner to refuse
        ({"found": 1, "record": calls(1), "first": RAISED, "opens": True}, ["refused"]),
        ({"found": 1, "record": calls(1), "first": RAISED, "refuse": True}, ["refused"]),
    ],
)
def test_a_store_with_two_owners(told: dict[str, Any], kinds: list[str]) -> None:
    """One owner's whole value, the last one acked, and of a bare one no error."""
    assert ruled(kind="Store", **{"effects": 0, **told}) == kinds


def reads_what_only_check_may(lab: Any) -> str:
    """Wrong of the subject's author, and only where somebody has been there before."""
    if (lab.dir / "begun").exists():
        return str(lab.effects)
    (lab.dir / "begun").write_text("x")
    return "done"


def test_a_misuse_by_an_owner_is_no_refusal(tmp_path: Any) -> None:
    """It is told to the author of the subject, with the place."""
    with pytest.raises(Exception, match=r"lab.effects is for check only.* \(at race@1\)"):
        explore(Subject(reads_what_only_check_may), faults="race", out=tmp_path)


@needs_strace
@pytest.mark.parametrize("faults", ["race", "kill,race"])
def test_a_run_that_was_watched_from_outside_is_unmeasured(faults: str, tmp_path: Any) -> None:
    """Nobody inside can be stopped at an op; where it was asked for by name that is no pass."""
    report = explore("tests.crashlab.test_race_judge:WRITES", faults=faults, recorder="strace", out=tmp_path)
    assert report.verdict == "unmeasured"
    assert any("watched from outside" in reason.detail for reason in report.unmeasured)


WRITES = Subject(lambda lab: (lab.dir / "a").write_text("x"))
