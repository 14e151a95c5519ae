"""Calls of real programs fail as asked: each kind, in each process, only below the root, with the files as told."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

from crashlab import trace as t
from crashlab.live.errors import ALLOWED, CLASS_OF_OP, ErrorGate
from crashlab.record.strace.decoder import HANDLERS
from crashlab.record.strace.notices import NUMBERS, Notice, Notices, available
from crashlab.record.strace.refusing import can_refuse
from tests.crashlab.here import needs_notices

pytestmark = needs_notices

CALLS = {
    "write": 'os.write(fd, b"data")',
    "writev": 'os.writev(fd, [b"da", b"ta"])',
    "pwrite64": 'os.pwrite(fd, b"data", 3)',
    "pwritev": 'os.pwritev(fd, [b"da", b"ta"], 3)',
    "pwritev2": 'os.pwritev(fd, [b"da", b"ta"], 3, os.RWF_DSYNC)',
    "sendfile": 'os.sendfile(fd, os.open("full", os.O_RDONLY), 0, 4)',
    "copy_file_range": 'os.copy_file_range(os.open("full", os.O_RDONLY), fd, 4)',
    "fallocate": "os.posix_fallocate(fd, 0, 100)",
    "openat": 'os.open("new", os.O_CREAT | os.O_WRONLY, 0o600)',
    "openat truncating": 'os.open("full", os.O_TRUNC | os.O_WRONLY)',
    "creat": 'assert libc.creat(b"new", 0o600) != -1 or error()',
    "fsync": "os.fsync(fd)",
    "fdatasync": "os.fdatasync(fd)",
    "mkdir": 'os.mkdir("sub")',
    "mkdirat": 'os.mkdir("sub", dir_fd=os.open(".", os.O_RDONLY))',
    "mknod": 'os.mkfifo("pipe")',
    "symlink": 'os.symlink("full", "soft")',
    "symlinkat": 'os.symlink("full", "soft", dir_fd=os.open(".", os.O_RDONLY))',
    "link": 'os.link("full", "hard")',
    "linkat": 'os.link("full", "hard", dst_dir_fd=os.open(".", os.O_RDONLY))',
    "rename": 'os.rename("full", "moved")',
    "renameat": 'os.rename("full", "moved", src_dir_fd=os.open(".", os.O_RDONLY))',
    "unlink": 'os.unlink("full")',
    "unlinkat": 'os.unlink("full", dir_fd=os.open(".", os.O_RDONLY))',
    "rmdir": 'os.rmdir("empty")',
    "truncate": 'os.truncate("full", 2)',
    "ftruncate": "os.ftruncate(fd, 2)",
    "chmod": 'os.chmod("full", 0o600)',
    "fchmod": "os.fchmod(fd, 0o600)",
    "utimensat": 'os.utime("full", (5, 5))',
    "setxattr": 'os.setxattr("full", "user.a", b"b")',
    "fsetxattr": 'os.setxattr(fd, "user.a", b"b")',
}
"""One program per call; each has one op."""

BEFORE = """
import errno
def error(): raise OSError(ctypes.get_errno(), "refused")
fd = os.open("fd", os.O_RDWR)
try: {}
except OSError as problem: sys.exit(problem.errno)
"""


def filled(directory: str) -> None:
    """What the programs find."""
    os.mkdir(os.path.join(directory, "empty"))
    for name in ("fd", "full"):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write("four")


def gate(n: int, variant: str, kind: str, mode: str = "once") -> ErrorGate:
    return ErrorGate(at=n, variant=variant, kind=kind, mode=mode)


@pytest.mark.parametrize("name", CALLS)
def test_each_call_meets_its_errno(run: Any, name: str) -> None:
    """strace, which decodes by itself, sees the call fail; the program gets the errno; nothing has changed."""
    program = BEFORE.format(CALLS[name])
    [op] = run(program, before=filled).prove().trace.ops
    kind = CLASS_OF_OP[op.KIND]
    variant = ALLOWED[kind][-1]
    met = run(program, before=filled, striker=gate(1, variant, kind)).prove()
    assert met.finished.code == getattr(__import__("errno"), variant)
    refused, *rest = met.trace.ops
    assert isinstance(refused, t.Refused)
    assert refused.error == variant
    assert refused.path.startswith("dir/")
    assert [isinstance(each, t.Fsync) and each.failed for each in rest] == [True] * (kind == "sync")
    assert met.last.digest == met.trace.base.digest


def test_every_call_that_can_be_refused_is_decoded() -> None:
    """The table knows no call that the recorder does not."""
    assert set(NUMBERS) <= set(HANDLERS)
    assert not can_refuse("msync")
    numbers = [each[0] for each in NUMBERS.values()]
    assert len(set(numbers)) == len(numbers)


def test_all_processes_meet_an_error_that_lasts(run: Any) -> None:
    """The shell, its children and the programs that they become; what is outside of the root goes on working."""
    script = "echo a >a; (echo b >b); mkdir sub; rm a; exit 7"
    whole = run(["sh", "-c", script]).prove()
    met = run(["sh", "-c", script], striker=gate(2, "EROFS", "write", "until")).prove()
    assert met.finished.code == 7
    assert [op[0] for op in whole.ops] == ["create", "write", "create", "write", "mkdir", "unlink"]
    assert [op[1:3] for op in met.ops[1:]] == [
        ("write", "EROFS"),
        ("create", "EROFS"),
        ("mkdir", "EROFS"),
        ("unlink", "EROFS"),
    ]


def test_words_pipes_and_events_still_go_out(run: Any, tmp_path: Any) -> None:
    """Only what lies below the root fails, though it is the same call of the same process."""
    events, words = tmp_path / "events", tmp_path / "words"
    events.touch()
    script = f"echo a >a; echo failed >&2; echo 'ack 1' >>{events}; echo b | cat >/dev/null; echo c >>a"
    with words.open("w") as file:
        met = run(
            ["sh", "-c", script],
            streams={"stderr": file},
            events_path=str(events),
            striker=gate(2, "ENOSPC", "write", "until"),
        ).prove()
    assert [op[0] for op in met.ops] == ["create", "refused", "ack", "refused"]
    assert "failed" in words.read_text()


def test_what_fails_by_itself_does_so(run: Any) -> None:
    """A directory that is there, a name that is not: no call of these is an op, and none is refused."""
    program = """
