"""A session on an event log whose process is killed for real, and looked at afterwards: what lesson 7 shows.

``python -m crashcourse.log_stage`` is that process. It dies by SIGKILL at a place that has a name:

* ``ask3``: the request is durable, and the model is about to be asked for the third time
* ``page_oncall-``, ``page_oncall+``: just before and just after the first act of that tool
* ``turn1.step5.tool2.call``, ``turn1.step5.tool2.result``, ``turn1.end``: just after that was promised, or durable

The folder holds the sessions, ``sessions``, and the world's own record, ``world.jsonl``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.stage import Ended, RunFailed, ended
from crashcourse.victim import FAILED, KILLED, WORLD_NAME
from longrun.errors import LongrunError
from longrun.eventlog.agent import LogAgent, asking
from longrun.eventlog.conduct import CONDUCT
from longrun.eventlog.levels.messages import MessageList
from longrun.eventlog.levels.tree import EntryTree
from longrun.eventlog.levels.triage import triage
from longrun.eventlog.opening import Opening, inspect, open_log
from longrun.eventlog.project import effects
from longrun.eventlog.segments import MARK_NAME, segment_path, session_directory
from longrun.fake_api import FakeApi
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.loop import TASK
from longrun.tools import TOOLS
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longrun.eventlog.conduct import Conduct
    from longrun.eventlog.opening import Inspection
    from longrun.personas import Persona

SESSION, SESSIONS_NAME = "s", "sessions"
LEVELS: dict[str, Callable[[Path], MessageList | EntryTree]] = {"messages": MessageList, "tree": EntryTree}
"""What may stand in the place of a module: the two simpler ways to keep a session."""


def conduct_of(module: str) -> Conduct:
    """The conduct that a module holds, or the correct one on the log that it designs."""
    held = importlib.import_module(module)
    found: Conduct = getattr(held, "CONDUCT", None) or replace(CONDUCT, design=held.DESIGN)
    return found


def world_in(folder: Path) -> World:
    """The world of a stage: it outlives every process."""
    return World(FileOutside(folder / WORLD_NAME), make_inbox(body_bytes=SHORT_BODY_BYTES))


@dataclass(frozen=True)
class LogStage:
    """One session's place. ``module`` holds a CONDUCT, or a DESIGN, of the event log, or is one of LEVELS.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stage = LogStage(Path(folder))
    ...     stage.run(kill_at="ask2").exit, stage.types()[-3:], stage.run().said["status"]
    (137, ['tool/call', 'tool/result', 'model/call'], 'completed')
    """

    folder: Path
    module: str = "longrun.eventlog.conduct"
    persona: Persona = "hasty"

    def run(self, kill_at: str = "", writer: str = "w") -> Ended:
        """Open the session, and work in a process of its own to the end, or to ``kill_at``. Raises RunFailed."""
        given = [str(self.folder), self.module, "--persona", self.persona, "--writer", writer, "--kill-at", kill_at]
        output, errors, status = ended([sys.executable, "-m", "crashcourse.log_stage", *given])
        status = KILLED if status == -signal.SIGKILL else status
        if (status == KILLED) != bool(kill_at) or status not in (0, FAILED, KILLED) or (status == FAILED and errors):
            text = f"{self.module}, kill_at={kill_at!r}: exit {status}\n"
            raise RunFailed(text + errors)
        return Ended(status, json.loads(output) if output else {})

    def copy(self, folder: Path, module: str = "") -> LogStage:
        """Another stage that begins with all that lies here, and goes on as ``module`` does."""
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder, module=module or self.module)

    @property
    def root(self) -> Path:
        """Where the session's folder lies."""
        return self.folder / SESSIONS_NAME

    @property
    def path(self) -> Path:
        """The file with the records."""
        return segment_path(session_directory(self.root, SESSION), 0)

    @property
    def mark(self) -> Path:
        """The file with the promise."""
        return session_directory(self.root, SESSION) / MARK_NAME

    def found(self) -> Inspection:
        """What is there, and what an opening would add. Nothing is changed. Raises LogDamaged and LogUnsupported."""
        ask = asking(world_in(self.folder), TOOLS)
        return inspect(self.root, SESSION, Opening(design=conduct_of(self.module).design, ask=ask))

    def types(self) -> list[str]:
        """The types of all records, in order."""
        return [record.type for record in self.found().records]

    def world(self) -> dict[str, Any]:
        """What stands in the world: labels, cases, replies, pages and the report."""
        return world_in(self.folder).view()


# --- the process that is killed ------------------------------------------------------------------------


class _Deadly:
    """The model and the world, as a process reaches them that dies at one place."""

    def __init__(self, api: FakeApi, outside: FileOutside, place: str) -> None:
        self._api, self._outside, self._place = api, outside, place
        self._asked = 0
        self._done: Counter[str] = Counter()

    def reached(self, place: str, _promised: object = None) -> None:
        """Die here, or go on."""
        if place == self._place:
            os.kill(os.getpid(), signal.SIGKILL)

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The model."""
        self._asked += 1
        self.reached(f"ask{self._asked}")
        return self._api.reply(request)

    def records(self, name: str | None = None) -> Any:
        """What was done to the world."""
        return self._outside.records(name)

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """Do something to it."""
        self.reached(f"{name}-")
        receipt = self._outside.effect(name, key=key, **detail)
        self.reached(f"{name}+")
        return receipt


def _work(given: argparse.Namespace) -> dict[str, Any]:
    api, real = FakeApi(given.persona), world_in(given.folder)
    assert isinstance(real.outside, FileOutside), "it was just made"
    deadly = _Deadly(api, real.outside, given.kill_at)
    world = replace(real, outside=deadly)
    if given.module in LEVELS:
        store = LEVELS[given.module](given.folder / SESSIONS_NAME)
        unknown = triage(store, deadly, world, TASK)
        return {"status": "completed", "unknown": unknown, "records": len(store.history())}
    conduct = conduct_of(given.module)
    opening = Opening(design=conduct.design, ask=asking(world, TOOLS), writer=given.writer, clock=lambda: 0)
    with open_log(given.folder / SESSIONS_NAME, SESSION, opening) as log:
        status = LogAgent(log, deadly, world, conduct=conduct, told=deadly.reached).triage(TASK)
        unknown = [act.name for act in effects(log.records) if act.outcome == "unknown" and act.policy == "ask"]
        return {"status": status, "unknown": unknown, "records": len(log.records)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry the session to its end, or die; say on stdout how it ended."""
    parser = argparse.ArgumentParser(prog="python -m crashcourse.log_stage", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("module")
    for name in ("persona", "writer", "kill-at"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args(arguments)
    (given.folder / SESSIONS_NAME).mkdir(parents=True, exist_ok=True)
    try:
        said, status = _work(given), 0
    except LongrunError as error:
        said, status = {"error": type(error).__name__, "text": str(error)}, FAILED
    sys.stdout.write(json.dumps(said))
    return status


if __name__ == "__main__":
    sys.exit(main())
