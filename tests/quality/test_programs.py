"""Real programs in other languages and over C libraries: the broken ones are found, the good ones left alone.

Each keeps one number and acks each save; afterwards the number must be the last one acked, or the one after it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Commands, explore
from crashlab.subject import BRIEF
from tests.crashlab.disk.needs import kinds, left_of
from tests.crashlab.here import needs, needs_strace

if TYPE_CHECKING:
    from crashlab.report.model import Report

PROGRAMS = Path(__file__).parent / "foreign"
POWER, KILL, BOTH = "power", "kill", "kill,power"
ACTIONS = ("load", "check")
FEW = replace(BRIEF, violations=1, real_kills=2, anew=2)
LARGER = replace(FEW, subset=6)
"""All subsets of six names of one cut: what a lost name takes along shows then only."""

PYTHON = [sys.executable, "-S", "-E", str(PROGRAMS / "counter.py")]
PACKAGES = os.pathsep.join(sorted({sysconfig.get_path(kind) for kind in ("purelib", "platlib")}))

pytestmark = needs_strace


def kept(*program: str, name: str, write: str = "write") -> Commands:
    """A program that is called with ``write`` or ``load`` and its directory. What its files look like is its own
    affair, so the view is empty: two runs of LMDB leave different bytes where nobody looks."""
    asked = {each: ["sh", str(PROGRAMS / "kept.sh"), each, "{tmp}", *program, "load", "{dir}"] for each in ACTIONS}
    return Commands(
        [*program, write, "{dir}"],
        asked["load"],
        check=asked["check"],
        view=["true"],
        name=name,
        env={"PACKAGES": PACKAGES},
        timeout_s=20,
    )


def counter(store: str) -> Commands:
    return kept(*PYTHON, store, name=store)


@pytest.fixture(scope="session")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The C program, compiled."""
    binary = tmp_path_factory.mktemp("mapped") / "mapped"
    subprocess.run(["cc", "-O1", "-o", str(binary), str(PROGRAMS / "mapped.c")], check=True)
    return str(binary)


def tried(subject: Commands, tmp_path: Path, faults: str, **options: Any) -> Report:
    report = explore(subject, faults=faults, out=tmp_path, **{"budget": FEW, **options})
    assert report.unmeasured == (), str(report)
    assert report.settings.recorder == "strace"
    return report


def found(subject: Commands, tmp_path: Path, faults: str) -> set[str]:
    report = tried(subject, tmp_path, faults)
    assert report.verdict == "violation", str(report)
    return {finding.fault for finding in report.findings}


@needs("node")
def test_a_node_script_that_renames_without_fsync_is_found(tmp_path: Path) -> None:
    """It survives every kill and no power loss."""
    script = kept("node", str(PROGRAMS / "rename.js"), name="rename.js")
    assert tried(script, tmp_path, KILL).verdict == "consistent"
    assert found(script, tmp_path, POWER) == {"power"}


def test_a_shell_script_that_appends_is_found_under_both_faults(tmp_path: Path) -> None:
    """Its last line may be cut, and may be gone."""
    assert found(kept("sh", str(PROGRAMS / "append.sh"), name="append.sh"), tmp_path, BOTH) == {"kill", "power"}


@pytest.mark.parametrize("store", ["sqlite-off", "sqlite-full"])
def test_sqlite_that_does_not_sync_enough_is_found(tmp_path: Path, store: str) -> None:
    """OFF syncs nothing; FULL with a rollback journal does not sync the directory after the journal is deleted."""
    assert found(counter(store), tmp_path, POWER) == {"power"}


@pytest.mark.parametrize("store", ["pickle", "dbm", "shelve", "tinydb"])
def test_stores_that_overwrite_in_place_are_found(tmp_path: Path, store: str) -> None:
    """Of the standard library and beyond."""
    assert "kill" in found(counter(store), tmp_path, BOTH)


@pytest.mark.parametrize("store", ["sqlite-wal", "sqlite-extra", "lmdb", "atomicwrites"])
def test_stores_that_do_it_right_are_left_alone(tmp_path: Path, store: str) -> None:
    """No false alarm under a kill or a power loss."""
    report = tried(counter(store), tmp_path, BOTH)
    assert report.verdict == "consistent", str(report)


def test_lmdb_is_not_right_while_it_makes_its_file(tmp_path: Path) -> None:
    """LMDB 0.9.36: with only one of the two meta pages that one write makes, data.mdb is refused ever after."""
    report = tried(counter("lmdb-new"), tmp_path, BOTH)
    assert report.verdict == "violation"
    assert {finding.kind for finding in report.findings} == {"stuck"}
    for finding in report.findings:
        assert "MDB_INVALID" in finding.observed.stderr
        assert not any(op.op == "ack" for op in finding.ops), "nothing that was acked is lost"


def refs(write: str) -> Commands:
    return kept("sh", str(PROGRAMS / "refs.sh"), name=f"refs.sh {write}", write=write)


