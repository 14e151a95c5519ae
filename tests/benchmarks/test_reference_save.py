"""The arithmetic of the benchmark of the agent's save: what it compares is the same, and its medians are medians."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks import reference_save
from benchmarks.reference_save import Figures, Pair
from longrun.checkpoint import correct
from longrun.protocol import encode

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_ratios_are_those_within_a_pair() -> None:
    """A pair on a slow disk counts like one on a fast one; the median of the ratios is not the ratio of medians."""
    pairs = [Pair(2.0, 1.0, 1.0, 10), Pair(30.0, 10.0, 5.0, 20), Pair(400.0, 100.0, 0.0, 30)]
    found = Figures.of(7, pairs, first_s=5.0)
    assert (found.turns, found.size, found.save_s, found.raw_s, found.first_s) == (7, 20, 30.0, 10.0, 5.0)
    assert (found.ratio, found.over) == (3.0, 2.0)
    assert [pair.over for pair in pairs] == [1.0, 2.0, 4.0]


def test_a_run_changes_its_last_turn_and_shares_all_others() -> None:
    """Each save has new messages at its end and the very same objects before, as in a run under way."""
    states = list(reference_save.run_of(10, 4))
    assert len(states) == 4
    for state in states:
        assert sum(message["role"] == "assistant" for message in state.messages) == state.turns == 10
        assert len(encode(state)) == len(encode(states[0]))
    for one, next_one in pairwise(states):
        same = [mine is other for mine, other in zip(one.messages, next_one.messages, strict=True)]
        assert same == [True] * 19 + [False] * 2


def test_both_write_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand goes what the save has written, whoever of the two comes first, and each is synced."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    states = reference_save.run_of(3, 3)
    correct.save(tmp_path, next(states))
    for first, state in zip((True, False), states, strict=False):
        before = (tmp_path / "checkpoint.json").read_bytes()
        synced.clear()
        pair = reference_save._pair(tmp_path, state, save_first=first)
        now = (tmp_path / "checkpoint.json").read_bytes()
        assert now == encode(state) != before
        assert (tmp_path / "raw.json").read_bytes() == (now if first else before)
        assert pair.size == len(now) == len(before)
        assert len(synced) == 4, "file and directory, twice"
        assert min(pair.save_s, pair.raw_s, pair.checksum_s) > 0


def test_the_first_pairs_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first save stands alone, the next few are left out, and both orders come up equally often."""
    orders: list[bool] = []

    def pair(_directory: Path, state: object, *, save_first: bool) -> Pair:
        del state
        orders.append(save_first)
        slow = 1000.0 if len(orders) <= reference_save.FIRST_LEFT_OUT else 1.0
        return Pair(slow, 1.0, 0.0, 1)

    monkeypatch.setattr(reference_save, "_pair", pair)
    found = reference_save.measure(tmp_path, 2, pairs=4)
    assert found.save_s == 1.0
    assert orders == [False, True] * 4
    assert found.first_s > 0


def test_memory_is_told_in_multiples_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save that holds ten more copies is told to."""
    peak, kept = reference_save.memory(tmp_path, 10)
    plain = correct.save

    def hoard(directory: Path, state: object) -> None:
        copies = [encode(state) + b" " for _ in range(10)]  # type: ignore[arg-type]  # the bench gives checkpoints
        plain(directory, state)  # type: ignore[arg-type]  # the same
        del copies

    monkeypatch.setattr(correct, "save", hoard)
    more, kept_then = reference_save.memory(tmp_path, 10)
    assert more > peak + 9
    assert kept_then < kept + 1


def test_it_prints_a_line_for_each_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The head names a column for each figure; the folder is left empty."""
    monkeypatch.setattr(reference_save, "places", lambda: [("disk", tmp_path)])
    monkeypatch.setattr(reference_save, "TURNS", (1, 2))
    monkeypatch.setattr(reference_save, "PAIRS", 2)
    reference_save.main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [["on", "disk", "1"], ["on", "disk", "2"]]
    assert "ratio" in head
    assert all(len(line.split()) == 11 for line in lines)
    assert not any(tmp_path.iterdir())
