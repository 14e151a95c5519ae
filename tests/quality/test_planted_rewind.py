"""The naive ways to rewind and fork: each found by its kind and its family, clean once its one fault is mended."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, Lab, Policy, Store, UsageError, Violation, explore
from crashlab.report.folder import RunFolder
from crashlab.trace import Effect
from longrun.harness import Harness
from longrun.messages import user
from longrun.protocol import Checkpoint
from longrun.rewind import correct, points
from longrun.rewind.subjects import describe_beside
from tests.quality.rewind_agents import DEFECTS, PLANTED

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Report, Subject
    from crashlab.trace import Trace
    from tests.quality.rewind_agents import Planted

FAST = Budget(real_kills=1, nested=3)
AT_THE_END = [name for name, planted in PLANTED.items() if planted.family == "end"]
BY_KILL = [name for name, planted in PLANTED.items() if planted.family == "kill"]
IN_A_STATE = [name for name, planted in PLANTED.items() if planted.family != "end"]


def renamed(planted: Planted, directory: Path) -> str:
    """The path of a copy without name, docstring and title."""
    tree = ast.parse(inspect.getsource(planted.module))
    tree.body = tree.body[1:]  # the docstring says which fault it is
    text = ast.unparse(tree).replace(planted.module.__name__.removeprefix("longrun.").replace(".", "/"), "agent")
    assert "naive" not in text
    (directory / "plain_agent.py").write_text(text)
    return "plain_agent:subject"


def at_the_end(subject: Subject, directory: Path) -> Violation | None:
    """What the subject's own check says of a run without any crash."""
    directory.mkdir()
    lab = Lab(directory, lambda *_given, **_fields: None)
    end = subject.run(lab)
    assert subject.check is not None
    assert subject.view is not None
    with lab.checking(expected=subject.view(end)):
        try:
            subject.check(lab, end)
        except Violation as violation:
            return violation
    return None


