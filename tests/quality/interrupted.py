"""Programs whose recovery cannot bear to be killed itself, each beside a correct twin.

Without a second crash all of them recover from everything: only a crash of the recovery tells them apart.
Every function that is wrong says so.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import Log, Subject
from tests.quality import stores

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 3


def dirsync(directory: Path) -> None:
    """fsync of the directory: its names are durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def save_atomic(directory: Path, value: Any, name: str) -> None:
    """As ever, but an old temporary file goes first: after a power loss it may be the good file's other name."""
    (directory / f"{name}.tmp").unlink(missing_ok=True)
    stores.save_atomic(directory, value, name)


def run_counting(lab: Any) -> dict[str, Any]:
    """Counts to three, and saves each number whole; a correct run."""
    for step in range(1, STEPS + 1):
        save_atomic(lab.dir, {"step": step}, "state")
        lab.ack(step)
    return {"step": STEPS}


def _value(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None


def check_acked(lab: Any, end: dict[str, Any]) -> None:
    """What was acked is there at the end, and recovery began at no less than that."""
    assert end["step"] == STEPS, f"ended at {end['step']}"
    assert end.get("from", STEPS) >= max(lab.acked, default=0), f"began again at {end['from']}"


def resume_moving(lab: Any) -> dict[str, Any]:
    """Wrong: takes its state away under another name, works on it, and only then writes it anew."""
    state, taken = lab.dir / "state", lab.dir / "state.recovering"
    if not state.exists():
        return {**run_counting(lab), "from": 0}
    os.rename(state, taken)
    step = _value(taken)["step"]
    save_atomic(lab.dir, {"step": STEPS}, "state")
    taken.unlink()
    return {"step": STEPS, "from": step}


def resume_moving_back(lab: Any) -> dict[str, Any]:
    """The same, but what a recovery that died has taken away is put back first, and each name is synced.

    A temporary file that is left goes before: after a power loss it may be the state's other name.
    """
    state, taken = lab.dir / "state", lab.dir / "state.recovering"
    (lab.dir / "state.tmp").unlink(missing_ok=True)
    if taken.exists() and not state.exists():
        os.rename(taken, state)
    dirsync(lab.dir)
    if not state.exists():
        return {**run_counting(lab), "from": 0}
    os.rename(state, taken)
    dirsync(lab.dir)
    step = _value(taken)["step"]
    save_atomic(lab.dir, {"step": STEPS}, "state")
    taken.unlink()
    return {"step": STEPS, "from": step}


TAKES_AWAY = Subject(run_counting, resume_moving, check=check_acked)
PUTS_BACK = Subject(run_counting, resume_moving_back, check=check_acked)


def run_journal(lab: Any) -> int:
    """Writes amounts to a journal, applies them to the balance, and empties the journal; a correct run."""
    save_atomic(lab.dir, {"balance": 0, "applied": 0}, "account")
    save_atomic(lab.dir, [10, 20], "journal")
    return replay_numbered(lab)


def replay_again(lab: Any) -> int:
    """Wrong: adds what stands in the journal, then empties it; killed between the two it adds twice."""
    account = _value(lab.dir / "account")
    journal = _value(lab.dir / "journal") or []
    if account is None or not (lab.dir / "journal").exists():
        return run_journal(lab)
    if account["applied"]:
        journal = journal[account["applied"] :]
    balance = account["balance"] + sum(journal)
    save_atomic(lab.dir, {"balance": balance, "applied": 0}, "account")
    save_atomic(lab.dir, [], "journal")
    return int(balance)


def replay_numbered(lab: Any) -> int:
    """The same, but with the balance it saves how much of the journal is in it."""
    account = _value(lab.dir / "account")
    journal = _value(lab.dir / "journal") or []
    if account is None or not (lab.dir / "journal").exists():
        return run_journal(lab)
    balance = account["balance"] + sum(journal[account["applied"] :])
    save_atomic(lab.dir, {"balance": balance, "applied": len(journal)}, "account")
    return int(balance)


APPLIES_TWICE = Subject(run_journal, replay_again)
APPLIES_ONCE = Subject(run_journal, replay_numbered)


def run_mail(lab: Any) -> str:
    """Marks, mails with a key, notes; a correct run."""
    save_atomic(lab.dir, "pending", "mail")
    lab.effect("mail", key="m1", to="ada")
    save_atomic(lab.dir, "sent", "mail")
    return "sent"


def resume_mailing(lab: Any) -> str:
    """Wrong: looks a pending mail up, and mails without the key what was not sent, before it notes that."""
    state = _value(lab.dir / "mail")
    if state is None:
        return run_mail(lab)
    if state == "pending" and lab.lookup("mail", key="m1") is None:
        lab.effect("mail", to="ada")
    save_atomic(lab.dir, "sent", "mail")
    return "sent"


def resume_mailing_keyed(lab: Any) -> str:
    """The same with the key."""
    state = _value(lab.dir / "mail")
    if state is None:
        return run_mail(lab)
    if state == "pending":
        lab.effect("mail", key="m1", to="ada")
    save_atomic(lab.dir, "sent", "mail")
    return "sent"


MAILS_AGAIN = Subject(run_mail, resume_mailing)
MAILS_KEYED = Subject(run_mail, resume_mailing_keyed)


LINE = "x" * 5000
BATCHES = tuple([{"seq": n, "text": LINE}] for n in range(3))


def append_line(directory: Path, events: list[dict[str, Any]]) -> None:
    """Appends and syncs; a kill may leave a line without its end."""
    new = not (directory / "events").exists()
    with (directory / "events").open("ab") as file:
        file.write(b"".join(json.dumps(event).encode() + b"\n" for event in events))
        file.flush()
        os.fsync(file.fileno())
    if new:
        dirsync(directory)


def _whole(directory: Path) -> bytes:
    """The lines up to the first that has no end, or that a power loss left zeros in."""
    path = directory / "events"
    whole = b""
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        if not line.endswith(b"\n") or b"\0" in line:
            break
        whole += line
    return whole


def load_rewriting(directory: Path) -> list[dict[str, Any]]:
    """Wrong: to be rid of half a line it empties the file and writes the whole lines again."""
    whole = _whole(directory)
    if (directory / "events").exists() and (directory / "events").stat().st_size > len(whole):
        (directory / "events").write_bytes(whole)
    return [json.loads(line) for line in whole.splitlines()]


def load_cutting(directory: Path) -> list[dict[str, Any]]:
    """The same, but only the half line is cut off."""
    whole = _whole(directory)
    if (directory / "events").exists() and (directory / "events").stat().st_size > len(whole):
        os.truncate(directory / "events", len(whole))
    return [json.loads(line) for line in whole.splitlines()]


REWRITES = Log(append_line, load_rewriting, values=BATCHES)
CUTS_OFF = Log(append_line, load_cutting, values=BATCHES)


def run_once(lab: Any) -> str:
    """Saves once; a correct run."""
    save_atomic(lab.dir, "done", "state")
    return "done"


def resume_reading(lab: Any) -> str:
    """Only reads where something is there."""
    return str(_value(lab.dir / "state") or run_once(lab))


READS = Subject(run_once, resume_reading)


def resume_unknown(lab: Any) -> str:
    """Asks a person about a pending mail, after it has noted that it will; honest at every crash."""
    state = _value(lab.dir / "mail")
    if state is None:
        return run_asking(lab)
    if state != "sent":
        save_atomic(lab.dir, "asked", "mail")
        lab.unknown("mail", to="ada")
        return "waiting"
    return "sent"


def run_asking(lab: Any) -> str:
    """Marks, mails without a key, notes; a correct run for a recovery that asks."""
    save_atomic(lab.dir, "pending", "mail")
    lab.effect("mail", to="ada")
    save_atomic(lab.dir, "sent", "mail")
    return "sent"


ASKS = Subject(run_asking, resume_unknown)


def resume_reporting(lab: Any) -> str:
    """Reports a pending mail unknown, notes that, and goes on: a recovery after it need not report again."""
    state = _value(lab.dir / "mail")
    if state is None:
        return run_asking(lab)
    if state == "pending":
        lab.unknown("mail", to="ada")
        save_atomic(lab.dir, "told", "mail")
    return "sent"


def resume_noting_first(lab: Any) -> str:
    """Wrong: notes that it has reported before it does; killed in between, nobody ever hears of it."""
    state = _value(lab.dir / "mail")
    if state is None:
        return run_asking(lab)
    if state == "pending":
        save_atomic(lab.dir, "told", "mail")
        lab.unknown("mail", to="ada")
    return "sent"


REPORTS = Subject(run_asking, resume_reporting)
NOTES_FIRST = Subject(run_asking, resume_noting_first)


def run_reusing(lab: Any) -> str:
    """Wrong: opens its old temporary file anew, which after a power loss may be the good file itself."""
    for step in range(2):
        stores.save_atomic(lab.dir, step, "state")
        lab.ack(step)
    return "done"


def resume_reusing(lab: Any) -> str:
    """Wrong in the same way; reads its state first."""
    stores.load_strict(lab.dir, "state")
    return run_reusing(lab)


REUSES_TEMPORARY = Subject(run_reusing, resume_reusing)


def resume_counting_tries(lab: Any, borne: int = 1) -> dict[str, Any]:
    """Wrong: notes how often it has tried, and after ``borne`` crashes of it gives its state up."""
    tries = len(_value(lab.dir / "tries") or [])
    if (_value(lab.dir / "state") or {}).get("step") == STEPS:
        return {"step": STEPS}
    save_atomic(lab.dir, ["tried"] * (tries + 1), "tries")
    if tries > borne:
        (lab.dir / "state").unlink(missing_ok=True)
        return {"step": 0, "from": 0}
    return run_counting(lab)


BEARS_ONE = Subject(run_counting, resume_counting_tries, check=check_acked)
BEARS_TWO = Subject(run_counting, partial(resume_counting_tries, borne=2), check=check_acked)


def _pay(lab: Any, order: str) -> str:
    lab.effect("pay", key=order, yen=1000)
    save_atomic(lab.dir, "yes", "paid")
    return "paid"


def run_order(lab: Any) -> str:
    """Makes up an order's number, saves it durably, pays under it; a correct run."""
    order = f"order-{os.urandom(4).hex()}"
    save_atomic(lab.dir, order, "order")
    return _pay(lab, order)


def resume_trusting(lab: Any) -> str:
    """Wrong: takes the number that it reads for a durable one; the run before may not have come to sync it."""
    order = _value(lab.dir / "order")
    return "paid" if (lab.dir / "paid").exists() else run_order(lab) if order is None else _pay(lab, order)


def resume_syncing(lab: Any) -> str:
    """The same, but what it goes by is made durable first."""
    dirsync(lab.dir)
    return resume_trusting(lab)


TRUSTS = Subject(run_order, resume_trusting)
SYNCS = Subject(run_order, resume_syncing)


def resume_with_a_child(lab: Any) -> str:
    """Right, but a child process does the writing, which the lab cannot see."""
    if not (lab.dir / "state").exists():
        return run_once(lab)
    subprocess.run(["/bin/sh", "-c", "echo resumed > resumed"], cwd=lab.dir, check=True)
    return "done"


CHILD_WRITES = Subject(run_once, resume_with_a_child)
