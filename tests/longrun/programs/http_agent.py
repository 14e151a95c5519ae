"""The agent with the real ``anthropic`` client, ready to be killed at one place.

Usage: ``http_agent.py BASE_URL DIRECTORY [PLACE]``. At PLACE it prints one line and then waits to be
killed. Places: ``save:9`` inside the ninth save, with half of the new file written; ``saved:9`` right after
it; ``effect:send_reply#1`` right after the first such effect, before anything of it is recorded.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longrun.checkpoint.correct import HARNESS
from longrun.client import ClientModel
from longrun.files import temporary_name
from longrun.inbox import make_inbox
from longrun.loop import Agent
from longrun.protocol import CHECKPOINT_NAME, encode
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from longrun.protocol import Checkpoint


def wait_for_death() -> None:
    print("here", flush=True)
    sys.stdin.read()  # ends only when the test goes away
    sys.exit("nobody killed this process")


@dataclass(eq=False)
class DeadlyOutside(FileOutside):
    """Stops right after the n-th effect of a name."""

    place: str = ""

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        receipt = super().effect(name, key=key, **detail)
        if self.place == f"effect:{name}#{sum(each.name == name for each in self.effects)}":
            wait_for_death()
        return receipt


def main() -> None:
    base_url, place, *stops = sys.argv[1:]
    stop = stops[0] if stops else ""
    directory = Path(place)

    def save(target: Path, checkpoint: Checkpoint) -> None:
        if stop == f"save:{checkpoint.seq}":
            data = encode(checkpoint)
            Path(temporary_name(target / CHECKPOINT_NAME)).write_bytes(data[: len(data) // 2])
            wait_for_death()
        HARNESS.save(target, checkpoint)
        if stop == f"saved:{checkpoint.seq}":
            wait_for_death()

    outside = DeadlyOutside(directory / "world.jsonl", place=stop)
    harness = dataclasses.replace(HARNESS, save=save)
    agent = Agent(directory / "agent", harness, ClientModel.at(base_url), World(outside, make_inbox()))
    last = agent.resume()
    print(json.dumps({"status": last.status, "unknown": agent.unknown(), "turns": last.turns, "seq": last.seq}))


if __name__ == "__main__":
    main()
