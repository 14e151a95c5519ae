"""The oracle, held against answers by hand: what passes, and the kind of what does not."""

from __future__ import annotations

from typing import Any

import pytest

from crashlab import trace as t
from crashlab.crash.ids import state_of
from crashlab.crash.kill import kill_states
from crashlab.demands import Reference
from crashlab.honesty import Honesty
from crashlab.judge import Judge, Judgement
from crashlab.observation import Answer, Step
from crashlab.subject import DEFAULT_POLICY, Policy
from tests.crashlab.traces import ack, call, create, effect, save_point, trace_of, write

STORE = trace_of(
    call({"n": 1}),
    create("a", 10),
    write("a", 10, b"1"),
    ack({"n": 1}),
    call({"n": 2}),
    write("a", 10, b"2"),
    ack({"n": 2}),
)
LOG = trace_of(
    call([1, 2], "append"),
    create("log", 10),
    write("log", 10, b"12"),
    ack([1, 2]),
    call([3, 4], "append"),
    write("log", 10, b"34", 2),
    ack([3, 4]),
)
AGENT = trace_of(
    create("c", 10),
    write("c", 10, b"A"),
    save_point("A"),
    ack(),
    effect("mail", to="ada"),
    write("c", 10, b"B"),
    save_point("B"),
    ack(),
    effect("report"),
)


def judge(reference: Reference, state_id: str, *steps: Step, policy: Policy | None = None) -> Judgement:
    """Judge these steps on one state."""
    state = state_of(reference.trace, state_id)
    judge = Judge(
        reference, (policy or Policy()).over(DEFAULT_POLICY), Honesty(reference.trace, kill_states(reference.trace))
    )
    return judge.judge(state, Answer(state=state_id, steps=steps))


def store(state_id: str, loaded: Any, *, policy: Policy | None = None, **later: Any) -> Judgement:
    """A Store that loads ``loaded`` and behaves well afterwards, ``later`` apart."""
    reference = Reference(kind="Store", trace=STORE, nothing={"value": None})
    again = later.get("again", loaded)
    more = later.get("more", {"saved": {"n": 9}})
    third = later.get("third", {"n": 9})
    steps = (
        returned("first", value=loaded),
        returned("second", value=again, more=more),
        third if isinstance(third, Step) else returned("third", value=third),
    )
    return judge(reference, state_id, *steps, policy=policy)


def log(state_id: str, loaded: list[Any], *, atomic: bool = False) -> Judgement:
    """A Log that loads these events."""
    reference = Reference(kind="Log", trace=LOG, nothing={"value": []}, atomic=atomic)
    return judge(reference, state_id, returned("first", value=loaded, keys=[None] * len(loaded)))


def agent(state_id: str, *events: t.Op, end: Any = "done", policy: Policy | None = None, **fields: Any) -> Judgement:
    """A Subject whose resume ends with ``end`` and did ``events``."""
    reference = Reference(kind="Subject", trace=AGENT, end="done")
    first = Step(step="first", how="returned", value={"end": end, **fields}, events=events)
    return judge(reference, state_id, first, returned("second", end=end), policy=policy)


def returned(step: str, **value: Any) -> Step:
    """A step that returned."""
    return Step(step=step, how="returned", value=value)


def raised(step: str = "first", error: str = "ValueError: torn", **fields: Any) -> Step:
    """A step that raised."""
    return Step(step=step, how="raised", error=error, **fields)


MAIL = t.Effect(n=1, name="mail", detail={"to": "ada"}, receipt="mail-1")
REPORT = t.Effect(n=2, name="report", receipt="report-1")


@pytest.mark.parametrize(
    ("state_id", "loaded", "kind"),
    [
        ("kill@0", None, ""),
        ("kill@1", None, ""),
        ("kill@3", {"n": 1}, ""),
        ("kill@3", None, ""),
        ("kill@3", {"n": 2}, "torn"),  # not called yet
        ("kill@4", {"n": 1}, ""),
        ("kill@4", {"n": 2}, "torn"),
        ("kill@4", None, "silent-reset"),
        ("kill@4", {"n": 7}, "torn"),
        ("kill@6", {"n": 1}, ""),
        ("kill@6", {"n": 2}, ""),
        ("kill@7", {"n": 2}, ""),
        ("kill@7", {"n": 1}, "lost"),
        ("kill@0", {"n": 1}, "torn"),
    ],
)
def test_a_store_loads_the_acked_value_or_the_one_being_saved(state_id: str, loaded: Any, kind: str) -> None:
    """Old or new, never a mix; acked means new; nothing there only before the first ack."""
    assert store(state_id, loaded).kind == kind


