"""What the tests of longrun share: an agent in a folder of its own, and how programs find the packages."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import longrun
from longrun.checkpoint.correct import HARNESS
from longrun.fake_api import FakeApi
from longrun.inbox import make_inbox
from longrun.loop import Agent
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longrun.harness import Harness
    from longrun.model import Model
    from longrun.personas import Persona


@dataclass
class Desk:
    """A world and an agent's directory, in which agents can be started and resumed."""

    directory: Path

    @property
    def agent_directory(self) -> Path:
        return self.directory / "agent"

    @property
    def outside(self) -> FileOutside:
        return FileOutside(self.directory / "world.jsonl")

    @property
    def world(self) -> World:
        return World(self.outside, make_inbox())

    def agent(
        self, model: Model | None = None, *, harness: Harness = HARNESS, persona: Persona = "careful", told: Any = None
    ) -> Agent:
        """An agent of its own process, as far as its files are concerned."""
        more = () if told is None else (told,)
        return Agent(self.agent_directory, harness, model or FakeApi(persona), self.world, *more)

    def files(self) -> dict[str, bytes]:
        """Every file of the agent, by its path there."""
        found = (path for path in self.agent_directory.rglob("*") if path.is_file())
        return {path.relative_to(self.agent_directory).as_posix(): path.read_bytes() for path in found}


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a run syncs some sixty times, and no power is lost here."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="lab-tests-", dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def desk(quick_path: Path) -> Desk:
    (quick_path / "agent").mkdir()
    return Desk(quick_path)


@pytest.fixture
def program_environment() -> dict[str, str]:
    """The environment in which a program of its own finds these packages."""
    packages = str(Path(next(iter(longrun.__path__))).parent)
    return {**os.environ, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1"}
