"""Each call that changes files, made by a small program: the ops that are told, and the proof."""

from __future__ import annotations

from typing import Any


def test_a_file_is_made_and_written(run: Any) -> None:
    """A new file, a write, one at a place, a gathered one, and one that appends at the real end."""
    recorded = run("""
fd = os.open("a", os.O_CREAT | os.O_RDWR, 0o640)
os.write(fd, b"hello"); os.pwrite(fd, b"J", 0); os.writev(fd, [b" ", b"world"])
os.lseek(fd, 2, 0); os.read(fd, 1); os.write(fd, b"L")
with open("a", "ab") as file: file.write(b"!")
""").prove()
    assert recorded.ops == [
        ("create", "dir/a", 0o640),
        ("write", "dir/a", 0, b"hello"),
        ("write", "dir/a", 0, b"J"),
        ("write", "dir/a", 5, b" world"),
        ("write", "dir/a", 3, b"L"),
        ("write", "dir/a", 11, b"!"),
    ]


def kinds(recorded: Any) -> list[str]:
    """The kinds of the ops in order."""
    return [op.KIND for op in recorded.trace.ops]


def test_a_failed_call_and_one_that_changes_nothing_are_no_ops(run: Any) -> None:
    """Opening what exists, cutting what is empty, failing, renaming onto itself, setting the same mode."""
    recorded = run("""
os.close(os.open("a", os.O_CREAT | os.O_WRONLY, 0o600)); os.link("a", "b")
os.close(os.open("a", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)); os.truncate("a", 0)
os.write(os.open("a", os.O_WRONLY), b"")
for call in (lambda: os.mkdir("a"), lambda: os.unlink("c"), lambda: os.rename("c", "d"), lambda: os.open("x/y", 65)):
    try: call()
    except OSError: pass
os.rename("a", "b"); os.chmod("a", 0o600)
""").prove()
    assert kinds(recorded) == ["create", "link"]


def test_names(run: Any) -> None:
    """Directories, links of both sorts, renames over something, removals, special files."""
    recorded = run("""
os.mkdir("d"); os.mkdir("d/e", 0o700); open("d/f", "w").close(); os.symlink("d/f", "s"); os.link("d/f", "h")
os.rename("d", "D"); os.rename("h", "D/e/g"); open("x", "w").close(); os.rename("x", "D/f"); os.unlink("s")
os.mkfifo("p", 0o600); socket.socket(socket.AF_UNIX).bind("sock"); socket.socket(socket.AF_UNIX).bind("\\0abstract")
os.mkdir("gone"); os.rmdir("gone"); os.mknod("plain", 0o600)
""").prove()
    assert recorded.ops == [
        ("mkdir", "dir/d"),
        ("mkdir", "dir/d/e", 0o700),
        ("create", "dir/d/f"),
        ("symlink", "dir/s", "d/f"),
        ("link", "dir/h"),
        ("rename", "dir/d", "dir/D"),
        ("rename", "dir/h", "dir/D/e/g"),
        ("create", "dir/x"),
        ("rename", "dir/x", "dir/D/f"),
        ("unlink", "dir/s"),
        ("special", "dir/p", "fifo", 0o600),
        ("special", "dir/sock", "socket", 0o755),
        ("mkdir", "dir/gone"),
        ("rmdir", "dir/gone"),
        ("create", "dir/plain", 0o600),
    ]


def test_paths_from_a_directory(run: Any) -> None:
    """A changed working directory, descriptors of directories, links on the way, and a renamed directory."""
    recorded = run("""
os.mkdir("d"); os.symlink("d", "l"); os.chdir("l"); open("a", "w").close()
fd = os.open("../d", os.O_RDONLY); os.rename("../d", "../e"); open("b", "w").close()
os.close(os.open("c", os.O_CREAT | os.O_WRONLY, dir_fd=fd)); os.fchdir(fd)
os.rename("a", "z", src_dir_fd=fd, dst_dir_fd=fd); os.unlink("b", dir_fd=fd); os.mkdir("m", dir_fd=fd)
os.rmdir("m", dir_fd=fd); os.symlink("t", "s", dir_fd=fd); os.fsync(fd); os.chmod("../e/./../e/z", 0o600)
""").prove()
    assert recorded.ops[2:] == [
        ("create", "dir/d/a"),
        ("rename", "dir/d", "dir/e"),
        ("create", "dir/e/b"),
        ("create", "dir/e/c", 0o755),
        ("rename", "dir/e/a", "dir/e/z"),
        ("unlink", "dir/e/b"),
        ("mkdir", "dir/e/m"),
        ("rmdir", "dir/e/m"),
        ("symlink", "dir/e/s", "t"),
        ("fsync", "dir/d"),
        ("chmod", "dir/e/z", 0o600),
    ]


