"""Small programs with one planted fault each, beside correct twins: effects, keys, unknowns, locks, times.

Every function that is wrong says so; :mod:`tests.quality.planted` names the kind that the lab must find.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from crashlab import Subject
from tests.quality.stores import load_strict, save_atomic


def pay(lab: Any) -> str:
    """Wrong: pays, then notes it; killed between the two it pays again."""
    if not (lab.dir / "paid").exists():
        lab.effect("pay", yen=1000)
        save_atomic(lab.dir, "yes", "paid")
    return "paid"


def pay_keyed(lab: Any) -> str:
    """The same with a key: the bank knows it."""
    if not (lab.dir / "paid").exists():
        lab.effect("pay", key="order-7", yen=1000)
        save_atomic(lab.dir, "yes", "paid")
    return "paid"


def pay_marked(lab: Any) -> str:
    """Wrong the other way: notes it, then pays; killed between the two it never pays."""
    if not (lab.dir / "paid").exists():
        save_atomic(lab.dir, "yes", "paid")
        lab.effect("pay", yen=1000)
    return "paid"


def pay_unknown(lab: Any) -> str:
    """Wrong: says unknown whenever it finds anything, also where the files tell."""
    if any(lab.dir.iterdir()):
        lab.unknown("pay", yen=1000)
        return "unknown"
    save_atomic(lab.dir, "about to", "started")
    lab.effect("pay", yen=1000)
    save_atomic(lab.dir, "yes", "paid")
    lab.ack()
    return "paid"


def pay_honest(lab: Any) -> str:
    """Marks, pays, notes; between mark and note it asks a person."""
    if (lab.dir / "paid").exists():
        return "paid"
    if (lab.dir / "started").exists():
        lab.unknown("pay", yen=1000)
        return "waiting"
    save_atomic(lab.dir, "about to", "started")
    lab.ack()
    lab.effect("pay", yen=1000)
    save_atomic(lab.dir, "yes", "paid")
    lab.ack()
    return "paid"


PAYS_TWICE = Subject(pay)
PAYS_KEYED = Subject(pay_keyed)
NEVER_PAYS = Subject(pay_marked)
NEEDLESS_UNKNOWN = Subject(pay_unknown)
HONEST_UNKNOWN = Subject(pay_honest)


def refuse(lab: Any) -> str:
    """Wrong: refuses to resume whenever it finds anything."""
    if any(lab.dir.iterdir()):
        text = "there is something here; I do not dare"
        raise RuntimeError(text)
    return pay_keyed(lab)


REFUSES = Subject(refuse)


def stamped_end(lab: Any) -> dict[str, Any]:
    """Wrong: its end depends on how often it was started."""
    count = (load_strict(lab.dir, "count") or 0) + 1
    save_atomic(lab.dir, count, "count")
    return {"starts": count}


COUNTS_STARTS = Subject(stamped_end)
_locks: list[Any] = []


def run_locked(lab: Any) -> str:
    """Holds an OS lock for life, as a lease does: the kernel frees it when the process dies."""
    import fcntl  # noqa: PLC0415 - Windows has none

    file = (lab.dir / "lock").open("w")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _locks.append(file)
    for n in range(10):
        save_atomic(lab.dir, n, "state")
    return "done"


LEASED = Subject(run_locked)


def pay_all_in_one_file(lab: Any) -> Any:
    """Pending and done in one file, replaced atomically; no save point is ever told."""
    state = load_strict(lab.dir) or {"done": [], "pending": None}
    if state["pending"] is not None:
        lab.unknown("pay", n=state["pending"])
        return {"waiting": state["pending"]}
    for n in range(2):
        if n not in state["done"]:
            save_atomic(lab.dir, {**state, "pending": n})
            lab.effect("pay", n=n)
            state = {"done": [*state["done"], n], "pending": None}
            save_atomic(lab.dir, state)
    return state["done"]


def pay_mark_file(lab: Any) -> str:
    """A mark with a text in it, then the act, then a second mark."""
    if (lab.dir / "done").exists():
        return "paid"
    if (lab.dir / "mark").exists():
        lab.unknown("pay")
        return "waiting"
    (lab.dir / "mark").write_text("about to")
    lab.effect("pay")
    (lab.dir / "done").write_text("done")
    return "paid"


ONE_FILE = Subject(pay_all_in_one_file)
MARK_FILE = Subject(pay_mark_file)


def pay_and_claim(lab: Any) -> Any:
    """Wrong: asks a person about one payment, claims the end, and never does the other."""
    state = load_strict(lab.dir) or {"n": 0, "pending": False}
    if state["pending"]:
        lab.unknown("pay", n=state["n"])
        return "all paid"
    for n in range(state["n"], 2):
        save_atomic(lab.dir, {"n": n, "pending": True})
        lab.effect("pay", n=n)
        save_atomic(lab.dir, {"n": n + 1, "pending": False})
    return "all paid"


def pay_in_threads(lab: Any) -> str:
    """Marks both, then each thread pays and notes its own: no reader knows in which order."""
    started = (lab.dir / "value.json").exists()
    todo = [n for n in range(2) if not (lab.dir / f"paid{n}").exists()]
    if started:
        for n in todo:
            lab.unknown("pay", n=n)
        return "waiting" if todo else "paid"
    save_atomic(lab.dir, "both pending")
    lab.save_point("A")

    def pay_one(n: int) -> None:
        lab.effect("pay", n=n)
        save_atomic(lab.dir, n, f"paid{n}")

    threads = [threading.Thread(target=pay_one, args=(n,)) for n in todo]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lab.save_point("B")
    return "paid"


PAYS_IN_THREADS = Subject(pay_in_threads)
CLAIMS_THE_END = Subject(pay_and_claim)


def trust_a_time(lab: Any) -> str:
    """Wrong: a time of a file that a kill leaves confuses it."""
    path = lab.dir / "beat"
    if not path.exists():
        path.write_text("x")
        os.utime(path, (1, 1))
    if path.stat().st_mtime == 7:
        text = "confused by the time"
        raise RuntimeError(text)
    os.utime(path, (7, 7))
    os.utime(path, (9, 9))
    return "done"


READS_TIMES = Subject(trust_a_time)
