"""The save and load of an agent's harness alone, as stores for crashlab: what a lesson on saving needs, and no more.

A whole run saves some twenty times, and each of its crash states costs a whole recovery. One save has five calls, and
a load is quick; so all designs can be held against all faults while somebody waits. What only a whole run shows,
such as a save that is made too late, is not seen here.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab import Store
from longrun.messages import user
from longrun.protocol import Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.harness import Harness

VALUES: tuple[dict[str, Any], ...] = (
    {"seq": 1, "text": "triage the inbox"},
    {"seq": 2, "text": "".join(f"line {number:03d} of a long letter\n" for number in range(160))},
)
"""A short checkpoint, then one of more than one page, so that a kill can cut it."""


def _harness(module: str) -> Harness:
    harness: Harness = importlib.import_module(module).HARNESS
    return harness


@dataclass(frozen=True)
class Save:
    """The save of the harness in ``module``, of a checkpoint whose only message is a text."""

    module: str

    def __call__(self, directory: Path, value: dict[str, Any]) -> None:
        """Save it."""
        seq, message = value["seq"], user(value["text"])
        state = Checkpoint(run_id="run-1", task="t", messages=(message,), seq=seq, parent=seq - 1 or None)
        _harness(self.module).save(directory, state)


@dataclass(frozen=True)
class Load:
    """The load of the harness in ``module``."""

    module: str

    def __call__(self, directory: Path) -> dict[str, Any] | None:
        """What :class:`Save` was given last, None where nothing was ever saved."""
        state = _harness(self.module).load(directory)
        return None if state is None else {"seq": state.seq, "text": state.messages[0]["content"]}


def saver(module: str, *, name: str = "") -> Store:
    """The store.

    >>> saver("longrun.checkpoint.naive_in_place").name
    'naive_in_place'
    """
    return Store(Save(module), Load(module), values=VALUES, name=name or module.rpartition(".")[2])


LARGE_BYTES = 64 * 1024


@dataclass(frozen=True)
class SplitSave(Save):
    """A save with a fault that only long runs meet: above a size it overwrites the file, "to need no second copy"."""

    def __call__(self, directory: Path, value: dict[str, Any]) -> None:
        """Save it, in place where it is large."""
        if len(value["text"]) <= LARGE_BYTES:
            super().__call__(directory, value)
        else:
            Save("longrun.checkpoint.naive_in_place")(directory, value)


def split(*, text_bytes: int) -> Store:
    """A store with :class:`SplitSave`, and a second value whose text has so many letters."""
    module = "longrun.checkpoint.correct"
    values = (VALUES[0], {"seq": 2, "text": "x" * text_bytes})
    return Store(SplitSave(module), Load(module), values=values, name=f"split, {text_bytes} letters")
