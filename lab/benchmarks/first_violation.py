"""How soon a power loss shows a planted fault: the number of states, and the seconds, to the first violation.

``python -m benchmarks.first_violation`` prints one line per fault. The states are those of ext4, xfs and
btrfs in the order in which a check tries them; states that a kill leaves too are not tried first here.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

from crashlab import Budget, Log, Store, explore
from crashlab.errors import CrashlabError

if TYPE_CHECKING:
    from pathlib import Path

AGENTS = ("naive_no_fsync", "naive_no_dirsync", "naive_fsync_wrong_file", "naive_fsync_after_rename")
SAVES = [{"n": n, "text": "x" * 6_000} for n in range(20)]
"""A loop of twenty saves, each of two blocks."""


def load(directory: Path) -> Any:
    """The last saved value."""
    path = directory / "value.json"
    return json.loads(path.read_text()) if path.exists() else None


def overwrite(directory: Path, value: Any) -> None:
    """In place."""
    (directory / "value.json").write_text(json.dumps(value))


def rename(directory: Path, value: Any) -> None:
    """By temporary file and rename, nothing synced."""
    (directory / "value.tmp").write_text(json.dumps(value))
    (directory / "value.tmp").replace(directory / "value.json")


def rename_synced(directory: Path, value: Any) -> None:
    """The same with the file synced, and not its directory."""
    with (directory / "value.tmp").open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    (directory / "value.tmp").replace(directory / "value.json")


def append(directory: Path, events: list[Any]) -> None:
    """To a log that is never synced."""
    with (directory / "log.jsonl").open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def read(directory: Path) -> list[Any]:
    """Every whole line."""
    path = directory / "log.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


PLANTED: dict[str, Store | Log | str] = {
    "overwriting in place": Store(overwrite, load, values=SAVES),
    "rename, nothing synced": Store(rename, load, values=SAVES),
    "rename, directory not synced": Store(rename_synced, load, values=SAVES),
    "append, nothing synced": Log(append, read, values=[[value] for value in SAVES]),
    **{f"agent {name}": f"longrun.checkpoint.{name}:subject" for name in AGENTS},
}


def main() -> None:
    """Check each planted fault until it is found, and print how soon that was."""
    budget = Budget(violations=1, real_kills=0, subset=6)
    print(f"{'first violation of a power loss':40} {'states':>7} {'seconds':>9}")
    with tempfile.TemporaryDirectory() as out:
        for name, subject in PLANTED.items():
            power = explore(subject, faults="power", budget=budget, out=out).faults[0]
            if not power.first_violation:
                text = f"the benchmark's fault {name!r} was not found"
                raise CrashlabError(text)
            print(f"{name:40} {power.first_violation:7,} {power.first_violation_s:9.2f}")


if __name__ == "__main__":
    main()
