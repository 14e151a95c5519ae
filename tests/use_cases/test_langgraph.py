"""Case 4 in a framework: LangGraph resumes at a node, which is not the same as doing its act once."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Policy, Subject
from tests.crashlab.here import needs_strace
from tests.use_cases import tickets
from tests.use_cases.cases import kinds, passes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_HERE = importlib.util.find_spec("langgraph") and importlib.util.find_spec("langgraph.checkpoint.sqlite")
pytestmark = [
    pytest.mark.skipif(not _HERE, reason="langgraph is not here: pip install crashlab[langgraph]"),
    needs_strace,
]


def booking(run: Callable[..., Any]) -> Subject:
    """Importing LangGraph takes longer than most recoveries do."""
    return Subject(run, timeout_s=60)


def test_a_graph_whose_acts_have_keys_passes(tmp_path: Path) -> None:
    """Resumed at any point, it books once."""
    report = passes(booking(tickets.book), tmp_path, faults="kill")
    assert report.trace.effects == len(tickets.STEPS)


def test_a_graph_whose_acts_have_no_key_acts_twice(tmp_path: Path) -> None:
    """The checkpoint comes after the node, and the act within."""
    assert "kill duplicate-effect" in kinds(booking(tickets.book_again), tmp_path, faults="kill")


def test_a_graph_that_may_act_twice_never_forgets_to(tmp_path: Path) -> None:
    """What the framework promises, at least once, holds."""
    policy = {"kill": Policy(effects="at-least-once")}
    passes(booking(tickets.book_again), tmp_path, faults="kill", policy=policy)


def test_a_graph_that_is_done_when_nothing_comes_next_forgets_an_act(tmp_path: Path) -> None:
    """``next`` is empty at the end, and for a moment behind each node."""
    assert "kill missing-effect" in kinds(booking(tickets.book_as_next_says), tmp_path, faults="kill")
