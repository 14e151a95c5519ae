"""The recorder itself: gates and real kills, events, threads, what it cannot see, what lies outside."""

from __future__ import annotations

import errno
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from crashlab import trace as t
from crashlab.crash.states import cut
from crashlab.errors import LabError
from crashlab.record.python import Recorder

HERE = str(Path(__file__).parent)


def saves(d: str) -> None:
    """A save of several pages by every kind of write, and a rename."""
    with open(f"{d}/new", "wb") as file:
        file.write(b"head")
        file.write(bytes(range(256)) * 64)
        file.flush()
        os.fsync(file.fileno())
    descriptor = os.open(f"{d}/new", os.O_RDWR)
    os.pwrite(descriptor, b"p" * 9000, 100)
    os.lseek(descriptor, 0, os.SEEK_END)
    os.writev(descriptor, [b"v" * 5000, b"w" * 5000])
    source = os.open(f"{d}/new", os.O_RDONLY)
    os.sendfile(descriptor, source, 0, 9000)
    os.close(source)
    os.close(descriptor)
    with open(f"{d}/log", "a", encoding="ascii") as text:
        text.write("t" * 10_000)
    os.replace(f"{d}/new", f"{d}/final")


# --- kills ---------------------------------------------------------------------------------------


def test_a_kill_before_an_op_leaves_the_ops_before_it(record: Any) -> None:
    """A real SIGKILL before op n leaves on disk what the first n-1 ops make, for every n."""
    whole = record(saves).prove()
    for n in range(1, len(whole.trace.ops) + 1):
        killed = record(saves, kill=(n, 0))
        assert killed.value == signal.SIGKILL
        assert len(killed.trace.ops) == n - 1
        assert whole.tree(n - 1).difference(killed.last) == []


