"""A guest: another user, who reaches neither the judge nor its files; proven against a lab without one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Subject
from crashlab.errors import LabError
from crashlab.recover import guest, travel
from crashlab.recover.host import Host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab.lab import Lab

USER = 61_999
AS_ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user: run the tests as root"
)


def looks_around(lab: Lab) -> dict[str, Any]:
    """What can be done from inside, with the main process and with the outside."""
    main, hidden = int(os.environ["LOOKS_AT"]), os.environ["LOOKS_INTO"]
    told: dict[str, Any] = {"user": os.getuid(), "temporary": os.listdir(hidden)}
    for name, act in {
        "kill": lambda: os.kill(main, 0),
        "environ": lambda: Path(f"/proc/{main}/environ").read_bytes(),
        "shared": lambda: Path("/dev/shm/of-a-test").touch(),
    }.items():
        try:
            act()  # type: ignore[no-untyped-call]  # one of three
            told[name] = "done"
        except OSError as error:
            told[name] = type(error).__name__
    (lab.dir / "file").write_text("x")
    return told


@pytest.fixture
def places() -> Iterator[tuple[Path, Path]]:
    """The guest's own folder, and one with something in it that is hidden from it."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        own, hidden = Path(folder, "own"), Path(folder, "hidden")
        own.mkdir(0o700)
        if os.geteuid() == 0:
            os.chown(own, USER, USER)
        hidden.mkdir()
        (hidden / "answer").write_text("42")
        yield own, hidden


def run(hidden: Path, somebody: guest.Guest | None) -> dict[str, Any]:
    env = {"LOOKS_AT": str(os.getpid()), "LOOKS_INTO": str(hidden)}
    with guest.housed(somebody), Host(travel.pack(Subject(looks_around)), env=env) as host:
        recording = host.record(timeout_s=30)
    assert recording.value is not None, recording.error
    found: dict[str, Any] = recording.value["end"]
    return found


@AS_ROOT
def test_another_user_reaches_nothing(places: tuple[Path, Path]) -> None:
    """Neither the memory nor the environment of the main process; nor can it end it."""
    own, hidden = places
    found = run(hidden, guest.Guest(user=USER, temporary=str(own)))
    Path("/dev/shm/of-a-test").unlink(missing_ok=True)
    assert (found["user"], found["kill"], found["environ"]) == (USER, "PermissionError", "PermissionError")
    assert found["temporary"] == ["answer"]
    assert not list(own.iterdir())


@AS_ROOT
def test_namespaces_hide_and_close(places: tuple[Path, Path]) -> None:
    """Hidden folders are empty, shared memory cannot be written, and all that the guest had is gone."""
    own, hidden = places
    somebody = guest.Guest(user=USER, temporary=str(own), hidden=(str(hidden),), namespaces=True)
    try:
        found = run(hidden, somebody)
    except LabError as error:
        pytest.skip(f"this system gives root no namespaces: {error}")
    assert (found["user"], found["temporary"], found["shared"]) == (USER, [], "OSError")
    assert not list(own.iterdir())


def test_without_a_guest_all_of_it_is_open(places: tuple[Path, Path]) -> None:
    """The same body as the same user: so the two tests above see what they say."""
    _, hidden = places
    found = run(hidden, None)
    Path("/dev/shm/of-a-test").unlink(missing_ok=True)
    assert (found["user"], found["kill"], found["temporary"]) == (os.getuid(), "done", ["answer"])
    assert guest.isolation() == "same-user"
