"""The secret: read from a descriptor, one seed per exercise, a seal that only its holder can make."""

from __future__ import annotations

import os

import pytest

from crashcourse.grading import secret
from crashlab.errors import UsageError


def piped(data: bytes) -> int:
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    return reader


def test_it_comes_through_a_descriptor_once() -> None:
    """Read to its end, and closed: no child inherits it."""
    descriptor = piped(b"hello\n")
    assert secret.read(descriptor) == b"hello"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize("data", [b"", b"\n", b"x" * 5000])
def test_nothing_and_too_much_are_refused(data: bytes) -> None:
    """An empty secret is one that everybody knows."""
    with pytest.raises(UsageError, match="expected 1 to 4096 bytes"):
        secret.read(piped(data))


def test_a_descriptor_that_is_not_open_is_told() -> None:
    """With the shell's way to open it."""
    with pytest.raises(UsageError, match="3< SECRET"):
        secret.read(10_000)


def test_seeds_are_stable_and_their_own() -> None:
    """The same secret and exercise: the same seed; another of either: another."""
    assert secret.seed(b"a", "x") == secret.seed(b"a", "x")
    assert len({secret.seed(b"a", "x"), secret.seed(b"a", "y"), secret.seed(b"b", "x")}) == 3
    assert secret.seal(b"a", "ann", b"x") != secret.seal(b"a", "bob", b"x")
