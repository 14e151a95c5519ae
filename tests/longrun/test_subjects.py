"""Tests of longrun.subjects and longrun.demo: the agent as the lab sees it, and a check that can fail."""

from __future__ import annotations

import copy
import importlib
from typing import TYPE_CHECKING, Any

import pytest

from crashlab.errors import Violation
from crashlab.lab import Lab
from crashlab.subject import Subject
from longrun.checkpoint import correct
from longrun.demo import DEMO
from longrun.ledger import LEDGER_NAME
from longrun.resume import correct as resume_correct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EVENTS = ("save-point", "ack", "effect")


class Bench:
    """A lab without processes: it notes the events and keeps the world."""

    def __init__(self, directory: Path) -> None:
        self.events: list[tuple[str, Any]] = []
        self.lab = Lab(directory, self._note)

    def _note(self, event_type: Any, **fields: Any) -> None:
        self.events.append((event_type.KIND, fields))

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]


@pytest.fixture
def bench(quick_path: Path) -> Bench:
    return Bench(quick_path)


def ended(bench: Bench, subject: Subject) -> Any:
    """The end of the uncrashed run, which the lab expects from then on."""
    end = subject.run(bench.lab)
    assert subject.view is not None
    bench.lab._expected = copy.deepcopy(subject.view(end))
    return end


def judge(bench: Bench, subject: Subject, end: Any) -> None:
    """What the lab does at an end: open what is for check only, and ask it."""
    assert subject.check is not None
    with bench.lab.checking():
        subject.check(bench.lab, end)


@pytest.mark.parametrize("path", [exhibit.subject for exhibit in DEMO])
def test_each_subject_of_the_demonstration_runs_and_checks(bench: Bench, path: str) -> None:
    """Uncrashed, naive ones too reach the end and pass their check: only a crash shows the fault."""
    module, _, name = path.partition(":")
    subject = getattr(importlib.import_module(module), name)
    assert isinstance(subject, Subject)
    assert subject.check is not None
    end = ended(bench, subject)
    judge(bench, subject, end)
    assert end["status"] == "done"
    assert subject.resume is not None
    judge(bench, subject, subject.resume(bench.lab))


def test_the_demonstration_shows_the_naive_first() -> None:
    """Four naive subjects with what is wrong with them, then the correct one with either model."""
    assert ["naive" in exhibit.subject for exhibit in DEMO] == [True, True, True, True, False, False]
    assert [bool(exhibit.kind) for exhibit in DEMO] == [True, True, True, True, False, False]


def test_what_only_a_power_loss_shows_is_asked_for_power_losses() -> None:
    """A naive and a correct one: the column for power says something in both senses."""
    powered = [exhibit for exhibit in DEMO if "power" in exhibit.options[0]]
    assert [bool(exhibit.kind) for exhibit in powered] == [True, False]


@pytest.mark.parametrize("subject", [correct.subject, correct.subject_hasty, resume_correct.subject])
def test_what_the_lab_is_told(bench: Bench, subject: Subject) -> None:
    """Every save point is followed at once by its ack; there are enough of both, nine effects, seven requests."""
    ended(bench, subject)
    kinds = bench.kinds()
    assert kinds.count("ack") == kinds.count("save-point") == 32
    assert kinds.count("effect") == 9 + 7
    assert all(kinds[at + 1] == "ack" for at, kind in enumerate(kinds) if kind == "save-point")
    assert set(kinds) == set(EVENTS)


def test_two_runs_end_equal_and_do_the_same(quick_path: Path) -> None:
    """Ids and keys differ between runs; the end and the effects do not."""
    benches = []
    for name in ("one", "two"):
        (quick_path / name).mkdir()
        benches.append(Bench(quick_path / name))
    ends = [correct.subject.run(bench.lab) for bench in benches]
    assert ends[0] == ends[1]
    effects = [[(each.name, each.detail) for each in bench.lab.records()] for bench in benches]
    assert effects[0] == effects[1]
    assert benches[0].lab.records("open_case")[0].key != benches[1].lab.records("open_case")[0].key


