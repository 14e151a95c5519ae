"""What a worker is asked for a crash state: where the state is found, and the steps of its recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.subject import Commands

if TYPE_CHECKING:
    from crashlab.crash.states import CrashState
    from crashlab.demands import Reference


def request(state: CrashState, reference: Reference, *, timeout_s: float, together: bool = False) -> dict[str, Any]:
    """What a worker is asked for one state: all steps, each in its own process unless ``together``.

    Of a command only the small process that starts it is shared; itself it is always a new one.
    """
    asked = {**addressed(state, reference), "steps": _steps(reference), "timeout_s": timeout_s}
    if together and reference.kind == Commands.kind:
        return {**asked, "steps": [{**asked["steps"][0], "again": True}]}
    return {**asked, "warm": True} if together else asked


def live_request(name: str, state: CrashState, reference: Reference, *, timeout_s: float) -> dict[str, Any]:
    """The same for a state that a live run has left, and that no recipe leads to: it travels as its tree."""
    return {"state": name, "done": 0, **met(state), "steps": _steps(reference), "timeout_s": timeout_s}


def _steps(reference: Reference) -> list[dict[str, Any]]:
    """A program resumes twice; a store or a log takes one more value the second time, and is asked for it then."""
    steps = ["first", "second"] if reference.program else ["first", "second", "third"]
    return [{"step": step, "nothing": reference.nothing.get("error")} for step in steps]


def addressed(state: CrashState, reference: Reference) -> dict[str, Any]:
    """What a worker needs to find a state: its recipe, or the tree where it has none."""
    if state.within is not None:
        return {"state": state.id, "done": 0, **met(state)}
    if state.fault == "power" and state.recipe is None:
        return {"state": state.id, "tree": state.tree.to_json(), "done": state.done}
    return {"state": state.id, "profile": state.profile or None, "rebuilt": reference.rebuilt}


def met(state: CrashState) -> dict[str, Any]:
    """What a recovery meets: the tree, the effects done before and the values acked."""
    effects, acked = [t.op_to_json(op) for op in state.effects], [op.value for op in state.acks]
    return {"tree": state.tree.to_json(), "effects": effects, "acked": acked}
