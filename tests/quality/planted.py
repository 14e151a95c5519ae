"""What is planted, and what the lab must find in it: one table of faults, one of correct twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.quality import memories, programs, stores

if TYPE_CHECKING:
    from crashlab import Log, Store, Subject

FOUND: dict[str, tuple[Store | Log | Subject, set[str]]] = {
    "in place": (stores.IN_PLACE, {"lost"}),
    "half file read as nothing": (stores.SILENT_RESET, {"silent-reset"}),
    "unlink before rename": (stores.UNLINK_FIRST, {"lost"}),
    "one value in two files": (stores.TWO_FILES, {"torn"}),
    "temporary files counted": (stores.COUNTS_TMP, {"lost"}),
    "load consumes": (stores.CONSUMES, {"diverged"}),
    "lock file": (stores.LOCK_FILE, {"stuck"}),
    "waits for a dead owner": (stores.WAITS_FOR_LOCK, {"hang"}),
    "leaves a process": (stores.LEAVES_PROCESS, {"left-process"}),
    "torn tail": (stores.TORN_TAIL, {"lost"}),
    "glued tail": (stores.GLUED_TAIL, {"lost"}),
    "bad lines skipped": (stores.SKIPS_LINES, {"lost"}),
    "a keyed event stored twice": (stores.NO_DEDUPE, {"duplicate-entry"}),
    "half a batch": (stores.HALF_BATCHES, {"torn"}),
    "pays, then notes": (programs.PAYS_TWICE, {"duplicate-effect"}),
    "notes, then pays": (programs.NEVER_PAYS, {"missing-effect"}),
    "needless unknown": (programs.NEEDLESS_UNKNOWN, {"needless-unknown"}),
    "refuses everything": (programs.REFUSES, {"stuck"}),
    "remembers what it consumed": (memories.CONSUMES, {"diverged"}),
    "claims the end, and waits": (programs.CLAIMS_THE_END, {"missing-effect"}),
    "reads the time of a file": (programs.READS_TIMES, {"stuck"}),
    "end counts starts": (programs.COUNTS_STARTS, {"diverged"}),
}
"""Planted faults by what is wrong, with the kinds that must be among the findings."""

CLEAN: dict[str, Store | Log | Subject] = {
    "atomic": stores.ATOMIC,
    "load raises on an empty directory": stores.EMPTY_RAISES,
    "repaired log": stores.REPAIRED_LOG,
    "keyed payment": programs.PAYS_KEYED,
    "honest unknown": programs.HONEST_UNKNOWN,
    "a lock held for life": programs.LEASED,
    "pending and done in one file": programs.ONE_FILE,
    "a mark with a text": programs.MARK_FILE,
    "payments in threads": programs.PAYS_IN_THREADS,
    "a store that acks by itself": stores.OWN_ACK,
    "a store that tells the world": stores.TELLS,
    "a log that demands its order": stores.STRICT_ORDER,
    "a load that is a generator": stores.GENERATOR,
    "a load that exits on an empty directory": stores.EXITS_ON_EMPTY,
}
"""Correct twins: negative controls."""
