"""Processes kept from one path to the next: for the same subject only, and never longer than the process itself."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import crashlab
from crashlab import Store, UsageError, explore, kept_host, path_check
from crashlab.errors import LabError
from crashlab.kept_host import close_kept
from crashlab.subject import Crash
from tests.crashlab.recover.test_keeper import Doomed
from tests.quality import crashing_stores as stores

PATH = [{"n": 1}, Crash("kill", 0)]
ROOT = Path(__file__).parents[2]


def host_after(subject: Store) -> str:
    """The place of the processes that are kept after a path of this subject."""
    assert explore(dataclasses.replace(subject, values=PATH)).verdict == "consistent"
    (kept,) = kept_host._kept
    return kept.host.root


def test_the_same_subject_meets_the_same_processes_whatever_its_values() -> None:
    """Values travel apart, and so does the phase of the test that pytest writes into the environment."""
    first = host_after(stores.DURABLE)
    other = dataclasses.replace(stores.DURABLE, values=[{}, {"n": 5}, Crash("power", 0)])
    assert explore(other).verdict == "consistent"
    os.environ["PYTEST_CURRENT_TEST"] += " once more"
    assert host_after(stores.DURABLE) == first


def save_but_two(directory: Path, value: dict[str, int]) -> None:
    """Does not take everything."""
    if value.get("n") == 2:
        text = "not 2"
        raise ValueError(text)
    stores.save_durably(directory, value)


def test_a_value_that_is_refused_does_not_end_them(tmp_path: Path) -> None:
    """A search for the smallest one tries hundreds, and would start processes for each."""
    picky = Store(save_but_two, stores.load)
    first = host_after(picky)
    with pytest.raises(UsageError, match="not 2"):
        explore(dataclasses.replace(picky, values=[{"n": 2}, Crash("kill", 0)]))
    walk = path_check.Walk(picky, "picky", {"out": tmp_path})
    walk.save({"n": 2})
    with pytest.raises(UsageError, match="not 2"):
        walk.crash(Crash("kill", 0))
    walk.end()
    assert host_after(picky) == first


def test_another_subject_ends_them() -> None:
    """At most one is kept."""
    first = host_after(stores.DURABLE)
    second = host_after(stores.EVERY_CRASH)
    assert not os.path.exists(first)
    assert os.path.exists(second)
    close_kept()
    assert not os.path.exists(second)


def test_other_surroundings_are_another_subject(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variable, the working directory, an edited source file: what was imported may not be what it is now."""
    places = [host_after(stores.DURABLE)]
    monkeypatch.setenv("SOME_SETTING", "1")
    places.append(host_after(stores.DURABLE))
    monkeypatch.chdir(tmp_path)
    places.append(host_after(stores.DURABLE))
    (tmp_path / "edited.py").write_text("X = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("edited")
    places.append(host_after(stores.DURABLE))
    (tmp_path / "edited.py").write_text("X = 22")
    places.append(host_after(stores.DURABLE))
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("error", [LabError, UsageError, KeyboardInterrupt])
def test_an_error_ends_them(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke off in the middle is not used again."""
    first = host_after(stores.DURABLE)

    def broken_off(*_: object) -> None:
        raise error

    monkeypatch.setattr(path_check, "follow", broken_off)
    with pytest.raises(error):
        explore(dataclasses.replace(stores.DURABLE, values=PATH))
    assert not os.path.exists(first)
    assert kept_host._kept == []


def test_two_threads_never_share_them() -> None:
    """Each has its own while it works, and one is kept."""
    verdicts: list[str] = []

    def work() -> None:
        report = explore(dataclasses.replace(stores.DURABLE, values=[{"n": 1}, Crash("kill", 0), {}] * 3))
        verdicts.append(report.verdict)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == ["consistent"] * 3
    assert len(kept_host._kept) == 1


def test_a_forked_process_leaves_them_alone() -> None:
    """Neither its end nor its own paths touch what belongs to its parent."""
    place = host_after(stores.DURABLE)
    pid = os.fork()
    if pid == 0:
        close_kept()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert os.path.exists(place)
    assert host_after(stores.DURABLE) == place


PROGRAM = """
import dataclasses, sys
from crashlab import explore
from crashlab.subject import Crash
from tests.quality import crashing_stores as stores
values = [{"n": 1}, Crash("kill", 0)]
assert explore(dataclasses.replace(stores.DURABLE, values=values)).verdict == "consistent"
print("hypothesis" in sys.modules, flush=True)
if sys.argv[1] == "wait":
    sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["return", "kill"])
def test_nothing_outlives_the_process(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it ends by itself or by SIGKILL: no process, no folder. And a list of values needs no Hypothesis."""
    lab = os.path.dirname(os.path.dirname(crashlab.__file__))
    monkeypatch.setattr(Doomed, "__init__", lambda _self: None)
    doomed = Doomed()  # type: ignore[call-arg]  # only its way to find what is left
    doomed.temporary, doomed._mark = tmp_path, f"MARK={tmp_path}"
    doomed.process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "wait" if end == "kill" else ""],
        env={**os.environ, "PYTHONPATH": f"{lab}:{ROOT}", "TMPDIR": str(tmp_path), "MARK": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with doomed.process as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"False\n"
        if end == "kill":
            assert doomed.alive()
            process.send_signal(signal.SIGKILL)
        process.wait()
        doomed.assert_nothing_left()
