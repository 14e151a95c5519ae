"""Errors happen for real: the subject meets the errno, the files stay as they were, numbers keep their meaning."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Store, Subject
from crashlab import trace as t
from crashlab.crash.states import Prefixes
from crashlab.error_points import STANDARD, VARIANTS, parse, point_of, points
from crashlab.errors import UsageError
from crashlab.faults import VARIANTS as KNOWN
from crashlab.live.errors import ALLOWED, CLASS_OF_CALL, CLASS_OF_OP, ErrorGate
from crashlab.recover import travel
from crashlab.recover.host import Host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from crashlab import Lab
    from crashlab.observation import RawRecording

BIG = bytes(10_000)


def everything(lab: Lab) -> dict[str, str]:
    """One call of each class; what each met."""
    met = {}
    directory = lab.dir

    def tried(name: str, act: Any) -> None:
        try:
            act()
        except OSError as error:
            met[name] = os.strerror(error.errno)

    tried("create", lambda: (directory / "a").open("wb", buffering=0).close())
    tried("write", lambda: _written(directory / "a"))
    tried("sync", lambda: _synced(directory / "a"))
    tried("rename", lambda: os.rename(directory / "a", directory / "b"))
    name = directory / ("b" if (directory / "b").exists() else "a")
    tried("make", lambda: os.mkdir(directory / "sub"))
    tried("resize", lambda: os.truncate(name, 3))
    tried("attribute", lambda: os.chmod(name, 0o600))
    tried("remove", lambda: os.unlink(name))
    return met


def _written(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, BIG)
    finally:
        os.close(descriptor)


def _synced(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host(travel.pack(Subject(everything))) as made:
        yield made


def met(host: Host, n: int, variant: str, mode: str) -> RawRecording:
    """One run under one error at op ``n``."""
    plain = host.record(timeout_s=20.0)
    kind = CLASS_OF_OP[plain.ops[n - 1].KIND]
    return host.record(error={"at": n, "variant": variant, "kind": kind, "mode": mode}, timeout_s=20.0)


def struck_by(run: RawRecording, name: str) -> set[str]:
    """Which classes of call met this errno."""
    assert run.value is not None
    text = os.strerror(getattr(errno, name))
    return {each for each, met in run.value["end"].items() if met == text}


OPS = ["create", "write", "sync", "rename", "make", "resize", "attribute", "remove"]


@pytest.mark.parametrize("n", range(1, 9), ids=OPS)
def test_a_single_error_reaches_the_subject_and_changes_nothing(host: Host, n: int) -> None:
    """EIO at op n: the call raised, its op is not there, and the trace explains the directory to the byte."""
    run = met(host, n, "EIO", "once")
    assert run.value is not None
    assert run.value["end"][OPS[n - 1]] == "Input/output error"
    refused = [op for op in run.ops if isinstance(op, t.Refused)]
    assert [(op.n, op.error) for op in refused] == [(n, "EIO")]
    trace = t.Trace(root=run.root, base=run.base, ops=run.ops)
    assert Prefixes(trace).tree(len(trace.ops)).difference(run.last) == []


@pytest.mark.parametrize(("variant", "spared"), [("ENOSPC", {"resize", "attribute", "remove"}), ("EIO", set())])
def test_a_lasting_error_strikes_every_call_that_may_give_it(host: Host, variant: str, spared: set[str]) -> None:
    """No room spares what needs none; a failing device spares nothing."""
    run = met(host, 2, variant, "until")
    assert struck_by(run, variant) == set(OPS[1:]) - spared


def test_a_short_write_takes_whole_pages_and_then_there_is_no_room(host: Host) -> None:
    """8,192 of 10,000 bytes, told to the subject as such."""
    run = met(host, 2, "short-write", "until")
    [write] = [op for op in run.ops if isinstance(op, t.Write)]
    assert len(write.data) == 8192
    assert struck_by(run, "ENOSPC") == {"sync", "rename", "make"}


def test_a_failed_barrier_is_on_record_as_failed(host: Host) -> None:
    """It is an op of the run, and no barrier."""
    run = met(host, 3, "failed-fsync", "once")
    [barrier] = [op for op in run.ops if isinstance(op, t.Fsync)]
    assert barrier.failed


def test_after_a_failed_journal_nothing_can_be_changed(host: Host) -> None:
    """The barrier says EIO, and everything after it that the file system is read-only."""
    run = met(host, 3, "failed-journal", "for-ever")
    assert struck_by(run, "EIO") == {"sync"}
    assert struck_by(run, "EROFS") == set(OPS[3:])


def test_another_call_at_that_number_is_not_struck() -> None:
    """A run that does something else there is left alone, so that nobody takes it for the one that was asked for."""
    gate = ErrorGate(at=2, variant="EIO", kind="write")
    assert gate.strike(2, "rename", 0) is None
    assert gate.struck == 0


def save_twice(directory: Path, value: Any) -> None:
    """Fails once in the first write, and then works."""
    (directory / "v").write_text(str(value))


def test_the_same_call_is_made_again_once_the_error_has_gone() -> None:
    """The run tells what was raised, when, and that the second call went through."""
    with Host(travel.pack(Store(save_twice, lambda _: None, values=["x" * 100, "y"]))) as host:
        run = host.record(error={"at": 3, "variant": "ENOSPC", "kind": "write", "mode": "until"}, timeout_s=20.0)
    assert run.value is not None
    assert run.value["what"] == "save"
    assert "No space left" in run.value["raised"]
    assert run.value["again"] is None
    assert run.ops[run.value["raised_at"] - 1].KIND == "refused"
    assert [op.KIND for op in run.ops].count("call") == [op.KIND for op in run.ops].count("ack") == 1


def test_every_errno_at_every_op_that_may_give_it() -> None:
    """The points of a trace are the table, op by op; a call that cannot fail has none."""
    ops: list[t.Op] = [t.Create(n=1, path="a", inode=1), t.Write(n=2, path="a", inode=1, offset=0, data=BIG)]
    ops += [t.Fsync(n=3, path="a", inode=1), t.Sync(n=4), t.Ack(n=5)]
    trace = t.Trace(root="/r", base=_empty(), ops=tuple(ops))
    found = {(point.n, point.variant) for point in points(trace, [each for each in VARIANTS if each != "EIO-read"])}
    errnos = {(op.n, each) for op in ops for each in ALLOWED.get(CLASS_OF_OP.get(op.KIND, ""), ())}
    more = {(2, "short-write"), (3, "failed-fsync"), *((n, "failed-journal") for n in (1, 2, 3))}
    assert found == errnos | more
    assert all(point_of(trace, parse(point.id), point.id) == point for point in points(trace, VARIANTS))


def _empty() -> Any:
    from crashlab.tree import Tree  # noqa: PLC0415 - used once

    return Tree.empty()


def test_the_variants_that_can_be_asked_for_are_those_that_are_built() -> None:
    """One list is for reading what was asked, the other for doing it."""
    assert set(KNOWN["error"]) == set(VARIANTS)
    assert set(STANDARD) <= set(VARIANTS)
    assert set(CLASS_OF_CALL.values()) == set(ALLOWED)


@pytest.mark.parametrize("text", ["error@7", "error@7:EWHAT", "error@r1:ENOSPC", "error@7:EIO-read", "kill@7"])
def test_what_is_no_id_of_an_error_is_refused(text: str) -> None:
    """With an example of one."""
    with pytest.raises(UsageError, match="expected error@7:ENOSPC"):
        parse(text)


def test_an_op_that_cannot_give_an_error_says_which_it_can() -> None:
    """fsync raises no EFBIG."""
    trace = t.Trace(root="/r", base=_empty(), ops=(t.Ack(n=1),))
    with pytest.raises(UsageError, match="cannot give EFBIG"):
        point_of(trace, parse("error@1:EFBIG"), "error@1:EFBIG")
    with pytest.raises(UsageError, match="no op 9"):
        point_of(trace, parse("error@9:EFBIG"), "error@9:EFBIG")


# --- reads -------------------------------------------------------------------------------------------


def read_all_ways(lab: Lab) -> list[str]:
    """Every way of reading, and whether it failed."""
    path, failed = lab.dir / "f", []

    def tried(name: str, act: Any) -> None:
        try:
            act()
        except OSError:
            failed.append(name)

    tried("read_text", path.read_text)
    tried("open", lambda: open(path, "rb", buffering=0).readall())  # noqa: SIM115 - the very call
    tried("os.open", lambda: os.close(os.open(path, os.O_RDONLY)))
    tried("listdir", lambda: os.listdir(lab.dir))
    tried("iterdir", lambda: list(lab.dir.iterdir()))
    tried("outside", lambda: open("/proc/self/stat").close())
    return failed


def start(lab: Lab) -> list[str]:
    """Leaves one file."""
    with contextlib.suppress(FileExistsError):
        (lab.dir / "f").write_text("x")
    return []


@pytest.mark.parametrize("at", [1, 2, 4])
def test_reads_below_the_root_fail_from_the_chosen_one_on(at: int) -> None:
    """All ways fail but what lies outside, and the lab itself can still read."""
    with Host(travel.pack(Subject(start, read_all_ways))) as host:
        run = host.record(timeout_s=20.0)
        trace = t.Trace(root=run.root, base=run.base, ops=run.ops)
        host.prepare(trace)
        request = {"state": f"kill@{len(trace.ops)}", "steps": [{"step": "first", "reads": at}], "timeout_s": 20.0}
        [answer] = list(host.recover([request]))
    value = answer.steps[0].value
    assert value is not None
    assert value["failed"] > 0
    everything_failed = ["read_text", "open", "os.open", "listdir", "iterdir"]
    assert value["end"] == everything_failed[{1: 0, 2: 0, 4: 1}[at] :]
