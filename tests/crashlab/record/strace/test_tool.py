"""Finding strace: absent, too old, forbidden, and one that works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab.errors import ToolMissing, UsageError
from crashlab.record.strace.tool import available

if TYPE_CHECKING:
    from pathlib import Path


def fake(place: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a strace of our own before every other."""
    path = place / "strace"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")


def test_no_strace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match=r"strace 5\.3 or newer is not installed.*apt install strace") as raised:
        available()
    assert "apt install strace" in raised.value.next
    assert isinstance(raised.value, UsageError)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo 'strace -- version 4.26'", r"is version 4\.26; 5\.3 or newer is needed"),
        ("echo 'strace -- version 5.2'", r"is version 5\.2;"),
        ("echo hello", "does not tell its version"),
        (
            '[ "$1" = -V ] && echo "strace -- version 6.1" && exit; echo "ptrace: Operation not permitted" >&2; exit 1',
            r"cannot watch a process here: ptrace: Operation not permitted.*SYS_PTRACE",
        ),
        ('[ "$1" = -V ] && echo "strace -- version 6.1" && exit; exit 1', "exit code 1"),
    ],
)
def test_a_strace_that_will_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, text: str) -> None:
    """Too old, unreadable, or forbidden to trace: each in its own words."""
    fake(tmp_path, monkeypatch, script)
    with pytest.raises(ToolMissing, match=text):
        available()


def test_a_strace_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Path and version are told; from 6.3 on it can take its processes along."""
    fake(tmp_path, monkeypatch, '[ "$1" = -V ] && echo "strace -- version 6.3"; exit 0')
    tool = available()
    assert (tool.path, tool.version, tool.kills_on_exit) == (f"{tmp_path}/strace", (6, 3), True)
