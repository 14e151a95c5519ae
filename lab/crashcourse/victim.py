"""``python -m crashcourse.victim``: a run of an agent in a process that may be killed, and the parent that outlives it.

The parent forks the agent and waits, as a shell does: a child that was killed by signal 9 becomes exit status
137. Neither a test nor the kernel of a notebook is in danger, since what dies is their child's child. The death is a
SIGKILL, at a place that has a name:

* ``turn5.request+``: the server has answered, and nobody has kept the answer yet
* ``turn5.A+``, ``turn5.tool1.S+``, ``turn5.tool1.ledger+``: just after that save or record was durable
* ``turn5.tool1.effect-``, ``turn5.tool1.effect+``: just before and just after that act on the world
* ``turn5.request.draft1+``, ``turn5.request.named1+``: after that request, just before and just after the first new
  file got its name

The folder holds the agent's directory ``agent``, the world's own record ``world.jsonl``, the server's tally
``requests.log`` and the places that were reached, ``places.log``. Just before it dies the agent says in
``memory.json`` what it knew: in life nobody hears that.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import json
import os
import signal
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longrun.caps import Caps
from longrun.errors import LongrunError
from longrun.fake_api import FakeApi
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.knobs import Knobs
from longrun.ledger import Ledger
from longrun.loop import Agent
from longrun.messages import tool_uses
from longrun.rewind import timelines
from longrun.rewind.subjects import Ways
from longrun.rewind.timelines import Goal
from longrun.tools import POISON, TOOLS
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longrun.messages import Block
    from longrun.protocol import Checkpoint

AGENT_NAME, WORLD_NAME, REQUESTS_NAME = "agent", "world.jsonl", "requests.log"
MEMORY_NAME, PLACES_NAME = "memory.json", "places.log"
KILLED = 128 + signal.SIGKILL
FAILED = 2
POISONED_TURN = 7
COMMANDS = ("start", "resume", "rewind", "fork")


@dataclass
class Places:
    """Where a run stands, by name; at ``deadly`` this process dies. ``agent`` is the one that says what it knew.

    At ``full`` the disk has no room for the next record of the ledger, once. At ``held`` the process is stopped, alive
    and with all that it holds, until somebody lets it go on.
    """

    deadly: str
    full: str
    held: str
    folder: Path
    agent: Agent | None = None
    last: str = "start"
    drafts: int = 0

    def drafted(self) -> None:
        """A file is written whole, and has not its name yet."""
        self.drafts += 1
        self._at(f"{self.last}.draft{self.drafts}+")

    def named(self) -> None:
        """It has its name, and nothing more was done."""
        self._at(f"{self.last}.named{self.drafts}+")

    def reached(self, place: str) -> None:
        """Go past this place, if that is granted."""
        self.last, self.drafts = place[:-1], 0
        self._at(place)

    def _at(self, place: str) -> None:
        append(self.folder / PLACES_NAME, place)
        if place == self.full:
            _fill_the_disk()
        if place == self.held:
            os.kill(os.getpid(), signal.SIGSTOP)
        if place != self.deadly:
            return
        (self.folder / MEMORY_NAME).write_text(json.dumps(_known(self.agent)))
        os.kill(os.getpid(), signal.SIGKILL)


def _watch_names(places: Places) -> None:
    """Have ``places`` told before and after any file gets a name by link or rename."""
    for name in ("link", "rename"):
        real = getattr(os, name)

        def told(*given: Any, real: Callable[..., None] = real) -> None:
            places.drafted()
            real(*given)
            places.named()

        setattr(os, name, told)


def _fill_the_disk() -> None:
    """The next record that a ledger writes meets a full disk; those after it find room again."""
    write = vars(Ledger)["_write"]

    def full(_ledger: Ledger, _line: bytes) -> None:
        setattr(Ledger, "_write", write)  # noqa: B010 - mypy takes an assignment to a method for a mistake
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    setattr(Ledger, "_write", full)  # noqa: B010 - as above


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


def _capped(cap: Any, caps: Caps) -> Any:
    """These caps; a design with its own way to hold them keeps that way, which may be its fault."""
    return replace(cap, caps=caps) if hasattr(cap, "caps") else caps


def ways_of(module: str) -> Ways:
    """What stands in a module: a harness that keeps points and how it goes back, or a harness alone."""
    found = importlib.import_module(module)
    ways: Ways = found.WAYS if hasattr(found, "WAYS") else Ways(harness=found.HARNESS)
    return ways


def build(folder: Path, given: argparse.Namespace) -> Agent:
    """The agent, in its world, at its server; it dies at ``given.kill_at``."""
    places = Places(given.kill_at, given.full_at, given.second_at, folder)
    knobs = {POISONED_TURN: Knobs(poison=True, times=None)} if given.poison else {}
    server = Server(persona=given.persona, places=places, tally=folder / REQUESTS_NAME, knobs=knobs)
    _watch_names(places)
    world = World(Outside(folder / WORLD_NAME, server), make_inbox(body_bytes=SHORT_BODY_BYTES))
    directory = folder / AGENT_NAME
    if given.line:
        directory = timelines.place_of(directory, given.line)

    def told(place: str, _value: dict[str, int]) -> None:
        places.reached(f"{place}+")

    harness = ways_of(given.module).harness
    if given.turns:
        harness = replace(harness, cap=_capped(harness.cap, Caps(turns=given.turns)))
    tools = {**TOOLS, POISON.name: POISON} if given.poison else TOOLS
    places.agent = agent = Agent(directory, harness, server, world, told, tools=tools)
    return agent


def run(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """How it ended: the status and counters, or the error that the agent raised."""
    agent = build(folder, given)
    try:
        last = _done(agent, given)
    except (LongrunError, OSError) as error:
        return {"error": type(error).__name__, "text": str(error).replace(str(folder), "").strip("/")}
    return {
        "status": last.status,
        "turns": last.turns,
        "tokens": last.tokens_used,
        "requests": last.requests_started,
        "unknown": [name for name, _ in agent.unknown()] if given.command in ("start", "resume") else [],
    }


def _done(agent: Agent, given: argparse.Namespace) -> Checkpoint:
    """The checkpoint with which the command ends."""
    ways = ways_of(given.module)
    match given.command:
        case "start":
            return agent.start()
        case "rewind":
            copy = ways.rewind(ways.harness, agent.directory, Goal(turn=given.turn))
            return agent.resume() if given.go_on else copy
        case "fork":
            place = ways.fork(ways.harness, agent.directory, given.name, Goal(turn=given.turn))
            return ways.line(place)[0]
    return agent.resume()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="crashcourse.victim", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("module", help="where the HARNESS is, such as longrun.memory.naive_notes")
    parser.add_argument("--kill-at", default="", help="the place at which it dies")
    parser.add_argument("--full-at", default="", help="the place from which the next record finds no room")
    parser.add_argument("--second-at", default="", help="the place at which a second owner resumes, and this one waits")
    parser.add_argument("--poison", action="store_true", help="the model names a call that kills its process")
    parser.add_argument("--turns", type=int, default=0, help="the cap on turns, if not the harness's own")
    parser.add_argument("--line", default="", help="the fork that is resumed, instead of the run")
    parser.add_argument("--turn", type=int, default=0, help="where a rewind or a fork goes back to")
    parser.add_argument("--go-on", action="store_true", help="run on in the process that went back")
    parser.add_argument("--name", default="", help="what a fork is called")
    parser.add_argument("--persona", default="careful")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent in a child; its end on stdout as JSON, and the status that a shell would show."""
    given = _parser().parse_args(arguments)
    (given.folder / AGENT_NAME).mkdir(parents=True, exist_ok=True)
    child = _forked(given)
    _, status = os.waitpid(child, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        second = _forked(argparse.Namespace(**{**vars(given), "command": "resume", "second_at": ""}))
        os.waitpid(second, 0)
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, 0)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _forked(given: argparse.Namespace) -> int:
    """The process in which an agent runs; it says how it ended in one line."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        end = run(given.folder, given)
        os.write(1, json.dumps(end).encode() + b"\n")
        status = FAILED if "error" in end else 0
    finally:
        os._exit(status)  # nothing that the parent registered for its own end may run here


if __name__ == "__main__":
    sys.exit(main())