def test_a_kill_inside_a_write_leaves_a_part_of_it(record: Any) -> None:
    """A gate lets the first bytes of any kind of write through, and then kills: both trees are the real one.

    Computed from the whole run by cutting its op, and from the killed run, whose last op tells what is there.
    """
    whole = record(saves).prove()
    writes = whole.ops("write")
    assert len(writes) == 6
    for op in writes:
        for cut_bytes in {1, len(op.data) // 2, 4096 - op.offset % 4096} & set(range(1, len(op.data))):
            killed = record(saves, kill=(op.n, cut_bytes)).prove()
            assert killed.value == signal.SIGKILL
            assert len(killed.trace.ops) == op.n
            assert killed.trace.ops[-1].data == op.data[:cut_bytes]
            assert whole.tree(op.n - 1).apply(cut(op, cut_bytes)).difference(killed.last) == []


def test_a_nameless_file_can_be_killed_at_every_op(record: Any) -> None:
    """A file of O_TMPFILE has ops, told when it gets its name; before that, nothing of it can be seen."""

    def link(d: str) -> None:
        descriptor = os.open(d, os.O_TMPFILE | os.O_RDWR)
        os.write(descriptor, b"x" * 9000)
        os.link(f"/proc/self/fd/{descriptor}", f"{d}/new", src_dir_fd=descriptor, follow_symlinks=True)

    whole = record(link).prove()
    assert whole.kinds == ["create", "write", "link"]
    for kill in ((1, 0), (2, 0), (2, 4096), (3, 0)):
        killed = record(link, kill=kill)
        assert killed.value == signal.SIGKILL
        assert killed.last.node("dir/new") is None
        assert killed.prove().kinds == whole.kinds[: kill[0] - (kill[1] == 0)]


def test_what_a_gate_raises_is_the_error_of_the_call(record: Any) -> None:
    """A gate can make a call fail: nothing happens on disk, and nothing is recorded."""

    def refused(d: str) -> list[Any]:
        from crashlab.record.python import RECORDER  # noqa: PLC0415 - that of the recorded process

        watch = RECORDER._switch.watch
        assert watch is not None
        looking, seen = watch._gate, []

        class Full:
            def before(self, _n: int) -> None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        for call in (lambda: os.mkdir(f"{d}/x"), lambda: Path(d, "y").write_bytes(b"y")):
            watch._gate = Full()  # type: ignore[assignment]  # nothing gets as far as its other methods
            try:
                call()
            except OSError as error:
                seen.append(error.errno)
            watch._gate = looking
        return [*seen, os.listdir(d)]

    recorded = record(refused).prove()
    assert recorded.value == [errno.ENOSPC, errno.ENOSPC, []]
    assert recorded.kinds == []


# --- events, threads, places in the source -----------------------------------------------------------


def test_events_are_numbered_among_the_ops(record: Any) -> None:
    """An event of the subject gets its number in the same count, and the gate is asked for it too."""

    def tell(d: str) -> None:
        from crashlab.record.python import RECORDER  # noqa: PLC0415 - that of the recorded process

        os.mkdir(f"{d}/1")
        RECORDER.event(t.Effect, name="mail", key="k", detail={"to": "ada"}, receipt="mail-1")
        os.mkdir(f"{d}/2")
        RECORDER.event(t.Ack, value=1)

    recorded = record(tell).prove()
    assert recorded.kinds == ["mkdir", "effect", "mkdir", "ack"]
    assert recorded.ops("effect")[0].detail == {"to": "ada"}
    assert [n for n, _ in recorded.seen] == [1, 2, 3, 4]


def test_threads_are_told_apart_and_serialised(record: Any) -> None:
    """Every op says which thread did it, counted by their first op; together they are one order that is the disk's."""

    def work(d: str) -> None:
        turns = [threading.Event() for _ in range(3)]

        def one(number: int) -> None:
            turns[number].wait()
            with open(f"{d}/{number}", "wb", buffering=0) as file:
                if number + 1 < len(turns):
                    turns[number + 1].set()
                file.writelines(b"x" for _ in range(20))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        turns[0].set()
        for thread in threads:
            thread.join()
        os.mkdir(f"{d}/last")

    recorded = record(work).prove()
    assert {op.path: op.thread for op in recorded.ops("create")} == {"dir/0": 1, "dir/1": 2, "dir/2": 3}
    assert recorded.ops("mkdir")[0].thread == 0
    assert recorded.watched.threads == recorded.trace.threads == 4
    assert len(recorded.ops("write")) == 60


def test_a_thread_number_is_not_given_out_twice(record: Any) -> None:
    """A thread that starts where another one ended is another thread."""

    def work(d: str) -> None:
        for number in range(3):
            thread = threading.Thread(target=os.mkdir, args=(f"{d}/{number}",))
            thread.start()
            thread.join()

    assert [op.thread for op in record(work).prove().trace.ops] == [1, 2, 3]


def test_a_thread_that_waits_does_not_stop_the_others(record: Any) -> None:
    """Opening, writing and reading a FIFO below the root holds no lock."""

    def work(d: str) -> None:
        os.mkfifo(f"{d}/fifo")
        heard: list[bytes] = []
        thread = threading.Thread(target=lambda: heard.append(Path(d, "fifo").read_bytes()))
        waiting = threading.Thread(target=lambda: Path(d, "fifo").write_bytes(b"x" * 200_000))
        waiting.start()
        Path(d, "file").write_bytes(b"while the other thread waits for a reader")
        thread.start()
        waiting.join()
        thread.join()
        assert len(heard[0]) == 200_000

    recorded = record(work).prove()
    assert recorded.kinds == ["special", "create", "write"]
    assert recorded.watched.unseen == ()


def test_an_op_names_the_line_of_the_subject(record: Any) -> None:
    """The nearest frame outside of the standard library, relative to the working directory."""

    def work(d: str, folder: str) -> None:
        sys.path.insert(0, folder)
        import subject  # type: ignore[import-not-found]  # noqa: PLC0415 - found by way of the line above

        subject.save(d)

    recorded = record(work, HERE).prove()
    assert [(op.KIND, op.path, op.at) for op in recorded.trace.ops] == [
        ("create", "dir/one", "subject.py:11"),
        ("write", "dir/one", "subject.py:11"),
        ("create", "dir/two", "subject.py:12"),
        ("write", "dir/two", "subject.py:12"),
        ("create", "dir/three", "subject.py:14"),
        ("write", "dir/three", "subject.py:14"),
    ]


# --- what it cannot see --------------------------------------------------------------------------------


def children(d: str) -> None:
    """Start children in every way that Python has."""
    import multiprocessing  # noqa: PLC0415 - as a subject would

    subprocess.run([sys.executable, "-c", "pass"], check=True)
    subprocess.run("exit 0 # by a shell", shell=True, check=True)  # noqa: S602 - what is noticed
    os.system("exit 0 # by system")  # noqa: S605 - what is noticed
    os.waitpid(os.posix_spawn("/bin/true", ["true", "spawned"], {}), 0)
    child = os.fork()
    if child == 0:
        Path(d, "by-the-child").write_bytes(b"x")
        os._exit(0)
    os.waitpid(child, 0)
    other = multiprocessing.get_context("fork").Process(target=os.mkdir, args=(f"{d}/by-a-process",))
    other.start()
    other.join()


def test_children_are_noted(record: Any) -> None:
    """Each child is noted with its command, and what it writes is none of the trace."""
    recorded = record(children)
    assert recorded.error == ""
    notes = "\n".join(recorded.watched.unseen)
    for text in (f"{sys.executable} -c pass", "by a shell", "by system", "true spawned", "os.fork"):
        assert text in notes
    assert recorded.kinds == []
    assert {"dir/by-the-child", "dir/by-a-process"} <= {path for path, _, _ in recorded.last.walk()}


def test_a_forked_child_records_nothing(record: Any) -> None:
    """In the child of a fork the recorder is off: it would count on from the parent's numbers."""

    def work(d: str) -> bytes:
        from crashlab.record.python import RECORDER  # noqa: PLC0415 - that of the recorded process

        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, b"off" if RECORDER._switch.watch is None else b"on")
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        Path(d, "after").mkdir()
        with open(reading, "rb") as answer:
            return answer.read()

    recorded = record(work).prove()
    assert recorded.value == b"off"
    assert recorded.kinds == ["mkdir"]


