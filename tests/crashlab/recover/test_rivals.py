"""Two real owners at one place: who is stopped where, who waits for whom, and that nothing of either is left."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import select
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Subject
from crashlab.errors import LabError
from crashlab.recover import sweep, travel
from crashlab.recover.host import Host
from crashlab.recover.place import NO_NAMESPACE
from crashlab.recover.rivals import PATIENCE_S, Patience, Seat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab import Lab


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The lab's temporary folders go here, and nothing may be left of them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob("crashlab-*")) == []


def raced(host: Host, after: int, switch: int | None = None, timeout_s: float = 20.0) -> dict[str, Any]:
    """One race, with time enough for a busy machine."""
    return host.race(after=after, switch=switch, nothing=None, timeout_s=timeout_s, limit_s=60.0)


def ends(told: dict[str, Any]) -> list[Any]:
    """How both owners ended: what they returned, else how."""
    return [(owner["value"] or {"end": owner["how"]})["end"] for owner in told["owners"]]


def three_files(lab: Lab) -> str:
    """Three files, each made and written, or emptied and written; an owner says what was there before."""
    seen = [name for name in "abc" if (lab.dir / name).exists()]
    for name in "abc":
        (lab.dir / name).write_text(str(os.getpid()))
    return "".join(seen)


def owners_of(told: dict[str, Any]) -> str:
    """Whose each op was, in order, as ``1`` and ``2``."""
    return "".join("1" if who == "first" else "2" for who, _ in told["ops"])


@pytest.mark.parametrize("namespace", ["", "1"])
def test_the_second_enters_while_the_first_stands_still(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees what the first has done up to the chosen op, runs to its end, and the first goes on."""
    monkeypatch.setenv(NO_NAMESPACE, namespace)
    with Host(travel.pack(Subject(three_files))) as host:
        whole = {after: raced(host, after) for after in (0, 3, 6)}
        assert {after: told["reached"] for after, told in whole.items()} == {0: 0, 3: 3, 6: 6}
        assert owners_of(whole[3]) == "111" + "22222" + "111"  # the second file is empty yet
        assert [ends(told) for told in whole.values()] == [["", ""], ["", "ab"], ["", "abc"]]


def test_both_are_stopped_in_turn() -> None:
    """The second after its own op, while the first runs to its end."""
    with Host(travel.pack(Subject(three_files))) as host:
        told = raced(host, 2, 4)
        assert owners_of(told).startswith("11222211112")
        assert [who for who, _ in told["turns"]] == ["first", "second", "first", "second"]
        assert told["waited"] == ""


def test_a_run_that_ends_before_the_op_lets_nobody_in_there() -> None:
    """It is stopped at its end, and says at how many ops that was."""
    with Host(travel.pack(Subject(three_files))) as host:
        assert raced(host, 99)["reached"] == 6


