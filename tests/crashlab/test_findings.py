"""From judgements to findings and to the crash matrix."""

from __future__ import annotations

import pytest

from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.places import Places
from crashlab.crash.states import state_of
from crashlab.demands import Problem, Reference
from crashlab.explain import explain
from crashlab.findings import Findings, disk_lines, matrix, op_lines
from crashlab.judge import Judgement
from crashlab.observation import Answer, Step
from tests.crashlab.traces import ack, call, create, effect, trace_of, write

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
    rows = matrix(judged, kill_states(TRACE), Places(TRACE))
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


def test_the_matrix_leaves_unjudged_states_blank() -> None:
    """No verdict, no colour."""
    rows = matrix({}, kill_states(TRACE), Places(TRACE))
    assert {cell for row in rows for cell in (row.before, row.inside, row.after)} == {""}


@pytest.mark.parametrize(
    ("judgement", "words"),
    [
        (violation("kill@3", "lost"), "in place"),
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


def test_a_cut_append_is_explained_as_a_half_record() -> None:
    """An append that is cut must not hide what is before it."""
    trace = trace_of(create("log", 10), write("log", 10, b"x" * 11), ack(), write("log", 10, bytes(9000), 11))
    state = state_of(trace, "kill@4+4085")
    judgement = Judgement(state=state, verdict="violation", problems=(Problem(kind="lost", summary=""),))
    assert "half record" in explain(judgement).why