def test_shared_writable_mappings_are_noted(record: Any) -> None:
    """A mapping through which a file can change is noted with its path; others are not."""

    def work(d: str) -> list[str]:
        Path(d, "file").write_bytes(bytes(100))
        Path(d, "noted").write_bytes(bytes(100))
        with open(f"{d}/file", "r+b") as file:
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ).close()
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY).close()
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ).close()
            mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE).close()
        mmap.mmap(-1, 100).close()
        with open(f"{d}/noted", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
            mapping[:2] = b"hi"
            return [type(mapping).__name__, type(mapping).__module__, str(isinstance(mapping, mmap.mmap))]

    recorded = record(work)
    assert recorded.value == ["mmap", "mmap", "True"]
    assert recorded.watched.unseen == ("dir/noted was mapped into memory, shared and writable",)


def test_writes_outside_are_noted_once(record: Any, tmp_path: Path) -> None:
    """A file outside of the root is named once, however it is opened; devices, pipes, caches and globs are not."""

    def work(_d: str, folder: str) -> None:
        outside = Path(folder)
        for _ in range(2):
            Path(outside, "a").write_bytes(b"a")
        os.close(os.open(outside / "b", os.O_CREAT | os.O_WRONLY))
        os.truncate(outside / "b", 5)
        os.makedirs(outside / "__pycache__", exist_ok=True)
        Path(outside, "__pycache__", "x.pyc").write_bytes(b"x")
        Path(outside, "fine.log").write_bytes(b"x")
        os.mkfifo(outside / "fifo")
        one, other = socket.socketpair()
        reading, writing = os.pipe()
        with open("/dev/null", "wb") as null, one, other, os.fdopen(writing, "wb") as pipe:
            null.write(b"x")
            pipe.write(b"x")
            one.send(b"x")
        os.close(reading)
        Path(outside, "a").read_bytes()

    recorded = record(work, str(tmp_path), outside=(f"{tmp_path}/*.log",)).prove()
    assert recorded.watched.outside_writes == (f"{tmp_path}/a", f"{tmp_path}/b")
    assert recorded.kinds == []


def test_files_that_cross_the_border(record: Any, tmp_path: Path) -> None:
    """A file that is moved out is gone and an outside write; one that is moved or linked in is noted."""

    def work(d: str, folder: str) -> None:
        Path(d, "out").write_bytes(b"out")
        Path(d, "tree").mkdir()
        Path(d, "tree", "x").write_bytes(b"x")
        os.rename(f"{d}/out", f"{folder}/out")
        os.rename(f"{d}/tree", f"{folder}/tree")

    recorded = record(work, str(tmp_path)).prove()
    assert recorded.watched.outside_writes == (f"{tmp_path}/out", f"{tmp_path}/tree")

    def back(d: str, folder: str) -> None:
        os.rename(f"{folder}/out", f"{d}/in")
        Path(d, "in").write_bytes(b"changed")
        os.link(f"{folder}/tree/x", f"{d}/linked")

    recorded = record(back, str(tmp_path))
    assert [text.partition(" ")[0] for text in recorded.watched.unseen] == ["dir/in", "dir/in", "dir/linked"]


def test_a_root_that_is_a_link(record: Any, tmp_path: Path) -> None:
    """Where the root is reached through a symbolic link, paths are still relative to it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    def work(d: str) -> None:
        Path(d, "by-link").write_bytes(b"x")
        Path(os.path.realpath(d), "really").write_bytes(b"x")
        os.chdir(d)
        Path("relative").write_bytes(b"x")
        os.chdir("/")

    recorded = record(work, root=str(tmp_path / "link")).prove()
    assert [op.path for op in recorded.ops("create")] == ["dir/by-link", "dir/really", "dir/relative"]


def test_a_change_in_the_middle_of_another_one_is_noted(record: Any) -> None:
    """A finalizer or signal handler that writes while a call is being told makes the order uncertain: it is said."""

    def work(d: str) -> None:
        from crashlab.record.python import RECORDER  # noqa: PLC0415 - that of the recorded process

        watch = RECORDER._switch.watch
        assert watch is not None
        at = watch.places.at

        def interrupted() -> str:
            watch.places.at = at  # type: ignore[method-assign]  # once only
            os.mkdir(f"{d}/by-a-handler")
            return at()

        watch.places.at = interrupted  # type: ignore[method-assign]  # a moment inside of telling
        os.mkdir(f"{d}/x")

    recorded = record(work)
    assert recorded.error == ""
    assert ["order is not certain" in text for text in recorded.watched.unseen] == [True]


# --- start and stop ----------------------------------------------------------------------------------------


def test_a_recorder_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    """Starting before installing and stopping before starting are errors of the lab, with a way out."""
    recorder = Recorder()
    with pytest.raises(LabError, match=r"call install\(\) before"):
        recorder.start(root=str(tmp_path), numbers={}, emit=lambda _op: None)
    with pytest.raises(LabError, match="nothing is being recorded"):
        recorder.stop()
    recorder.event(t.Ack)


def test_one_recording_at_a_time(record: Any) -> None:
    """A second start is refused, and the first recording goes on."""

    def work(d: str) -> str:
        from crashlab.errors import LabError as Refusal  # noqa: PLC0415 - that of the recorded process
        from crashlab.record.python import RECORDER  # noqa: PLC0415 - that of the recorded process

        RECORDER.install()
        try:
            RECORDER.start(root=d, numbers={}, emit=lambda _op: None)
        except Refusal as error:
            Path(d, "x").touch()
            return str(error)
        return "was not refused"

    recorded = record(work).prove()
    assert "recorded already" in recorded.value
    assert recorded.kinds == ["create"]


def test_names_that_were_imported_before_are_patched_too(record: Any) -> None:
    """``from os import replace`` and default arguments of modules that were there before do not escape."""

    def work(d: str) -> list[bool]:
        import posix  # noqa: PLC0415 - the module behind os
        import tarfile  # noqa: PLC0415 - has ``from builtins import open as bltn_open``

        Path(d, "x").write_bytes(b"x")
        posix.rename(f"{d}/x", f"{d}/y")
        with tarfile.open(f"{d}/t.tar", "w") as archive:
            archive.add(f"{d}/y", "y")
        early: Any = sys.modules["__main__"]
        early.renamed_early(f"{d}/y", f"{d}/z")
        early.rename_by_default(f"{d}/z", f"{d}/zz")
        return [posix.rename is os.rename, early.renamed_early is os.rename]

    recorded = record(work).prove()
    assert recorded.value == [True, True]
    assert recorded.kinds[:4] == ["create", "write", "rename", "create"]
    assert recorded.kinds[-2:] == ["rename", "rename"]