def locked(lab: Lab) -> str:
    """Waits for a lock, and holds it over three ops."""
    with open(lab.dir / "lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (lab.dir / "mine").write_text("x")
    return "done"


def test_one_that_waits_for_the_other_is_no_hang() -> None:
    """The other goes on beside it, and both come to their end; also where the second one holds the lock."""
    with Host(travel.pack(Subject(locked))) as host:
        held, holds = raced(host, 2), raced(host, 0, 2)
    assert (held["waited"], ends(held)) == ("second", ["done", "done"])
    assert (holds["waited"], ends(holds)) == ("first", ["done", "done"])


def locked_once(lab: Lab) -> str:
    """Holds a lock over one file of three, and works on when it has let it go."""
    with open(lab.dir / "lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (lab.dir / "a").write_text("x")
    return three_files(lab)


@pytest.mark.parametrize(
    ("place", "order", "waited"),
    [
        ((2, None), "1" * 9 + "2" * 8, "second"),
        ((2, 5), "1" * 9 + "2" * 8, "second"),
        ((0, 2), "22" + "1" + "2" * 7 + "1" * 8, "first"),
    ],
)
def test_one_that_waits_goes_on_when_the_other_has_ended(
    place: tuple[int, int | None], order: str, waited: str
) -> None:
    """Not as soon as the lock is free: then both would run, and each time their ops would be mixed otherwise."""
    with Host(travel.pack(Subject(locked_once))) as host:
        told = [raced(host, *place) for _ in range(5)]
    assert {(owners_of(each), each["waited"]) for each in told} == {(order, waited)}
    assert not any(
        owner["watched"]["unseen"] for each in told for owner in each["owners"]
    )  # each knew the other's files


def test_what_one_makes_as_it_is_frozen_is_frozen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on alone, while the other owner runs."""
    with contextlib.ExitStack() as stack:
        one, made = (stack.enter_context(subprocess.Popen(["sleep", "600"])) for _ in range(2))
        stack.callback(made.kill)
        stack.callback(one.kill)
        listed = iter([[one.pid], [one.pid, made.pid], [one.pid, made.pid]])
        monkeypatch.setattr(Seat, "pids", lambda _: next(listed))
        seat = object.__new__(Seat)
        seat.frozen = []
        seat.freeze()
        assert [stands(one.pid), stands(made.pid), seat.frozen] == [True, True, [one.pid, made.pid]]


CLONE_VFORK, CLONE_X86_64 = 0x4000, 56


def meets_a_slow_disk(lab: Lab) -> str:
    """Each owner stands in the kernel for a while, as in an fsync of a busy disk (vfork's caller is listed as that)."""
    (lab.dir / "a").write_text("x")
    if not ctypes.CDLL(None).syscall(CLONE_X86_64, CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0):
        time.sleep(2 * PATIENCE_S)
        os._exit(0)
    os.wait()
    (lab.dir / "b").write_text("x")
    return "done"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of clone is known for x86-64 only")
def test_one_that_waits_for_a_disk_does_not_wait_for_the_other() -> None:
    """Else the order of a race would depend on how busy the disk is, and a finding with it."""
    with Host(travel.pack(Subject(meets_a_slow_disk))) as host:
        told = raced(host, 2)
    assert (owners_of(told), told["waited"], ends(told)) == ("11" + "2222" + "11", "", ["done", "done"])


@pytest.mark.parametrize(("seen", "waits"), [("SSSSS", True), ("RRSSS", True), ("RRRSS", False), ("SSDSS", False)])
def test_a_wait_is_what_was_seen_all_the_time(monkeypatch: pytest.MonkeyPatch, seen: str, waits: bool) -> None:
    """One look would take a machine that stalls for a wait."""
    now, looks = [0.0], iter(seen)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sweep, "doing", lambda _: {next(looks)})
    seat = SimpleNamespace(ops=3, begun=True, pids=lambda: [os.getpid()])
    patience = Patience(seat)  # type: ignore[arg-type]  # only what it asks of a seat
    for _ in seen:
        now[0] += PATIENCE_S / 5 + 0.001
        told = patience.is_over()
    assert told is waits


def waits_behind_the_other(lab: Lab) -> None:
    """The first one holds the lock as long as it can; the second one waits for it."""
    with open(lab.dir / "lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (lab.dir / "a").write_text("x")
        while True:
            os.getppid()


def test_no_owner_stays_frozen_where_all_of_the_lab_is_killed(folders: Path) -> None:
    """It could not even end by itself, as one that runs can."""
    host = Host(travel.pack(Subject(waits_behind_the_other)))
    keeper = host._keeper.pid
    with ThreadPoolExecutor(1) as pool:
        race = pool.submit(raced, host, 2)
        while not (frozen := [pid for pid in sweep.descendants(keeper) if stands(pid)]):
            assert not race.done()
        waiting = select.poll()
        waiting.register(os.pidfd_open(frozen[0]), select.POLLIN)
        living = sweep.descendants(keeper)
        os.kill(keeper, signal.SIGKILL)  # and with it all that hangs on it
        ended = waiting.poll(60_000)
        for pid in (*frozen, *living) if not ended else ():
            sweep.kill(pid)
        assert ended
        with pytest.raises(LabError, match="died"):
            race.result()
    with pytest.raises(LabError, match="could not remove"):
        host.close()
    for left in folders.glob("crashlab-*"):
        shutil.rmtree(left)


def stands(pid: int) -> bool:
    """Whether it was stopped by a signal."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def waits_in_turn(lab: Lab) -> str:
    """The second one waits for a file, and the first one then waits for another that the second one has yet to make."""
    entered = (lab.dir / "begun").exists()
    (lab.dir / "begun").write_text("x")
    mine, other = ("b", "a") if entered else ("a", "b")
    while entered and not (lab.dir / other).exists():
        time.sleep(0.01)
    (lab.dir / mine).write_text("x")
    while not (lab.dir / other).exists():
        time.sleep(0.01)
    return "done"


def test_where_each_waits_for_the_other_in_turn_both_run() -> None:
    """Else neither would ever end."""
    with Host(travel.pack(Subject(waits_in_turn))) as host:
        told = raced(host, 2)
    assert (told["waited"], ends(told)) == ("second", ["done", "done"])


def waits_for_ever(lab: Lab) -> str:
    """The second one waits for what nobody does."""
    if (lab.dir / "begun").exists():
        signal.pause()
    (lab.dir / "begun").write_text("x")
    return "done"


def test_one_that_waits_for_nothing_is_a_hang_and_is_ended() -> None:
    """After the other has ended it gets its time again, and no more."""
    with Host(travel.pack(Subject(waits_for_ever))) as host:
        told = raced(host, 1, timeout_s=0.5)
        assert ends(told) == ["done", "hang"]
        assert ends(raced(host, 2, timeout_s=0.5)) == ["done", "hang"]  # and the worker lives on


def takes_over_by_force(lab: Lab) -> str:
    """A newer owner ends the older one before it begins."""
    number = lab.dir / "pid"
    if number.exists():
        os.kill(int(number.read_text()), signal.SIGKILL)
    number.write_text(str(os.getpid()))
    (lab.dir / "work").write_text("x")
    return "done"


def test_an_owner_that_the_other_one_ends_is_told_as_such() -> None:
    """It was stopped, so it cannot have died by itself."""
    with Host(travel.pack(Subject(takes_over_by_force))) as host:
        told = raced(host, 3)
    assert [(owner["how"], owner["killed"]) for owner in told["owners"]] == [("signal", True), ("returned", False)]


def leaves_a_process(lab: Lab) -> str:
    """Each owner starts one that outlives it."""
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    (lab.dir / "a").write_text("x")
    return "done"


def test_what_an_owner_leaves_running_is_named_and_ended() -> None:
    """Each by its own owner, although both live at once."""
    with Host(travel.pack(Subject(leaves_a_process))) as host:
        told = raced(host, 1)
    assert [owner["left"] for owner in told["owners"]] == [["sleep 600"], ["sleep 600"]]


def test_fresh_interpreters_race_as_well() -> None:
    """For subjects that cannot be forked."""
    with Host(travel.pack("tests.crashlab.recover.test_rivals:SUBJECT"), interpreter=True) as host:
        told = raced(host, 3)
    assert (told["reached"], ends(told)) == (3, ["", "ab"])


SUBJECT = Subject(three_files)
