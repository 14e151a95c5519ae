"""Progress on stderr: rewritten on a terminal, rare elsewhere, absent when nobody wants it."""

from __future__ import annotations

import io
import os
import shutil

import pytest

from crashlab.progress import Progress, is_terminal


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


class Clock:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """The time that was set."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """A clock at zero."""
    return Clock()


def test_a_plain_line_every_ten_seconds_where_there_is_no_terminal(clock: Clock) -> None:
    """Thirty calls in thirty seconds are three lines, none of them rewritten."""
    stream = io.StringIO()
    progress = Progress(stream, name="store", clock=clock)
    for second in range(1, 31):
        clock.now_s = float(second)
        progress("kill", second, 40)
    progress.close()
    assert stream.getvalue() == ("store: kill 10 of 40, 10 s\nstore: kill 20 of 40, 20 s\nstore: kill 30 of 40, 30 s\n")


def test_a_quick_check_leaves_no_trace_in_a_log(clock: Clock) -> None:
    """Nothing is written before the first ten seconds."""
    stream = io.StringIO()
    with Progress(stream, clock=clock) as progress:
        clock.now_s = 9.9
        progress("kill", 1, 2)
    assert stream.getvalue() == ""


def test_a_terminal_has_one_line_and_none_at_the_end(clock: Clock) -> None:
    """Each line begins by erasing the one before; the last thing is an erased line."""
    stream = Terminal()
    with Progress(stream, clock=clock) as progress:
        for step in range(1, 4):
            clock.now_s += 1
            progress("kill", step, 3)
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().split("\r\x1b[K") == ["", "kill 1 of 3, 1 s", "kill 2 of 3, 2 s", "kill 3 of 3, 3 s", ""]


def test_a_terminal_is_not_flooded_but_learns_of_a_new_phase_at_once(clock: Clock) -> None:
    """A thousand states in no time are one line; the next phase is not held back."""
    stream = Terminal()
    progress = Progress(stream, clock=clock)
    for step in range(1000):
        progress("kill", step, 1000)
    progress("real kills", 0, 8)
    assert stream.getvalue().split("\r\x1b[K") == ["", "kill 0 of 1,000, 0 s", "real kills 0 of 8, 0 s"]


def test_a_line_never_wraps(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapped line could not be erased; it is cut to the terminal."""
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((20, 5)))
    stream = Terminal()
    Progress(stream, name="a\nb" * 30, clock=clock)("kill", 1, 2)
    assert stream.getvalue() == "\r\x1b[K" + "a\\x0ab" * 3 + "a"


def test_quiet_is_silent(clock: Clock) -> None:
    """On a terminal and elsewhere."""
    for stream in (Terminal(), io.StringIO()):
        with Progress(stream, quiet=True, clock=clock) as progress:
            clock.now_s += 100
            progress("kill", 1, 2)
        assert stream.getvalue() == ""


def test_an_unknown_total_is_left_out(clock: Clock) -> None:
    """No "1 of 0"."""
    stream = Terminal()
    Progress(stream, clock=clock)("record", 0, 0)
    Progress(stream, clock=clock)("record", 1, 0)
    assert stream.getvalue() == "\r\x1b[Krecord, 0 s\r\x1b[Krecord 1, 0 s"


def test_a_dumb_terminal_is_none() -> None:
    """TERM=dumb cannot rewrite a line."""
    assert is_terminal(Terminal(), {})
    assert not is_terminal(Terminal(), {"TERM": "dumb"})
    assert not is_terminal(io.StringIO(), {})


def interrupted(stream: io.StringIO) -> None:
    """Progress up to an interrupt."""
    with Progress(stream, name="store", clock=lambda: 0.0) as progress:
        progress("kill", 7, 20)
        raise KeyboardInterrupt


def test_an_interrupt_says_what_was_reached() -> None:
    """The last amount stays on stderr, also where it was not yet due to be shown."""
    stream = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        interrupted(stream)
    assert stream.getvalue() == "store: kill 7 of 20, 0 s, then interrupted\n"
