"""``python -m crashcourse.victim``: a run of an agent in a process that may be killed, and the parent that outlives it.

The parent forks the agent and waits, as a shell does: a child that was killed by signal 9 becomes exit status
137. Neither a test nor the kernel of a notebook is in danger, since what dies is their child's child. The death is a
SIGKILL, at a place that has a name:

* ``turn5.request+``: the server has answered, and nobody has kept the answer yet
* ``turn5.A+``, ``turn5.tool1.S+``, ``turn5.tool1.ledger+``: just after that save or record was durable
* ``turn5.tool1.effect-``, ``turn5.tool1.effect+``: just before and just after that act on the world

The folder holds the agent's directory ``agent``, the world's own record ``world.jsonl``, the server's tally
``requests.log`` and the places that were reached, ``places.log``. Just before it dies the agent says in
``memory.json`` what it knew: in life nobody hears that.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longrun.errors import LongrunError
from longrun.fake_api import FakeApi
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.loop import Agent
from longrun.messages import tool_uses
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longrun.messages import Block

AGENT_NAME, WORLD_NAME, REQUESTS_NAME = "agent", "world.jsonl", "requests.log"
MEMORY_NAME, PLACES_NAME = "memory.json", "places.log"
KILLED = 128 + signal.SIGKILL
FAILED = 2
COMMANDS = ("start", "resume")


@dataclass
class Places:
    """Where a run stands, by name; at ``deadly`` this process dies. ``agent`` is the one that says what it knew."""

    deadly: str
    folder: Path
    agent: Agent | None = None

    def reached(self, place: str) -> None:
        """Go past this place, if that is granted."""
        append(self.folder / PLACES_NAME, place)
        if place != self.deadly:
            return
        (self.folder / MEMORY_NAME).write_text(json.dumps(_known(self.agent)))
        os.kill(os.getpid(), signal.SIGKILL)


def append(path: Path, line: str) -> None:
    """One line more, in the page cache when this returns: enough to outlive a process."""
    with path.open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def _known(agent: Agent | None) -> dict[str, Any]:
    state = getattr(agent, "state", None)
    if state is None:
        return {}
    return {
        "messages": len(state.messages),
        "turns": state.turns,
        "tokens": state.tokens_used,
        "open calls": [call.name for call in state.pending_tool_use],
    }


@dataclass(eq=False)
class Server(FakeApi):
    """The server, its tally in a file that no death of an agent touches; it tells which turn it has answered."""

    places: Places | None = None
    tally: Path = field(default_factory=Path)
    turn: int = 0
    calls: list[Block] = field(default_factory=list)

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer, counted before anyone hears it."""
        append(self.tally, "request")
        answer = super().reply(request)
        self.turn = 1 + sum(message["role"] == "assistant" for message in request["messages"])
        self.calls = list(tool_uses(answer))
        assert self.places is not None
        self.places.reached(f"turn{self.turn}.request+")
        return answer


class Outside(FileOutside):
    """The world's record, with a place before and after each act."""

    def __init__(self, path: Path, server: Server) -> None:
        super().__init__(path)
        self.server = server

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """Do it, unless the process dies before; its receipt, unless it dies after."""
        server, ticket = self.server, detail.get("ticket")
        named = [call["name"] == name and call["input"].get("ticket") == ticket for call in server.calls]
        place = f"turn{server.turn}.tool{named.index(True) + 1 if True in named else 0}.effect"
        assert server.places is not None
        server.places.reached(f"{place}-")
        receipt = super().effect(name, key=key, **detail)
        server.places.reached(f"{place}+")
        return receipt


def build(folder: Path, given: argparse.Namespace) -> Agent:
    """The agent, in its world, at its server; it dies at ``given.kill_at``."""
    places = Places(given.kill_at, folder)
    server = Server(persona=given.persona, places=places, tally=folder / REQUESTS_NAME)
    world = World(Outside(folder / WORLD_NAME, server), make_inbox(body_bytes=SHORT_BODY_BYTES))
    harness = importlib.import_module(given.module).HARNESS

    def told(place: str, _value: dict[str, int]) -> None:
        places.reached(f"{place}+")

    places.agent = agent = Agent(folder / AGENT_NAME, harness, server, world, told)
    return agent


def run(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """How it ended: the status and counters, or the error that the agent raised."""
    agent = build(folder, given)
    try:
        last = agent.start() if given.command == "start" else agent.resume()
    except LongrunError as error:
        return {"error": type(error).__name__, "text": str(error).replace(str(folder), "").strip("/")}
    return {
        "status": last.status,
        "turns": last.turns,
        "tokens": last.tokens_used,
        "requests": last.requests_started,
        "unknown": [name for name, _ in agent.unknown()],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="crashcourse.victim", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("module", help="where the HARNESS is, such as longrun.memory.naive_notes")
    parser.add_argument("--kill-at", default="", help="the place at which it dies")
    parser.add_argument("--persona", default="careful")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent in a child; its end on stdout as JSON, and the status that a shell would show."""
    given = _parser().parse_args(arguments)
    (given.folder / AGENT_NAME).mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            end = run(given.folder, given)
            os.write(1, json.dumps(end).encode())
            status = FAILED if "error" in end else 0
        finally:
            os._exit(status)  # nothing that the parent registered for its own end may run here
    _, status = os.waitpid(child, 0)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    sys.exit(main())