def test_true_is_not_one() -> None:
    """Values are compared as JSON, where true and 1 are two things."""
    assert store("kill@4", {"n": True}).kind == "torn"


def test_a_prefix_policy_allows_any_earlier_value() -> None:
    """With acked="prefix" an older saved value will do, an unsaved one will not."""
    policy = Policy(acked="prefix")
    assert store("kill@7", {"n": 1}, policy=policy).kind == ""
    assert store("kill@7", None, policy=policy).kind == ""
    assert store("kill@7", {"n": 3}, policy=policy).kind == "torn"


def test_a_load_that_raises_is_lost_after_an_ack_and_stuck_before() -> None:
    """For a Store a refusal after a kill loses the acked value."""
    reference = Reference(kind="Store", trace=STORE, nothing={"value": None})
    assert judge(reference, "kill@6", raised()).kind == "lost"
    assert judge(reference, "kill@3", raised()).kind == "stuck"


def test_refusing_passes_only_where_the_policy_allows_it() -> None:
    """The same refusal is a violation under kill's default and refused under refuse=True."""
    reference = Reference(kind="Store", trace=STORE, nothing={"value": None})
    assert judge(reference, "kill@6", raised()).verdict == "violation"
    assert judge(reference, "kill@6", raised(), policy=Policy(refuse=True)).verdict == "refused"


def test_a_refusal_that_overwrites_the_evidence_is_a_violation_even_where_refusing_is_allowed() -> None:
    """Evidence is kept unless the policy says any."""
    reference = Reference(kind="Store", trace=STORE, nothing={"value": None})
    step = raised(destroyed=("a",))
    assert judge(reference, "kill@6", step, policy=Policy(refuse=True)).kind == "evidence-destroyed"
    assert judge(reference, "kill@6", step, policy=Policy(refuse=True, evidence="any")).verdict == "refused"


def test_a_second_recovery_that_differs_is_diverged() -> None:
    """Recovering twice must give the same."""
    judgement = store("kill@7", {"n": 2}, again={"n": 1})
    assert (judgement.kind, judgement.problems[0].step) == ("diverged", "second")


def test_one_more_value_must_be_taken_and_found() -> None:
    """A save that fails after recovery is stuck; one that is not there afterwards is lost."""
    assert store("kill@7", {"n": 2}, more={"error": "OSError: locked"}).kind == "stuck"
    assert store("kill@7", {"n": 2}, third={"n": 2}).kind == "lost"
    assert store("kill@7", {"n": 2}, third=raised("third")).kind == "lost"


@pytest.mark.parametrize(
    ("state_id", "loaded", "kind"),
    [
        ("kill@0", [], ""),
        ("kill@3", [1], ""),
        ("kill@3", [1, 2], ""),
        ("kill@4", [1, 2], ""),
        ("kill@4", [1], "lost"),
        ("kill@4", [2], "hole"),
        ("kill@4", [2, 1], "hole"),
        ("kill@4", [1, 2, 2], "duplicate-entry"),
        ("kill@4", [1, 2, 9], "torn"),
        ("kill@4", [], "silent-reset"),
        ("kill@6", [1, 2, 3], ""),
        ("kill@6", [1, 2, 4], "hole"),
        ("kill@7", [1, 2, 3, 4], ""),
        ("kill@7", [1, 2, 3], "lost"),
    ],
)
def test_a_log_keeps_every_acked_event_in_order(state_id: str, loaded: list[Any], kind: str) -> None:
    """Acked events whole and in order, then at most a beginning of the batch being appended."""
    assert log(state_id, loaded).kind == kind


