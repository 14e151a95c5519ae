"""The looks: what each command prints is what the specification shows, in every place that it is printed to.

The texts are in ``looks/``. ``specification.txt`` holds the specification's own examples, letter by letter; in the
others what is measured, such as how many states there are, is masked. All of it is printed by the commands, to real
pseudo terminals and pipes; two checks are made for it, of the cheapest cases, and shown many times.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from crashcourse import catalog, cli, marking, progress, setup, text_view, watching
from crashcourse.catalog import find
from crashcourse.grading import command as grading
from crashcourse.grading import housing
from crashcourse.progress import Standing
from crashcourse.result import Outcome, Result, Shown, rows_of
from crashcourse.screen import Screen
from crashcourse.work import POINTER, Work
from crashlab import doctor
from tests.crashcourse import printed, results
from tests.crashcourse.printed import PLACES, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a pseudo terminal behaves as on Linux")

LOOKS = Path(__file__).parent / "looks"
SLUG = "unbreakable-save"
CASES = frozenset({"end", "kill"})


def kept(name: str) -> str:
    """The text of a file. Where a starter's mark stands, the file cannot have it: it would be taken for a note."""
    return (LOOKS / f"{name}.txt").read_text().replace("{mark}", catalog.MARK)


_BLOCKS = re.split(r"^\$ crashcourse (\w+).*\n", kept("specification"), flags=re.MULTILINE)[1:]
EXAMPLES = dict(zip(_BLOCKS[::2], _BLOCKS[1::2], strict=True))
RED, GREEN, YELLOW = "31", "32", "33"


# --- the scenes ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Scene:
    """What is typed, in a folder that ``prepare`` has made ready; which colour the first word of it has."""

    typed: str
    prepare: Callable[[pytest.MonkeyPatch], object] = lambda _: None
    colour: str = ""
    judged: str = ""
    code: int = 0


def begun(_: pytest.MonkeyPatch) -> None:
    """A learner in the middle of it, whose standings are those of the specification's example."""
    Path("work").mkdir()
    progress.keep(Path("work"), "loss-inventory", Standing(best=100, status="pass", model_seen=True))
    progress.keep(Path("work"), "missing-fields", Standing(best=100, status="pass"))
    progress.keep(Path("work"), SLUG, Standing(best=22, status="fail"))


def two_hints(_: pytest.MonkeyPatch) -> None:
    for _number in range(2):
        Work().next_hint(find(SLUG))


def started(_: pytest.MonkeyPatch) -> None:
    Work().start(find(SLUG))


def watched(patch: pytest.MonkeyPatch) -> None:
    """Somebody presses q as soon as the file was checked."""

    @contextlib.contextmanager
    def terminal() -> Iterator[Callable[[float], str]]:
        yield lambda _: "q"

    started(patch)
    patch.setattr(watching, "terminal", terminal)


def machine(patch: pytest.MonkeyPatch, *, works: bool = True) -> None:
    detail = "the check of a store that is right did not end: fork is not allowed here"
    finding = doctor.Finding(
        name="a check from end to end", works=works, core=True, needed_for="all", detail=detail, next="Allow it."
    )
    patch.setattr(doctor, "examine", lambda: [finding])
    patch.setattr(housing, "find", lambda: ("user", "no namespaces can be made here, as the system says"))


def graded(patch: pytest.MonkeyPatch) -> None:
    """The statuses of the specification's example."""
    statuses = ["pass"] * 24 + ["fail"] * 5 + ["incomplete"] * 2
    every: list[Any] = [SimpleNamespace(whole={"status": each}) for each in statuses]
    nowhere: Any = None

    def run(_: object) -> int:
        grading._print(every, nowhere, as_json=False)
        return 0

    patch.setattr(grading, "run", run)


