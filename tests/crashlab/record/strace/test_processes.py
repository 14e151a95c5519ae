"""Children, threads and programs that become others: who has which descriptors, and in which order ops are told."""

from __future__ import annotations

from typing import Any


def writes(recorded: Any) -> list[tuple[Any, ...]]:
    """Path, offset and data of each write."""
    return [(op.path, op.offset, op.data) for op in recorded.trace.ops if op.KIND == "write"]


def test_a_fork_shares_positions(run: Any) -> None:
    """Parent and child write through one open file description; what the child opens is its own."""
    recorded = run("""
fd = os.open("a", os.O_CREAT | os.O_RDWR); os.write(fd, b"parent")
if os.fork() == 0:
    os.write(fd, b"child"); os.close(fd); assert os.open("b", os.O_CREAT | os.O_WRONLY) == fd; os.write(fd, b"B")
    os.chdir("/"); os.umask(0o77); os._exit(3)
os.wait(); os.write(fd, b"again"); os.mkdir("d")
""").prove()
    assert writes(recorded) == [
        ("dir/a", 0, b"parent"),
        ("dir/a", 6, b"child"),
        ("dir/b", 0, b"B"),
        ("dir/a", 11, b"again"),
    ]
    assert [op.thread for op in recorded.trace.ops] == [0, 0, 1, 1, 1, 0, 0]
    assert recorded.trace.threads == 2


def test_a_shell_and_its_programs(run: Any) -> None:
    """Redirections, appends, pipes and tools that copy and move, as a shell starts them."""
    run(
        [
            "sh",
            "-c",
            """
set -e; umask 027; mkdir -p x/y; echo one > x/a; echo two >> x/a; cat x/a | sort -r > x/b; cp x/b x/y/c
mv x/a x/y; ln -s y/a x/l; echo three >> x/l; (cd x/y && echo four > d); exec 7>e; echo five >&7; sync
rm x/b; dd if=x/y/c of=f bs=3 count=2 conv=fsync 2>/dev/null; truncate -s 100 f; touch -d @5 f; exec cp f g
""",
        ]
    ).prove()


def test_exec_closes_what_is_marked(run: Any) -> None:
    """A new program keeps the descriptors that it may inherit, their positions, and nothing else."""
    recorded = run("""
keep = os.open("keep", os.O_CREAT | os.O_WRONLY); os.set_inheritable(keep, True); os.write(keep, b"before ")
lost = os.open("lost", os.O_CREAT | os.O_WRONLY); marked = os.dup2(keep, 40); fcntl.fcntl(40, fcntl.F_SETFD, 1)
os.execv("/bin/sh", ["sh", "-c", f"echo after >&{keep}; echo x 2>/dev/null >&{lost}; echo y 2>/dev/null >&40; exit 5"])
""").prove()
    assert writes(recorded) == [("dir/keep", 0, b"before "), ("dir/keep", 7, b"after\n")]
    assert recorded.finished.code not in (0, None)


def test_subprocesses_are_seen(run: Any) -> None:
    """vfork and posix_spawn with redirections, started from a thread as well."""
    recorded = run("""
import subprocess
with open("out", "wb") as out: subprocess.run(["echo", "hello"], stdout=out, check=True)
thread = threading.Thread(target=lambda: subprocess.run(["sh", "-c", "echo t > t"], check=True))
thread.start(); thread.join()
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "echo p"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "p", 65, 0o600)])
os.waitpid(pid, 0)
""").prove()
    assert writes(recorded) == [("dir/out", 0, b"hello\n"), ("dir/t", 0, b"t\n"), ("dir/p", 0, b"p\n")]


def test_threads_share_descriptors(run: Any) -> None:
    """What one thread opens another writes to and closes; the ops say which thread it was."""
    recorded = run("""
fds = []
def opens(): fds.append(os.open("a", os.O_CREAT | os.O_WRONLY)); os.chdir("..")
def call(function): thread = threading.Thread(target=function); thread.start(); thread.join()
call(opens); call(lambda: os.write(fds[0], b"second")); os.write(fds[0], b"main")
call(lambda: os.close(fds[0])); os.mkdir("dir/d")
""").prove()
    assert [(op.path, op.thread) for op in recorded.trace.ops] == [
        ("dir/a", 1),
        ("dir/a", 2),
        ("dir/a", 0),
        ("dir/d", 0),
    ]


def test_two_processes_append(run: Any) -> None:
    """Each append lies at the real end of that moment, whoever made the one before."""
    recorded = run("""
r, w = os.pipe(); r2, w2 = os.pipe()
child = os.fork() == 0
log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
for n in range(5):
    if child: os.read(r, 1); os.write(log, b"child %d\\n" % n); os.write(w2, b".")
    else: os.write(log, b"p%d\\n" % n); os.write(w, b"."); os.read(r2, 1)
if child: os._exit(0)
os.wait()
""").prove()
    assert [data for _, _, data in writes(recorded)] == [
        line for n in range(5) for line in (b"p%d\n" % n, b"child %d\n" % n)
    ]


def test_many_children_at_once(run: Any) -> None:
    """Children that start and write at the same time, each in a file of its own, are told apart."""
    recorded = run("""
for n in range(8):
    if os.fork() == 0:
        if n % 2 and os.fork(): os.wait(); os._exit(0)
        for turn in range(20):
            with open(f"f{n}", "a") as file: file.write(f"{n} {turn}\\n")
        os._exit(0)
try:
    while True: os.wait()
except ChildProcessError: pass
""").prove()
    assert recorded.trace.threads >= 8


def test_calls_that_overlap_on_one_file_are_noted(run: Any) -> None:
    """Two processes that write one file at the same time: their order is not certain, and that is said."""
    recorded = run("""
fd = os.open("a", os.O_CREAT | os.O_WRONLY)
go, gone = os.pipe()
data = b"x" * (8 << 20)
pids = []
for n in range(2):
    pids.append(os.fork())
    if pids[-1] == 0:
        os.close(gone); os.read(go, 1)
        for _ in range(4): os.pwrite(fd, data, 0)
        os._exit(0)
os.close(gone)
os.close(go)
for pid in pids: os.waitpid(pid, 0)
""")
    assert recorded.unseen == ("two calls on dir/a overlapped in time: their order on disk is not certain",)


def test_what_outlives_the_program_is_ended(run: Any) -> None:
    """A daemon that the program leaves behind is ended and named; its ops until then are in the trace."""
    recorded = run("""
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    open("daemon", "w").close(); os.write(w, b"."); os.close(1); os.close(2)
    import signal; signal.pause()
os.wait(); os.read(r, 1)
""")
    recorded.prove()
    assert len(recorded.finished.left) == 1
    assert recorded.finished.code == 0
    assert recorded.ops == [("create", "dir/daemon")]