def test_paths_through_links_of_proc(run: Any) -> None:
    """They are the program's own directory and descriptors, not the lab's; ``..`` behind them goes up there too."""
    recorded = run(
        """
os.mkdir("d"); d = os.open("d", os.O_RDONLY)
os.close(os.open("/proc/self/cwd/a", os.O_CREAT | os.O_WRONLY))
os.rename("/proc/self/cwd/a", f"/proc/{os.getpid()}/fd/{d}/b")
os.mkdir(f"/dev/fd/{d}/../e"); os.unlink(f"/proc/self/fd/{d}/b")
"""
    ).prove()
    assert [op[:2] for op in recorded.ops] == [
        ("mkdir", "dir/d"),
        ("create", "dir/a"),
        ("rename", "dir/a"),
        ("mkdir", "dir/e"),
        ("unlink", "dir/d/b"),
    ]
    assert recorded.finished.watched.outside_writes == ()


def test_attributes(run: Any) -> None:
    """Modes, times and extended attributes, by path and by descriptor; what was so already is no op."""
    recorded = run("""
fd = os.open("a", os.O_CREAT | os.O_RDWR)
os.fchmod(fd, 0o600); os.chmod("a", 0o640); os.chmod("a", 0o640)
os.setxattr("a", "user.x", b"1"); os.setxattr(fd, "user.x", b"1"); os.setxattr(fd, "user.y", b"")
os.removexattr("a", "user.x")
os.utime("a", ns=(1, 2)); os.utime(fd, ns=(5, 2)); os.utime(fd, ns=(5, 7_000_000_009)); os.utime(fd)
""").prove()
    assert recorded.ops[1:-1] == [
        ("chmod", "dir/a", 0o600),
        ("chmod", "dir/a", 0o640),
        ("setxattr", "dir/a", "user.x", {"base64": "MQ=="}),
        ("setxattr", "dir/a", "user.y", {"base64": ""}),
        ("setxattr", "dir/a", "user.x", None),
        ("utime", "dir/a", 2),
        ("utime", "dir/a", 7_000_000_009),
    ]
    assert kinds(recorded)[-1] == "utime"


def test_barriers_and_synchronous_writes(run: Any) -> None:
    """fsync of files and directories, fdatasync, sync, syncfs, O_SYNC, O_DSYNC and the flags of pwritev2."""
    recorded = run("""
fd = os.open("a", os.O_CREAT | os.O_RDWR | os.O_DSYNC); os.write(fd, b"1"); os.pwritev(fd, [b"2"], 1, os.RWF_SYNC)
fd = os.open("a", os.O_RDWR | os.O_SYNC); os.write(fd, b"3")
fd = os.open("a", os.O_RDWR); os.pwritev(fd, [b"4"], 0, os.RWF_DSYNC); os.fsync(fd); os.fdatasync(fd)
os.sync(); libc.syncfs(fd); os.fsync(os.open(".", os.O_RDONLY)); libc.sync_file_range(fd, 0, 0, 2)
""").prove()
    writes = [op.sync for op in recorded.trace.ops if op.KIND == "write"]
    assert writes == ["data", "all", "all", "data"]
    assert recorded.ops[-5:] == [("fsync", "dir/a"), ("fsync", "dir/a", True), ("sync",), ("sync",), ("fsync", "dir")]


