"""The seventeen naive logs: each found by its kind and its family, and nothing found once its one fault is mended.

Fifteen are found by crashlab, in the state that is named: the whole families are gone through in the full profile.
Two take what crashlab cannot make of a file of lines: a newer program's line, another session's snapshot. Nor can it
take a line away: what finds the reader that does not count is a block that was written into another segment.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, explore
from longrun.eventlog import (
    naive_all_not_started,
    naive_cut_after_turn_end,
    naive_drop_turn,
    naive_glue_tail,
    naive_inspect_repairs,
    naive_late_barrier,
    naive_memory_first,
    naive_newer_is_broken,
    naive_no_fsync,
    naive_no_seq_check,
    naive_partial_stream,
    naive_pidfile,
    naive_rerun_unknown,
    naive_retry_fsync,
    naive_skip_bad_line,
    naive_snapshot_first,
    naive_split_pair,
    project,
)
from longrun.eventlog.conduct import CONDUCT
from longrun.eventlog.design import DESIGN
from longrun.eventlog.errors import LogUnsupported
from longrun.eventlog.opening import Opening, inspect, open_log
from longrun.eventlog.scan import Reader
from longrun.eventlog.snapshot import write_snapshot
from longrun.eventlog.subjects import BLOCK_BYTES, BLOCKS, SESSION, Handle
from longrun.eventlog.sweep import KINDS, State, judge, states, sweep
from longrun.eventlog.tree import branch
from tests.longrun.eventlog.sessions import directory, mark, noted, numbers_of, opened, segment, whole_turn
from tests.longrun.eventlog.stored import summed

if TYPE_CHECKING:
    from collections import Counter
    from types import ModuleType

    from longrun.eventlog.design import Reads

SUBJECTS = "longrun.eventlog.subjects"
LOG = "s%2Fseg-000000.jsonl"


@dataclass(frozen=True)
class Planted:
    """A naive module, the kind and the state it must be found by, its exchanged pieces, and its clean twin.

    ``pieces`` of the log are written ``design.sync``. ``twin`` is named where it has the same trace, so that the same
    state is clean there. ``says`` must be in the finding: it is found for what it is.
    """

    module: ModuleType
    kind: str
    state: str
    faults: str
    pieces: tuple[str, ...]
    twin: str = ""
    says: str = ""
    full: str = ""


UNSYNCED = "power@84-19,20d0,21d0,22d0,23d0,24,26d0,27d0,27d1,28d1,29d1,30,32d1,33,35d1,36,38d1,38d2,39,41d2,42d2,43d2"
UNSYNCED += ",44d2,45,48d2,50d2,51,54d2,54d3,56d3,57,60d3,62d3,63,66d3,68d3,69d3,70d3,71,74d3,76d3,77d3,78d3,78d4,79"
UNSYNCED += ",82d4,84d4"

PLANTED = {
    "memory first": Planted(
        naive_memory_first, "lost", "error@22:ENOSPC", "error:ENOSPC", ("design.shows_queued",), says="was acked"
    ),
    "no fsync": Planted(
        naive_no_fsync, "duplicate-effect", UNSYNCED, "power", ("design.sync",), says="send_reply", full="power"
    ),
    "late barrier": Planted(naive_late_barrier, "duplicate-effect", "kill@137", "kill", ("act",), says="page_oncall"),
    "skip bad line": Planted(
        naive_skip_bad_line,
        "accepted-damage",
        f"damage@152-{LOG}:zeros:9728-10240",
        "damage:zeros",
        ("design.reader",),
        f"{SUBJECTS}:agent_hasty",
        says="tool_use",
    ),
    "cut after turn end": Planted(
        naive_cut_after_turn_end,
        "lost",
        f"damage@{LOG}:bit:3808",
        "damage:bit",
        ("design.reader",),
        f"{SUBJECTS}:single",
        says="4 events were acked; load() returned 1",
    ),
    "no seq check": Planted(
        naive_no_seq_check,
        "duplicate-entry",
        "damage@s%2Fseg-000001.jsonl:misdirect:1:s%2Fseg-000000.jsonl",
        "damage:misdirect",
        ("design.reader",),
        f"{SUBJECTS}:blocks",
        says="5 acked events",
    ),
    "drop turn": Planted(
        naive_drop_turn, "lost", "kill@75", "kill", ("design.mend",), f"{SUBJECTS}:agent_hasty", says="was promised"
    ),
    "rerun unknown": Planted(
        naive_rerun_unknown,
        "duplicate-effect",
        "kill@143",
        "kill",
        ("known",),
        f"{SUBJECTS}:agent_hasty",
        says="page_oncall",
    ),
    "all not started": Planted(
        naive_all_not_started,
        "duplicate-effect",
        "kill@143",
        "kill",
        ("design.repair",),
        f"{SUBJECTS}:agent_hasty",
        says="page_oncall",
    ),
    "glue tail": Planted(
        naive_glue_tail, "diverged", "kill@28+3620", "kill", ("design.mend",), f"{SUBJECTS}:single", says="bad-line"
    ),
    "inspect repairs": Planted(
        naive_inspect_repairs,
        "evidence-destroyed",
        f"damage@{LOG}:bit:0",
        "damage:bit",
        ("design.reader",),
        f"{SUBJECTS}:single_inspected",
        says="and changed s/seg-000000.jsonl",
    ),
    "pidfile": Planted(
        naive_pidfile, "lost", "race@2-15", "race", ("design.take",), says="4 events are acked and not there"
    ),
    "retry fsync": Planted(
        naive_retry_fsync,
        "lost",
        "error@23:failed-fsync/power@28-22d0",
        "error:failed-fsync",
        ("design.sync",),
        says="promised",
    ),
    "split pair": Planted(
        naive_split_pair,
        "invalid-transcript",
        "kill@0",
        "kill",
        ("design.reader", "stretch"),
        f"{SUBJECTS}:agent_compacted",
        says="unexpected `tool_use_id`",
    ),
    "partial stream": Planted(
        naive_partial_stream, "missing-effect", "kill@0", "kill", ("accept",), says="refund_yen=1000"
    ),
}
"""By what is wrong."""


def pieces_of(value: Any) -> dict[str, Any]:
    """The pieces of a conduct and of its design, or of a design alone, by name."""
    if hasattr(value, "design"):
        own = {name: getattr(value, name) for name in value.__slots__ if name != "design"}
        return own | pieces_of(value.design)
    return {f"design.{name}": getattr(value, name) for name in value.__slots__}


@pytest.mark.parametrize("fault", PLANTED)
def test_the_fault_is_found_in_its_state_by_its_kind(fault: str, tmp_path: Path) -> None:
    """For what it is; the twin with the same trace is clean in the same state."""
    planted = PLANTED[fault]
    name = f"{planted.module.__name__}:subject"
    one = Budget(real_kills=1)
    report = explore(name, faults=planted.faults, only=planted.state, out=tmp_path / "naive", budget=one)
    assert report.verdict == "violation", str(report)
    assert planted.kind in {finding.kind for finding in report.findings}, str(report)
    assert planted.says in str(report), str(report)
    if planted.twin:
        twin = explore(planted.twin, faults=planted.faults, only=planted.state, out=tmp_path / "twin", budget=one)
        assert twin.verdict in ("consistent", "refused"), str(twin)


@pytest.mark.parametrize("fault", PLANTED)
def test_its_pieces_and_no_others_are_exchanged(fault: str) -> None:
    """Mended, it is the correct one."""
    planted = PLANTED[fault]
    naive = getattr(planted.module, "CONDUCT", None) or planted.module.DESIGN
    correct = pieces_of(CONDUCT if hasattr(naive, "design") else DESIGN)
    changed = {name for name, piece in pieces_of(naive).items() if piece != correct[name]}
    assert changed == set(planted.pieces)


@pytest.mark.full  # several families whole, a minute each
@pytest.mark.parametrize("fault", PLANTED)
def test_the_fault_is_found_by_its_whole_family(fault: str, tmp_path: Path) -> None:
    """Nobody tells the lab in which state to look."""
    planted = PLANTED[fault]
    budget = Budget(real_kills=1, sample=20, violations=2, time_s=600.0)
    report = explore(f"{planted.module.__name__}:subject", faults=planted.faults, out=tmp_path, budget=budget)
    assert report.verdict == "violation", str(report)
    assert planted.kind in {finding.kind for finding in report.findings}, str(report)


CORRECT = ("single", "grouped", "rotated", "blocks", "single_inspected", "agent", "agent_hasty", "agent_compacted")
PROFILES = "ext4,xfs,btrfs,posix"
"""All that a power loss may do anywhere: by default posix, the weakest, is not asked."""


@pytest.mark.parametrize("name", ["grouped", "agent_hasty"])
def test_the_correct_log_passes_every_kill(name: str, tmp_path: Path) -> None:
    """A batch, and an agent with a hasty model."""
    report = explore(f"{SUBJECTS}:{name}", faults="kill", out=tmp_path, budget=Budget(real_kills=1))
    assert report.verdict == "consistent", str(report)
    assert all(count.judged >= 20 for count in report.faults), str(report)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("single_inspected", "damage@s%2Flease:restore:26"),
        ("single_inspected", "damage@s%2Flease:restore:39"),
        ("blocks", "damage@s%2Fmark:swap:s%2Fseg-000001.jsonl"),
    ],
)
def test_what_another_file_tells_of_is_missed(name: str, state: str, tmp_path: Path) -> None:
    """All but the lease is of an earlier moment, and sound; or the last segment and the mark are exchanged."""
    report = explore(f"{SUBJECTS}:{name}", faults="damage", only=state, out=tmp_path)
    assert report.verdict == "consistent", str(report)
    (count,) = report.faults
    assert (count.judged, count.refused) == (1, 1), str(report)


@pytest.mark.full  # up to two thousand states each
@pytest.mark.parametrize("faults", ["kill,power", "error", "damage", "recovery", "race"])
@pytest.mark.parametrize("name", CORRECT)
def test_the_correct_log_passes_every_family(name: str, faults: str, tmp_path: Path) -> None:
    """All that a crash, an error, damage, a crash of the recovery, and a second owner leave."""
    if name == "single_inspected" and faults == "race":
        pytest.skip("it is opened for each call: two owners of it are the races of single")
    budget = Budget(real_kills=1, time_s=900.0)
    report = explore(f"{SUBJECTS}:{name}", faults=faults, profile=PROFILES, out=tmp_path, budget=budget)
    assert report.verdict == "consistent", str(report)


@pytest.mark.full  # 700 states each, every one behind two recoveries
@pytest.mark.parametrize("name", ["single", "grouped"])
def test_the_correct_log_passes_a_crash_of_the_second_recovery(name: str, tmp_path: Path) -> None:
    """The first one was cut off, and so is the one that mends what it left."""
    budget = Budget(real_kills=1, time_s=900.0)
    report = explore(f"{SUBJECTS}:{name}", faults="recovery[depth=2]", out=tmp_path, budget=budget)
    assert report.verdict == "consistent", str(report)


def test_the_blocks_hold_whole_lines(tmp_path: Path) -> None:
    """Each line ends with a block, but for the first ones of a segment: else nothing can tell a line from another."""
    with open_log(tmp_path, SESSION, Opening(writer="w", clock=lambda: 0)) as log:
        handle = Handle(tmp_path, Opening(), log, segments=True)
        for events in BLOCKS:
            handle.append(events)
    ends = []
    for number in (0, 1):
        lines = segment(tmp_path, number).read_bytes().splitlines(keepends=True)
        ends.append([sum(map(len, lines[: at + 1])) for at in range(len(lines))])
    assert [[end for end in each if not end % BLOCK_BYTES] for each in ends] == [[4096, 8192], [4096, 8192, 12288]]


# --- what crashlab cannot make of a file of lines ----------------------------------------------------


def lines_of(tmp_path: Path) -> list[bytes]:
    return segment(tmp_path).read_bytes().splitlines(keepends=True)


def damaged(tmp_path: Path, kinds: tuple[str, ...], reader: Reads) -> Counter[str]:
    noted(tmp_path, 1, 2)
    log, promise = segment(tmp_path).read_bytes(), mark(tmp_path).read_bytes()
    return sweep(tmp_path / "copy", log, promise, reader, kinds)


@pytest.mark.parametrize(
    ("module", "kind", "wrong"),
    [
        (naive_no_seq_check, "removed", "diverged"),
        (naive_newer_is_broken, "newer", "silent-reset"),
        (naive_cut_after_turn_end, "cut", "lost"),
        (naive_inspect_repairs, "removed", "evidence-destroyed"),
    ],
)
def test_the_sweep_finds_it(module: ModuleType, kind: str, wrong: str, tmp_path: Path) -> None:
    """A line that is gone is replayed across; a newer log is begun anew; and the correct reader refuses both."""
    assert damaged(tmp_path, (kind,), module.DESIGN.reader)[wrong] > 0
    assert damaged(tmp_path, (kind,), Reader()).keys() <= {"refused", "same"}


def test_a_newer_log_of_two_writers_is_begun_anew_too(tmp_path: Path) -> None:
    """Though its lease tells what was promised: the naive one takes that back, and the correct one refuses."""
    noted(tmp_path, 1)
    noted(tmp_path, 2)
    segment(tmp_path).write_bytes(b"".join(summed(line, b'{"v":1,', b'{"v":2,') for line in lines_of(tmp_path)))
    with pytest.raises(LogUnsupported, match="version 2"):
        opened(tmp_path)
    with opened(tmp_path, design=naive_newer_is_broken.DESIGN) as log:
        assert numbers_of(log) == []
    opened(tmp_path).close()


def test_the_correct_reader_refuses_every_single_damage(tmp_path: Path) -> None:
    """But for what loses nothing: a flipped bit in the mark, the last LF, the last line once more."""
    found = damaged(tmp_path, KINDS[1:], Reader())
    assert found.keys() == {"refused", "same"}
    assert found["same"] == 64 * 8 + 2


@pytest.mark.full  # 17,000 states; the bits of a short log are in the quick profile
def test_fifteen_thousand_damages_and_none_is_taken_for_good(tmp_path: Path) -> None:
    """Each bit, each cut, each line removed, doubled, exchanged, or of a newer program."""
    noted(tmp_path, *range(14))
    log, promise = segment(tmp_path).read_bytes(), mark(tmp_path).read_bytes()
    found = sweep(tmp_path / "copy", log, promise, Reader())
    assert found.keys() == {"refused", "same"}
    assert found.total() >= 15_000
    assert found["same"] == 64 * 8 + 2


def test_the_sweep_itself_can_see(tmp_path: Path) -> None:
    """A reader that gives nothing, too little or something else is told from one that is right."""
    noted(tmp_path, 1, 2)
    lines = segment(tmp_path).read_bytes().splitlines()
    state = State("as it is", segment(tmp_path).read_bytes(), mark(tmp_path).read_bytes())
    assert judge(tmp_path / "copy", state, lines, Reader()) == "same"
    assert judge(tmp_path / "copy", state, lines[:-1], Reader()) == "diverged"
    assert judge(tmp_path / "copy", state, [*lines, lines[0]], Reader()) == "lost"
    assert len(list(states(state.log, state.mark, ("bit",)))) == len(state.log) * 8


def test_another_sessions_snapshot_is_not_believed(tmp_path: Path) -> None:
    """Two sessions that began alike: with the other's snapshot the naive one goes on from the other's leaf."""
    for name, moved in (("a", None), ("b", 4)):
        with open_log(tmp_path / name, SESSION, Opening(writer="w", clock=lambda: 0)) as log:
            whole_turn(log, "c", text=f"I am {name}")
            branch(log, moved if moved is not None else log.grammar.leaf)
            write_snapshot(log)
    mine, other = (directory(tmp_path / name) for name in ("a", "b"))
    truth = project.messages(inspect(tmp_path / "a", SESSION).records)
    for path in mine.glob("snap-*.json"):
        path.unlink()
    for path in other.glob("snap-*.json"):
        shutil.copy(path, mine)
    naive = inspect(tmp_path / "a", SESSION, Opening(design=naive_snapshot_first.DESIGN))
    leaf = naive.grammar.leaf
    assert project.messages(naive.records, leaf) != truth
    found = inspect(tmp_path / "a", SESSION)
    assert project.messages(found.records, found.grammar.leaf) == truth
    assert "is bound to" in found.report[0]
    naive_reader = naive_snapshot_first.DESIGN.reader
    assert isinstance(naive_reader, Reader)
    assert replace(naive_snapshot_first.DESIGN, reader=replace(naive_reader, bound=Reader().bound)) == DESIGN


def test_no_naive_log_is_forgotten() -> None:
    """Each module is imported here, and what is imported is used, or the linter says so."""
    folder = Path(project.__file__).parent
    assert {path.stem for path in folder.glob("naive_*.py")} == {
        name for name in globals() if name.startswith("naive_")
    }
