"""What may be made of damaged files, held against answers by hand; and what counts as undetectable."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from crashlab import trace as t
from crashlab.crash.damage import KINDS, Damage
from crashlab.crash.ids import state_of
from crashlab.crash.kill import kill_states
from crashlab.damage_demands import Moments, lines_of
from crashlab.demands import Reference
from crashlab.explain_damage import headline, why_damaged
from crashlab.honesty import Honesty
from crashlab.judge import Judge, Judgement
from crashlab.kinds import KINDS as VIOLATIONS
from crashlab.observation import Answer, Step
from crashlab.subject import Policy
from tests.crashlab.traces import ack, call, create, effect, save_point, trace_of, write

STORE = trace_of(
    call({"n": 1}),
    create("a.tmp", 10),
    write("a.tmp", 10, b"1"),
    (t.Rename, {"path": "dir/a.tmp", "to": "dir/a", "inode": 10}),
    ack({"n": 1}),
    call({"n": 2}),
    create("a.tmp", 11),
    write("a.tmp", 11, b"2"),
    (t.Rename, {"path": "dir/a.tmp", "to": "dir/a", "inode": 11}),
    ack({"n": 2}),
)
LOG = trace_of(
    create("log", 10),
    *(step for n in range(3) for step in (call([n], "append"), write("log", 10, b"rec%d\n" % n, 5 * n), ack([n]))),
)
"""Three records of five bytes: the first is appended by op 3, the last by op 9."""

MARKED = trace_of(
    create("log", 10),
    create("mark", 11),
    *(
        step
        for n in range(3)
        for step in (
            call([n], "append"),
            write("log", 10, b"rec%d\n" % n, 5 * n),
            write("mark", 11, b"%d" % n),
            ack([n]),
        )
    ),
)
AGENT = trace_of(
    create("c", 10),
    write("c", 10, b"A"),
    save_point("A"),
    effect("mail", to="ada"),
    write("c", 10, b"B"),
    save_point("B"),
    ack(),
    effect("report"),
)


def judge(reference: Reference, state_id: str, first: Step, *more: Step, **said: frozenset[str]) -> Judgement:
    """Judge what recovery did on one damaged state."""
    state = state_of(reference.trace, state_id)
    honesty = Honesty(reference.trace, kill_states(reference.trace))
    judge = Judge(
        reference, Policy.default("damage"), honesty, said={len(reference.trace.ops): said.get("twin", frozenset())}
    )
    return judge.judge(state, Answer(state=state_id, steps=(first, *more)))


def loaded(kind: str, trace: t.Trace, state_id: str, value: Any, **fields: Any) -> Judgement:
    """A Store or Log that loads ``value`` and stays with it."""
    nothing: dict[str, Any] = {"value": [] if kind == "Log" else None}
    reference = Reference(kind=kind, trace=trace, nothing=nothing)
    step = Step(step="first", how="returned", value={"value": value}, **fields)
    return judge(reference, state_id, step, Step(step="second", how="returned", value={"value": value}))


@pytest.mark.parametrize(
    ("state_id", "value", "verdict", "kind"),
    [
        ("damage@a:bit:0", {"n": 2}, "consistent", ""),
        ("damage@a:bit:0", {"n": 3}, "violation", "accepted-damage"),
        ("damage@a:bit:0", {"n": 1}, "violation", "lost"),
        ("damage@a:bit:0", None, "violation", "silent-reset"),
        ("damage@a:empty", None, "violation", "silent-reset"),
        ("damage@a:stale:5", {"n": 1}, "consistent", ""),
        ("damage@a:stale:5", {"n": 3}, "violation", "accepted-damage"),
        ("damage@a:missing", None, "consistent", ""),
    ],
)
def test_a_value_is_the_truth_or_a_violation(state_id: str, value: Any, verdict: str, kind: str) -> None:
    """An older version of the one file there is, and no file at all, look like an earlier moment."""
    judgement = loaded("Store", STORE, state_id, value)
    assert (judgement.verdict, judgement.kind) == (verdict, kind)
    assert judgement.undetectable == (verdict == "consistent" and value != {"n": 2})


@pytest.mark.parametrize(
    ("step", "verdict", "kind"),
    [
        (Step(step="first", how="raised", error="Damaged: a"), "refused", "lost"),
        (Step(step="first", how="exit", exit_code=3, stderr="a is damaged"), "refused", "lost"),
        (Step(step="first", how="exit", exit_code=3), "violation", "lost"),
        (Step(step="first", how="exit", exit_code=0, stderr="well"), "violation", "lost"),
        (Step(step="first", how="signal", signal=11), "violation", "lost"),
        (Step(step="first", how="hang"), "violation", "hang"),
        (Step(step="first", how="raised", error="Damaged", destroyed=("dir/a",)), "violation", "evidence-destroyed"),
        (Step(step="first", how="raised", error="Damaged", destroyed=("dir/other",)), "refused", "lost"),
        (Step(step="first", how="raised", error="Damaged", left=("sleep",)), "violation", "left-process"),
    ],
)
def test_a_refusal_is_loud_and_keeps_what_is_damaged(step: Step, verdict: str, kind: str) -> None:
    """An error, or an exit code with words; silence, a signal and a changed file are none."""
    judgement = judge(Reference(kind="Store", trace=STORE, nothing={"value": None}), "damage@a:bit:0", step)
    assert (judgement.verdict, judgement.kind) == (verdict, kind)


@pytest.mark.parametrize(
    ("second", "verdict", "kind"),
    [
        (Step(step="second", how="raised", error="Damaged: a.aside"), "refused", "lost"),
        (Step(step="second", how="returned", value={"value": {"n": 2}}), "refused", "lost"),
        (Step(step="second", how="returned", value={"value": None}), "violation", "silent-reset"),
        (Step(step="second", how="returned", value={"value": {"n": 1}}), "violation", "lost"),
    ],
)
def test_what_was_moved_aside_is_missed_by_the_next_recovery_too(second: Step, verdict: str, kind: str) -> None:
    """A refusal may keep the bytes under another name, but not once: the next one must not begin anew."""
    reference = Reference(kind="Store", trace=STORE, nothing={"value": None})
    first = Step(step="first", how="raised", error="Damaged: a", aside=("dir/a",))
    judgement = judge(reference, "damage@a:bit:0", first, second)
    assert (judgement.verdict, judgement.kind) == (verdict, kind)


@pytest.mark.parametrize(
    ("state_id", "raised", "verdict"),
    [
        ("damage@a:bit:0", "LookupError: none", "violation"),
        ("damage@a:bit:0", "LookupError: damaged", "refused"),
        ("damage@a:missing", "LookupError: none", "consistent"),
    ],
)
def test_the_words_of_an_empty_directory_are_no_refusal(state_id: str, raised: str, verdict: str) -> None:
    """The same type with other words is one."""
    reference = Reference(kind="Store", trace=STORE, nothing={"error": "LookupError", "text": "LookupError: none"})
    value = {"value": None, "nothing": True, "raised": raised}
    judgement = judge(reference, state_id, Step(step="first", how="returned", value=value))
    assert judgement.verdict == verdict
    assert judgement.kind == {"violation": "silent-reset", "refused": "lost"}.get(verdict, "")


@pytest.mark.parametrize(
    ("state_id", "value", "verdict", "kind"),
    [
        ("damage@log:bit:0", [1, 2], "violation", "hole"),
        ("damage@log:bit:0", [], "violation", "silent-reset"),
        ("damage@log:bit:41", [0], "violation", "lost"),
        ("damage@log:bit:81", [0, 1], "consistent", ""),
        ("damage@log:bit:81", [0], "violation", "lost"),
        ("damage@log:bit:81", [0, 1, 7], "violation", "accepted-damage"),
        ("damage@log:truncate:5", [0], "consistent", ""),
        ("damage@log:truncate:7", [0], "consistent", ""),
        ("damage@log:truncate:7", [], "violation", "silent-reset"),
        ("damage@log:zeros:5-15", [0], "consistent", ""),
        ("damage@log:extra:16", [0, 1, 2], "consistent", ""),
        ("damage@log:extra:16", [0, 1], "violation", "lost"),
        ("damage@log:extra:copy", [0, 1, 2, 0, 1, 2], "violation", "duplicate-entry"),
    ],
)
def test_a_bad_record_hides_no_good_one(state_id: str, value: list[int], verdict: str, kind: str) -> None:
    """A bad end may be torn, and no mark tells; before a whole record it is damage."""
    judgement = loaded("Log", LOG, state_id, value)
    assert (judgement.verdict, judgement.kind) == (verdict, kind)


def test_what_is_left_out_may_be_said_instead() -> None:
    """With other words than the undamaged files give; no event may be made up or change its place."""
    said = loaded("Log", LOG, "damage@log:bit:0", [1, 2], stderr="record 0 is bad\n")
    assert (said.verdict, said.kind) == ("refused", "hole")
    assert loaded("Log", LOG, "damage@log:bit:0", [2, 1], stderr="record 0 is bad\n").verdict == "violation"
    assert loaded("Log", LOG, "damage@log:bit:0", [9, 1, 2], stderr="record 0 is bad\n").verdict == "violation"
    reference = Reference(kind="Log", trace=LOG, nothing={"value": []})
    chatty = Step(step="first", how="returned", value={"value": [1, 2]}, stdout="read 2 records in 7 ms")
    twin = lines_of(Step(step="first", how="returned", stdout="read 3 records in 5 ms"))
    assert judge(reference, "damage@log:bit:0", chatty, twin=twin).verdict == "violation"


def test_a_mark_elsewhere_makes_a_cut_end_a_loss() -> None:
    """The log looks like an earlier moment, the mark does not."""
    assert loaded("Log", LOG, "damage@log:truncate:10", [0, 1]).verdict == "consistent"
    marked = loaded("Log", MARKED, "damage@log:truncate:10", [0, 1])
    assert (marked.verdict, marked.kind) == ("violation", "lost")


@pytest.mark.parametrize(
    ("trace", "state_id", "at"),
    [
        (STORE, "damage@a:stale:5", 6),
        (STORE, "damage@a:missing", 1),
        (STORE, "damage@a:empty", None),
        (STORE, "damage@a:bit:0", None),
        (LOG, "damage@log:truncate:0", 2),
        (LOG, "damage@log:truncate:5", 5),
        (LOG, "damage@log:bit:81", 8),
        (LOG, "damage@log:bit:41", None),
        (LOG, "damage@log:bit:73", 5),
        (LOG, "damage@log:extra:1", 10),
        (MARKED, "damage@log:truncate:10", None),
        (MARKED, "damage@log:truncate:14", None),
    ],
)
def test_the_moment_that_damaged_files_look_like(trace: t.Trace, state_id: str, at: int | None) -> None:
    """The latest one; bit 73 is the newline before the last record, which then has no beginning of its own."""
    assert Moments(trace).alike(state_of(trace, state_id)) == at


def _resumed(state_id: str, end: str, *events: t.Op) -> Judgement:
    reference = Reference(kind="Subject", trace=AGENT, end="done")
    value = {"end": end}
    first = Step(step="first", how="returned", value=value, events=events)
    return judge(reference, state_id, first, Step(step="second", how="returned", value=value))


MAIL = t.Effect(n=1, name="mail", detail={"to": "ada"})
REPORT = t.Effect(n=2, name="report", detail={})


@pytest.mark.parametrize(
    ("state_id", "end", "events", "verdict", "kind"),
    [
        ("damage@c:bit:0", "done", (), "consistent", ""),
        ("damage@c:bit:0", "other", (), "violation", "accepted-damage"),
        ("damage@c:bit:0", "done", (MAIL, REPORT), "violation", "silent-reset"),
        ("damage@c:bit:0", "done", (REPORT,), "violation", "accepted-damage"),
        ("damage@7-c:bit:0", "done", (), "violation", "accepted-damage"),
        ("damage@7-c:bit:0", "done", (REPORT,), "consistent", ""),
        ("damage@c:stale:3", "done", (MAIL,), "violation", "duplicate-effect"),
        ("damage@c:stale:3", "other", (), "consistent", ""),
        ("damage@c:stale:3", "done", (t.Unknown(n=1, name="mail", detail={}),), "consistent", ""),
    ],
)
def test_a_program_is_measured_by_end_and_effects(
    state_id: str, end: str, events: tuple[t.Op, ...], verdict: str, kind: str
) -> None:
    """After damage to bytes any wrong end counts; after an older file only what was done twice or never."""
    judgement = _resumed(state_id, end, *events)
    assert (judgement.verdict, judgement.kind) == (verdict, kind)


@pytest.mark.parametrize(("key", "redone"), [("k", False), (None, True)])
@pytest.mark.parametrize("kept", [b"B", b"?"])
def test_what_is_done_again_in_a_directory_of_the_run_is_excused_without_a_key(
    key: str | None, kept: bytes, *, redone: bool
) -> None:
    """With b kept, and no c: that it was never so tells, unless b was B before there was a c."""
    start = (create("a", 10), write("a", 10, b"A"), save_point("A"), create("b", 11), write("b", 11, kept))
    mail: tuple[type[t.Op], dict[str, Any]] = (t.Effect, {"name": "mail", "key": key, "detail": {}})
    trace = trace_of(*start, save_point("B"), mail, create("c", 12), write("c", 12, b"C"), write("b", 11, b"B"), ack())
    again = t.Effect(n=1, name="mail", key="another", detail={})
    reference = Reference(kind="Subject", trace=trace, end="done")
    first = Step(step="first", how="returned", value={"end": "done"}, events=(again,))
    judgement = judge(reference, "damage@b:restore:3", first, dataclasses.replace(first, step="second", events=()))
    excused = redone and kept == b"B"
    assert (judgement.verdict, judgement.undetectable, judgement.redone) == (
        "consistent" if excused else "violation",
        excused,
        excused,
    )
    assert judgement.kind == ("" if excused else "duplicate-effect")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_damage_has_words(kind: str) -> None:
    """A headline, and for every kind of violation a cause and advice."""
    argument = {"swap": "log", "restore": "4"}.get(kind, "")
    damage = Damage("dir/a", kind, argument, 4)
    assert "a" in headline(damage)
    for violation in VIOLATIONS:
        for step in ("first", "third"):
            why, advice = why_damaged(violation, damage, step)
            assert why.endswith(".")
            assert all(line.endswith((".", ":")) or "," in line for line in advice)
            assert advice


def test_what_a_run_does_again_and_again_is_no_sign_of_a_beginning() -> None:
    """A request to one server comes first and last; only the first mail, done again, shows that it began anew."""
    ask = t.Effect(n=1, name="ask", key="k", detail={}, counted=False)
    again = dataclasses.replace(ask, n=2)
    start = (create("c", 10), write("c", 10, b"A"), save_point("A"), effect("ask"), effect("mail", to="ada"))
    asking = trace_of(*start, write("c", 10, b"B"), save_point("B"), ack(), effect("ask"), effect("report"))
    reference = Reference(kind="Subject", trace=asking, end="done")
    kinds = []
    for events in ((ask, again), (ask, MAIL)):
        first = Step(step="first", how="returned", value={"end": "other"}, events=events)
        kinds.append(judge(reference, "damage@c:bit:0", first, dataclasses.replace(first, step="second")).kind)
    assert kinds == ["accepted-damage", "silent-reset"]
