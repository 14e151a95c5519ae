"""A folder in which an agent is killed for real and looked at afterwards: what lessons and notebooks show.

Three things are told apart here, since a crash does: the files of the agent, which stay; what the process knew, which
dies; and the outside world with the server's bill, which nobody can take back.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from crashcourse.victim import AGENT_NAME, FAILED, KILLED, MEMORY_NAME, PLACES_NAME, REQUESTS_NAME, WORLD_NAME, ways_of
from longrun.errors import LongrunError
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.lease import LOCK_NAME
from longrun.ledger import LEDGER_NAME
from longrun.protocol import CHECKPOINT_NAME
from longrun.rewind import timelines
from longrun.rewind.subjects import points_in
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from longrun.personas import Persona
    from longrun.protocol import Checkpoint

_RANDOM = re.compile(r"\b(toolu|run|msg)[-_][0-9a-f]{8,}|\b[0-9a-f]{64}\b")
_IN_A_SAVE = re.compile(r"\.(draft|named)\d+\+$")
TIMEOUT_S = 120.0
"""A run takes a third of a second; this is for machines that are very busy."""


class RunFailed(LongrunError):  # noqa: N818 - it names what failed
    """The process of a run ended in a way that no lesson provides for. The text is what it said on stderr."""


@dataclass(frozen=True)
class Ended:
    """How one process ended: the exit status that a shell shows, and what it said, nothing where it was killed.

    ``second`` is what a second owner said that came in between.
    """

    exit: int
    said: dict[str, Any]
    second: dict[str, Any] = field(default_factory=dict)

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.exit == KILLED


def ended(command: list[str]) -> tuple[str, str, int]:
    """What a command said on stdout and stderr, and its exit status. One that hangs is ended with all its children."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=TIMEOUT_S)
        except BaseException:  # an interrupt, or the time limit: a stopped child must not stay behind
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return output, errors, process.returncode


@dataclass(frozen=True)
class Stage:
    """One agent's place. ``module`` holds its HARNESS, for example ``longrun.memory.naive_notes``.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stage = Stage(Path(folder), "longrun.memory.naive_memory_only")
    ...     stage.start(kill_at="turn4.tool1.effect+").exit, stage.files(), stage.world()["cases"]
    (137, {}, ['T-101'])
    """

    folder: Path
    module: str
    persona: Persona = "careful"

    def start(self, **how: str | int) -> Ended:
        """Run from the beginning, in a process that dies at ``kill_at``, if given. Raises RunFailed where it did not.

        ``full_at``: the next record of the ledger finds no room on the disk. ``second_at``: a second owner resumes
        there while this process is stopped. ``poison``: the model of turn 7 names a call that kills its process.
        ``turns``: the cap on turns.
        """
        return self._run("start", how)

    def resume(self, **how: str | int) -> Ended:
        """Go on from what is there, in a new process; ``how`` as above. ``line`` names a fork that goes on instead."""
        return self._run("resume", how)

    def rewind(self, turn: int, **how: str | int) -> Ended:
        """Go back to the end of a turn; with ``go_on=True`` the same process then runs on."""
        return self._run("rewind", {**how, "turn": turn})

    def fork(self, name: str, turn: int) -> Ended:
        """Begin a line of its own at the end of a turn; nothing runs on yet."""
        return self._run("fork", {"name": name, "turn": turn})

    def _run(self, command: str, how: Mapping[str, str | int]) -> Ended:
        given = [command, str(self.folder), self.module, "--persona", self.persona]
        for name, value in how.items():
            given += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        command_line = [sys.executable, "-m", "crashcourse.victim", *given]
        output, errors, status = ended(command_line)
        may_die, must_die = "kill_at" in how or "poison" in how, "kill_at" in how
        wrong = status not in (0, FAILED, KILLED) or (status == FAILED and not output)
        if wrong or (status == KILLED and not may_die) or (status != KILLED and must_die):
            text = f"{command} of {self.module}, {dict(how)}: exit {status}\n"
            raise RunFailed(text + errors)
        said = [json.loads(line) for line in output.splitlines()]
        return Ended(status, said[-1] if said else {}, said[0] if len(said) > 1 else {})

    def copy(self, folder: Path, module: str = "") -> Stage:
        """Another stage that begins with all that lies here, and goes on with the harness of ``module``."""
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

    def points(self, line: str = "") -> list[Checkpoint]:
        """The points of the run, or of one of its forks, by their numbers."""
        return points_in(self._directory(line))

    def head(self, line: str = "") -> Checkpoint | None:
        """What the design itself takes for the newest point."""
        return ways_of(self.module).harness.load(self._directory(line))

    def _directory(self, line: str) -> Path:
        root = self.folder / AGENT_NAME
        return timelines.place_of(root, line) if line else root

    def records(self) -> list[dict[str, Any]]:
        """The ledger, a record a line."""
        path = self.folder / AGENT_NAME / LEDGER_NAME
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def fingerprint(self) -> str:
        """A hash of all files, the ids that are drawn at random and the checksums over them set aside.

        Two stages with one fingerprint are the same to whoever has to go by their files.
        """
        root, digest = self.folder / AGENT_NAME, hashlib.blake2b(digest_size=4)
        for name in self.files():
            text = _RANDOM.sub("*", (root / name).read_text())
            digest.update(f"{name}\0{text}\0".encode())
        return digest.hexdigest()

    def places(self, *, drafts: bool = False) -> list[str]:
        """The named places that were reached so far, in order, by all processes; those inside of saves if asked for."""
        log = self.folder / PLACES_NAME
        found = log.read_text().split() if log.exists() else []
        return found if drafts else [place for place in found if not _IN_A_SAVE.search(place)]

    def world(self) -> dict[str, Any]:
        """What stands in the world: labels, cases, replies, pages and the report."""
        return World(FileOutside(self.folder / WORLD_NAME), make_inbox(body_bytes=SHORT_BODY_BYTES)).view()

    def requests(self) -> int:
        """How many requests the server has answered, over all processes."""
        tally = self.folder / REQUESTS_NAME
        return len(tally.read_text().split()) if tally.exists() else 0