import errno
for act, wanted in ((lambda: os.mkdir("empty"), errno.EEXIST), (lambda: os.unlink("no"), errno.ENOENT),
                    (lambda: os.rename("no", "yes"), errno.ENOENT), (lambda: os.rmdir("full"), errno.ENOTDIR)):
    try: act()
    except OSError as problem: assert problem.errno == wanted, problem
os.mkdir("new")
"""
    met = run(program, before=filled, striker=gate(1, "EIO", "make", "until")).prove()
    assert met.finished.code == 1
    assert [op[0] for op in met.ops] == ["refused"]
    assert met.trace.ops[0].path == "dir/new"


@pytest.mark.parametrize(
    ("act", "taken"),
    [
        ("os.write(fd, bytes(5000))", 4096),
        ("os.writev(fd, [bytes(3000), bytes(3000)])", 4096),
        ("os.pwrite(fd, bytes(range(200)), 2)", 100),
    ],
)
def test_a_short_write_takes_the_first_bytes(run: Any, act: str, taken: int) -> None:
    """They are there, the rest is not, the position is behind them, and the next write finds no room."""
    program = f"""
import errno
fd = os.open("fd", os.O_WRONLY | os.O_APPEND)
took = {act}
try: os.write(fd, b"more")
except OSError as problem: sys.exit(0 if problem.errno == errno.ENOSPC and took == {taken} else 9)
"""
    met = run(program, before=filled, striker=gate(1, "short-write", "write", "until")).prove()
    assert met.finished.code == 0
    assert [op.KIND for op in met.trace.ops] == ["refused", "write", "refused"]
    assert len(met.trace.ops[1].data) == taken


def test_a_gate_that_never_strikes_changes_nothing(run: Any) -> None:
    """Then every call goes on, and the ops are those of a plain run."""
    program = BEFORE.format(CALLS["rename"])
    assert run(program, before=filled, striker=gate(99, "EIO", "write")).prove().ops == run(program, before=filled).ops


def test_a_file_that_is_only_read_lets_nobody_wait(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter opens hundreds of them while it starts; what is opened to be changed still waits."""
    waited: list[Notice] = []
    take = Notices.take

    def taken(notices: Notices) -> Notice | None:
        notice = take(notices)
        waited.extend([] if notice is None else [notice])
        return notice

    monkeypatch.setattr(Notices, "take", taken)
    program = """
for flags in (os.O_RDONLY, os.O_RDONLY | os.O_CLOEXEC, os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC):
    os.close(os.open("full", flags))
"""
    run(program, before=filled, striker=gate(99, "EIO", "write")).prove()
    flags = [notice.args[2] & ~os.O_CLOEXEC for notice in waited if notice.name == "openat"]
    assert flags == [os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC]


def test_a_kernel_that_gives_no_notices_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is one line, for the report."""
    assert available() == ""
    failed = subprocess.CompletedProcess([], 1, "", "seccomp: Invalid argument\n")
    monkeypatch.setattr("crashlab.record.strace.notices.subprocess.run", lambda *_, **__: failed)
    assert available() == "the kernel does not let calls be refused here (seccomp: Invalid argument)"
