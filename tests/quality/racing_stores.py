"""Programs for two owners: each naive one has one fault that only a second owner shows, beside a correct twin."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from typing import TYPE_CHECKING, Any

from crashlab import Log, Store, Subject

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Lab


def _load(directory: Path) -> Any:
    try:
        return json.loads((directory / "state.json").read_text())
    except FileNotFoundError:
        return None


def _replace(directory: Path, value: Any) -> None:
    """The usual way, with a temporary name of its own."""
    descriptor, name = tempfile.mkstemp(dir=directory)
    with open(descriptor, "w") as file:
        file.write(json.dumps(value))
        file.flush()
        os.fsync(file.fileno())
    os.rename(name, directory / "state.json")


def _save_by_fixed_name(directory: Path, value: Any) -> None:
    with open(directory / "state.tmp", "w") as file:
        file.write(json.dumps(value))
        file.flush()
        os.fsync(file.fileno())
    os.rename(directory / "state.tmp", directory / "state.json")


def _save_in_place(directory: Path, value: Any) -> None:
    (directory / "state.json").write_text(json.dumps(value))


def _save_keeping_the_tail(directory: Path, value: Any) -> None:
    """One temporary name, and what was longer before is cut off only after it was written over."""
    data = json.dumps(value).encode()
    descriptor = os.open(directory / "state.tmp", os.O_WRONLY | os.O_CREAT, 0o644)
    os.ftruncate(descriptor, len(data))
    os.pwrite(descriptor, data, 0)
    os.close(descriptor)
    os.rename(directory / "state.tmp", directory / "state.json")


NUMBERS = [1, 20, 300]
UNIQUE_NAME = Store(_replace, _load)
FIXED_NAME = Store(_save_by_fixed_name, _load, values=NUMBERS)
IN_PLACE = Store(_save_in_place, _load, values=[{"n": 1}, {"text": "x" * 9000}])
KEEPS_THE_TAIL = Store(_save_keeping_the_tail, _load, values=NUMBERS)


# --- logs ------------------------------------------------------------------------------------------

BATCHES = [["a"], ["b", "c"], ["d"]]


def _append_by_rewriting(directory: Path, events: list[str]) -> None:
    _replace(directory, [*(_load(directory) or []), *events])


def _append_under_a_lock(directory: Path, events: list[str]) -> None:
    with open(directory / "lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _append_by_rewriting(directory, events)


REWRITES = Log(_append_by_rewriting, lambda directory: _load(directory) or [], values=BATCHES)
REWRITES_UNDER_A_LOCK = Log(_append_under_a_lock, lambda directory: _load(directory) or [], values=BATCHES)


def _lines(directory: Path) -> list[str]:
    try:
        return (directory / "log").read_text().splitlines()
    except FileNotFoundError:
        return []


class _Journal:
    """A log of lines, which writes at the place where the log ended when it was opened, and goes on from there."""

    def __init__(self, lab: Lab) -> None:
        self.directory = lab.dir
        self.descriptor = os.open(lab.dir / "log", os.O_WRONLY | os.O_CREAT, 0o644)
        self.end = os.fstat(self.descriptor).st_size

    def append(self, events: list[str]) -> None:
        """Write the events as lines."""
        data = "".join(f"{event}\n" for event in events).encode()
        self.end += os.pwrite(self.descriptor, data, self.end)

    def load(self) -> list[str]:
        """All lines."""
        return _lines(self.directory)


def _append_lines(directory: Path, events: list[str]) -> None:
    descriptor = os.open(directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(descriptor, "".join(f"{event}\n" for event in events).encode())
    os.close(descriptor)


AT_AN_OFFSET = Log(_Journal.append, _Journal.load, open=_Journal, values=BATCHES)
APPENDS = Log(_append_lines, _lines, values=BATCHES)


# --- epochs: stores with owners ---------------------------------------------------------------------


class LostLeaseError(RuntimeError):
    """Somebody else is the owner now."""


class _Epoch:
    """Each opening takes the next epoch; a save of an older one is refused."""

    def __init__(self, lab: Lab) -> None:
        self.directory = lab.dir
        self.epoch = self._read() + 1
        descriptor, name = tempfile.mkstemp(dir=self.directory)
        os.write(descriptor, str(self.epoch).encode())
        os.close(descriptor)
        os.rename(name, self.directory / "epoch")

    def _read(self) -> int:
        try:
            return int((self.directory / "epoch").read_text())
        except FileNotFoundError:
            return 0

    def save(self, value: Any) -> None:
        """Save as long as nobody else has opened it."""
        if self._read() != self.epoch:
            message = f"epoch {self.epoch} is over"
            raise LostLeaseError(message)
        _replace(self.directory, value)

    def load(self) -> Any:
        """What was saved last."""
        return _load(self.directory)


class _EpochAtOpening(_Epoch):
    def save(self, value: Any) -> None:
        """Trust the epoch of the opening."""
        _replace(self.directory, value)


EPOCHS = Store(_Epoch.save, _Epoch.load, open=_Epoch, values=NUMBERS)
EPOCH_AT_OPENING = Store(_EpochAtOpening.save, _EpochAtOpening.load, open=_EpochAtOpening, values=NUMBERS)


# --- agents ------------------------------------------------------------------------------------------


def _work(lab: Lab, *, keyed: bool = False) -> str:
    """Two mails, each noted in a file once it is sent; one that may have been sent is sent again."""
    state = _load(lab.dir) or {"sent": 0}
    for number in range(state["sent"], 2):
        lab.effect("mail", key=f"mail-{number}" if keyed else None, number=number)
        _replace(lab.dir, {"sent": number + 1})
    return "done"


def _work_keyed(lab: Lab) -> str:
    return _work(lab, keyed=True)


def _work_locked(lab: Lab) -> str:
    with open(lab.dir / "lease.lock", "ab") as lease:
        try:
            fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = "another process is at work here"
            raise LostLeaseError(message) from None
        return _work(lab)


def _work_waiting(lab: Lab) -> str:
    with open(lab.dir / "lease.lock", "ab") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        return _work(lab)


def _lives(name: Path) -> bool:
    try:
        os.kill(int(name.read_text()), 0)
    except (ValueError, ProcessLookupError):  # the fault: an empty file is one whose owner is about to write its number
        return False
    return True


def _work_by_lock_file(lab: Lab) -> str:
    lock = lab.dir / "pid"
    if lock.exists() and not _lives(lock):
        lock.unlink()
    try:
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        message = "another process is at work here"
        raise LostLeaseError(message) from None
    os.write(descriptor, str(os.getpid()).encode())
    os.close(descriptor)
    try:
        return _work(lab)
    finally:
        lock.unlink()


def _work_polling(lab: Lab, *, gives_back: bool = True) -> str:
    while True:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(lab.dir / "busy", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            break
        time.sleep(0.01)
    end = _work(lab)
    if gives_back:
        (lab.dir / "busy").unlink()
    return end


def _work_polling_for_ever(lab: Lab) -> str:
    return _work_polling(lab, gives_back=False)


def _mail_once(lab: Lab) -> str:
    """Marks, and mails without a key; that it was sent is noted nowhere."""
    _replace(lab.dir, "pending")
    lab.effect("mail", to="ada")
    return "sent"


def _mail_or_ask(lab: Lab) -> str:
    if _load(lab.dir) is None:
        return _mail_once(lab)
    lab.unknown("mail", to="ada")
    return "waiting"


ASKS_EVER_AFTER = Subject(_mail_once, _mail_or_ask)
UNKEYED = Subject(_work)
KEYED = Subject(_work_keyed)
LOCKED = Subject(_work_locked)
WAITING = Subject(_work_waiting)
LOCK_FILE = Subject(_work_by_lock_file)
POLLING = Subject(_work_polling)
NEVER_GIVES_BACK = Subject(_work_polling_for_ever, check=lambda _lab, _end: None, timeout_s=1.0)


def _turns(lab: Lab, epoch: int, *, fence: Path | None) -> str:
    """Two turns, each begun and ended by a save; ``fence`` is the file that says whose epoch it is."""
    state = {**(_load(lab.dir) or {"begun": 0, "turn": 0}), "epoch": epoch}
    _replace(lab.dir, state)
    while state["turn"] < 2:
        for change in ({"begun": state["begun"] + 1}, {"turn": state["turn"] + 1}):
            state = {**state, **change}
            if fence is not None and int(fence.read_text()) != epoch:
                message = f"epoch {epoch} is over"
                raise LostLeaseError(message)
            _replace(lab.dir, state)
            lab.ack(epoch)
    return "done"


def _turns_without_fence(lab: Lab) -> str:
    return _turns(lab, (_load(lab.dir) or {"epoch": 0})["epoch"] + 1, fence=None)


def _turns_with_fence(lab: Lab) -> str:
    return _turns(lab, _Epoch(lab).epoch, fence=lab.dir / "epoch")


def _epoch_grows(lab: Lab, _end: str) -> None:
    assert _load(lab.dir)["epoch"] > max(lab.acked, default=0), "an epoch that somebody had acked was given out again"


NO_FENCE = Subject(_turns_without_fence, check=_epoch_grows)
FENCE = Subject(_turns_with_fence, check=_epoch_grows)
