"""The agent of the course, made to take the way back that somebody has chosen for one directory.

Its run is the correct one. Its resume looks the directory up in a plan, by what lies in it, and does there what the
plan says; anywhere else it is the correct one, too. So a choice is not compared with an answer: it is done, and judged.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longrun.errors import Damaged
from longrun.ledger import LEDGER_NAME
from longrun.loop import UNKNOWN_TEXT
from longrun.messages import normalised, tool_result
from longrun.protocol import CHECKPOINT_NAME
from longrun.resume import naive_reset_on_error
from longrun.resume.reconcile import Decision
from longrun.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crashlab.lab import Lab
    from longrun.loop import Agent
    from longrun.messages import Block
    from longrun.protocol import Checkpoint
    from longrun.subjects import Description

End = dict[str, Any]
BRANCHES = ("continue", "run", "reuse", "unknown", "refuse", "end")
OF_A_CALL = ("run", "reuse", "unknown")
"""What can be done with a call that is open."""
FILES = (CHECKPOINT_NAME, LEDGER_NAME)
_DECISIONS = {"run": Decision.RUN, "reuse": Decision.REUSE, "unknown": Decision.RECORD_UNKNOWN}


def signature(contents: Iterable[bytes]) -> str:
    """What a directory is known by: the bytes of its :data:`FILES`, nothing for one that is not there."""
    whole = hashlib.sha256()
    for data in contents:
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()


@dataclass(frozen=True)
class Forced:
    """The agent of ``description``. The file ``plan`` maps signatures to a branch and the number of a call, from 1."""

    description: Description
    plan: str

    def run(self, lab: Lab) -> End:
        """The run as it should be."""
        return self.description.run(lab)

    def resume(self, lab: Lab) -> End:
        """The way back that the plan has for what lies there, or the right one."""
        paths = (lab.dir / name for name in FILES)
        here = signature(path.read_bytes() if path.exists() else b"" for path in paths)
        branch, number = json.loads(Path(self.plan).read_text()).get(here, ("", 0))
        usual = self.description.harness
        try:
            saved = usual.load(lab.dir)
        except Damaged:
            if branch in ("", "refuse"):
                raise
            return self._with(load=naive_reset_on_error.load).resume(lab)  # all other ways go on with something
        match branch:
            case "":
                return self.description.resume(lab)
            case "refuse":
                raise Damaged(lab.dir / CHECKPOINT_NAME, "refused, as the plan has it")
            case "end":
                return self._as_it_lies(lab, saved)
            case "continue":
                return self._with(load=partial(_without_open_calls, saved)).resume(lab)
            case _:
                return self._with(reconcile=partial(_answer_open_calls, branch, number)).resume(lab)

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the end is right."""
        self.description.check(lab, end)

    def _with(self, **pieces: Any) -> Description:
        return replace(self.description, harness=replace(self.description.harness, **pieces))

    def _as_it_lies(self, lab: Lab, saved: Checkpoint | None) -> End:
        counted = dict.fromkeys((f"{name}_not_counted" for name in ("requests", "tokens", "turns")), 0)
        return {
            "status": saved.status if saved else "nothing is saved",
            "world": World(lab, self.description.inbox).view(),
            "transcript": normalised(saved.messages) if saved else [],
            "unknown": [],
            "refusals": [],
            **counted,
            "requests_after_end": 0,
        }


def _without_open_calls(saved: Checkpoint | None, _directory: Path) -> Checkpoint | None:
    """A checkpoint as one from which the model can be asked at once."""
    return saved and replace(saved, status="running", end=None, pending_tool_use=())


def _answer_open_calls(branch: str, number: int, agent: Agent) -> None:
    """All open calls are answered as they should be, but for the one of that number."""
    calls = agent.state.pending_tool_use
    if calls:
        agent.harness.close(agent, [_answer(agent, at, branch if at + 1 == number else "") for at in range(len(calls))])


def _answer(agent: Agent, at: int, branch: str) -> Block:
    if not branch:
        return agent.answer(at)
    call, usual = agent.state.pending_tool_use[at], agent.harness
    if branch == "unknown" and call.key is None:  # no ledger has a line for a read
        return tool_result(call.id, UNKNOWN_TEXT, is_error=True)
    agent.harness = replace(usual, decide=lambda _evidence: _DECISIONS[branch])
    try:
        return agent.answer(at)
    finally:
        agent.harness = usual
