"""The pytest plugin in projects of its own, each run by a pytest in a process of its own."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import crashlab
from tests.crashlab.pytest_projects import ROOT, STORES, run_pytest, section

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

TESTS = (
    STORES
    + """
@pytest.mark.crashlab(faults="kill", budget=BRIEF)
def test_naive():
    check(Store(save_in_place, load, values=VALUES))

@pytest.mark.crashlab(faults="kill", budget=BRIEF)
@pytest.mark.parametrize("number", [1, 2])
def test_good(number):
    check(Store(save, load, values=VALUES[:number]))

def test_nothing_to_see():
    check(Store(save_nothing, load))

def test_mistake():
    check(Store(save, load), faults="powerloss")
"""
)
NO_FORK = """
import os

def refuse():
    raise AssertionError("this process has threads, and was forked")

os.fork = refuse
"""


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A project whose tests ran on two workers of pytest-xdist that cannot fork."""
    folder = tmp_path_factory.mktemp("parallel")
    (folder / "conftest.py").write_text(NO_FORK)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_store.py").write_text(TESTS)
    return folder, run_pytest(folder, "-n2", "--strict-markers", "--junitxml=result.xml", "-W", "error")


def test_every_check_has_its_line_whichever_worker_made_it(
    parallel: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """The section names each test that checked, what came out, and the run; a mistake is no check."""
    folder, done = parallel
    assert done.returncode == 1, done.stdout + done.stderr
    lines = section(done.stdout, "crashlab")
    told = sorted(re.split(r"  +", line)[:2] for line in lines)
    test = "tests/test_store.py::test_"
    assert told == [
        ["PASS", f"{test}good[1]"],
        ["PASS", f"{test}good[2]"],
        ["UNMEASURED", f"{test}nothing_to_see"],
        ["VIOLATION", f"{test}naive"],
    ]
    runs = [line.rpartition(", ")[2] for line in lines]
    assert len({*runs}) == 4
    assert all((folder / run / "report.json").is_file() for run in runs)
    assert f"\ncrashlab: {crashlab.__version__}\n" in done.stdout


def test_the_summary_has_the_first_line_whole(parallel: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """It begins with the verdict, without the name of a class, and ends with the id of the state."""
    lines = section(parallel[1].stdout, "short test summary info")
    naive = next(line for line in lines if "test_naive" in line)
    assert re.search(r'test_naive - VIOLATION lost: \{"n": 1\} was acked; load\(\) raised JSON.* \[kill@\d+\]$', naive)
    unmeasured = next(line for line in lines if "nothing_to_see" in line)
    assert "nothing_to_see - UNMEASURED  tests/test_store.py::test_nothing_to_see: empty-trace. " in unmeasured
    mistake = next(line for line in lines if "test_mistake" in line)
    assert "test_mistake - unknown fault 'powerloss'; did you mean 'power'? Known: kill" in mistake


def test_a_failure_shows_the_finding_and_no_line_of_the_lab(
    parallel: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """The traceback has the test's own line; the finding is called by the id of the test."""
    failures = "\n".join(section(parallel[1].stdout, "FAILURES"))
    assert ">       check(Store(save_in_place, load, values=VALUES))\n" in failures
    assert "tests/test_store.py::test_naive   Store(save, load)   CV" in failures
    assert re.search(r"recovery   load\(\) raised JSONDecodeError", failures)
    assert str(ROOT / "lab") not in failures
    assert os.path.join("lab", "crashlab") not in failures


def test_the_junit_file_has_a_property_per_check(parallel: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """Under the name of the plugin, with the verdict first; a test without a check has none."""
    cases = {case.get("name"): case for case in ET.parse(parallel[0] / "result.xml").iter("testcase")}  # noqa: S314 - the file that pytest just wrote
    properties = {
        name: [each.get("value", "") for each in case.iter("property") if each.get("name") == "crashlab"]
        for name, case in cases.items()
    }
    words = {name: [each.split("  ")[0] for each in values] for name, values in properties.items()}
    assert words == {
        "test_naive": ["VIOLATION"],
        "test_good[1]": ["PASS"],
        "test_good[2]": ["PASS"],
        "test_nothing_to_see": ["UNMEASURED"],
        "test_mistake": [],
    }
    failure = cases["test_naive"].find("failure")
    assert failure is not None
    assert failure.get("message", "").startswith("VIOLATION lost: ")


def test_one_process_finds_the_same_states(parallel: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """Ids do not depend on workers: without any, the finding and the number of states are the same."""
    folder, before = parallel
    done = run_pytest(folder, "-k", "naive", "-p", "no:randomly", "-p", "no:xdist")
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = section(done.stdout, "crashlab")
    same = [each for each in section(before.stdout, "crashlab") if "test_naive" in each]
    assert re.split(r", [\d.]+ s", line)[0] == re.split(r", [\d.]+ s", same[0])[0]


def test_without_the_plugin_check_works_alone(parallel: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """``-p no:crashlab`` takes header, section and options away; the finding and its name stay."""
    done = run_pytest(parallel[0], "-p", "no:crashlab", "-p", "no:xdist", "-k", "naive or mistake")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "\ncrashlab: " not in done.stdout
    assert " crashlab =" not in done.stdout
    assert "VIOLATION lost: " in done.stdout
    assert "tests/test_store.py::test_naive   Store(save, load)   CV" in done.stdout
    refused = run_pytest(parallel[0], "-p", "no:crashlab", "--crashlab-seed", "1")
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "unrecognized arguments: --crashlab-seed" in refused.stderr


def test_an_unmeasured_check_may_skip_its_test(tmp_path: Path) -> None:
    """Only where that is asked for, with the reason; what is expected to fail stays so, and it is still told."""
    (tmp_path / "test_skip.py").write_text(
        STORES
        + """
import unittest

def test_plain():
    check(Store(save_nothing, load))

@pytest.mark.xfail(strict=True)
def test_expected():
    check(Store(save_nothing, load))

class TestOld(unittest.TestCase):
    def test_case(self):
        check(Store(save_nothing, load))
"""
    )
    done = run_pytest(tmp_path, "--crashlab-unmeasured=skip")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 skipped, 1 xfailed" in done.stdout
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert len(skipped) == 2
    assert all("UNMEASURED" in line and "empty-trace" in line for line in skipped)
    assert [line.split()[0] for line in section(done.stdout, "crashlab")] == ["UNMEASURED"] * 3
    assert run_pytest(tmp_path, "-k", "plain").returncode == 1


PRECEDENCE = """
import pytest
from crashlab.settings import resolve

pytestmark = pytest.mark.crashlab(seed=1, faults="kill", out="marked")

def shown(**arguments):
    asked = resolve(**arguments)
    faults = [str(each) for each in asked.faults]
    return faults, asked.seed, asked.profile, asked.budget.subset, str(asked.out), asked.only

@pytest.mark.crashlab(seed=2)
def test_order():
    assert shown(faults="power") == (["power"], 2, "xfs", 2, "marked", "kill@7")
    assert shown(only="kill@1", seed=0)[1::4] == (0, "kill@7")

class TestMarkers:
    pytestmark = pytest.mark.crashlab(faults="damage")

    def test_nearest(self):
        assert shown()[:2] == (["damage"], 1)
"""


def test_what_wins(tmp_path: Path) -> None:
    """Argument, nearest marker, farther marker, command line, environment, file; ``only`` of the command line first."""
    (tmp_path / "test_order.py").write_text(PRECEDENCE)
    done = run_pytest(
        tmp_path,
        *("--crashlab-seed=9", "--crashlab-profile=xfs", "--crashlab-out=told", "--crashlab-only=kill@7"),
        CRASHLAB_BUDGET="brief",
        CRASHLAB_OUT="environment",
    )
    assert done.returncode == 0, done.stdout
    assert "profile xfs, seed 9, out told, only kill@7" in done.stdout


def test_only_judges_one_state(tmp_path: Path) -> None:
    """A state by its id, recorded again; the line says that it was one."""
    (tmp_path / "test_one.py").write_text(STORES + "def test_one():\n    check(Store(save, load, values=VALUES))\n")
    done = run_pytest(tmp_path, "--crashlab-only", "kill@2")
    assert done.returncode == 0, done.stdout
    assert "PASS        test_one.py::test_one  1 crash state, " in done.stdout


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            "--crashlab-faults=powerloss",
            "--crashlab-faults=powerloss: unknown fault 'powerloss'; did you mean 'power'?",
        ),
        ("--crashlab-budget=ful", "unknown budget 'ful'"),
        ("--crashlab-profile=xsf", "did you mean 'xfs'?"),
        ("--crashlab-seed=one", "invalid int value: 'one'"),
        ("--crashlab-unmeasured=pass", "invalid choice: 'pass'"),
    ],
)
def test_an_option_that_means_nothing_ends_the_run_at_once(option: str, words: str, tmp_path: Path) -> None:
    """Before anything is collected, with what was meant."""
    done = run_pytest(tmp_path, option)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ('"full"', "takes keyword arguments, those of check, and got ('full',)"),
        ('fault="kill"', "unknown argument 'fault'; did you mean 'faults'"),
    ],
)
def test_a_marker_that_means_nothing_fails_its_test(marker: str, words: str, tmp_path: Path) -> None:
    """It must not be passed over: the check would be another one than was meant."""
    text = f"{STORES}\n@pytest.mark.crashlab({marker})\ndef test_marked():\n    check(Store(save, load))\n"
    (tmp_path / "test_marked.py").write_text(text)
    done = run_pytest(tmp_path)
    assert done.returncode == 1
    assert words in done.stdout


def test_a_session_without_checks_loads_nothing(tmp_path: Path) -> None:
    """No stage of the lab, nothing that draws, no Hypothesis: a plugin of one must not slow down all others."""
    (tmp_path / "test_light.py").write_text("""
import sys

def test_light():
    heavy = {"rich", "cloudpickle", "crashlab.settings", "crashlab.subject", "crashlab.pipeline", "crashlab.report"}
    assert heavy & set(sys.modules) == set()
    assert "crashlab.pytest_plugin" in sys.modules
""")
    done = run_pytest(
        tmp_path, "-W", "error", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_PLUGINS="crashlab.pytest_plugin"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " crashlab =" not in done.stdout


def test_it_works_without_hypothesis(tmp_path: Path) -> None:
    """Plugin and check: Hypothesis is for those who have it."""
    (tmp_path / "conftest.py").write_text("import sys\nsys.modules['hypothesis'] = None\n")
    (tmp_path / "test_plain.py").write_text(
        STORES + "def test_plain():\n    check(Store(save, load), faults='kill', budget=BRIEF)\n"
    )
    done = run_pytest(tmp_path, "-p", "no:hypothesispytest", "-p", "no:randomly", "-p", "no:xdist")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS        test_plain.py::test_plain" in done.stdout
