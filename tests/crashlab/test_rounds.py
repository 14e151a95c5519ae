"""One round over all states of a fault: how often a subject is resumed, and in which processes."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, Commands, Policy, Store, Subject, explore, rounds
from crashlab.asking import addressed, request
from crashlab.crash.ids import state_of
from crashlab.demands import Reference, mend_check
from crashlab.recover.host import ALWAYS_ISOLATED, Host
from tests.crashlab import subjects
from tests.crashlab.here import needs_strace
from tests.crashlab.traces import ack, create, trace_of
from tests.quality import memories, programs, stores

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Lab, Report
    from crashlab.crash.states import CrashState
    from crashlab.subject import AnySubject

NO_KILLS = Budget(real_kills=0)


def asked_for(kind: str, *, together: bool) -> tuple[list[str], bool]:
    """The steps that a worker is asked for, and whether one process may take them with those of other states."""
    trace = trace_of(ack())
    asked = request(state_of(trace, "kill@1"), Reference(kind=kind, trace=trace), timeout_s=1.0, together=together)
    return [step["step"] + ("+again" if step.get("again") else "") for step in asked["steps"]], "warm" in asked


def test_a_store_recovers_twice_and_takes_one_more_value() -> None:
    """Recover, recover and save, find, whoever does it."""
    assert asked_for("Store", together=True) == (["first", "second", "third"], True)
    assert asked_for("Log", together=False) == (["first", "second", "third"], False)


def test_a_subject_resumes_twice_and_a_command_is_always_a_new_process() -> None:
    """Of a command only the process that starts it is shared."""
    assert asked_for("Subject", together=True) == (["first", "second"], True)
    assert asked_for("Subject", together=False) == (["first", "second"], False)
    assert asked_for("Commands", together=True) == (["first+again"], False)


@pytest.mark.parametrize("subject", memories.LIVE_FROM_MEMORY)
def test_what_a_process_remembers_is_found_out(
    subject: AnySubject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would pass in a process that has recovered before; the findings are those of processes of their own."""
    shared = explore(subject, faults="kill", out=tmp_path, budget=NO_KILLS)
    monkeypatch.setenv(ALWAYS_ISOLATED, "1")
    isolated = explore(subject, faults="kill", out=tmp_path, budget=NO_KILLS)
    assert shared.verdict == "violation"
    assert gist(shared) == gist(isolated)
    assert [fault.violation for fault in shared.faults] == [fault.violation for fault in isolated.faults]
    assert (shared.settings.recovery, isolated.settings.recovery) == ("isolated", "isolated")
    assert "something stays in memory" in shared.notes[0]
    assert not isolated.notes


@needs_strace
def test_a_command_keeps_nothing_in_memory(tmp_path: Path) -> None:
    """What it does otherwise the second time, here failing once for no reason, is no sign of a shared process."""
    once = f"if [ -e {tmp_path}/ran ] && [ ! -e {tmp_path}/failed ]; then touch {tmp_path}/failed; exit 1; fi"
    subject = Commands("echo 1 >{dir}/a", f"{once}; touch {tmp_path}/ran", check="true", name="odd")
    report = explore(subject, faults="kill", out=tmp_path / "out", budget=NO_KILLS, jobs=1)
    assert (tmp_path / "failed").exists()
    assert [note for note in report.notes if "memory" in note] == []


@pytest.mark.parametrize(("kind", "words"), [("Commands", "exit with 0"), ("Subject", "raise AssertionError")])
def test_a_check_is_mended_in_its_own_language(kind: str, words: str) -> None:
    """A program raises no AssertionError that anybody would hear of."""
    assert words in mend_check(Reference(kind=kind, trace=trace_of(ack())))


def test_that_nothing_recovers_is_said_once(tmp_path: Path) -> None:
    """Not once per fault: the recovery is the same."""

    def run(lab: Lab) -> None:
        (lab.dir / "a").write_text("1")

    def resume(_lab: Lab) -> None:
        raise RuntimeError

    report = explore(Subject(run, resume), faults="kill,power", out=tmp_path, budget=NO_KILLS)
    assert len(report.faults) == 2
    assert [reason.code for reason in report.unmeasured].count("never-recovered") == 1


def test_where_nothing_was_lost_no_barrier_is_spoken_of(tmp_path: Path) -> None:
    """A resume that only loads goes another way after each crash: that is told as for a kill."""

    def run(lab: Lab) -> str:
        for text in ("1", "2"):
            (lab.dir / "a").write_text(text)
        return "2"

    def resume(lab: Lab) -> str:
        return (lab.dir / "a").read_text() if (lab.dir / "a").exists() else ""

    report = explore(Subject(run, resume), faults="power", out=tmp_path, budget=NO_KILLS)
    same = [finding for finding in report.findings if "a kill here ends the same way" in finding.why]
    assert {finding.kind for finding in same} == {"diverged"}, report
    for finding in same:
        assert "Where it only loads what is there" in " ".join(finding.advice)
        assert "barrier" not in " ".join(finding.advice)


