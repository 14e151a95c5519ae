"""A batch: one submission never stops another, the same file is judged once, and a killed grading goes on."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog, cli
from crashcourse.grading import batch, housing
from crashcourse.grading.roster import Submission
from crashcourse.grading.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Sequence

EXERCISE = catalog.find("unbreakable-save")
SOLUTION = (EXERCISE.folder / "solution" / EXERCISE.file).read_bytes()
SECRET = b"a secret of these tests"
SLEEPS = b"import time\ntime.sleep(1e6)\n"
ENDS = b"import os\nos._exit(0)\n"
KILLS_PARENTS = b"""
import os, signal

def save(dir, state):
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)

def load(dir):
    return None
"""
ENDING_LIMIT_S = 300.0
"""What is killed leaves nothing; how fast depends on the machine."""


def plan_in(folder: Path, **changes: object) -> batch.Plan:
    shelf = Shelf(folder, SECRET)
    shelf.prepare()
    return batch.Plan(**{"shelf": shelf, "isolation": "same-user", "cases": ("end",), "limit_s": 100.0, **changes})  # type: ignore[arg-type]  # the values are those of the fields


def submission(student: str, data: bytes) -> Submission:
    return Submission(student=student, exercise=EXERCISE, data=data)


def test_none_stops_another(tmp_path: Path) -> None:
    """One that ends its process, one that kills others, one that is no Python: the honest one passes."""
    plan = plan_in(tmp_path, jobs=2)
    files = {"b": ENDS, "c": KILLS_PARENTS, "d": b"def (", "e": SOLUTION}
    graded = batch.grade(plan, [submission(name, data) for name, data in files.items()], lambda _: None)
    statuses = [each.whole["status"] for each in graded]
    assert all(status in ("fail", "incomplete") for status in statuses[:3]), statuses
    assert statuses[3] == "pass"
    assert [each.whole["points"] for each in graded] == [0, 0, 0, 6]
    assert not list(Path(tempfile.gettempdir()).glob("crashcourse-*"))


@pytest.mark.parametrize(
    "slug",
    [
        # One in each run; that of all exercises the grader is right about their solutions takes long.
        pytest.param(each.slug, marks=[] if each.slug == "ways-back" else [pytest.mark.full], id=each.slug)
        for each in catalog.exercises()
    ],
)
def test_what_another_user_runs_finds_what_it_needs(slug: str, tmp_path: Path) -> None:
    """The first case of each solution, judged with the best isolation that works here: whatever a judge puts into a
    file for its children has to be readable by the guest, or a right answer gets nothing."""
    isolation, why = housing.find()
    if isolation == "same-user":
        pytest.skip(f"no other user can run submissions here: {why}; run the tests as root on Linux")
    exercise = catalog.find(slug)
    plan = plan_in(tmp_path, isolation=isolation, cases=(exercise.cases[0].id,), limit_s=900.0)
    whole = Submission(student="a", exercise=exercise, data=(exercise.folder / "solution" / exercise.file).read_bytes())
    (graded,) = batch.grade(plan, [whole], lambda _: None)
    cases = [(case["id"], case["verdicts"], case["message"]) for case in graded.whole["cases"]]
    assert graded.whole["status"] == "pass", cases
    assert graded.whole["points"] == exercise.cases[0].points


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    """At the limit, with all its processes; it is incomplete, and the next one's turn comes."""
    missing = Submission(student="b", exercise=EXERCISE, problem="nothing was handed in")
    graded = batch.grade(plan_in(tmp_path, limit_s=4.0), [submission("a", SLEEPS), missing], lambda _: None)
    assert [each.whole["status"] for each in graded] == ["incomplete", "incomplete"]
    assert "did not end within 4 s" in graded[0].whole["cases"][0]["message"]
    assert "nothing was handed in" in graded[1].public["cases"][0]["message"]
    assert not list(Path(tempfile.gettempdir()).glob("crashcourse-*"))


def test_the_same_file_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results say so, and name nobody."""
    started = []
    real = batch._Warden.ask

    def counted(self: batch._Warden, group: Sequence[Submission]) -> None:
        started.append(group)
        real(self, group)

    monkeypatch.setattr(batch._Warden, "ask", counted)
    graded = batch.grade(
        plan_in(tmp_path), [submission(name, b"def (") for name in ("zacharias", "bob")], lambda _: None
    )
    assert len(started) == 1
    assert [each.whole["notices"] for each in graded] == [[batch.TWICE]] * 2
    assert json.dumps([each.whole for each in graded]).count("zacharias") == 0


def test_what_was_judged_is_not_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file, seed and version: the second run starts no judge; another secret starts one again."""
    both = [submission("ann", b"def ("), submission("bob", ENDS)]
    first = batch.grade(plan_in(tmp_path), both, lambda _: None)
    with monkeypatch.context() as patch:
        patch.setattr(batch, "_judged", lambda _plan, groups: (pytest.fail("judged again") for _ in groups))
        again = batch.grade(plan_in(tmp_path), both, lambda _: None)
    assert [each.before for each in again] == [True, True]
    assert [each.whole for each in again] == [each.whole for each in first]
    other = batch.Plan(shelf=Shelf(tmp_path, b"another"), cases=("end",), limit_s=100.0)
    assert [each.before for each in batch.grade(other, both[:1], lambda _: None)] == [False]