def test_sizes(run: Any) -> None:
    """Truncations and allocations; what fallocate zeroes is written zeros, what keeps the size is nothing."""
    recorded = run("""
fd = os.open("a", os.O_CREAT | os.O_RDWR)
os.write(fd, b"x" * 10000); os.ftruncate(fd, 9000); os.truncate("a", 9000); os.truncate("a", 9500)
def allocate(mode, offset, size): assert libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(size)) == 0
os.posix_fallocate(fd, 0, 100); allocate(1, 0, 20000); allocate(3, 4000, 100); allocate(0, 0, 12000)
allocate(0, 11000, 2000)
os.open("a", os.O_WRONLY | os.O_TRUNC)
""").prove()
    assert recorded.ops[2:] == [
        ("truncate", "dir/a", 9000),
        ("truncate", "dir/a", 9500),
        ("write", "dir/a", 4000, bytes(100)),
        ("allocate", "dir/a", 12000),
        ("allocate", "dir/a", 13000),
        ("truncate", "dir/a", 0),
    ]


def test_bytes_that_the_kernel_moves(run: Any) -> None:
    """sendfile and copy_file_range from a traced file and from one outside, at places and at positions."""
    recorded = run("""
with open("src", "wb") as file: file.write(bytes(range(256)) * 40)
src, dst = os.open("src", os.O_RDONLY), os.open("dst", os.O_CREAT | os.O_RDWR)
os.sendfile(dst, src, 100, 50); os.sendfile(dst, src, None, 10); os.copy_file_range(src, dst, 20)
os.copy_file_range(src, dst, 5000, 200, 7000)
python = os.open(os.__file__, os.O_RDONLY); os.lseek(python, 10, 0); os.copy_file_range(python, dst, 100)
""").prove()
    sizes = [(op.offset, len(op.data)) for op in recorded.trace.ops if op.KIND == "write"]
    assert sizes == [(0, 10240), (0, 50), (50, 10), (60, 20), (7000, 5000), (80, 100)]


def test_bytes_from_a_pipe_are_noted_not_guessed(run: Any) -> None:
    """splice from a pipe into a file: nobody can tell what went through, so the recording is not whole."""
    recorded = run("""
r, w = os.pipe(); os.write(w, b"from the pipe")
os.splice(r, os.open("a", os.O_CREAT | os.O_WRONLY), 13)
""")
    assert recorded.unseen == ("bytes that splice moved into dir/a are not seen",)


def test_renames_with_flags(run: Any) -> None:
    """NOREPLACE is a plain rename; an exchange is no sequence of ops and is noted."""
    code = """
open("a", "w").close(); open("b", "w").close()
assert libc.renameat2(-100, b"a", -100, b"c", 1) == 0
libc.renameat2(-100, b"b", -100, b"c", 1)
"""
    assert run(code).prove().ops[2:] == [("rename", "dir/a", "dir/c")]
    exchanged = run(code + 'libc.renameat2(-100, b"b", -100, b"c", 2)')
    assert exchanged.unseen == ("dir/b and dir/c: RENAME_EXCHANGE is not modelled",)


def test_a_nameless_file_is_told_when_it_is_linked(run: Any) -> None:
    """O_TMPFILE, linked by its path in /proc or by its descriptor; one that is never linked is nothing."""
    recorded = run("""
fd = os.open(".", os.O_TMPFILE | os.O_RDWR); os.write(fd, b"one"); open("between", "w").close()
os.link(f"/proc/self/fd/{fd}", "a", src_dir_fd=fd, follow_symlinks=True); os.write(fd, b"two")
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600); os.write(fd, b"x")
os.write(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600), b"never")
assert libc.linkat(fd, b"", -100, b"b", 0x1000) == 0
""").prove()
    assert recorded.ops == [
        ("create", "dir/between"),
        ("create", "", 0o755),
        ("write", "", 0, b"one"),
        ("link", "dir/a"),
        ("write", "", 3, b"two"),
        ("create", "", 0o600),
        ("write", "", 0, b"x"),
        ("link", "dir/b"),
    ]


def test_hostile_names(run: Any) -> None:
    """Names with newlines, quotes, brackets, arrows, commas, and bytes that are no UTF-8."""
    names = [b'a\n"b', b"<x>, {y} = 3", b"\xff\xfe(", b" <unfinished ...>", b"\\x41", b"(deleted)"]
    recorded = run(f"""
for name in {names!r}:
    with open(name, "wb") as file: file.write(name)
    os.rename(name, name + b"'")
""").prove()
    assert len(recorded.trace.ops) == 3 * len(names)