@pytest.mark.parametrize(("sync", "verdict"), [("sync -d n.new;", "consistent"), ("", "violation")])
def test_a_program_without_an_end_is_ended_at_an_ack(tmp_path: Path, sync: str, verdict: str) -> None:
    """It never stands still, so the kill may fall inside of a call."""
    loop = "n=$(cat n) || n=0; while :; do n=$((n + 1)); echo $n > n.new; SYNC mv n.new n; sync .; ACK; done"
    program = loop.replace("SYNC", sync).replace("ACK", 'echo ack $n >> "$CRASHLAB_EVENTS"')
    subject = Commands(
        f"cd {{dir}}; {program}",
        "true",
        check='n=$(cat {dir}/n) || n=0; [ "${n:-0}" -ge $(grep -c ack "$CRASHLAB_EVENTS") ]',
        stop_after_acks=2,
        name="endless",
        timeout_s=20,
    )
    assert tried(subject, tmp_path, BOTH).verdict == verdict


@needs("cc")
def test_recoveries_of_a_program_are_killed_for_real(tmp_path: Path) -> None:
    """By a call of theirs, since nobody inside can die at an op; they agree, and a correct program passes."""
    binary = tmp_path / "again"
    subprocess.run(["cc", "-O1", "-o", str(binary), str(PROGRAMS / "saves.c")], check=True)
    subject = Commands([str(binary), "right", "write", "{dir}"], name="again")
    report = tried(subject, tmp_path, "kill,recovery")
    assert report.verdict == "consistent", str(report)
    assert [control.passed for control in report.controls if "during a recovery" in control.detail] == [True]


@needs("git")
def test_git_keeps_commits_and_branches_where_names_have_one_order(tmp_path: Path) -> None:
    """With core.fsync=all and a sync after each update: every kill, and power losses on ext4 and xfs."""
    assert tried(refs("write"), tmp_path, KILL).verdict == "consistent"
    report = tried(refs("sync"), tmp_path, BOTH, profile="ext4,xfs", budget=LARGER)
    assert report.verdict == "consistent", str(report)


@needs("git")
def test_git_loses_a_branch_update_whose_directory_was_not_synced(tmp_path: Path) -> None:
    """Git 2.39.5: core.fsync=all syncs the ref and not its directory, so a rename that was acked may be gone."""
    assert found(refs("write"), tmp_path, POWER) == {"power"}


@needs("git")
def test_git_on_btrfs_may_name_a_commit_that_is_not_there(tmp_path: Path) -> None:
    """Git 2.39.5: the object was synced under its temporary name, and the link that names it may be lost alone."""
    report = tried(refs("sync"), tmp_path, POWER, profile="btrfs", budget=LARGER)
    assert report.verdict == "violation", str(report)
    first = report.findings[0]
    assert (first.kind, "bad object" in first.observed.stderr) == ("stuck", True), str(report)
    assert any(op.op == "link" and op.note == "lost" for op in first.ops), str(report)


@needs("cc")
def test_a_c_program_that_changes_a_mapped_file_in_place_is_found(tmp_path: Path, mapped: str) -> None:
    """Half of the new pages are there, and half of the old ones."""
    assert found(kept(mapped, name="mapped"), tmp_path, BOTH) == {"kill", "power"}


LOOKS_UP = (
    'grep -qx "effect mail to=ada" "$CRASHLAB_EVENTS" || echo effect mail to=ada >> "$CRASHLAB_EVENTS"; touch {dir}/x'
)
BLIND = 'echo effect mail to=ada >> "$CRASHLAB_EVENTS"; touch {dir}/x'


@pytest.mark.parametrize(("command", "kinds"), [(LOOKS_UP, set()), (BLIND, {"duplicate-effect"})])
def test_a_script_that_looks_up_its_own_line_does_nothing_twice(command: str, kinds: set[str], tmp_path: Path) -> None:
    """After a crash the events file holds the lines that it wrote, so the look-up finds them; its twin never looks."""
    report = explore(Commands(command), faults="kill", budget=FEW, out=tmp_path)
    assert {finding.kind for finding in report.findings} == kinds, str(report)
    assert report.verdict == ("violation" if kinds else "consistent")


ON_DISK = replace(FEW, violations=2, anew=0, real_kills=0, images=800)


@pytest.mark.parametrize(
    "kind",
    [
        *kinds("ext4"),
        *(pytest.param(*kind.values, marks=[*kind.marks, pytest.mark.full]) for kind in kinds("xfs")),  # as on ext4
    ],
)
@needs("git")
def test_real_disks_lose_the_branch_update_of_git_too(kind: str, tmp_path: Path) -> None:
    """The acked update that the model takes away is gone from a real file system as well."""
    report = tried(refs("write"), tmp_path, POWER, profile=kind, disk=kind, budget=ON_DISK)
    assert {finding.confirmed for finding in report.findings} == {"real-disk"}, str(report)
    assert not left_of(os.getpid())