@pytest.mark.skipif(not hasattr(select, "poll"), reason="the grader waits with poll, which Linux and macOS have")
def test_a_grading_that_was_killed_goes_on(tmp_path: Path) -> None:
    """SIGKILL after the first results: they are whole, everything else is gone, and only the rest is judged."""
    folder, out = tmp_path / "in", tmp_path / "out"
    for name, data in {"a": b"def (", "b": ENDS, "c": SLEEPS}.items():
        (folder / name).mkdir(parents=True)
        (folder / name / EXERCISE.file).write_bytes(data)
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    arguments = ["grade", str(folder), "--exercise", "2.2", "--out", str(out), "--jobs", "1"]
    descriptor = os.open(secret, os.O_RDONLY)
    process = subprocess.Popen(
        [sys.executable, "-m", "crashcourse", *arguments, "--limit", "100", "--seed-fd", str(descriptor)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[descriptor],
    )
    os.close(descriptor)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[2/3]"):
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    wait_for_the_end_of_wardens()
    assert sorted(path.parent.parent.name for path in out.glob("*/*/result.json")) == ["a", "b"]
    kept = {path: path.stat().st_mtime_ns for path in out.glob("*/*/*")}
    assert not list(Path(tempfile.gettempdir()).glob("crashcourse-*"))
    (folder / "c" / EXERCISE.file).write_bytes(b"x = (")
    table = tmp_path / "grades.csv"
    assert cli.main([*arguments, "--csv", str(table), "--seed-fd", str(os.open(secret, os.O_RDONLY))]) == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    lines = table.read_text().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["a", "fail"], ["b", "fail"], ["c", "fail"]]


def wait_for_the_end_of_wardens() -> None:
    """Until the folders of the grading are gone: a warden removes its own as its last act, a shell the others."""
    deadline = time.monotonic() + ENDING_LIMIT_S
    while folders() and time.monotonic() < deadline:
        continue


def folders() -> list[Path]:
    """Those of gradings that live, or are just being removed."""
    return list(Path(tempfile.gettempdir()).glob("crashcourse-*"))


def test_a_guest_can_read_what_a_judge_hands_over(tmp_path: Path) -> None:
    """The plan of the exercise 3.1 lies outside of the guest's own places."""
    exercise, (isolation, _) = catalog.find("ways-back"), housing.find()
    if isolation == "same-user":
        pytest.skip("only root makes guests")
    data = (exercise.folder / "solution" / exercise.file).read_bytes()
    plan = plan_in(tmp_path, isolation=isolation, hidden=housing.hidden(), cases=("branch.2",))
    (graded,) = batch.grade(plan, [Submission(student="a", exercise=exercise, data=data)], lambda _: None)
    assert graded.whole["status"] == "pass", graded.whole


def test_an_interruption_leaves_what_was_kept(tmp_path: Path) -> None:
    """Control-C in the middle: no process is left, the first result is."""

    def interrupt(_: batch.Graded) -> None:
        raise KeyboardInterrupt

    plan = plan_in(tmp_path, jobs=2)
    with pytest.raises(KeyboardInterrupt):
        batch.grade(plan, [submission("a", b"def ("), submission("b", SLEEPS)], interrupt)
    assert [path.parent.parent.name for path in tmp_path.glob("*/*/result.json")] == ["a"]
    assert not list(Path(tempfile.gettempdir()).glob("crashcourse-*"))


def test_a_judge_that_fails_is_no_verdict_on_the_submission(tmp_path: Path) -> None:
    """A guest that cannot be: judge-error, with the reason for who grades and without it for the student."""
    if housing.find()[0] == "same-user":
        pytest.skip("only root makes guests")
    plan = plan_in(tmp_path, isolation="user", hidden=())
    plan.shelf.folder.chmod(0o700)
    broken = Path(tempfile.gettempdir())
    mode = broken.stat().st_mode
    broken.chmod(0o700)
    try:
        (graded,) = batch.grade(plan, [submission("a", SOLUTION)], lambda _: None)
    finally:
        broken.chmod(mode)
    assert (graded.whole["status"], graded.public["status"]) == ("judge-error", "judge-error")
    assert "Permission denied" in graded.whole["error"]
    assert "Permission denied" not in json.dumps(graded.public)
    (again,) = batch.grade(plan_in(tmp_path), [submission("a", SOLUTION)], lambda _: None)
    assert (again.before, again.whole["status"]) == (False, "pass")