SCENES = {
    "list": Scene("list"),
    "list_begun": Scene("list", begun),
    "start": Scene(f"start {SLUG}"),
    "check_failed": Scene(f"check {SLUG}", started, RED, "starter", 1),
    "check_passed": Scene(f"check {SLUG}", started, GREEN, "solution"),
    "check_unmeasured": Scene(f"check {SLUG}", started, YELLOW, "incomplete", 2),
    "check_judge_error": Scene(f"check {SLUG}", started, RED, "judge-error", 3),
    "hint": Scene(f"hint {SLUG}"),
    "hint_last": Scene(f"hint {SLUG}", two_hints),
    "watch": Scene(f"watch {SLUG}", watched, RED, "starter"),
    "grade": Scene("grade submissions", graded),
    "doctor": Scene("doctor", machine),
    "doctor_broken": Scene("doctor", lambda patch: machine(patch, works=False), code=3),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Real results of the starter and of the solution, and made up ones of what is rare."""
    exercise, folder = find(SLUG), tmp_path_factory.mktemp("judged")
    found = {status: results.of_status(status).public() for status in ("incomplete", "judge-error")}
    for name in ("solution", "starter"):
        file = exercise.folder / name / exercise.file
        found[name] = marking.mark(exercise, file, cases=CASES, out=folder / ".crashlab")
    return found


def show(
    scene: Scene, where: Where, folder: Path, judged: dict[str, Result], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
    """What is printed there, and the exit code."""
    monkeypatch.chdir(folder)
    with monkeypatch.context() as patch:
        if scene.judged:
            result = judged[scene.judged]
            latest = next((row.finding.replay for row in result.rows if row.finding and row.finding.replay), "")

            def mark(*_: object, progress: Callable[[str, int, int], None], **__: object) -> Result:
                Path(".crashlab").mkdir(exist_ok=True)
                if " --run " in latest:
                    Path(".crashlab", "latest").symlink_to(latest.partition(" --run ")[2])
                progress("judging", 5, 11)
                return result

            patch.setattr(marking, "mark", mark)
        scene.prepare(patch)
        return printed.by(scene.typed.split(), where, patch)


# --- as it is kept -----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", SCENES)
def test_a_command_prints_what_is_kept(
    name: str, place: str, tmp_path: Path, judged: dict[str, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same lines everywhere, colour apart; where there is little room, prose is folded, and nothing else."""
    scene, where = SCENES[name], PLACES[place]
    code, text = show(scene, where, tmp_path, judged, monkeypatch)
    shown = printed.seen(text)
    if scene.colour and where.terminal and not where.no_color:
        word = re.search(rf"\x1b\[{scene.colour};1m([A-Z-]+)\x1b\[0m", shown)
        assert word, repr(shown)
        shown = shown.replace(word[0], word[1])
    assert "\x1b" not in shown
    assert shown.isascii()
    folded = place == "narrow" and (LOOKS / f"{name}.narrow.txt").exists()
    assert printed.masked(shown) == kept(f"{name}.narrow" if folded else name)
    assert code == scene.code


def test_nothing_kept_is_forgotten() -> None:
    """Each file is one of a scene; what is narrow is narrow but for what is to be copied."""
    names = {path.name.partition(".")[0] for path in LOOKS.iterdir()}
    assert names == {*SCENES, "specification"}
    for path in LOOKS.glob("*.narrow.txt"):
        long = [line for line in path.read_text().splitlines() if len(line) > printed.NARROW]
        assert [
            line for line in long if not re.match(r"  (replay|next|lost) |watching|VIOLATION|JUDGE-ERROR|READY", line)
        ] == []


# --- as the specification shows it ---------------------------------------------------------------------


def test_list_start_hint_and_watch_look_as_specified(
    tmp_path: Path, judged: dict[str, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letter by letter; of the list, the part that the example shows, of ``watch`` the first line."""
    for name, scene in (("list", "list_begun"), ("start", "start"), ("hint", "hint"), ("watch", "watch")):
        folder = tmp_path / name
        folder.mkdir()
        _, text = show(SCENES[scene], PLACES["pipe"], folder, judged, monkeypatch)
        assert EXAMPLES[name] in text, text
        assert text == EXAMPLES[name] or name in ("list", "watch")


def test_grade_looks_as_specified(tmp_path: Path, judged: dict[str, Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts are those of the example."""
    _, text = show(SCENES["grade"], PLACES["pipe"], tmp_path, judged, monkeypatch)
    assert text == EXAMPLES["grade"]


def test_check_looks_as_specified() -> None:
    """The example's numbers and texts come out as the example has them."""
    kill = Shown(
        kind="lost",
        state="kill@22+4096",
        crash_point="save4.data@4096",
        call="load(dir)",
        expected="the value of seq 3 or seq 4",
        found="JSON ends at byte 4096",
        why='open(path, "w") empties the file first',
        advice="Not shown: it would be the answer.",
        replay="crashlab replay kill@22+4096",
    )
    exercise = dataclasses.replace(
        find(SLUG),
        cases=(catalog.Case(id="end", points=22, invariant=""), catalog.Case(id="kill", points=78, invariant="")),
    )
    found = [
        Outcome(case="end", verdicts={"consistent": 1}),
        Outcome(case="kill", verdicts={"violation": 96, "consistent": 89}, finding=kill),
    ]
    result = dataclasses.replace(results.of({}, {}), rows=rows_of(exercise, found, "public"))
    assert "\n".join([*text_view.checked(result), ""]) == EXAMPLES["check"]


def test_doctor_looks_as_specified() -> None:
    """The verdict with the machine's parts, and what is not begun."""
    parts = ("python 3.11", "fork yes", "strace 6.1", "isolation same-user")
    found = setup.Setup(parts=parts, broken=(), not_started=("2.3",))
    assert "\n".join([*setup.lines(found), ""]) == EXAMPLES["doctor"]


def test_the_task_is_found_from_the_file_that_start_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example has no line for it, so the first line of the learner's file has."""
    monkeypatch.chdir(tmp_path)
    file = Work().start(find(SLUG))
    assert file.read_text().startswith(POINTER)
    assert POINTER.split()[5] == "TASK.md,"
    assert (file.parent / "TASK.md").exists()


# --- what is not plain ---------------------------------------------------------------------------------


def test_progress_is_rewritten_on_a_terminal_and_silent_elsewhere(
    tmp_path: Path, judged: dict[str, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that is gone before the verdict comes; a pipe gets none of it in a check that is quick."""
    texts = {}
    for place in ("terminal", "pipe"):
        folder = tmp_path / place
        folder.mkdir()
        _, texts[place] = show(SCENES["check_passed"], PLACES[place], folder, judged, monkeypatch)
    assert re.match(rf"\r\x1b\[K{SLUG}: judging 5 of 11, \d+ s\r\x1b\[K\x1b\[32;1mCONSISTENT", texts["terminal"])
    assert texts["pipe"].startswith("CONSISTENT")


def test_a_finding_of_another_run_is_replayed_from_there(
    judged: dict[str, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short command of the example is for the latest run; where that is another one, the run is named."""
    monkeypatch.chdir(tmp_path)
    (row,) = (row for row in judged["starter"].rows if row.finding)
    assert row.finding is not None
    whole = row.finding.replay
    command, _, run = whole.partition(" --run ")
    assert cli._replay(judged["starter"]) == whole
    Path(".crashlab").mkdir()
    Path(".crashlab", "latest").symlink_to(tmp_path)
    assert cli._replay(judged["starter"]) == whole
    Path(".crashlab", "latest").unlink()
    Path(".crashlab", "latest").symlink_to(run)
    assert cli._replay(judged["starter"]) == command == "crashlab replay kill@6"
    assert cli._replay(judged["solution"]) == ""


@pytest.mark.parametrize(("ascii_only", "shown"), [(True, r"half... \x1b[31m \u5024"), (False, r"half… \x1b[31m 値")])
def test_what_a_program_says_cannot_move_the_cursor(ascii_only: bool, shown: str) -> None:
    """Escapes are spelt out everywhere; what is no ASCII only where the terminal cannot show it."""
    finding = Shown(kind="lost", state="kill@1", found="half… \x1b[31m 値")
    rows = rows_of(
        find(SLUG), [Outcome(case="kill", verdicts={"violation": 1}, finding=finding)], "public", cases=CASES - {"end"}
    )
    result = dataclasses.replace(results.of({}, {}), rows=rows)
    lines = list(text_view.checked(result, screen=Screen(ascii_only=ascii_only)))
    assert f"    found     {shown}" in lines


def test_in_a_process_of_its_own_with_an_ascii_locale(tmp_path: Path) -> None:
    """As a learner's shell starts it: nothing here is patched."""
    environment = {
        "PATH": os.defpath,
        "LC_ALL": "C",
        "PYTHONIOENCODING": "ascii",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-m", "crashcourse", "list"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=600)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("ascii") == kept("list")


def test_a_case_that_could_not_be_judged_says_why_beside_a_finding_too() -> None:
    """Else a learner would see the word many times, and never a reason."""
    lines = list(text_view.checked(results.of({"kill": "violation", "race": "unmeasured"}, {})))
    at = lines.index("  unmeasured  race")
    assert lines[at + 1] == f"    why       {results.PUBLIC_TEXT}"