# --- the naive modules ------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", AT_THE_END)
def test_a_run_without_a_crash_shows_it(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the stated kind, for what it is; the lab says so before it crashes anything; so with a renamed copy."""
    planted = PLANTED[fault]
    violation = at_the_end(planted.module.subject, tmp_path / "run")
    assert violation is not None
    assert (violation.kind, planted.reaches in str(violation)) == (planted.kind, True), str(violation)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=f"check failed without any crash: .*{planted.reaches}"):
        explore(renamed(planted, tmp_path), faults="kill", out=tmp_path, budget=FAST)


@pytest.mark.parametrize("fault", IN_A_STATE)
def test_one_state_shows_it(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing without a crash, and in that state of that family the stated kind; a renamed copy in the same state."""
    planted = PLANTED[fault]
    assert at_the_end(planted.module.subject, tmp_path / "run") is None
    monkeypatch.syspath_prepend(tmp_path)
    place = planted.where(trace_of(planted.module.subject, tmp_path))
    for path in (f"{planted.module.__name__}:subject", renamed(planted, tmp_path)):
        report = explore(path, faults=planted.family, only=place, out=tmp_path, budget=FAST)
        found(report, planted)
        assert [finding.id for finding in report.findings] == [place]


@pytest.mark.full
@pytest.mark.parametrize("fault", BY_KILL)
def test_a_whole_sweep_finds_it(fault: str, tmp_path: Path) -> None:
    """Among all kills, and with nothing graver than a line that came to another end."""
    planted = PLANTED[fault]
    report = explore(f"{planted.module.__name__}:subject", faults="kill", out=tmp_path, budget=FAST)
    assert planted.kind in {finding.kind for finding in report.findings}, str(report)
    assert {finding.kind for finding in report.findings} <= {"stuck", "diverged"}, str(report)


def trace_of(subject: Subject, out: Path) -> Trace:
    """What the subject does when nothing happens to it."""
    explore(subject, faults="kill", only="kill@1", out=out, budget=FAST)
    return RunFolder.open(None, out).trace()


def found(report: Report, planted: Planted) -> None:
    """Assert that the report is a violation of the stated kind, and nothing graver, for what it is."""
    assert (report.verdict, report.findings[0].kind) == ("violation", planted.kind), str(report)
    assert planted.reaches in str(report.findings), str(report)
    assert not report.unmeasured, str(report)


@pytest.mark.parametrize("fault", PLANTED)
def test_its_one_mend_makes_it_the_twin(fault: str) -> None:
    """It differs from its twin in the exchanged pieces, and in nothing else."""
    planted = PLANTED[fault]
    assert planted.module.WAYS != correct.WAYS
    assert planted.mended() == correct.WAYS
    for piece in planted.pieces:
        kept = tuple(each for each in planted.pieces if each != piece)
        assert replace(planted, pieces=kept).mended() != correct.WAYS, f"{piece} is not exchanged"


def test_each_defect_of_this_lesson_is_a_module_with_a_test() -> None:
    """Every row of the table is a planted module, and each is tried by the test of its family."""
    assert sorted([*AT_THE_END, *IN_A_STATE]) == sorted(PLANTED)
    assert set(DEFECTS) == {2, 3, 13, 16}
    assert len({PLANTED[name].module for name in DEFECTS.values()}) == len(DEFECTS)


# --- the correct twin -------------------------------------------------------------------------------

VALUES = [
    Checkpoint(run_id="r", task=text * size, messages=(user(text),), seq=1)
    for text, size in (("one", 1), ("two", 4000), ("three", 1))
]
EVERYWHERE = "ext4,xfs,btrfs,posix"


@dataclass(eq=False)
class Writer:
    """One owner of a folder of points, which goes on from the head that it met; after an error it looks again."""

    directory: Path
    seq: int | None

    @staticmethod
    def open(lab: Lab) -> Writer:
        points.clear(lab.dir)
        return Writer(lab.dir, Writer.head(lab.dir))

    @staticmethod
    def head(directory: Path) -> int:
        return max(points.numbers(directory), default=0)

    def save(self, value: Checkpoint) -> None:
        seq = Writer.head(self.directory) if self.seq is None else self.seq
        self.seq = None
        points.save(self.directory, replace(value, seq=seq + 1, parent=seq or None))
        self.seq = seq + 1

    def load(self) -> Checkpoint | None:
        return points.load(self.directory)


def the_store(**more: Any) -> Store:
    """The folder of points as a bare store of one value, the head."""
    return Store(Writer.save, Writer.load, open=Writer.open, values=VALUES, view=lambda point: point.task, **more)


@pytest.mark.parametrize("faults", ["kill,power", "error:EIO,error:ENOSPC,error:failed-fsync", "damage", "recovery"])
def test_points_are_a_store_that_nothing_breaks(faults: str, tmp_path: Path) -> None:
    """As a bare store: kills, power losses of every profile, errors at every op, damage, and kills of a recovery."""
    more = {"profile": EVERYWHERE} if "power" in faults else {}
    report = explore(the_store(), faults=faults, out=tmp_path, budget=FAST, **more)
    assert report.verdict == "consistent", str(report)
    assert all(count.judged >= 10 for count in report.faults), str(report)


def test_of_two_writers_of_points_one_is_refused(tmp_path: Path) -> None:
    """Wherever the second one enters: nothing is lost, and no save of the older one comes after it."""
    policy = {"race": Policy(refuse=True)}
    report = explore(the_store(), faults="race", policy=policy, out=tmp_path, budget=replace(FAST, sample=20))
    assert report.verdict == "consistent", str(report)
    assert report.faults[0].refused > 1


def test_run_and_fork_do_each_act_once(tmp_path: Path) -> None:
    """The run stands still amid a reply, and a second owner takes the fork to its end: it waits, and finds it done.

    Without the claim on the act the fork would find no record of it and send the same reply.
    """
    trace = trace_of(correct.subject_beside, tmp_path)
    amid = next(op.n for op in trace.ops if isinstance(op, Effect) and op.name == "send_reply")
    for place in (f"race@{amid - 1}", f"race@{amid}"):
        report = explore(correct.subject_beside, faults="race", only=place, out=tmp_path, budget=FAST)
        assert (report.verdict, report.faults[0].judged) == ("consistent", 1), str(report)
    unclaimed = replace(
        correct.WAYS, harness=replace(correct.HARNESS, claim=Harness(save=points.save, load=points.load).claim)
    )
    subject = describe_beside(unclaimed, name="agent")
    # One op earlier: there the first one holds no lock, whose release would let both run at once.
    report = explore(subject, faults="race", only=f"race@{amid - 1}", out=tmp_path, budget=FAST)
    assert [finding.kind for finding in report.findings] == ["duplicate-effect"], str(report)


@pytest.mark.parametrize("fault", BY_KILL)
def test_the_twin_passes_where_the_naive_one_falls(fault: str, tmp_path: Path) -> None:
    """At the kill that shows the fault."""
    twin = correct.subject
    place = PLANTED[fault].where(trace_of(twin, tmp_path))
    report = explore(twin, faults="kill", only=place, out=tmp_path, budget=FAST)
    assert (report.verdict, report.faults[0].judged) == ("consistent", 1), str(report)


@pytest.mark.full  # two hundred kills; some of them are in the quick profile, by the test above
def test_the_twin_is_clean_under_kills(tmp_path: Path) -> None:
    """The whole workload, rewinding and forking included, with the model that names an act again at once."""
    report = explore("longrun.rewind.correct:subject_hasty", faults="kill", out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)
    assert report.faults[0].judged > 200


FEW = "damage:empty,damage:truncate,damage:missing,damage:foreign,damage:version"


@pytest.mark.full
@pytest.mark.parametrize("name", ["subject", "subject_hasty", "subject_beside"])
@pytest.mark.parametrize("faults", ["kill,power", "recovery", "race", FEW])
def test_the_twin_is_clean(name: str, faults: str, tmp_path: Path) -> None:
    """Every workload and both models, under every fault."""
    more = {"profile": EVERYWHERE} if "power" in faults else {}
    budget = Budget(real_kills=1, nested=6, subset=1, violations=2, sample=25, time_s=1_500.0)
    report = explore(f"longrun.rewind.correct:{name}", faults=faults, out=tmp_path, budget=budget, **more)
    assert report.verdict == "consistent", str(report)
    assert all(count.judged >= 10 for count in report.faults), str(report)