def test_a_shared_process_that_is_believed_hides_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sabotage: where nothing is compared, what lives from memory passes."""
    believed(monkeypatch)
    report = explore(memories.DONE_IN_MEMORY, faults="kill", out=tmp_path, budget=NO_KILLS, jobs=1)
    assert (report.verdict, report.settings.recovery) == ("consistent", "warm")


def believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compared with processes of their own."""
    monkeypatch.setattr(rounds, "COMPARED_FIRST", 0)
    monkeypatch.setattr(rounds, "COMPARED_EVERY", 1 << 32)


EMPTIED = "damage:empty,damage:missing,damage:truncate"
REFUSES_BY_MEMORY = [
    pytest.param(memories.GOES_ON_REFUSING, id="after a refusal"),
    pytest.param(memories.KNOWS_THAT_THERE_WAS, id="after a state that was read"),
]


@pytest.mark.parametrize("subject", REFUSES_BY_MEMORY)
def test_a_refusal_in_a_shared_process_is_met_again_in_one_of_its_own(
    subject: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would pass as refused on what it takes for nothing in a new process, although nothing is compared."""
    believed(monkeypatch)
    monkeypatch.setattr(rounds, "FAILING_IN_PASSING", 1_000)  # else the shared process is given up after a few
    report = explore(subject, faults=EMPTIED, out=tmp_path, budget=NO_KILLS, jobs=1)
    assert (report.findings[0].kind, report.settings.recovery) == ("silent-reset", "isolated")
    monkeypatch.setattr(rounds, "BELIEVED", ("consistent", "refused"))  # the sabotage
    believing = explore(subject, faults=EMPTIED, out=tmp_path, budget=NO_KILLS, jobs=1)
    assert believing.faults[0].violation < report.faults[0].violation


def test_where_most_are_refused_the_shared_process_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them needs a process of its own anyway; what comes out is the same."""
    shared: list[bool] = []

    def counted(state: CrashState, reference: Reference, *, timeout_s: float, together: bool) -> dict[str, Any]:
        shared.append(together)
        return request(state, reference, timeout_s=timeout_s, together=together)

    def judged() -> dict[str, Any]:
        shared.clear()
        (count,) = explore(stores.ATOMIC, faults="damage:truncate", out=tmp_path, budget=NO_KILLS, jobs=1).faults
        assert count.refused == count.judged > 10, count
        return dataclasses.asdict(dataclasses.replace(count, seconds=0.0, first_violation_s=0.0))

    monkeypatch.setattr(rounds, "request", counted)
    given_up, few = judged(), sum(shared)
    monkeypatch.setattr(rounds, "FAILING_IN_PASSING", 1_000)  # the sabotage
    assert (judged(), sum(shared)) == (given_up, given_up["judged"])
    assert few < given_up["judged"] // 2


def gist(report: Report) -> list[tuple[Any, ...]]:
    """What was found, but for what names the run."""
    return [(each.id, each.kind, each.summary, each.same, each.observed, each.disk) for each in report.findings]


def test_ends_that_were_not_compared_are_told(tmp_path: Path) -> None:
    """After an honest unknown a person must decide; without check nobody says what must hold until then."""
    report = explore(programs.HONEST_UNKNOWN, faults="kill", out=tmp_path, budget=NO_KILLS)
    assert any("the end was not compared" in note for note in report.notes)


def test_a_lock_held_for_life_is_no_alarm(tmp_path: Path) -> None:
    """In one process the second resume would collide with the first; a process that keeps a file open is not shared."""
    report = explore(programs.LEASED, faults="kill", out=tmp_path, budget=NO_KILLS)
    assert report.verdict == "consistent", str(report)


# --- power loss -----------------------------------------------------------------------------------


@pytest.fixture
def asked_of_workers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The id of each state that is recovered in a check."""
    seen: list[str] = []
    recover = Host.recover

    def noting(host: Host, requests: Any) -> Any:
        def noted() -> Any:
            for each in requests:
                seen.append(each["state"])
                yield each

        return recover(host, noted())

    monkeypatch.setattr(Host, "recover", noting)
    return seen


def test_a_worker_is_told_how_to_find_a_state() -> None:
    """By its recipe, read under a profile; a state without a recipe travels as its tree."""
    trace = trace_of(create("a", 10))
    reference = Reference(kind="Store", trace=trace, rebuilt=("*-shm",))
    assert addressed(state_of(trace, "kill@1"), reference) == {
        "state": "kill@1",
        "profile": None,
        "rebuilt": ("*-shm",),
    }
    lost = state_of(trace, "power@1-1", profile="posix")
    assert addressed(lost, reference) == {"state": "power@1-1", "profile": "posix", "rebuilt": ("*-shm",)}
    odd = dataclasses.replace(lost, recipe=None)
    assert addressed(odd, reference) == {"state": "power@1-1", "tree": lost.tree.to_json(), "done": 1}


def test_what_passed_under_a_kill_is_not_recovered_again(tmp_path: Path, asked_of_workers: list[str]) -> None:
    """Equal files, effects and acks: known, counted as judged, and in the matrix."""
    report = explore(subjects.DURABLE_SMALL, out=tmp_path, budget=NO_KILLS)
    kill, power = report.faults
    recovered = [state_id for state_id in asked_of_workers if state_id.startswith("power@")]
    assert report.verdict == "consistent", str(report)
    assert (kill.known, power.judged) == (0, power.distinct)
    assert 0 < power.known == power.distinct - len(recovered)
    assert len(set(recovered)) == len(recovered)
    assert {row.power for row in report.matrix} == {"consistent"}


def test_what_passed_under_other_demands_is_recovered_again(tmp_path: Path) -> None:
    """A kill that may refuse says nothing about a power loss that may not."""
    lenient = {"kill": Policy(refuse=True)}
    report = explore(subjects.DURABLE_SMALL, policy=lenient, out=tmp_path, budget=NO_KILLS)
    assert (report.verdict, report.faults[1].known) == ("consistent", 0)


def test_enough_failing_states_of_a_moment_are_enough(tmp_path: Path, asked_of_workers: list[str]) -> None:
    """The rest of that moment is left out, which is counted and told; other moments are still tried."""
    whole = explore(subjects.SMALL, faults="power", out=tmp_path, budget=Budget(real_kills=0, violations=500_000))
    asked_of_workers.clear()
    short = explore(subjects.SMALL, faults="power", out=tmp_path, jobs=1, budget=Budget(real_kills=0, violations=1))
    [all_of_them], [some] = whole.faults, short.faults
    assert (whole.verdict, short.verdict) == ("violation", "violation")
    assert {finding.kind for finding in short.findings} <= {finding.kind for finding in whole.findings}
    assert not any("left out" in note for note in whole.notes)
    assert 0 < some.violation < all_of_them.violation
    assert some.judged == some.distinct < all_of_them.distinct
    [note] = [note for note in short.notes if "left out" in note]
    told = re.match(
        r"power: (\d+) states were left out at moments where others had failed already; budget='full'", note
    )
    assert told
    assert int(told[1]) >= all_of_them.distinct - some.distinct
    moments = {state_id.partition("-")[0] for state_id in asked_of_workers if state_id.startswith("power@")}
    assert len(moments) > 1


def test_states_that_pass_are_never_left_out(tmp_path: Path) -> None:
    """The limit is one of violations: a correct store is tried whole."""
    budgets = [Budget(real_kills=0, violations=violations) for violations in (1, 500_000)]
    one, all_of_them = (
        explore(subjects.DURABLE_SMALL, faults="power", out=tmp_path, budget=budget).faults[0] for budget in budgets
    )
    assert one.distinct == all_of_them.distinct == one.consistent


# --- damage ---------------------------------------------------------------------------------------


def test_damage_of_a_kind_that_these_files_cannot_have_is_no_pass(tmp_path: Path) -> None:
    """One file cannot be exchanged for another: nothing was judged, and that is not consistent."""
    report = explore(subjects.DURABLE_SMALL, faults="damage:swap", out=tmp_path, budget=NO_KILLS)
    assert (report.verdict, report.faults[0].judged) == ("unmeasured", 0)
    assert [reason.code for reason in report.unmeasured] == ["bound"]
    assert "damage:swap: these files have nothing that can be damaged so" in report.unmeasured[0].detail


def test_advice_is_given_also_where_no_state_may_be_recovered_anew(tmp_path: Path) -> None:
    """A budget of none is a budget."""
    report = explore(subjects.SMALL, faults="power", out=tmp_path, budget=Budget(anew=0, real_kills=0))
    assert report.verdict == "violation"
    assert report.findings[0].advice


@pytest.mark.parametrize("at_most", [1, 1_000])
def test_after_some_recoveries_without_an_end_the_rest_is_left_out_and_told(
    at_most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would take its whole time limit. Without that bound, which is the sabotage, all are met."""
    monkeypatch.setattr(rounds, "HANGS_AT_MOST", at_most)
    store = dataclasses.replace(stores.WAITS_FOR_LOCK, values=[{"n": 1}, {"n": 2}])
    report = explore(store, faults="kill", out=tmp_path, budget=NO_KILLS, jobs=1)
    told = [note for note in report.notes if "states were left out, since" in note]
    assert ({finding.kind for finding in report.findings}, len(told)) == ({"hang"}, int(at_most == 1))


@pytest.mark.parametrize("lost", [None, 2])
def test_who_asks_only_whether_it_passes_is_told_what_was_left_out(lost: int | None, tmp_path: Path) -> None:
    """After so many violations; None tries every state."""
    budget = dataclasses.replace(NO_KILLS, lost=lost)
    report = explore(stores.IN_PLACE, faults="kill", out=tmp_path, budget=budget, jobs=1)
    told = [note for note in report.notes if "left out, since enough had failed" in note]
    assert (report.verdict, len(told)) == ("violation", int(lost is not None))
