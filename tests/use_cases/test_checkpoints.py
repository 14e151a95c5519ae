"""A team that saves and loads one value: two functions, coroutines, SQLite, and what else may be asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab import Policy, Store
from tests.crashlab.here import needs_strace
from tests.use_cases import bookmarks, files
from tests.use_cases.cases import kinds, passes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


VALUES = [{"page": 1, "seen": "x" * 5_000}, {"page": 2}]


def store(save: Callable[..., Any], load: Callable[..., Any] = files.take) -> Store:
    """Two functions that take a path, as a Store."""
    return Store(
        save=lambda folder, value: save(folder / "bookmark.json", value),
        load=lambda folder: load(folder / "bookmark.json"),
        values=VALUES,
    )


SEALED = store(bookmarks.seal, bookmarks.unseal)
PAIR = Store(bookmarks.save_pair, bookmarks.load_pair, values=VALUES)


# --- case 1: two functions -------------------------------------------------------------------------------


def test_two_functions_that_replace_the_file_pass(tmp_path: Path) -> None:
    """Whoever writes a draft, forces it out, renames it and forces the name out keeps every bookmark."""
    report = passes(store(files.put), tmp_path)
    assert [each.fault for each in report.faults] == ["kill", "power"]


def test_two_functions_that_overwrite_the_file_are_found_by_a_kill(tmp_path: Path) -> None:
    """The file is empty between two calls; the one that was acked cannot be read any more."""
    assert "kill lost" in kinds(store(files.put_in_place), tmp_path, faults="kill")


def test_a_missing_fsync_is_found_by_the_power_alone(tmp_path: Path) -> None:
    """The page cache outlives the process, so no kill shows it; a power loss does."""
    unsynced = store(files.put_unsynced)
    passes(unsynced, tmp_path, faults="kill")
    assert "power lost" in kinds(unsynced, tmp_path)


# --- case 3: coroutines -----------------------------------------------------------------------------------


def shelf(save: Callable[..., Any]) -> Store:
    """The class with coroutines; opened in the process that needs it, and closed there."""
    return Store(
        save, bookmarks.Shelf.get, open=lambda lab: bookmarks.Shelf(lab.dir), close=bookmarks.Shelf.close, values=VALUES
    )


def test_a_store_of_coroutines_passes(tmp_path: Path) -> None:
    """``async def`` needs nothing: methods, opening and closing share one event loop."""
    passes(shelf(bookmarks.Shelf.put), tmp_path)


def test_a_store_of_coroutines_that_overwrites_is_found(tmp_path: Path) -> None:
    """Also where the write happens in another thread."""
    assert "kill lost" in kinds(shelf(bookmarks.Shelf.put_in_place), tmp_path, faults="kill")


# --- case 4: a database that writes from C -------------------------------------------------------------------


def database(synchronous: str) -> Store:
    """A connection as handle."""
    return Store(
        bookmarks.insert,
        bookmarks.select,
        open=lambda lab: bookmarks.database(lab.dir, synchronous=synchronous),
        values=[{"page": 1}, {"page": 2}],
    )


@needs_strace
def test_sqlite_with_a_log_that_is_synced_passes(tmp_path: Path) -> None:
    """Nothing to say: the lab sees the C library at work and records again by system calls."""
    assert passes(database("full"), tmp_path).settings.recorder == "strace"


@needs_strace
def test_sqlite_that_syncs_only_at_checkpoints_loses_the_last_commit(tmp_path: Path) -> None:
    """``synchronous=normal`` keeps the database whole and does not keep what was committed."""
    passes(database("normal"), tmp_path, faults="kill")
    assert "power silent-reset" in kinds(database("normal"), tmp_path, faults="power")


# --- cases 13, 14, 15: other faults ----------------------------------------------------------------------------


def test_a_recovery_that_may_be_killed_as_well_passes(tmp_path: Path) -> None:
    """It carries the plan out first and strikes it out last, as the first run does."""
    report = passes(PAIR, tmp_path, faults="kill,power,recovery")
    assert "recovery" in [each.fault for each in report.faults]


def test_a_recovery_that_forgets_too_early_is_found_by_the_second_crash_only(tmp_path: Path) -> None:
    """Once is no trouble: the first crash alone passes."""
    hasty = Store(bookmarks.save_pair, bookmarks.load_pair_hastily, values=VALUES)
    passes(hasty, tmp_path, faults="kill")
    found = kinds(hasty, tmp_path, faults="kill,recovery")
    assert {each.split()[0] for each in found} == {"recovery"}


def test_a_full_disk_is_borne_by_drafts(tmp_path: Path) -> None:
    """The call raises, the old value stays, and the same call works once there is room again."""
    passes(store(files.put), tmp_path, faults="error:ENOSPC,error:short-write")


def test_a_full_disk_ruins_a_file_that_is_overwritten(tmp_path: Path) -> None:
    """The error is told, but the old value had been thrown away before."""
    assert "error lost" in kinds(store(files.put_in_place), tmp_path, faults="error:ENOSPC")


def test_damage_that_a_hash_shows_is_refused(tmp_path: Path) -> None:
    """A loud refusal is all that is asked, as long as the damaged file is left for a person to see."""
    passes(SEALED, tmp_path, faults="damage")


def test_damage_without_a_hash_is_taken_for_good(tmp_path: Path) -> None:
    """JSON with one other bit is JSON still."""
    assert "damage accepted-damage" in kinds(store(files.put), tmp_path, faults="damage")


def test_throwing_the_evidence_away_is_for_the_user_to_allow(tmp_path: Path) -> None:
    """By default the damaged bytes must stay for a person to see; a policy says that this program need not."""
    clearing = store(bookmarks.seal, bookmarks.unseal_clearing)
    assert kinds(clearing, tmp_path, faults="damage:bit") == {"damage evidence-destroyed"}
    passes(clearing, tmp_path, faults="damage:bit", policy={"damage": Policy(evidence="any")})
