"""From judgements to findings and to the crash matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab import trace as t
from crashlab.barriers import Advice, Barrier
from crashlab.crash.ids import state_of
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.places import Places
from crashlab.crash.profiles import parse_profiles
from crashlab.crash.states import CrashState
from crashlab.demands import Problem, Reference
from crashlab.explain import explain
from crashlab.findings import Findings, _natural, _size, disk_lines, op_lines
from crashlab.judge import Judgement
from crashlab.matrix import matrix
from crashlab.observation import Answer, Step
from crashlab.rounds import Spot
from tests.crashlab.traces import ack, call, create, effect, trace_of, write

if TYPE_CHECKING:
    from crashlab.report.model import Finding

TRACE = trace_of(
    call({"n": 1}),
    create("a", 10),
    write("a", 10, bytes(9000)),
    ack({"n": 1}),
    call({"n": 2}),
    write("a", 10, bytes(9000)),
    (t.Fsync, {"path": "dir", "inode": 1}),
    effect("mail", to="ada"),
    ack({"n": 2}),
)
SPOTS = [Spot(state.digest, "kill", state.done, state.cut_bytes is not None) for state in kill_states(TRACE)]
ANSWER = Answer(state="", steps=(Step(step="first", how="raised", error="ValueError: torn", stdout="out"),))


def violation(state_id: str, kind: str = "lost", step: str = "first") -> Judgement:
    """A violation at this state."""
    problem = Problem(kind=kind, summary=f"{kind} at {state_id}", step=step)
    return Judgement(state=state_of(TRACE, state_id), verdict="violation", problems=(problem,))


def test_the_same_fault_in_two_saves_is_one_finding_at_its_smallest_state() -> None:
    """States are grouped by kind and place without numbers; the smallest is shown, the rest listed."""
    findings = Findings(Places(TRACE))
    for state_id in ("kill@6+4096", "kill@3+8192", "kill@3+4096"):
        findings.add(violation(state_id), ANSWER)
    [(found, state)] = findings.finish(Reference(kind="Store", trace=TRACE))
    assert (found.id, found.place, state.id) == ("kill@3+4096", "save1.data@4096", "kill@3+4096")
    assert found.same == ("kill@3+8192", "kill@6+4096")
    assert (found.same_count, found.replay, found.fault_line) == (
        2,
        "crashlab replay kill@3+4096",
        "killed inside op 3",
    )
    assert (found.observed.how, found.observed.error, found.observed.stdout) == ("raised", "ValueError: torn", "out")


def test_findings_are_gravest_first_then_earliest() -> None:
    """A torn value outranks a lost one, wherever it was."""
    findings = Findings(Places(TRACE))
    findings.add(violation("kill@2", "lost"), ANSWER)
    findings.add(violation("kill@7", "torn"), ANSWER)
    findings.add(violation("kill@1", "lost"), ANSWER)
    kinds = [(found.kind, found.id) for found, _ in findings.finish(Reference(kind="Store", trace=TRACE))]
    assert kinds == [("torn", "kill@7"), ("lost", "kill@1"), ("lost", "kill@2")]


def test_consistent_states_leave_nothing() -> None:
    """Only violations are kept."""
    findings = Findings(Places(TRACE))
    findings.add(Judgement(state=state_of(TRACE, "kill@1"), verdict="consistent"), ANSWER)
    assert findings.finish(Reference(kind="Store", trace=TRACE)) == []


def test_a_difference_in_the_second_recovery_is_recovery_determinism() -> None:
    """The contract property follows the step."""
    findings = Findings(Places(TRACE))
    findings.add(violation("kill@4", "diverged", step="second"), ANSWER)
    [(found, _)] = findings.finish(Reference(kind="Store", trace=TRACE))
    assert found.contract == "RD"


def test_op_lines_say_where_the_write_was_cut() -> None:
    """The op in flight is noted, with the bytes that are there."""
    lines = op_lines(state_of(TRACE, "kill@3+4096"))
    assert [(line.n, line.op, line.note) for line in lines] == [
        (1, "call", None),
        (2, "create", None),
        (3, "write", "cut"),
    ]
    assert lines[2].text.startswith("a  9,000 bytes at 0")
    assert lines[2].remark == "cut after 4,096 bytes (page end)"


def test_disk_lines_say_how_old_a_file_is() -> None:
    """Each surviving file with the op that changed it last."""
    assert [(line.path, line.bytes, line.state) for line in disk_lines(state_of(TRACE, "kill@4"))] == [
        ("a", 9000, "as at op 3")
    ]
    assert disk_lines(state_of(TRACE, "kill@6+4096"))[0].state == "cut inside op 6"


def test_the_matrix_has_a_row_per_span_and_the_worst_verdict_per_cell() -> None:
    """Before, inside and after each save; a violation outranks a pass."""
    judged = {state.digest: ("consistent", "") for state in kill_states(TRACE)}
    bad = state_of(TRACE, "kill@3+4096")
    judged[bad.digest] = ("violation", "lost")
    rows = matrix([(judged, SPOTS)], Places(TRACE))
    assert [(row.place, row.first_op, row.last_op) for row in rows] == [
        ("save1", 1, 4),
        ("save2", 5, 7),
        ("mail1", 8, 8),
        ("save2", 9, 9),
    ]
    assert (rows[0].before, rows[0].inside, rows[0].after, rows[0].kinds) == (
        "consistent",
        "violation",
        "consistent",
        ("lost",),
    )
    assert (rows[2].before, rows[2].inside, rows[2].after) == ("consistent", "", "consistent")


def test_the_matrix_shows_a_power_loss_in_a_column_of_its_own() -> None:
    """At the op after which power was lost; the cells of kills stay as they are."""
    judged = {"aa": ("violation", "torn"), "bb": ("consistent", "")}
    spots = [Spot("aa", "power", 6, cut=False), Spot("bb", "power", 6, cut=False), Spot("bb", "power", 0, cut=False)]
    rows = matrix([(judged, spots)], Places(TRACE))
    assert [(row.power, row.states, row.kinds) for row in rows] == [
        ("consistent", 1, ()),
        ("violation", 2, ("torn",)),
        ("", 0, ()),
        ("", 0, ()),
    ]
    assert {cell for row in rows for cell in (row.before, row.inside, row.after)} == {""}


def test_the_matrix_leaves_unjudged_states_blank() -> None:
    """No verdict, no colour."""
    rows = matrix([({}, SPOTS)], Places(TRACE))
    assert {cell for row in rows for cell in (row.before, row.inside, row.after)} == {""}


@pytest.mark.parametrize(
    ("judgement", "words"),
    [
        (violation("kill@3", "lost"), "under its final name"),
        (violation("kill@6+4096", "lost"), "overwritten in place"),
        (violation("kill@9", "duplicate-effect"), "about to run"),
        (violation("kill@9", "needless-unknown"), "tell whether"),
        (violation("kill@9", "stuck", step="second"), "spoils the next save"),
        (violation("kill@9", "diverged", step="second"), "second one reads otherwise"),
        (violation("kill@9", "diverged"), "another way"),
        (violation("kill@9", "torn"), "not a state that recovery knows"),
        (violation("kill@0", "torn"), "not a state that recovery knows"),
        (violation("kill@9", "hang"), "died with the process"),
    ],
)
def test_every_kind_has_a_cause(judgement: Judgement, words: str) -> None:
    """The explanation fits the op at the crash point."""
    assert words in explain(judgement).why


def test_the_advice_on_a_duplicate_names_the_op_of_the_effect() -> None:
    """Op 8 did it."""
    assert "before op 8" in explain(violation("kill@9", "duplicate-effect")).advice[0]


@pytest.mark.parametrize(("expected", "advised"), [(("done",), True), ((), False)])
def test_where_only_the_end_was_compared_a_check_is_advised(expected: tuple[str, ...], *, advised: bool) -> None:
    """A resume that only loads cannot reach the same end; where a check spoke, it has said what must hold."""
    problem = Problem(kind="diverged", summary="", expected=expected)
    judgement = Judgement(state=state_of(TRACE, "kill@9"), verdict="violation", problems=(problem,))
    assert ("--check" in " ".join(explain(judgement).advice)) == advised


def test_a_cut_append_is_explained_as_a_half_record() -> None:
    """An append that is cut must not hide what is before it."""
    trace = trace_of(create("log", 10), write("log", 10, b"x" * 11), ack(), write("log", 10, bytes(9000), 11))
    state = state_of(trace, "kill@4+4085")
    judgement = Judgement(state=state, verdict="violation", problems=(Problem(kind="lost", summary=""),))
    assert "half record" in explain(judgement).why


@pytest.mark.parametrize(("state_id", "name"), [("kill@2+4096", "first"), ("kill@4+2189", "second"), ("kill@5", "")])
def test_a_log_is_appended_to_and_not_overwritten(state_id: str, name: str) -> None:
    """Nor is its first record, at byte 0; nor one that takes two writes, between these."""
    appended = write("log", 10, bytes(6000), 6003), write("log", 10, bytes(6000), 12_003)
    trace = trace_of(create("log", 10), write("log", 10, bytes(6003)), ack(), *appended)
    explanation = explain(_stuck(trace, state_id))
    assert "half record" in explanation.why, name
    assert "rename" not in " ".join(explanation.advice)


def test_a_write_inside_of_a_file_is_no_append() -> None:
    """Cut too, it is neither old nor new."""
    trace = trace_of(create("a", 10), write("a", 10, bytes(20_000)), ack(), write("a", 10, bytes(9000), 4096))
    assert "overwritten in place" in explain(_stuck(trace, "kill@4+4096")).why


def _stuck(trace: t.Trace, state_id: str) -> Judgement:
    problems = (Problem(kind="stuck", summary=""),)
    return Judgement(state=state_of(trace, state_id), verdict="violation", problems=problems)


# --- power loss -----------------------------------------------------------------------------------

#    1 call   2 create a.tmp   3 write 5,000   4 rename   5 ack   6 call   7 write 2 more   8 ack
SAVED = trace_of(
    call({"n": 1}),
    create("a.tmp", 10),
    write("a.tmp", 10, b"x" * 5000),
    (t.Rename, {"path": "dir/a.tmp", "inode": 10, "to": "dir/a"}),
    ack({"n": 1}),
    call({"n": 2}),
    write("a", 10, b"yy", 5000),
    ack({"n": 2}),
)
LOSSES = Losses(SAVED, parse_profiles("ext4,xfs,btrfs,posix"))


SYNC_IT = Advice(
    sets=((Barrier(after=(3,), path="dir/tmp", directory=False, inodes=(10,)),),), failing=2, tried=1, mended=True
)
HELPLESS = Advice(sets=(), failing=2, tried=1, mended=False, pattern="Write a new file.", remaining=2)


def found_after(*state_ids: str, kind: str = "lost", confirmed: str | None = None) -> list[Finding]:
    """The findings where a power loss broke a promise in these states."""
    findings = Findings(Places(SAVED), LOSSES)
    for state_id in state_ids:
        problem = Problem(kind=kind, summary=f"{kind} at {state_id}")
        state = LOSSES.one(state_id)
        findings.add(Judgement(state=state, verdict="violation", problems=(problem,)), ANSWER, confirmed=confirmed)
    return [finding for finding, _ in findings.finish(Reference(kind="Store", trace=SAVED), SYNC_IT)]


def test_a_lost_op_is_noted_with_what_of_it_is_gone() -> None:
    """The ops before the loss, with a note and words at those that never reached the disk."""
    [found] = found_after("power@5-3d0,3d1")
    assert [(line.n, line.op, line.note, line.remark) for line in found.ops] == [
        (1, "call", None, ""),
        (2, "create", None, ""),
        (3, "write", "lost", "its size is there, its bytes are not"),
        (4, "rename", None, ""),
        (5, "ack", None, ""),
    ]
    assert (found.fault, found.fault_line, found.replay) == (
        "power",
        "power loss",
        "crashlab replay power@5-3d0,3d1",
    )
    assert "before the bytes" in found.why


@pytest.mark.parametrize(
    ("state_id", "lost"),
    [
        ("power@9", 0),
        ("power@9-3", 1),
        ("power@9-3d2,5n", 2),
        ("power@9-3,5..6,8..", 5),
        ("power@9-7..", 3),
        ("power@9-3+4096..", 1),
        ("power@9-all", 1_000_000),
    ],
)
def test_a_run_of_losses_counts_as_many(state_id: str, lost: int) -> None:
    """A short name is no small loss: of two states of one moment the one that lost less is shown."""
    trace = trace_of(*(write("a", 10, b"x") for _ in range(9)))
    state = CrashState(id=state_id, fault="power", trace=trace, tree=trace.base, done=9)
    assert _size(state) == (9, lost)


def test_the_profiles_that_allow_a_loss_are_named() -> None:
    """All for what any loses, the weakest alone for what only it loses."""
    [everywhere] = found_after("power@5-3")
    [weak] = found_after("power@5-4n1")
    assert everywhere.profiles == ("ext4", "xfs", "btrfs", "posix")
    assert weak.profiles == ("btrfs", "posix")


def test_advice_on_losses_is_that_of_the_trials() -> None:
    """Barriers that were tried, not the words for kills; without any, those."""
    [found] = found_after("power@5-3")
    assert found.advice == SYNC_IT.lines()
    findings = Findings(Places(SAVED), LOSSES)
    findings.add(
        Judgement(state=LOSSES.one("power@5-3"), verdict="violation", problems=(Problem(kind="lost", summary=""),)),
        ANSWER,
    )
    [(untried, _)] = findings.finish(Reference(kind="Store", trace=SAVED))
    assert untried.advice != SYNC_IT.lines()


def test_an_effect_that_no_barrier_mends_has_advice_of_its_own() -> None:
    """To write files otherwise would not help it; a set of barriers that does is told all the same."""
    for kind, words in (("missing-effect", "pending before"), ("lost", "Write a new file.")):
        findings = Findings(Places(SAVED), LOSSES)
        problem = Problem(kind=kind, summary="")
        findings.add(Judgement(state=LOSSES.one("power@5-3"), verdict="violation", problems=(problem,)), ANSWER)
        [(found, _)] = findings.finish(Reference(kind="Subject", trace=SAVED), HELPLESS)
        assert words in " ".join(found.advice)
        [(mended, _)] = findings.finish(Reference(kind="Subject", trace=SAVED), SYNC_IT)
        assert mended.advice == SYNC_IT.lines()


def test_losses_of_one_cause_are_one_finding_and_of_two_are_two() -> None:
    """The cause is what was lost; the state that lost least, early, is shown, and the rest listed."""
    shown, other = found_after("power@8-3d0", "power@5-4", "power@5-3", "power@5-3d0,3d1")
    assert {shown.id, other.id} == {"power@5-3", "power@5-4"}
    by_id = {finding.id: finding for finding in (shown, other)}
    assert by_id["power@5-3"].same == ("power@5-3d0,3d1", "power@8-3d0")
    assert by_id["power@5-4"].same == ()


def test_a_kill_and_a_loss_are_two_findings() -> None:
    """What mends the one need not mend the other."""
    findings = Findings(Places(SAVED), LOSSES)
    for state in (LOSSES.one("power@5-3"), state_of(SAVED, "kill@5")):
        problem = Problem(kind="lost", summary="")
        findings.add(Judgement(state=state, verdict="violation", problems=(problem,)), ANSWER)
    found = [finding for finding, _ in findings.finish(Reference(kind="Store", trace=SAVED))]
    assert {(each.fault, each.profiles != ()) for each in found} == {("kill", False), ("power", True)}


def test_the_earliest_loss_of_each_kind_is_known() -> None:
    """By its moment; kills are none of these."""
    findings = Findings(Places(SAVED), LOSSES)
    for state_id, kind in (("power@8-3d0", "lost"), ("power@5-4", "lost"), ("power@8-4", "torn")):
        problem = Problem(kind=kind, summary="")
        state = LOSSES.one(state_id)
        findings.add(Judgement(state=state, verdict="violation", problems=(problem,)), ANSWER)
    kill = Judgement(
        state=state_of(SAVED, "kill@1"), verdict="violation", problems=(Problem(kind="stuck", summary=""),)
    )
    findings.add(kill, ANSWER)
    assert {each.kind: each.state.id for each in findings.earliest()} == {"lost": "power@5-4", "torn": "power@8-4"}


def test_what_came_about_on_a_real_disk_is_confirmed() -> None:
    """The finding says so; a computed one says nothing."""
    assert [found.confirmed for found in found_after("power@5-3", confirmed="real-disk")] == ["real-disk"]
    assert [found.confirmed for found in found_after("power@5-3")] == [None]


def test_a_confirmed_state_is_the_one_that_is_shown() -> None:
    """The word must be true of what stands above it: a smaller state that only the model knows comes second."""
    findings = Findings(Places(SAVED), LOSSES)
    for state_id, confirmed in (("power@5-3", None), ("power@8-3d0", "real-disk"), ("power@5-3d0,3d1", None)):
        problem = Problem(kind="lost", summary="")
        judgement = Judgement(state=LOSSES.one(state_id), verdict="violation", problems=(problem,))
        findings.add(judgement, ANSWER, confirmed=confirmed)
    [(found, _)] = findings.finish(Reference(kind="Store", trace=SAVED))
    assert (found.id, found.confirmed) == ("power@8-3d0", "real-disk")
    assert found.same == ("power@5-3", "power@5-3d0,3d1")


def test_the_lost_op_is_shown_however_far_back_it_is() -> None:
    """Of a long run the ops around the first lost one, and those before the crash."""
    trace = trace_of(create("a", 10), write("a", 10, b"x"), *[ack(n) for n in range(60)])
    losses = Losses(trace, parse_profiles("posix"))
    state = next(state for state in losses.states() if state.done == 62 and state.id == "power@62-2")
    lines = op_lines(state, marks=losses.marks(state))
    assert [line.n for line in lines if line.note == "lost"] == [2]
    assert lines[-1].n == 62
    assert len(lines) < 30


def test_of_equally_small_cases_the_same_is_told_in_whatever_order_they_come() -> None:
    """Several processes answer in no fixed order; and 2 stands before 10."""
    ids = ["damage@a:bit:10", "damage@a:bit:2", "damage@a:bit:1", "damage@b:bit:0"]
    wanted = ["damage@a:bit:1", "damage@a:bit:2", "damage@a:bit:10", "damage@b:bit:0"]
    assert sorted(ids, key=_natural) == wanted
    for order in (["power@5-3", "power@5-3d0"], ["power@5-3d0", "power@5-3"]):
        assert found_after(*order)[0].id == "power@5-3"


#    1 call   2 create   3 write   4 rename   5 ack   6 call   7 create   8 write   9 rename   10 ack
BY_TWO = trace_of(
    call({"n": 1}),
    create("a.tmp", 10),
    (t.Write, {"path": "dir/a.tmp", "inode": 10, "offset": 0, "data": b"x" * 50, "at": "old.py:3"}),
    (t.Rename, {"path": "dir/a.tmp", "inode": 10, "to": "dir/a", "at": "old.py:4"}),
    ack({"n": 1}),
    call({"n": 2}),
    create("b.tmp", 11),
    (t.Write, {"path": "dir/b.tmp", "inode": 11, "offset": 0, "data": b"y" * 50, "at": "new.py:3"}),
    (t.Rename, {"path": "dir/b.tmp", "inode": 11, "to": "dir/b", "at": "new.py:4"}),
    ack({"n": 2}),
)


@pytest.mark.parametrize("apart", [False, True])
def test_a_new_loss_does_not_hide_behind_an_accepted_one(*, apart: bool) -> None:
    """Of one cause at two call sites: one finding, or two where some are accepted. Both lost at once are no third."""
    losses = Losses(BY_TWO, parse_profiles("ext4,xfs,btrfs,posix"))
    findings = Findings(Places(BY_TWO), losses, site=(lambda at: at.partition(":")[0]) if apart else None)
    for state_id in ("power@10-3,8", "power@10-8d0", "power@5-3", "power@10-8", "power@10-3"):
        problem = Problem(kind="lost", summary=state_id)
        findings.add(Judgement(state=losses.one(state_id), verdict="violation", problems=(problem,)), ANSWER)
    found = {each.id: set(each.same) for each, _ in findings.finish(Reference(kind="Store", trace=BY_TWO))}
    if not apart:
        assert list(found) == ["power@5-3"]
        return
    assert set(found) == {"power@5-3", "power@10-8"}
    assert found["power@10-8"] - {"power@10-3,8"} == {"power@10-8d0"}
    assert {"power@10-3,8"} <= found["power@5-3"] | found["power@10-8"]
