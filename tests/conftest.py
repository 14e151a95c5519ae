"""What every test has: the profile of this session, a temporary folder of its own, and a sweep at the end.

The lab starts servers, workers and recoveries, and it gives every one of them a folder. None of that may
outlive the session that made it. So the session's temporary folder is private, and when it ends nothing
of the lab may lie in it, and no process may descend from it or live in it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from crashlab.kept_host import close_kept
from crashlab.subject import BRIEF, QUICK, Budget
from tests.portable import is_portable

if TYPE_CHECKING:
    from collections.abc import Iterator

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts us in the background has Ctrl-C ignored, and every program of a test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

PROFILE = os.environ.get("CRASHLAB_TEST_PROFILE", "quick")
EXAMPLES = {"quick": 25, "full": 500}
CHECK_LIMIT_S = 3_600.0

for name, examples in EXAMPLES.items():
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,  # a recovery is a process; how long one takes is not what is tested
        derandomize=name == "quick",  # a red quick run is red again; the full one looks further each time
        suppress_health_check=[HealthCheck.too_slow],  # the same reason as for the deadline
        print_blob=True,
    )


def pytest_configure() -> None:
    """Choose the profile that CRASHLAB_TEST_PROFILE names."""
    if PROFILE not in EXAMPLES:
        text = f"CRASHLAB_TEST_PROFILE is {PROFILE!r}; known: {', '.join(EXAMPLES)}"
        raise pytest.UsageError(text)
    settings.load_profile(PROFILE)
    take_the_time_it_takes()


def take_the_time_it_takes() -> None:
    """Let no check of a test end by its seconds unless the test asks for that: else a slow machine would fail it."""
    assert Budget.__init__.__kwdefaults__
    Budget.__init__.__kwdefaults__["time_s"] = CHECK_LIMIT_S
    for budget in (QUICK, BRIEF):
        object.__setattr__(budget, "time_s", CHECK_LIMIT_S)  # whoever imported it has this very object


def pytest_report_header() -> str:
    """Say which profile this is, on top of the run."""
    return f"crashlab test profile: {PROFILE}, {EXAMPLES[PROFILE]} examples"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the portable ones. Leave out what is marked ``full``, unless that is the profile; deselected, so counted."""
    for item in items:
        if is_portable(item.path.relative_to(config.rootpath).as_posix(), item.name):
            item.add_marker(pytest.mark.portable)
    if PROFILE == "full":
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def budget_examples() -> int:
    """How many random examples a test without Hypothesis should try in this profile."""
    return EXAMPLES[PROFILE]


@pytest.fixture(scope="session", autouse=True)
def private_temporary_folder() -> Iterator[Path]:
    """Give the session a temporary folder of its own; fail if anything of the lab outlives the session."""
    folder = Path(tempfile.mkdtemp(prefix="lab-tests-")).resolve()
    folder.chmod(0o711)  # a grader's guest, who is another user, has its own folder below
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", None)  # read TMPDIR again
        yield folder
        close_kept()  # else done when this process ends
    left = leftovers(folder)
    if left:
        text = "the tests left behind:\n  " + "\n  ".join(left) + f"\nlook in {folder}"
        pytest.fail(text, pytrace=False)
    shutil.rmtree(folder)


def leftovers(folder: Path) -> list[str]:
    """What of the lab still lies in ``folder`` or lives: one line each."""
    folders = [f"folder {path}" for path in sorted(folder.glob("crashlab-*"))]
    if sys.platform != "linux":  # only Linux shows who descends from whom without asking a program
        return folders
    return folders + [f"process {pid}: {command_line(pid)}" for pid in sorted(descendants() | inhabitants(folder))]


def descendants() -> set[int]:
    """Process ids of everything that descends from this process."""
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        for children in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            try:
                below = {int(pid) for pid in children.read_text().split()}
            except OSError:  # it ended while we looked
                continue
            waiting += below - found
            found |= below
    return found


def inhabitants(folder: Path) -> set[int]:
    """Process ids of everything whose environment names ``folder``: daemons too, whoever adopted them."""
    needle = os.fsencode(folder)
    found = set()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if needle in environment.read_bytes():
                found.add(int(environment.parent.name))
        except OSError:  # it ended while we looked, or belongs to somebody else
            continue
    return found - {os.getpid()}


def command_line(pid: int) -> str:
    """The command line of a process, for the message."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "(ended meanwhile)"
