"""The run as a whole: long writes, real kills, ends of all sorts, events, and a recording with a gap."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from crashlab import directory
from crashlab import trace as t
from crashlab.errors import LabError, UsageError
from crashlab.record.proof import replay_proof
from crashlab.record.strace import lines
from crashlab.record.strace.watching import Program, kill_after, tracees, watch

SAVES = """
for n in range(3):
    with open("new", "wb") as file: file.write(b"%d" % n * 5000); file.flush(); os.fsync(file.fileno())
    os.replace("new", "state"); os.fsync(os.open(".", os.O_RDONLY))
"""


def test_how_a_program_ends_is_told(run: Any) -> None:
    """An exit code, and the name of a signal."""
    assert run("sys.exit(7)").finished.code == 7
    ended = run("os.kill(os.getpid(), 15)").finished
    assert (ended.code, ended.signal) == (None, "SIGTERM")


def test_the_program_sees_its_own_surroundings(run: Any) -> None:
    """Arguments, environment, directory and signals are those that were asked for, not those of the recorder."""
    environment = {"PATH": os.environ["PATH"], "A": "b"}
    recorded = run(
        ["sh", "-c", 'echo "$A $#"; pwd; env | cut -d= -f1 | sort; kill -PIPE $$', "name", "1", "2"],
        env=environment,
        streams={"stdout": subprocess.DEVNULL},
    )
    assert recorded.finished.signal == "SIGPIPE"
    saved = run(
        ["sh", "-c", 'exec >out; echo "$A $#"; env | cut -d= -f1 | sort | tr "\\n" " "', "name", "1", "2"],
        env=environment,
    ).prove()
    words = saved.last.node("dir/out").content.read().split()
    assert words[:2] == [b"b", b"2"]
    assert set(words[2:]) - {b"OLDPWD", b"PWD", b"_"} == {b"A", b"PATH"}


def test_a_program_that_is_not_there(run: Any) -> None:
    """It is refused before anything starts."""
    with pytest.raises(UsageError, match="no program 'no-such-program' can be started"):
        run(["no-such-program"])


def test_events_stand_in_their_place(run: Any, tmp_path: Path) -> None:
    """Lines in the events file are events between the ops; the file itself is no write outside."""
    path = tmp_path / "events"
    path.touch()
    recorded = run(
        [
            "sh",
            "-c",
            """
echo 1 > a; echo 'effect mail key=k to=ada' >> $E; echo 2 > b; echo 'ack 3' >> $E; mkdir d
printf 'effect mail key=k to=ada\\nsave-point A\\n' >> $E
""",
        ],
        env={**os.environ, "E": str(path)},
        events_path=str(path),
    ).prove()
    kinds = [op.KIND for op in recorded.trace.ops]
    assert kinds == ["create", "write", "effect", "create", "write", "ack", "mkdir", "effect", "save-point"]
    assert [op.receipt for op in recorded.trace.ops if isinstance(op, t.Effect)] == ["mail-1", "mail-1"]
    assert recorded.finished.watched.outside_writes == ()


@pytest.mark.parametrize("written", ["efect mail\\n", "ack 1\\nack"])
def test_a_wrong_event_ends_the_run(run: Any, tmp_path: Path, written: str) -> None:
    """A line that is no event, or that never ends, is an error; the program does not live on."""
    path = tmp_path / "events"
    before = set(directory_of_processes())
    program = f"printf '{written}' >> {path}; [ -z \"$1\" ] || exec sleep 1000"
    with pytest.raises(UsageError, match="events file"):
        run(["sh", "-c", program, "name", *(["sleep"] if "e" in written[:1] else [])], events_path=str(path))
    assert not [pid for pid in set(directory_of_processes()) - before if b"sleep\x001000" in command(pid)]


def test_an_events_file_that_is_emptied_ends_the_run(run: Any, tmp_path: Path) -> None:
    """With what to write instead: what was told before would be gone for everyone who reads the file."""
    path = tmp_path / "events"
    path.touch()
    with pytest.raises(UsageError, match="as a shell does with >>"):
        run(["sh", "-c", f"echo ack 1 > {path}"], events_path=str(path))


def directory_of_processes() -> list[str]:
    """The numbers of all processes."""
    return [name for name in os.listdir("/proc") if name.isdigit()]


def command(pid: str) -> bytes:
    """What a process runs; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# --- long writes -----------------------------------------------------------------------------------