def test_the_umask_and_inherited_bits(run: Any) -> None:
    """A mode is what the umask leaves of it; a directory in a set-group-id directory becomes one."""
    recorded = run("""
os.umask(0o077); os.close(os.open("a", os.O_CREAT | os.O_WRONLY, 0o666)); os.mkdir("d"); os.chmod("d", 0o2755)
os.mkdir("d/e"); os.umask(0); os.mknod("f", 0o606)
""").prove()
    assert [op.mode for op in recorded.trace.ops] == [0o600, 0o700, 0o2755, 0o2700, 0o606]


def test_descriptors_are_followed(run: Any) -> None:
    """Copies of a descriptor share its position and its O_APPEND; one that is given out again is another file."""
    recorded = run("""
fd = os.open("a", os.O_CREAT | os.O_RDWR); copy = os.dup(fd); os.dup2(fd, 50); high = fcntl.fcntl(fd, fcntl.F_DUPFD, 60)
for each in (fd, copy, 50, high): os.write(each, b"ab")
fcntl.fcntl(copy, fcntl.F_SETFL, os.O_APPEND); os.lseek(fd, 0, 0); os.write(50, b"end")
os.close(fd); again = os.open("b", os.O_CREAT | os.O_WRONLY); assert again == fd; os.write(again, b"b")
os.close(copy); assert os.open("/dev/null", os.O_WRONLY) == copy; os.write(copy, b"nothing")
os.closerange(50, 70); r, w = os.pipe(); os.dup2(w, 50); os.write(50, b"pipe")
re = os.open(f"/proc/self/fd/{again}", os.O_WRONLY); os.write(re, b"R")
""").prove()
    writes = [(op.path, op.offset, op.data) for op in recorded.trace.ops if op.KIND == "write"]
    assert writes == [
        *(("dir/a", offset, b"ab") for offset in (0, 2, 4, 6)),
        ("dir/a", 8, b"end"),
        ("dir/b", 0, b"b"),
        ("dir/b", 0, b"R"),
    ]


def test_a_read_at_no_offset_moves_the_position(run: Any) -> None:
    """Of preadv2 with -1 it reads as ``readv`` does; with an offset it leaves the position alone."""
    recorded = run(
        """
class Piece(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
piece = Piece(ctypes.cast(ctypes.create_string_buffer(2), ctypes.c_void_p), 2)
f = os.open("a", os.O_CREAT | os.O_RDWR); os.write(f, b"1234"); os.lseek(f, 0, 0)
for at in (-1, 1): assert libc.preadv2(f, ctypes.byref(piece), 1, ctypes.c_long(at), 0) == 2
os.write(f, b"x")
"""
    ).prove()
    assert recorded.trace.ops[-1].offset == 2


def test_writes_outside_are_named_but_no_ops(run: Any, tmp_path: Any) -> None:
    """A file outside of the root that is written is named, unless a glob says that it does not matter."""
    code = f"""
open("{tmp_path}/out", "w").write("x"); open("{tmp_path}/log.txt", "w").write("x"); open("/dev/null", "w").write("x")
open("a", "w").close(); os.rename("a", "{tmp_path}/moved")
"""
    recorded = run(code, outside=["*.txt"])
    assert recorded.finished.watched.outside_writes == (f"{tmp_path}/out", f"{tmp_path}/moved")
    assert recorded.ops == [("create", "dir/a"), ("unlink", "dir/a")]
    recorded.prove()


def test_what_cannot_be_followed_is_noted(run: Any, tmp_path: Any) -> None:
    """A file moved in, a descriptor sent by a socket, and writes that the kernel does by itself, if it lets."""
    (tmp_path / "stranger").write_text("x")
    assert "moved in" in run(f'os.rename("{tmp_path}/stranger", "in")').unseen[0]
    sent = run("""
fd = os.open("a", os.O_CREAT | os.O_WRONLY)
left, right = socket.socketpair(); socket.send_fds(left, [b"x"], [fd])
got = socket.recv_fds(right, 1, 1)[1][0]; os.write(got, b"unseen")
""")
    assert "dir/a was changed through a descriptor that was not seen being opened" in sent.unseen
    ring = run("""
memory = ctypes.create_string_buffer(200); print(libc.syscall(425, 4, memory) >= 0, file=open("allowed", "w"))
""")
    allowed = ring.last.node("dir/allowed").content.read() == b"True\n"
    assert any("io_uring" in note for note in ring.unseen) == allowed
