"""Messages arrive whole and in order, whatever the sizes, and noise is noticed."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import LabError
from crashlab.recover import wire

MESSAGES = [{"path": "a\udcff"}, {"large": "x" * 3_000_000}, {}, {"number": 1}]


def test_messages_cross_whole_in_both_directions() -> None:
    """Large ones, empty ones and lone surrogates, with the main side never blocking."""
    ours, theirs = socket.socketpair()
    channel = wire.Channel(ours, "the other side")

    def echo() -> None:
        while (message := wire.receive(theirs)) is not None:
            wire.send(theirs, message)
        theirs.close()

    other = threading.Thread(target=echo)
    other.start()
    got = [channel.ask(message, timeout_s=20) for message in MESSAGES]
    channel.say_goodbye()
    channel.wait_for_end(time.monotonic() + 20)
    other.join()
    assert got == MESSAGES
    assert channel.ended
    channel.close()


def test_no_answer_is_a_timeout_and_an_end_is_none() -> None:
    """A silent side and an ended one are told apart."""
    ours, theirs = socket.socketpair()
    channel = wire.Channel(ours, "the other side")
    with pytest.raises(TimeoutError, match="no answer from the other side"):
        channel.ask({}, timeout_s=0.01)
    theirs.close()
    assert channel.ask({}, timeout_s=20) is None
    channel.close()


def test_noise_is_noticed() -> None:
    """Bytes that are no frame are an error, not an endless wait."""
    ours, theirs = socket.socketpair()
    channel = wire.Channel(ours, "the other side")
    theirs.sendall(b"\xff" * 64)
    with pytest.raises(LabError, match="the other side sent noise"):
        channel.next(time.monotonic() + 20)
    theirs.close()
    channel.close()


def test_a_socket_is_handed_over_behind_a_message() -> None:
    """It works on the other side, and the message before it is not read past."""
    (a, b), (given_away, kept) = socket.socketpair(), socket.socketpair()
    wire.send(a, {"socket": "follows"})
    wire.send_socket(a, given_away)
    given_away.close()
    assert wire.receive(b) == {"socket": "follows"}
    with wire.receive_socket(b) as taken:
        taken.sendall(b"hello")
        assert kept.recv(5) == b"hello"
    for each in (a, b, kept):
        each.close()


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.integers(1, 9))
def test_lines_come_out_as_they_went_in(lines: list[bytes], step: int) -> None:
    """However the bytes are cut on the way."""
    data = b"".join(line + b"\n" for line in lines) + b"rest"
    cutter = wire.Lines()
    got = [line for at in range(0, len(data), step) for line in cutter.feed(data[at : at + step])]
    assert (got, cutter.rest, cutter.too_large) == (lines, b"rest", False)


def test_a_line_that_is_too_long_ends_it() -> None:
    """Nothing is kept of it, and nothing after it is read."""
    cutter = wire.Lines(limit_bytes=10)
    assert cutter.feed(b"short\nlong, too long") == [b"short"]
    assert cutter.too_large
    assert (cutter.feed(b"\nnext\n"), cutter.rest) == ([], b"")


@pytest.mark.parametrize("beyond_bytes", [-100_000, -40, -20, -16, -1, 0, 100_000])
def test_a_socket_is_handed_over_when_there_is_room(beyond_bytes: int) -> None:
    """Behind a message of any size, also one that fills the buffer to the last byte."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - its name says it
    room_bytes = ours.send(bytes(1 << 22))
    ours.close()
    theirs.close()
    ours, theirs = socket.socketpair()
    given, other = socket.socketpair()

    def answer() -> None:
        message = wire.receive(theirs)
        with wire.receive_socket(theirs):
            wire.send(theirs, {"heard": len((message or {})["text"])})

    text = "x" * max(0, room_bytes + beyond_bytes)
    channel = wire.Channel(ours, "a test")
    timer = threading.Timer(0.05, answer)
    timer.start()
    try:
        assert channel.ask({"text": text}, given=given, timeout_s=10) == {"heard": len(text)}
    finally:
        timer.join()
        channel.close()
        for each in (theirs, given, other):
            each.close()
