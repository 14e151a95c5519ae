"""Lines of strace, wherever the stream is cut, and calls that come in parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import LabError
from crashlab.record.strace import lines
from crashlab.record.strace.lines import Call, Calls, End, Lines, split


def escaped(data: bytes) -> bytes:
    """As ``-xx`` writes it."""
    return b"".join(b"\\x%02x" % byte for byte in data)


@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.lists(st.integers(1, 60), max_size=9), st.booleans()
)
def test_the_stream_may_be_cut_anywhere(data: list[bytes], cuts: list[int], long: bool) -> None:
    """Short lines, and long ones that are decoded piece by piece, mean the same."""
    stream = b"".join(b'12    3.000000004 write(5<\\x2f>, "%s", 9) = 9\n' % escaped(each) for each in data)
    limit, lines.LONG_BYTES = lines.LONG_BYTES, 10 if long else lines.LONG_BYTES
    try:
        reader, at = Lines(), 0
        found: list[lines.Line] = []
        for size in [*cuts, len(stream)]:
            found += reader.feed(stream[at : at + size])
            at += size
    finally:
        lines.LONG_BYTES = limit
    assert [line.strings for line in found] == [[each] for each in data]
    assert {(line.pid, line.time_ns, line.text) for line in found} == {
        (12, 3_000_000_004, 'write(5<\\x2f>, "0", 9) = 9')
    }
    assert not reader.left_over()


def taken(text: bytes) -> list[Call | End | None]:
    """What comes of a stream."""
    calls = Calls()
    return [calls.take(line) for line in Lines().feed(text)]


def test_a_call_in_two_parts() -> None:
    """Arguments of both parts are put together, strings keep their places."""
    first, second, call = taken(
        b'1 1.000000000 setxattr("\\x61", "\\x62" <unfinished ...>\n'
        b"2 1.000000001 close(3) = 0\n"
        b'1 1.000000002 <... setxattr resumed>, "\\x63", 1, 0) = -1 EPERM (Operation not permitted)\n'
    )
    assert isinstance(first, Call)
    assert not first.returned
    assert isinstance(second, Call)
    assert second.result == 0
    assert isinstance(call, Call)
    assert [call.string(n) for n in range(3)] == [b"a", b"b", b"c"]
    assert (call.result, call.returned, call.resumed) == (None, True, True)


def test_a_call_that_nobody_saw_is_none() -> None:
    """A process that is killed before strace can ask it leaves a line without a name; the end comes after it."""
    lines = (
        b"1 1.000000000 ???()        = ?\n1 1.000000001 ???( <unfinished ...>\n1 1.000000002 <... ??? resumed>) = ?\n"
    )
    assert taken(lines + b"1 1.000000003 +++ killed by SIGKILL +++\n") == [None] * 3 + [End(1, signal="SIGKILL")]


def test_ends() -> None:
    """An exit code, a signal, and a thread that took the place of its process by an exec."""
    assert taken(b"1 1.000000000 +++ exited with 3 +++\n2 1.000000000 +++ killed by SIGKILL (core dumped) +++\n") == [
        End(1, code=3),
        End(2, signal="SIGKILL"),
    ]
    begun, end, call = taken(
        b'5 1.000000000 execve("\\x61" <unfinished ...>\n4 1.000000001 +++ superseded by execve in pid 5 +++\n'
        b"4 1.000000002 <... execve resumed>) = 0\n"
    )
    assert isinstance(begun, Call)
    assert end == End(4, by_exec_of=5)
    assert isinstance(call, Call)
    assert (call.pid, call.result) == (4, 0)


@pytest.mark.parametrize(
    "text",
    [
        b"nonsense\n",
        b"1 1.000000000 what is this\n",
        b"1 1.000000000 <... write resumed>) = 1\n",
        b'1 1.000000000 write(1, "plain", 5) = 5\n',
    ],
)
def test_what_cannot_be_read_is_an_error(text: bytes) -> None:
    """A gap or an unknown form is never passed over."""
    with pytest.raises(LabError, match="strace"):
        taken(text)


def test_arguments_are_split_at_the_top_only() -> None:
    """Brackets of every sort keep their commas."""
    assert split('1, [{a="0", b=2}, {c=3}], {d=[4, 5]}, f(6, 7)') == [
        "1",
        '[{a="0", b=2}, {c=3}]',
        "{d=[4, 5]}",
        "f(6, 7)",
    ]
    assert split("") == []
