"""The sessions of ``corpus/``, made again: of each a function that lays its files down.

``python -m tests.longrun.eventlog.stored --write`` writes those that are missing, and no other: what was stored once
stays as it is, since later programs must read or refuse just these bytes. A test compares what is made with what is
stored, so that a writer whose bytes change is noticed; a new format gets a folder of its own beside this one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longrun.eventlog.events import FORMAT, Compaction, Label, Note
from longrun.eventlog.opening import Opening, inspect
from longrun.eventlog.record import Draft, decode, encode, sum_of
from longrun.eventlog.segments import MARK_NAME
from longrun.eventlog.slots import fresh, slot_of
from longrun.eventlog.snapshot import write_snapshot
from longrun.eventlog.tree import branch, fork
from tests.longrun.eventlog.sessions import (
    NAME,
    answer,
    begin,
    call,
    directory,
    files,
    mark,
    noted,
    opened,
    result,
    segment,
    whole_turn,
)

if TYPE_CHECKING:
    from collections.abc import Callable

CORPUS = Path(__file__).parent / "corpus"
LATEST = CORPUS / f"format-{FORMAT}"
LEASE_NAME = "lease"


def next_line(line: bytes, **fields: Any) -> bytes:
    """A sound line that follows another one, but for ``fields``."""
    last = decode(line.rstrip(b"\n"))
    form = {"seq": last.seq + 1, "prev": last.sum, "mark": last.mark, "fence": last.fence, "time_ms": 0}
    form |= {"parent": None, "type": "note", "data": {"n": 99}, "ignorable": True}
    return encode(Draft(**{**form, **fields})) + b"\n"


def summed(line: bytes, old: bytes, new: bytes) -> bytes:
    """The line with something else in it, and the sum that fits."""
    body = line[: line.rindex(b',"sum"')].replace(old, new)
    return b'%b,"sum":"%b"}\n' % (body, sum_of(body).encode())


# --- sound ---------------------------------------------------------------------------------------------


def a_new_session(root: Path) -> None:
    opened(root).close()


def notes_of_three_writers(root: Path) -> None:
    noted(root, 1, 2)
    noted(root, 3)
    noted(root)


def any_json(root: Path) -> None:
    with opened(root) as log:
        for value in ("\ud800 \u0000 é \U0001f600", 2**70, 1e300, [None, {"": [True]}], {"sum": "x", "v": 2}):
            log.add(Note(note={"value": value}))
        log.barrier()


def a_whole_turn(root: Path) -> None:
    with opened(root) as log:
        whole_turn(log, "c")


def an_open_turn(root: Path) -> None:
    """Five calls in as many states; the process was killed."""
    log = opened(root)
    begin(log)
    answer(log, "done", "asked", "read", "keyed", "late", "none")
    call(log, "done")
    result(log, "done")
    call(log, "asked")
    call(log, "read", policy="read")
    call(log, "keyed", policy="keyed", key="k")
    call(log, "late", promise=False)
    log.abandon()


def an_interrupted_turn_and_the_next(root: Path) -> None:
    an_open_turn(root)
    with opened(root) as log:
        whole_turn(log, "again")


def branches_and_a_compaction(root: Path) -> None:
    with opened(root) as log:
        whole_turn(log, "a")
        leaf = log.grammar.leaf
        assert leaf is not None
        whole_turn(log, "b")
        branch(log, leaf, summary="b was a mistake")
        log.add(Label(target_seq=leaf, label="here"))
        path = log.grammar.path(leaf)
        log.add(Compaction(summary="a was paid", from_seq=path[0], to_seq=path[-1], tokens_before=9))
        whole_turn(log, "c")


def a_fork(root: Path) -> None:
    with opened(root / "other") as log:
        begin(log)
        answer(log, "c")
        call(log, "c", policy="keyed", key="k")
        result(log, "c", external_id="42")
        answer(log, text="done")
    records = inspect(root / "other", NAME).records
    at = max(record.seq for record in records if record.type == "assistant/message")
    fork(records, at, root, NAME, Opening(writer="w", clock=lambda: 0)).close()


def segments_and_a_snapshot(root: Path) -> None:
    with opened(root) as log:
        whole_turn(log, "a")
        log.rotate(force=True)
        whole_turn(log, "b")
        log.rotate(force=True)
        write_snapshot(log)
        log.add(Note(note={"n": 1}))


# --- what a crash leaves, and what a reader passes over ----------------------------------------------------


def put(root: Path, *lines: bytes, promised: int | None = None) -> None:
    """Lay these bytes down as the log; ``promised`` is what the mark says then."""
    segment(root).write_bytes(b"".join(lines))
    if promised is not None:
        mark(root).write_bytes(fresh(promised))


def no_last_lf(root: Path) -> None:
    lines = noted(root, 1, 2)
    put(root, *lines[:-1], lines[-1].rstrip(b"\n"))


def a_torn_tail(root: Path) -> None:
    lines = noted(root, 1, 2)
    put(root, *lines, next_line(lines[-1])[:60])


def a_tail_of_zeros(root: Path) -> None:
    put(root, *noted(root, 1, 2), bytes(600))


def whole_records_behind_a_hole_not_promised(root: Path) -> None:
    lines = noted(root, 1)
    lost = next_line(lines[-1])
    put(root, *lines, bytes(len(lost)), next_line(lost))


def the_last_line_twice(root: Path) -> None:
    lines = noted(root, 1, 2)
    put(root, *lines, lines[-1])


def an_empty_next_segment(root: Path) -> None:
    noted(root, 1)
    segment(root, 1).touch()


def a_temporary_file(root: Path) -> None:
    noted(root, 1)
    (directory(root) / "seg-000001.jsonl.ab12.tmp").write_bytes(b"half")


def no_mark(root: Path) -> None:
    noted(root, 1, 2)
    mark(root).unlink()


def a_mark_of_zeros_in_an_open_turn(root: Path) -> None:
    an_open_turn(root)
    mark(root).write_bytes(bytes(64))


def no_lease(root: Path) -> None:
    noted(root, 1)
    (directory(root) / LEASE_NAME).unlink()


def a_lease_of_two_fences(root: Path) -> None:
    """As it was before anything was noted there."""
    noted(root, 1)
    (directory(root) / LEASE_NAME).write_bytes(slot_of(41) + slot_of(42))


def an_unknown_type_to_pass_over(root: Path) -> None:
    lines = noted(root, 1)
    put(root, *lines, next_line(lines[-1], type="mood", data={"x": 1}), promised=3)


def a_snapshot_of_zeros(root: Path) -> None:
    segments_and_a_snapshot(root)
    (path,) = directory(root).glob("snap-*.json")
    path.write_bytes(bytes(path.stat().st_size))


# --- damaged ---------------------------------------------------------------------------------------------


def a_flipped_bit(root: Path) -> None:
    lines = noted(root, 1, 2)
    put(root, *lines[:2], lines[2][:40] + b"X" + lines[2][41:], *lines[3:])


def zeros_in_the_place_of_a_line(root: Path) -> None:
    lines = noted(root, 1, 2, 3)
    put(root, *lines[:2], bytes(len(lines[2]) - 1), b"\n", *lines[3:])


def the_same_without_its_mark(root: Path) -> None:
    zeros_in_the_place_of_a_line(root)
    mark(root).unlink()


def a_removed_line(root: Path) -> None:
    lines = noted(root, 1, 2, 3)
    put(root, *lines[:2], *lines[3:])


def two_exchanged_lines(root: Path) -> None:
    lines = noted(root, 1, 2, 3)
    put(root, *lines[:2], lines[3], lines[2], lines[4])


def cut_before_its_promise(root: Path) -> None:
    put(root, *noted(root, 1, 2)[:-1])


def an_empty_log(root: Path) -> None:
    noted(root, 1)
    put(root)


def a_mark_without_a_log(root: Path) -> None:
    noted(root, 1)
    segment(root).unlink()


def a_lease_without_log_and_mark(root: Path) -> None:
    noted(root, 1)
    noted(root, 2)
    segment(root).unlink()
    mark(root).unlink()


def put_back_but_for_the_lease(root: Path) -> None:
    noted(root, 1)
    earlier = files(root)
    noted(root, 2)
    noted(root, 3)
    for name in (segment(root).name, MARK_NAME):
        (directory(root) / name).write_bytes(earlier[name])


def put_back_but_for_the_snapshot(root: Path) -> None:
    with opened(root) as log:
        log.add(Note(note={"n": 1}))
        log.barrier()
        earlier = files(root)
        log.add(Note(note={"n": 2}))
        write_snapshot(log)
    for name in (segment(root).name, MARK_NAME):
        (directory(root) / name).write_bytes(earlier[name])


def a_number_given_twice(root: Path) -> None:
    lines = noted(root, 1, 2)
    put(root, *lines, next_line(lines[2], data={"n": 7}))


def the_next_number_of_another_history(root: Path) -> None:
    lines = noted(root, 1, 2)
    put(root, *lines, next_line(lines[3], prev="0" * 16))


def a_lower_fence(root: Path) -> None:
    lines = noted(root, 1, 2)
    put(root, *lines, next_line(lines[3], fence=0))


def the_next_record_behind_half_a_one(root: Path) -> None:
    lines = noted(root, 1, 2)
    put(root, *lines, b"half a rec\n", next_line(lines[-1]))


def the_end_of_no_turn(root: Path) -> None:
    lines = noted(root, 1)
    end = {"turn": 1, "synthetic": False, "reason": "completed"}
    put(root, *lines, next_line(lines[-1], type="turn/end", data=end, ignorable=False))


def a_short_sealed_segment(root: Path) -> None:
    segments_and_a_snapshot(root)
    segment(root, 1).write_bytes(segment(root, 1).read_bytes()[:-9])


def a_long_sealed_segment(root: Path) -> None:
    segments_and_a_snapshot(root)
    segment(root, 1).write_bytes(segment(root, 1).read_bytes() + b"x")


def a_missing_segment(root: Path) -> None:
    segments_and_a_snapshot(root)
    segment(root, 1).unlink()


# --- of another program ------------------------------------------------------------------------------------


def lines_of_version_2(root: Path) -> None:
    put(root, *(summed(line, b'{"v":1,', b'{"v":2,') for line in noted(root, 1)))


def version_2_whose_sum_is_made_otherwise(root: Path) -> None:
    put(root, *(line.replace(b'{"v":1,', b'{"v":2,') for line in noted(root, 1)))


def the_last_line_of_version_2(root: Path) -> None:
    lines = noted(root, 1, 2)
    put(root, *lines[:-1], summed(lines[-1], b'{"v":1,', b'{"v":2,'))


def version_0(root: Path) -> None:
    put(root, *(summed(line, b'{"v":1,', b'{"v":0,') for line in noted(root, 1)))


def format_2(root: Path) -> None:
    lines = noted(root, 1)
    put(root, summed(lines[0], b'"format":1', b'"format":2'), *lines[1:])


def format_0(root: Path) -> None:
    lines = noted(root, 1)
    put(root, summed(lines[0], b'"format":1', b'"format":0'), *lines[1:])


def an_unknown_type_that_may_matter(root: Path) -> None:
    lines = noted(root, 1)
    put(root, *lines, next_line(lines[-1], type="mood", data={"x": 1}, ignorable=False), promised=3)


SOUND = (
    a_new_session,
    notes_of_three_writers,
    any_json,
    a_whole_turn,
    an_open_turn,
    an_interrupted_turn_and_the_next,
    branches_and_a_compaction,
    a_fork,
    segments_and_a_snapshot,
)
LEFT = (
    no_last_lf,
    a_torn_tail,
    a_tail_of_zeros,
    whole_records_behind_a_hole_not_promised,
    the_last_line_twice,
    an_empty_next_segment,
    a_temporary_file,
    no_mark,
    a_mark_of_zeros_in_an_open_turn,
    no_lease,
    a_lease_of_two_fences,
    an_unknown_type_to_pass_over,
    a_snapshot_of_zeros,
)
DAMAGED = (
    a_flipped_bit,
    zeros_in_the_place_of_a_line,
    the_same_without_its_mark,
    a_removed_line,
    two_exchanged_lines,
    cut_before_its_promise,
    an_empty_log,
    a_mark_without_a_log,
    a_lease_without_log_and_mark,
    put_back_but_for_the_lease,
    put_back_but_for_the_snapshot,
    a_number_given_twice,
    the_next_number_of_another_history,
    a_lower_fence,
    the_next_record_behind_half_a_one,
    the_end_of_no_turn,
    a_short_sealed_segment,
    a_long_sealed_segment,
    a_missing_segment,
)
UNSUPPORTED = (
    lines_of_version_2,
    version_2_whose_sum_is_made_otherwise,
    the_last_line_of_version_2,
    version_0,
    format_2,
    format_0,
    an_unknown_type_that_may_matter,
)
GROUPS = {"sound": SOUND, "left": LEFT, "damaged": DAMAGED, "unsupported": UNSUPPORTED}
MAKERS: dict[str, Callable[[Path], None]] = {
    f"{group}/{maker.__name__.replace('_', '-')}": maker for group, makers in GROUPS.items() for maker in makers
}
"""By the folder below ``corpus/format-1``: sound; left by a crash or passed over; damaged; of another program."""


def made(name: str) -> dict[str, bytes]:
    """The files of one case, as the present writer makes them."""
    with tempfile.TemporaryDirectory() as folder:
        MAKERS[name](Path(folder))
        return files(Path(folder))


def main(arguments: list[str]) -> None:
    """Write what is missing, or say what would be."""
    for name in MAKERS:
        if (LATEST / name).exists():
            continue
        sys.stdout.write(f"{name}\n")
        if arguments == ["--write"]:
            (LATEST / name).mkdir(parents=True)
            for file, data in made(name).items():
                (LATEST / name / file).write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1:])