def test_an_atomic_batch_is_whole_or_absent() -> None:
    """With atomic=True half a batch is torn."""
    assert log("kill@6", [1, 2, 3], atomic=True).kind == "torn"
    assert log("kill@6", [1, 2], atomic=True).kind == ""
    assert log("kill@6", [1, 2, 3, 4], atomic=True).kind == ""


def test_a_subject_reaches_the_uncrashed_end_with_each_effect_once() -> None:
    """The rest of the effects is done by the resumed run."""
    assert agent("kill@4", MAIL, REPORT).verdict == "consistent"
    assert agent("kill@5", REPORT).verdict == "consistent"
    assert agent("kill@9").verdict == "consistent"


def test_an_effect_done_again_is_a_duplicate() -> None:
    """What was done before the crash stays done."""
    judgement = agent("kill@5", MAIL, REPORT)
    assert judgement.kind == "duplicate-effect"
    assert judgement.problems[0].summary == "mail to=ada done 2 times, expected 1"
    assert agent("kill@5", MAIL, REPORT, policy=Policy(effects="at-least-once")).verdict == "consistent"


def test_an_effect_that_never_happens_is_missing() -> None:
    """The resumed run must finish the work."""
    assert agent("kill@4", REPORT).kind == "missing-effect"
    assert agent("kill@4", REPORT, policy=Policy(effects="at-most-once")).verdict == "consistent"


def test_a_known_key_is_no_second_effect() -> None:
    """The outside world refused the repetition, so nothing was done."""
    known = t.Effect(n=1, name="mail", detail={"to": "ada"}, receipt="mail-1", counted=False)
    assert agent("kill@5", known, REPORT).verdict == "consistent"


def test_an_honest_unknown_excuses_one_missing_effect_and_what_waits_for_it() -> None:
    """Between mark and record the files cannot tell: a person must decide, and the rest waits."""
    unknown = t.Unknown(n=1, name="mail", detail={"to": "ada"})
    assert agent("kill@4", unknown, end="waiting").verdict == "consistent"
    assert agent("kill@5", unknown, end="waiting").verdict == "consistent"


def test_a_needless_unknown_is_a_violation() -> None:
    """Answering unknown everywhere never passes."""
    unknown = t.Unknown(n=1, name="mail", detail={"to": "ada"})
    assert agent("kill@8", unknown, REPORT).kind == "needless-unknown"
    assert agent("kill@0", unknown, end="waiting").problems[-1].kind == "needless-unknown"


def test_another_end_is_diverged() -> None:
    """Without check the ends are compared."""
    assert agent("kill@9", end="other").kind == "diverged"


def test_a_failed_check_has_its_own_kind() -> None:
    """A Violation raised in check names the kind."""
    assert agent("kill@9", check={"kind": "invalid-transcript", "text": "two results"}).kind == "invalid-transcript"


def test_what_a_refused_transcript_leaves_undone_is_no_finding_of_its_own() -> None:
    """The model's server refuses, so the rest is never done; an effect done twice is told all the same."""
    refused = {"kind": "invalid-transcript", "text": "the server answered 400"}
    assert [problem.kind for problem in agent("kill@4", check=refused).problems] == ["invalid-transcript"]
    assert agent("kill@5", MAIL, check=refused).kind == "duplicate-effect"


def test_hang_and_left_processes_are_told() -> None:
    """A recovery without an end, and one that leaves a process, are violations whatever it returned."""
    reference = Reference(kind="Store", trace=STORE, nothing={"value": None})
    assert judge(reference, "kill@7", Step(step="first", how="hang")).kind == "hang"
    step = Step(step="first", how="returned", value={"value": {"n": 2}}, left=("sleep 60",))
    assert judge(reference, "kill@7", step).kind == "left-process"


def test_no_answer_is_unmeasured() -> None:
    """Where recovery was never called there is nothing to judge."""
    assert judge(Reference(kind="Store", trace=STORE), "kill@7").verdict == "unmeasured"


def test_the_gravest_kind_comes_first() -> None:
    """A duplicate effect outranks another end."""
    judgement = agent("kill@5", MAIL, REPORT, end="other")
    assert [problem.kind for problem in judgement.problems] == ["duplicate-effect", "diverged"]
