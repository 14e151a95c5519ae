"""A folder in which an agent is killed for real and looked at afterwards: what lessons and notebooks show.

Three things are told apart here, since a crash does: the files of the agent, which stay; what the process knew, which
dies; and the outside world with the server's bill, which nobody can take back.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crashcourse.victim import AGENT_NAME, KILLED, MEMORY_NAME, PLACES_NAME, REQUESTS_NAME, WORLD_NAME
from longrun.errors import LongrunError
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.lease import LOCK_NAME
from longrun.ledger import LEDGER_NAME
from longrun.protocol import CHECKPOINT_NAME
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.personas import Persona

TIMEOUT_S = 120.0
"""A run takes a third of a second; this is for machines that are very busy."""


class RunFailed(LongrunError):  # noqa: N818 - it names what failed
    """The process of a run ended in a way that no lesson provides for. The text is what it said on stderr."""


@dataclass(frozen=True)
class Ended:
    """How one process ended: the exit status that a shell shows, and what it said, nothing where it was killed."""

    exit: int
    said: dict[str, Any]

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.exit == KILLED


@dataclass(frozen=True)
class Desk:
    """One agent's place. ``module`` holds its HARNESS, for example ``longrun.memory.naive_notes``.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     desk = Desk(Path(folder), "longrun.memory.naive_memory_only")
    ...     desk.start(kill_at="turn4.tool1.effect+").exit, desk.files(), desk.world()["cases"]
    (137, {}, ['T-101'])
    """

    folder: Path
    module: str
    persona: Persona = "careful"

    def start(self, *, kill_at: str = "") -> Ended:
        """Run from the beginning, in a process that dies at ``kill_at``. Raises RunFailed where it did not."""
        return self._run("start", kill_at)

    def resume(self, *, kill_at: str = "") -> Ended:
        """Go on from what is there, in a new process. Raises RunFailed where it should die and did not."""
        return self._run("resume", kill_at)

    def _run(self, command: str, kill_at: str) -> Ended:
        given = [command, str(self.folder), self.module, "--persona", self.persona]
        done = subprocess.run(
            [sys.executable, "-m", "crashcourse.victim", *given, *(["--kill-at", kill_at] if kill_at else [])],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        if bool(kill_at) != (done.returncode == KILLED) or done.returncode == 1:
            text = f"{command} of {self.module}, to be killed at {kill_at or 'no place'}: exit {done.returncode}\n"
            raise RunFailed(text + done.stderr)
        return Ended(done.returncode, json.loads(done.stdout) if done.stdout else {})

    def copy(self, folder: Path, module: str = "") -> Desk:
        """Another desk that begins with all that lies here, and goes on with the harness of ``module``."""
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder, module=module or self.module)

    def files(self) -> dict[str, int]:
        """The files of the agent and their sizes. The empty file of the lease is left out."""
        root = self.folder / AGENT_NAME
        found = {path.relative_to(root).as_posix(): path.stat().st_size for path in root.rglob("*") if path.is_file()}
        return {name: found[name] for name in sorted(found) if os.path.basename(name) != LOCK_NAME}

    def read(self, name: str) -> str:
        """The text of one of the agent's files."""
        return (self.folder / AGENT_NAME / name).read_text()

    def memory(self) -> dict[str, Any]:
        """What the process knew when it was killed."""
        known: dict[str, Any] = json.loads((self.folder / MEMORY_NAME).read_text())
        return known

    def checkpoint(self) -> dict[str, Any]:
        """The newest checkpoint as it lies in its file."""
        form: dict[str, Any] = json.loads(self.read(CHECKPOINT_NAME))
        return form

    def records(self) -> list[dict[str, Any]]:
        """The ledger, a record a line."""
        path = self.folder / AGENT_NAME / LEDGER_NAME
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def places(self) -> list[str]:
        """The named places that were reached so far, in order, by all processes."""
        log = self.folder / PLACES_NAME
        return log.read_text().split() if log.exists() else []

    def world(self) -> dict[str, Any]:
        """What stands in the world: labels, cases, replies, pages and the report."""
        return World(FileOutside(self.folder / WORLD_NAME), make_inbox(body_bytes=SHORT_BODY_BYTES)).view()

    def requests(self) -> int:
        """How many requests the server has answered, over all processes."""
        tally = self.folder / REQUESTS_NAME
        return len(tally.read_text().split()) if tally.exists() else 0