MEASURE = """
import sys, resource, zlib
from crashlab import directory
from crashlab import trace as t
from crashlab.record.strace.watching import Program, watch
root, code = sys.argv[1:]
size, crc = 0, 0
def emit(op):
    global size, crc
    if isinstance(op, t.Write): size += len(op.data); crc = zlib.crc32(op.data, crc)
_, numbers = directory.read_numbered(root)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
program = Program(argv=[sys.executable, "-S", "-E", "-c", code], cwd=root)
finished = watch(program, root=root, numbers=numbers, emit=emit)
assert finished.watched.unseen == (), finished
print(size, crc, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("pieces", [1, 64])
def test_megabytes_are_decoded_as_they_come(run: Any, tmp_path: Path, pieces: int) -> None:
    """64 MB, as one write or as many: strace tells them as 256 MB of text, of which nothing is kept."""
    del run  # for its skip
    import zlib  # noqa: PLC0415 - only here

    (tmp_path / "root").mkdir()
    part = (64 << 20) // pieces
    loop = f"for n in range({pieces}): os.write(fd, bytes(range(256)) * {part // 256})"
    code = f"import os\nfd = os.open('a', 65, 0o600)\n{loop}"
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "root"), code],
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    size, crc, grown_kib = map(int, done.stdout.split())
    assert size == 64 << 20
    assert crc == zlib.crc32(bytes(range(256)) * (size // 256))
    copies = 3.5 if pieces == 1 else 1.5  # the file in the mirror; and the op, its parts and their join
    assert grown_kib < copies * (64 << 10), f"{grown_kib} KiB"


# --- ends and gaps ---------------------------------------------------------------------------------


def test_a_real_kill_after_each_op(run: Any) -> None:
    """For every n the program dies for real, with n ops told and the directory as they say."""
    whole = run(SAVES).prove()
    ops = len(whole.trace.ops)
    for n in [*range(0, ops, 5), ops - 1, ops]:
        killed = run(SAVES, kill=kill_after(whole.finished, n)).prove()
        assert killed.finished.signal == "SIGKILL"
        assert killed.ops == whole.ops[:n]


def test_a_kill_that_strace_cannot_do_is_refused(run: Any) -> None:
    """Where children make ops, and where no such op is."""
    whole = run(["sh", "-c", "mkdir a; mkdir b"])
    with pytest.raises(UsageError, match="all made by its first thread"):
        kill_after(whole.finished, 1)
    with pytest.raises(UsageError, match="no op 99"):
        kill_after(run(SAVES).finished, 99)


def test_a_call_that_a_child_makes_too_is_not_where_a_real_kill_falls(run: Any) -> None:
    """strace counts in each process by itself: the child would die as well, and the program see that."""
    child = "import subprocess; subprocess.run(['sh', '-c', 'exit 0'], check=True); os.mkdir('late')"
    whole = run(f"os.mkdir('early'); {child}").prove()
    assert [op.KIND for op in whole.trace.ops] == ["mkdir", "mkdir"]
    assert kill_after(whole.finished, 1) == ("mkdir", 2)
    killed = run(f"os.mkdir('early'); {child}", kill=("mkdir", 2)).prove()
    assert killed.finished.signal == "SIGKILL"
    with pytest.raises(UsageError, match="exit_group number 1, which another process makes too"):
        kill_after(whole.finished, 2)


def test_a_lab_that_fails_leaves_no_process(run: Any) -> None:
    """Whatever is raised while ops are told, program, children and strace are gone when it comes out."""
    before = set(directory_of_processes())

    def refuse(_: t.Op) -> None:
        text = "no more"
        raise ZeroDivisionError(text)

    with pytest.raises(ZeroDivisionError):
        run(
            ["sh", "-c", "trap '' TERM; sleep 1001 & (trap '' TERM; setsid sleep 1001) & echo > a; sleep 1001; wait"],
            emit=refuse,
        )
    names = [command(pid) for pid in set(directory_of_processes()) - before]
    assert not [name for name in names if b"1001" in name]


def test_a_killed_lab_takes_strace_and_the_program_along(run: Any, tmp_path: Path) -> None:
    """SIGKILL for the process that records: strace and the program that it started end at once."""
    del run  # for its skip
    (tmp_path / "root").mkdir()
    code = "import os, signal; open('ready', 'w').close(); signal.pause()"
    lab = subprocess.Popen([sys.executable, "-c", MEASURE, str(tmp_path / "root"), code])
    while not (tmp_path / "root" / "ready").exists():
        assert lab.poll() is None
        os.sched_yield()
    strace = next(pid for pid in directory_of_processes() if _parent(pid) == lab.pid)
    watched = [*tracees(int(strace))]
    assert watched
    ends = [os.pidfd_open(pid) for pid in (int(strace), *watched)]
    lab.send_signal(signal.SIGKILL)
    lab.wait()
    import select  # noqa: PLC0415 - only here

    deadline = time.monotonic() + 300
    for end in ends:
        assert select.select([end], [], [], max(0.0, deadline - time.monotonic()))[0]
        os.close(end)


def _parent(pid: str) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def test_a_dropped_line_turns_the_proof_red(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder that loses any one line that made an op is found out, by the proof or by itself."""
    whole = run(SAVES).prove()
    real = lines.Lines.feed
    red = 0
    for name in ("write(", "rename(", "O_CREAT"):
        dropped: list[str] = []

        def feed(self: Any, chunk: bytes, name: str = name, dropped: list[str] = dropped) -> Any:
            for line in real(self, chunk):
                if (
                    name in line.text
                    and line.text.endswith(tuple("0123456789>"))
                    and not dropped
                    and (name != "O_CREAT" or "-1" not in line.text)
                ):
                    dropped.append(line.text)
                else:
                    yield line

        monkeypatch.setattr(lines.Lines, "feed", feed)
        broken = run(SAVES)
        assert len(dropped) == 1
        assert len(broken.trace.ops) < len(whole.trace.ops)
        red += bool(replay_proof(broken.trace, broken.last, ()) or broken.unseen or broken.ops != whole.ops)
    assert red == 3


def test_output_that_stops_early_is_an_error(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that never ends is not taken for the end of the program."""
    real = lines.Lines.feed
    monkeypatch.setattr(
        lines.Lines, "feed", lambda self, chunk: real(self, chunk.replace(b"+++ exited with 0 +++\n", b"+++"))
    )
    with pytest.raises(LabError, match=r"middle of a line|before the program did"):
        run("os.mkdir('d')")


def test_a_root_that_changed_is_refused(run: Any, tmp_path: Path) -> None:
    """Numbers of another tree are not used."""
    del run  # for its skip
    (tmp_path / "a").write_text("x")
    _, numbers = directory.read_numbered(tmp_path)
    (tmp_path / "b").write_text("x")
    with pytest.raises(LabError, match="changed between"):
        watch(Program(argv=["true"]), root=str(tmp_path), numbers=numbers, emit=lambda _: None)