def _without_result(end: Any) -> None:
    del end["transcript"][2]["content"][0]


SPOILED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "refused": (lambda end: end.update(refusals=["messages.1: orphan"]), "invalid-transcript"),
    "orphan": (_without_result, "invalid-transcript"),
    "stopped": (lambda end: end.update(status="stopped"), "diverged"),
    "waiting without a question": (lambda end: end.update(status="waiting"), "diverged"),
    "done with a question": (lambda end: end.update(unknown=["page_oncall"]), "diverged"),
    "uncounted tokens": (lambda end: end.update(tokens_not_counted=1), "diverged"),
    "uncounted turn": (lambda end: end.update(turns_not_counted=1), "diverged"),
    "uncounted request": (lambda end: end.update(requests_not_counted=1), "diverged"),
    "asked after the end": (lambda end: end.update(requests_after_end=1), "diverged"),
    "label": (lambda end: end["world"]["labels"].update({"T-101": "spam"}), "diverged"),
    "case": (lambda end: end["world"]["cases"].append("T-102"), "diverged"),
    "report": (lambda end: end["world"].update(report=None), "diverged"),
    "another way": (lambda end: end["transcript"][-1].update(content="Bye."), "diverged"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_the_check_sees_each_wrong_end(bench: Bench, name: str) -> None:
    """Each spoiled end is a violation of its kind."""
    spoil, kind = SPOILED[name]
    end = ended(bench, correct.subject)
    spoil(end)
    assert correct.subject.check is not None
    with pytest.raises(Violation) as caught:
        judge(bench, correct.subject, end)
    assert caught.value.kind == kind


@pytest.mark.parametrize("acked", [{"seq": 99}, {"ledger": 99}])
def test_the_check_misses_what_was_acked(bench: Bench, acked: dict[str, int]) -> None:
    """A save or a record that was acked and is not in the files is lost."""
    end = ended(bench, correct.subject)
    bench.lab._acked = [{"seq": 1}, acked]
    assert correct.subject.check is not None
    with pytest.raises(Violation, match="found save 23 and 9 records") as caught:
        judge(bench, correct.subject, end)
    assert caught.value.kind == "lost"


def test_a_refused_resume_is_told_to_the_check(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server answers 400 the end says so, and the check calls the transcript invalid."""
    monkeypatch.setattr("longrun.loop.DEFINITIONS", [])
    end = correct.subject.run(bench.lab)
    assert end["status"] == "refused by the server"
    assert correct.subject.check is not None
    with pytest.raises(Violation, match="must define tools"):
        judge(bench, correct.subject, end)


def test_an_unknown_is_reported_with_the_details_of_its_effect(bench: Bench) -> None:
    """After a kill between mark and record the lab hears of the page, word for word."""
    died: list[str] = []

    class Died(BaseException):
        """Stands for the end of the process; the files are as a kill leaves them."""

    real = bench.lab.effect

    def effect(name: str, **given: Any) -> str:
        receipt = real(name, **given)
        if name == "page_oncall" and not died:
            died.append(receipt)
            raise Died
        return receipt

    ended_lab = Bench(bench.lab.dir / "other")
    ended_lab.lab.dir.mkdir()
    bench.lab._expected = correct.subject.run(ended_lab.lab)
    bench.lab.effect = effect  # type: ignore[method-assign]  # the world stops this process
    with pytest.raises(Died):
        correct.subject.run(bench.lab)
    assert correct.subject.resume is not None
    end = correct.subject.resume(bench.lab)
    reported = [fields for kind, fields in bench.events if kind == "unknown"]
    page = next(each for each in bench.lab.records() if each.name == "page_oncall")
    assert reported == [{"name": "page_oncall", "key": None, "detail": page.detail}]
    assert (end["status"], end["world"]["pages"]) == ("waiting", ["T-101"])
    assert correct.subject.check is not None
    judge(bench, correct.subject, end)
    assert (bench.lab.dir / LEDGER_NAME).exists()
