"""Tests of longrun.transcript_text: what is kept from one save to the next never changes what is written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from longrun import transcript_text as kept
from longrun.messages import canonical, user
from longrun.transcript_text import RUNS_KEPT, transcript_text

if TYPE_CHECKING:
    import pytest


def plain(messages: list[Any]) -> bytes:
    """The text without anything kept."""
    return ",".join(canonical(message) for message in messages).encode()


POOL = [user(text) for text in ("", "go", "é\n", "go", "x" * 5_000)]


@given(st.lists(st.lists(st.sampled_from(POOL), max_size=6), max_size=12))
def test_any_order_of_transcripts_gives_their_plain_texts(transcripts: list[list[Any]]) -> None:
    """Longer, shorter, with another end, of another run: always the text that it has by itself."""
    for messages in transcripts:
        assert transcript_text(messages) == plain(messages)


def test_an_equal_message_of_another_identity_is_made_into_text_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the very same objects are taken as they stand; what is new is made into text once."""
    made: list[Any] = []

    def counted(message: Any) -> str:
        made.append(message)
        return canonical(message)

    monkeypatch.setattr(kept, "canonical", counted)
    first, second, third = (user(text) for text in ("a", "b", "c"))
    transcript_text([first, second])
    assert made == [first, second]
    transcript_text([first, second, third])
    assert made[2:] == [third]
    transcript_text([first, second])
    assert len(made) == 3
    transcript_text([first, dict(second), third])
    assert made[3:] == [second, third]
    assert transcript_text([first, user("z")]) == plain([first, user("z")])


def test_a_number_used_again_for_another_object_is_not_mistaken() -> None:
    """The key of a run is the identity of its first message: it is held for as long as its text is kept."""
    for number in range(200):
        messages = [user(f"task {number}")]
        assert transcript_text(messages) == plain(messages)


def test_few_runs_are_kept() -> None:
    """However many runs a process saves, no more than the stated number of texts stays."""
    for number in range(5 * RUNS_KEPT):
        transcript_text([user(f"task {number}")])
    assert len(kept._kept) <= RUNS_KEPT


def test_runs_of_several_threads_do_not_mix() -> None:
    """Each gets the text of its own messages."""
    runs = [[user(f"task {number}"), *(user(f"{number}/{turn}") for turn in range(60))] for number in range(8)]

    def save_all(messages: list[Any]) -> bool:
        return all(transcript_text(messages[:size]) == plain(messages[:size]) for size in range(len(messages)))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(save_all, runs))
