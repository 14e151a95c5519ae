"""Case 4 again, a LangGraph graph whose nodes act on the outside, with its checkpoints in SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any, TypedDict

THREAD = {"configurable": {"thread_id": "booking"}}
STEPS = ("reserve", "pay", "confirm")


class Booking(TypedDict, total=False):
    """What the nodes hand on."""

    reserve: str
    pay: str
    confirm: str


def _graph(lab: Any, *, keyed: bool) -> Any:
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - of an extra of its own
    from langgraph.graph import END, START, StateGraph  # noqa: PLC0415 - the same

    def node(step: str) -> Any:
        return lambda _: {step: bool(lab.effect(step, key=f"booking/{step}" if keyed else None))}

    builder = StateGraph(Booking)
    for before, step in zip((START, *STEPS), STEPS, strict=False):
        builder.add_node(step, node(step))
        builder.add_edge(before, step)
    builder.add_edge(STEPS[-1], END)
    connection = sqlite3.connect(lab.dir / "graph.sqlite3", check_same_thread=False)
    return builder.compile(checkpointer=SqliteSaver(connection))


def _book(lab: Any, *, keyed: bool) -> Any:
    """Begins, or goes on wherever there is a checkpoint; going on at the end changes nothing."""
    graph = _graph(lab, keyed=keyed)
    begun = graph.get_state(THREAD).created_at is not None
    graph.invoke(None if begun else {}, THREAD, durability="sync")
    return graph.get_state(THREAD).values


def book(lab: Any) -> Any:
    """Each act has a key, so the node that was killed behind it may run again."""
    return _book(lab, keyed=True)


def book_again(lab: Any) -> Any:
    """Wrong: a node that was killed behind its act acts again when the graph goes on."""
    return _book(lab, keyed=False)


def book_as_next_says(lab: Any) -> Any:
    """Wrong: takes a graph without a next node for one that is done.

    Measured with LangGraph 1.2: between the writes of a node and the checkpoint behind it, ``next`` is empty.
    """
    graph = _graph(lab, keyed=True)
    state = graph.get_state(THREAD)
    if state.created_at is not None and not state.next:
        return state.values
    graph.invoke(None if state.next else {}, THREAD, durability="sync")
    return graph.get_state(THREAD).values
