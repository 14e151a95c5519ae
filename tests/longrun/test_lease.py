"""Tests of longrun.lease: one writer lives, a late one is fenced, and a kill leaves nothing to clear away."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longrun.checkpoint import correct
from longrun.errors import Damaged, LeaseHeld, LostLease
from longrun.lease import LOCK_NAME, Lease, stored_epoch
from longrun.protocol import CHECKPOINT_NAME
from tests.longrun.open_files import open_below

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Intruder:
    """At one save of the first owner, another one acts; then the first goes on."""

    def __init__(self, place: str, act: Callable[[], Any]) -> None:
        self.place, self.act, self.came_back = place, act, 0

    def __call__(self, place: str, _value: dict[str, int]) -> None:
        if place == self.place and not self.came_back:
            self.came_back += 1
            self.act()


def test_the_second_owner_stays_out(desk: Any) -> None:
    """While the first one works the second is refused at once, at every step, reads nothing and changes nothing."""
    entered: list[str] = []

    def enter(place: str, _value: dict[str, int]) -> None:
        entered.append(place)
        before = desk.files()
        for way in (desk.agent().resume, desk.agent().start):
            with pytest.raises(LeaseHeld, match="another process works here"):
                way()
        assert desk.files() == before

    assert desk.agent(told=enter).start().status == "done"
    assert len(entered) == 32


def test_a_late_writer_is_fenced_wherever_it_slept(desk: Any) -> None:
    """Its lock was on a file that somebody removed; the new owner's number is higher: it does nothing more."""
    places: list[str] = []
    desk.agent(told=lambda place, _value: places.append(place)).start()
    for number, place in enumerate(places[:-1]):  # behind the last save there is nothing left to do
        other = type(desk)(desk.directory / str(number))
        other.agent_directory.mkdir(parents=True)

        def enter(there: Any = other) -> None:
            (there.agent_directory / LOCK_NAME).unlink()
            assert there.agent().resume().status in ("done", "waiting")

        with pytest.raises(LostLease, match="writer 2 has taken over from writer 1"):
            other.agent(told=Intruder(place, enter)).start()
        saved = correct.load(other.agent_directory)
        assert saved is not None
        assert (saved.writer_epoch, saved.finished) == (2, True)
        done = [f"{each.name} {each.detail}" for each in other.outside.effects if each.counted]
        assert len(done) == len(set(done)), place
    assert len(places) == 32


def test_two_that_open_at_once_are_told_apart(desk: Any) -> None:
    """Both read the same number before they save: the second save finds what the first has raised."""
    with pytest.raises(KeyboardInterrupt):
        desk.agent(told=Intruder("turn2.B", _stop)).start()
    inner: list[Any] = []

    def load(directory: Path) -> Any:
        saved = correct.load(directory)
        if not inner:
            inner.append(saved)
            (directory / LOCK_NAME).unlink()
            inner.append(desk.agent().resume())
        return saved

    with pytest.raises(LostLease):
        desk.agent(harness=replace(correct.HARNESS, load=load)).resume()
    assert inner[1].status == "done"
    assert correct.load(desk.agent_directory) == inner[1]


def _stop() -> None:
    raise KeyboardInterrupt


def test_a_lock_file_that_is_another_one_is_noticed(tmp_path: Path) -> None:
    """Removed, or made anew by somebody else: the lock that is held protects nothing any more."""
    with Lease.take(tmp_path) as lease:
        lease.require(0)
        (tmp_path / LOCK_NAME).unlink()
        with pytest.raises(LostLease, match="was removed or replaced"):
            lease.require(0)
        (tmp_path / LOCK_NAME).touch()
        with pytest.raises(LostLease):
            lease.require(0)


def test_a_kill_frees_the_lease(desk: Any) -> None:
    """Nothing has to be cleared away: the kernel frees the lock of a dead process."""
    child = os.fork()
    if child == 0:
        try:
            desk.agent(told=Intruder("turn5.A", lambda: os.kill(os.getpid(), signal.SIGKILL))).start()
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert desk.agent().resume().status == "done"


@pytest.mark.parametrize("fails", [False, True])
def test_the_lease_is_given_back_at_the_end(desk: Any, fails: bool) -> None:
    """A run that ended, and one that failed, leave no descriptor behind, so that one process may do many."""
    if fails:
        with pytest.raises(KeyboardInterrupt):
            desk.agent(told=Intruder("turn3.A", _stop)).start()
    else:
        desk.agent().start()
    assert open_below(desk.directory) == []
    assert desk.agent().resume().status == "done"


def test_every_opening_raises_the_number_and_a_finished_run_keeps_it(desk: Any) -> None:
    """1 at the start, one more per opening that goes on; the stored number is that of the checkpoint."""
    assert stored_epoch(desk.agent_directory) is None
    for wanted, place in ((1, "turn2.A"), (2, "turn4.A"), (3, None)):
        agent = desk.agent(told=Intruder(str(place), _stop))
        if place:
            with pytest.raises(KeyboardInterrupt):
                agent.resume()
        else:
            agent.resume()
        assert stored_epoch(desk.agent_directory) == agent.state.writer_epoch == wanted
    desk.agent().resume()
    assert stored_epoch(desk.agent_directory) == 3


def test_a_directory_that_is_refused_is_free_again(desk: Any) -> None:
    """Damage is told, and the next process finds no lock."""
    desk.agent().start()
    (desk.agent_directory / CHECKPOINT_NAME).write_bytes(b"")
    for _ in range(2):
        with pytest.raises(Damaged):
            desk.agent().resume()
