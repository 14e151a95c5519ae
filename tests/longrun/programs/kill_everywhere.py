"""Kill the agent for real at every step of its run, resume it, and tell what the world saw.

Usage: ``kill_everywhere.py MODULE PERSONA DIRECTORY STRIDE [nested]``. A child of this process is killed
by SIGKILL right before its n-th step (a file operation, or either side of an effect), and then again
inside its n-th write, at a page boundary; n grows by STRIDE. This process resumes what is left. With
``nested`` the first resume is killed too. Prints one JSON object per kill. It stays a program of one
thread, so that it may fork.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longrun.fake_api import FakeApi
from longrun.inbox import make_inbox
from longrun.loop import Agent
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE_BYTES = 4096
STEPS = ("open", "rename", "unlink", "ftruncate", "fsync")


class Executioner:
    """Counts steps, or writes only, and kills this process at the chosen one."""

    def __init__(self, step: int, *, inside: bool) -> None:
        self.left = step
        self.inside = inside

    def install(self) -> None:
        write, effect = os.write, FileOutside.effect
        for name in STEPS:
            setattr(os, name, self.before(getattr(os, name)))

        def cut_write(descriptor: int, data: bytes) -> int:
            if self.inside and self.left == 1:
                size = os.fstat(descriptor).st_size
                write(descriptor, data[: PAGE_BYTES - size % PAGE_BYTES])
            self.step(writing=True)
            return write(descriptor, data)

        def cut_writev(descriptor: int, pieces: Sequence[bytes]) -> int:
            return cut_write(descriptor, b"".join(pieces))

        def deadly_effect(outside: FileOutside, name: str, **given: Any) -> str:
            self.step()
            receipt = effect(outside, name, **given)
            self.step()
            return receipt

        changed = ((os, "write", cut_write), (os, "writev", cut_writev), (FileOutside, "effect", deadly_effect))
        for owner, name, function in changed:
            setattr(owner, name, function)

    def before(self, real: Any) -> Any:
        def step(*given: Any, **options: Any) -> Any:
            self.step()
            return real(*given, **options)

        return step

    def step(self, *, writing: bool = False) -> None:
        self.left -= writing or not self.inside
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def agent_in(directory: Path, harness: Any, persona: Any) -> tuple[Agent, FileOutside, FakeApi]:
    (directory / "agent").mkdir(exist_ok=True)
    outside = FileOutside(directory / "world.jsonl")
    api = FakeApi(persona)
    return Agent(directory / "agent", harness, api, World(outside, make_inbox())), outside, api


def killed(directory: Path, harness: Any, persona: Any, step: int, *, inside: bool) -> bool:
    """Run or resume in a child until it is killed at ``step``; False where it came to its end first."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            agent, _, _ = agent_in(directory, harness, persona)
            Executioner(step, inside=inside).install()
            agent.resume()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        text = f"the child failed at step {step}"
        raise RuntimeError(text)
    return False


def resumed(directory: Path, harness: Any, persona: Any) -> dict[str, Any]:
    agent, outside, api = agent_in(directory, harness, persona)
    last = agent.resume()
    unknown = [name for name, _ in agent.unknown()]
    asked = len(api.exchanges)
    again, _, second_api = agent_in(directory, harness, persona)
    again.resume()
    seen = Counter(f"{each.name} {json.dumps(each.detail, sort_keys=True)}" for each in outside.effects if each.counted)
    return {
        "status": last.status,
        "unknown": unknown,
        "effects": dict(seen),
        "refusals": api.refusals,
        "asked": asked,
        "asked_again": len(second_api.exchanges),
        "left": sorted(path.name for path in (directory / "agent").iterdir()),
        "turns": last.turns,
        "requests": [last.requests_started, last.requests_saved],
    }


def main() -> None:
    module, persona, place, stride, *options = sys.argv[1:]
    harness = importlib.import_module(module).HARNESS
    directory = Path(place)
    for inside in (False, True):
        step = 1
        while True:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            if not killed(directory, harness, persona, step, inside=inside):
                break
            if "nested" in options:
                killed(directory, harness, persona, 1 + step * 7 % 40, inside=False)
            print(json.dumps({"step": step, "inside": inside, **resumed(directory, harness, persona)}))
            step += int(stride)


if __name__ == "__main__":
    main()
