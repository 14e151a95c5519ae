"""The one fault: notes for the model are all that is saved, after each turn, and they are taken for the state.

``NOTES.md`` says well what was done. It does not say how many turns and tokens that took, nor which calls
were open: a reply that was sent just before the kill, in a turn that was not noted yet, is sent again.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from longrun.files import sync_directory, temporary_name, write_new
from longrun.harness import Harness
from longrun.inbox import SHORT_BODY_BYTES
from longrun.loop import TASK
from longrun.memory.in_memory import MemoryLedger
from longrun.messages import blocks, result_text, tool_uses, user
from longrun.personas import NOTES_HEADING
from longrun.protocol import Checkpoint
from longrun.subjects import describe
from longrun.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTES_NAME = "NOTES.md"


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Write down what was done so far; the file is replaced whole and durably, that is not what is wrong."""
    lines = [f"# Notes, written {checkpoint.seq} times", *_noted_before(checkpoint), *_done(checkpoint), ""]
    temporary = temporary_name(directory / NOTES_NAME)
    write_new(temporary, "\n".join(lines).encode(), sync=True)
    os.rename(temporary, directory / NOTES_NAME)
    sync_directory(directory)


def load(directory: Path) -> Checkpoint | None:
    """A new conversation that begins with the task and the notes."""
    try:
        text = (directory / NOTES_NAME).read_text()
    except FileNotFoundError:
        return None
    heading, _, lines = text.partition("\n")
    written = re.search(r"\d+", heading)
    return Checkpoint(
        run_id=f"run-{os.urandom(8).hex()}",
        task=TASK,
        messages=(user(f"{TASK}\n\n{NOTES_HEADING}\n{lines}"),),
        seq=int(written[0]) if written else 0,
    )


def _noted_before(checkpoint: Checkpoint) -> list[str]:
    return [line for line in checkpoint.messages[0]["content"].splitlines() if line.startswith("- ")]


def _done(checkpoint: Checkpoint) -> Iterator[str]:
    """One line per act that was answered without an error."""
    calls = {call["id"]: call for message in checkpoint.messages for call in tool_uses(message)}
    for message in checkpoint.messages:
        for block in blocks(message):
            if block["type"] != "tool_result" or block.get("is_error"):
                continue
            call = calls[block["tool_use_id"]]
            if TOOLS[call["name"]].nature != "read-only":
                yield f"- {call['name']} {call['input'].get('ticket', '')}: {result_text(block)}"


HARNESS = Harness(save=save, load=load, save_points=frozenset({"B", "E"}), ledger=MemoryLedger.open)

subject = describe(HARNESS, name="memory/naive_notes", body_bytes=SHORT_BODY_BYTES)
