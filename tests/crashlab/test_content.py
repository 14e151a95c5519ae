"""The bytes of a file: every change gives what a plain bytearray gives, and equal bytes have equal digests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.content import BLOCK_BYTES, EMPTY, SIZE_LIMIT_BYTES, Content
from crashlab.errors import LabError

offsets = st.one_of(st.integers(0, 3 * BLOCK_BYTES), st.sampled_from((0, 1, 4095, 4096, 4097, 8191, 8192)))
lengths = st.sampled_from((0, 1, 2, 4095, 4096, 4097, 9000))
changes = st.lists(
    st.one_of(
        st.tuples(st.just("write"), offsets, lengths, st.integers(0, 255)),
        st.tuples(st.just("truncate"), offsets, st.just(0), st.just(0)),
    ),
    max_size=12,
)


def change(content: Content, plain: bytearray, step: tuple[str, int, int, int]) -> Content:
    """One change to both."""
    kind, offset, length, byte = step
    if kind == "truncate":
        plain.extend(bytes(max(0, offset - len(plain))))
        del plain[offset:]
        return content.truncate(offset)
    data = bytes([byte]) * length
    if data:
        plain.extend(bytes(max(0, offset - len(plain))))
        plain[offset : offset + length] = data
    return content.write(offset, data)


@given(changes)
def test_random_changes_give_the_plain_bytes(steps: list[tuple[str, int, int, int]]) -> None:
    """Bytes and size are those of a bytearray after every change, and the versions before are untouched."""
    content, plain = EMPTY, bytearray()
    versions = []
    for step in steps:
        versions.append((content, bytes(plain)))
        content = change(content, plain, step)
        assert content.read() == plain
        assert content.size == len(plain)
    for version, then in versions:
        assert version.read() == then


@given(changes)
def test_equal_bytes_have_equal_digests_whatever_their_history(steps: list[tuple[str, int, int, int]]) -> None:
    """However the bytes came about, contents and digest are those of the same bytes written at once."""
    content, plain = EMPTY, bytearray()
    for step in steps:
        content = change(content, plain, step)
    assert content == Content.of(bytes(plain))
    assert content.digest == Content.of(bytes(plain)).digest


@given(st.binary(max_size=9000), st.integers(0, 9000), st.integers(1, 255))
def test_one_other_byte_is_another_digest(data: bytes, place: int, change: int) -> None:
    """A flipped byte anywhere, or one byte more, changes the digest."""
    content = Content.of(data)
    assert content.digest != Content.of(data + b"\0").digest
    if place < len(data):
        other = content.write(place, bytes([data[place] ^ change]))
        assert other.digest != content.digest


def test_blocks_that_change_places_are_another_digest() -> None:
    """The digest knows where a block lies, though it is a sum."""
    one, two = b"1" * BLOCK_BYTES, b"2" * BLOCK_BYTES
    assert Content.of(one + two).digest != Content.of(two + one).digest


def test_untouched_blocks_are_shared() -> None:
    """A write of one byte into a large file copies one block."""
    before = Content.of(bytes(100 * BLOCK_BYTES))
    after = before.write(50 * BLOCK_BYTES, b"x")
    assert sum(a is not b for a, b in zip(before.blocks, after.blocks, strict=True)) == 1


def test_a_hole_reads_as_zeros_and_equals_written_zeros() -> None:
    """No read can tell a hole from zeros, so they are one content."""
    assert Content.of(b"a").write(9000, b"b") == Content.of(b"a" + bytes(8999) + b"b")


def test_growing_again_after_a_cut_shows_zeros() -> None:
    """What a truncation cut away does not come back."""
    assert Content.of(b"secret" * 1000).truncate(3).truncate(6000).read() == b"sec" + bytes(5997)


@pytest.mark.parametrize("make", [lambda: EMPTY.truncate(SIZE_LIMIT_BYTES + 1), lambda: EMPTY.write(1 << 40, b"x")])
def test_a_size_beyond_reason_is_refused(make: object) -> None:
    """A file larger than the lab can hold is an error that says so, not a full memory."""
    assert callable(make)
    with pytest.raises(LabError, match="larger than the lab models"):
        make()
