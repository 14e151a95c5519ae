"""Tests of longrun.capstone.subjects: each scene comes to its end without a crash, and each demand can fail."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from crashlab.errors import Violation
from crashlab.lab import Lab
from longrun.capstone import correct, naive_wipes_ledger
from longrun.capstone.subjects import MOST_DEATHS, PAGER
from longrun.ledger import LEDGER_NAME
from longrun.resume.reconcile import ATTEMPT_LIMIT

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.subject import Subject

ENDS = {
    "subject_fresh": "done",
    "subject_waiting": "done",
    "subject_waiting_hasty": "done",
    "subject_turns": "stopped",
    "subject_tokens": "stopped",
    "subject_poison": "done",
}


@pytest.fixture
def lab(quick_path: Path) -> Lab:
    return Lab(quick_path, lambda _event, **_fields: None)


def run(lab: Lab, subject: Subject) -> Any:
    """The end of the uncrashed run, which the lab expects from then on."""
    end = subject.run(lab)
    assert subject.view is not None
    lab._expected = copy.deepcopy(subject.view(end))
    return end


def judge(lab: Lab, subject: Subject, end: Any) -> None:
    assert subject.check is not None
    with lab.checking():
        subject.check(lab, end)


@pytest.mark.parametrize(("name", "status"), ENDS.items())
def test_each_scene_comes_to_its_end(lab: Lab, name: str, status: str) -> None:
    """Uncrashed, and resumed when all is over: the same end, and the check is content with both."""
    subject = getattr(correct, name)
    end = run(lab, subject)
    assert end["status"] == status
    judge(lab, subject, end)
    assert subject.resume is not None
    judge(lab, subject, subject.resume(lab))


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("subject_turns", {"status": "done"}, "expected stopped"),
    ("subject_turns", {"reason": "max_tokens"}, "expected turn_limit"),
    ("subject_turns", {"turns": correct.TURNS + 1}, "the cap is evaded: 6 turns"),
    ("subject_turns", {"requests": correct.TURNS + 1}, "the cap is evaded: 6 requests"),
    ("subject_tokens", {"reason": "turn_limit"}, "expected token_limit"),
    ("subject_tokens", {"requests": 99}, "the cap is evaded: 99 requests"),
    ("subject_waiting", {"status": "waiting"}, "though a person has answered"),
    ("subject_poison", {"status": "stopped"}, "expected done"),
    ("subject_fresh", {"requests_after_end": 1}, "asked the model again"),
]


@pytest.mark.parametrize(("name", "wrong", "words"), WRONG)
def test_a_wrong_end_is_refused(lab: Lab, name: str, wrong: dict[str, Any], words: str) -> None:
    """One thing of the end is otherwise, and the check says which."""
    subject = getattr(correct, name)
    end = run(lab, subject)
    judge(lab, subject, end)
    with pytest.raises(Violation, match=words):
        judge(lab, subject, {**end, **wrong})


def test_a_page_that_did_not_ring_is_seen(lab: Lab) -> None:
    """The world counts, not the status."""
    end = run(lab, correct.subject_waiting)
    with pytest.raises(Violation, match="pages are"):
        judge(lab, correct.subject_waiting, {**end, "world": {**end["world"], "pages": []}})


def test_a_question_that_nobody_is_asked_is_a_missing_effect(lab: Lab) -> None:
    """The ledger ends with an act that is unknown, and the end tells of none."""
    end = run(lab, correct.subject_waiting)
    path = lab.dir / LEDGER_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    unknown = next(
        number for number, line in enumerate(lines) if b'"outcome":"unknown"' in line and PAGER.encode() in line
    )
    path.write_bytes(b"".join(lines[: unknown + 1]))
    lab._acked = []
    with pytest.raises(Violation, match="the question is forgotten") as caught:
        judge(lab, correct.subject_waiting, end)
    assert caught.value.kind == "missing-effect"


def test_more_deaths_than_attempts_are_a_hang(lab: Lab) -> None:
    """Three are what a limit of three attempts costs; the fourth shows that there is none."""
    end = run(lab, correct.subject_poison)
    judge(lab, correct.subject_poison, {**end, "deaths": ATTEMPT_LIMIT})
    with pytest.raises(Violation, match="never ends") as caught:
        judge(lab, correct.subject_poison, {**end, "deaths": ATTEMPT_LIMIT + 1})
    assert caught.value.kind == "hang"
    assert MOST_DEATHS > ATTEMPT_LIMIT


def test_a_plain_start_over_history_changes_nothing(lab: Lab) -> None:
    """The correct one leaves every file; the naive one leaves a run that knows of nothing before."""
    run(lab, correct.subject_fresh)
    before = (lab.dir / LEDGER_NAME).read_bytes()
    assert correct.subject_fresh.resume is not None
    correct.subject_fresh.resume(lab)
    assert (lab.dir / LEDGER_NAME).read_bytes() == before
    assert naive_wipes_ledger.subject.resume is not None
    naive_wipes_ledger.subject.resume(lab)
    assert (lab.dir / LEDGER_NAME).read_bytes() != before
    assert len(lab.records("send_reply")) == 4
