"""What only a person can tell: acts whose outcome nobody knows, asked about and answered in durable state.

A question is not kept in any memory. It is the last record of an act in the ledger (``unknown``), beside a checkpoint
whose status is ``waiting``; so it is asked again, in the same words, by whoever opens the directory. An answer is one
more record of that act, appended and synced: ``done``, or ``absent`` where the person found that it did not happen.
With the last answer the run can go on: a resume puts the answers into the transcript, as the user's words, and
the model does what is left. Killed anywhere in between, the next resume finds the same records and does the same.

``absent`` is no outcome of the published protocol, which leaves open how a run ever gets out of ``waiting``. To the
table of :mod:`longrun.resume.reconcile` such an act counts as not started.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from longrun.errors import UsageError
from longrun.messages import tool_uses, user
from longrun.tools import args_digest

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.harness import Harness
    from longrun.ledger import Acts, Record
    from longrun.protocol import Checkpoint

Answer = Literal["done", "absent"]
WORDS: dict[str, str] = {"done": "it happened", "absent": "it did not happen"}
"""What a person says, and what the model is told. Of one that did not happen it may do the act again."""
HEADING = "A person has looked:"


@dataclass(frozen=True, slots=True)
class Question:
    """One act of which it must be told whether it happened. ``act`` names it within its run: ``T-101/page_oncall``."""

    act: str
    tool: str
    input: dict[str, Any]

    def text(self) -> str:
        """The question in words."""
        return f"{self.act}: {self.tool} {self.input} may or may not have happened. Did it?"


def act_of(record: Record) -> str:
    """The name of an act within its run."""
    return record.key.removeprefix(f"{record.run_id}/")


def asked(state: Checkpoint, acts: Acts) -> list[Question]:
    """The open questions, oldest first: from the records, and the transcript for their words."""
    return [Question(act_of(each), each.tool, input_of(state, each)) for each in acts.unknown()]


def input_of(state: Checkpoint, record: Record) -> dict[str, Any]:
    """The input of a recorded act, from the transcript; empty where no message names it, or not in those words."""
    calls = (call for message in state.messages for call in tool_uses(message) if call["name"] == record.tool)
    return next((call["input"] for call in calls if args_digest(call["input"]) == record.args_digest), {})


def open_questions(directory: Path, harness: Harness) -> list[Question]:
    """What the run in ``directory`` waits for; nothing where it does not wait.

    Raises UsageError where no run is, Damaged for one that cannot be read, LeaseHeld while a process works there.
    """
    with harness.lease(directory):
        saved = _saved(directory, harness)
        acts = harness.ledger(directory, saved)
        try:
            return asked(saved, acts) if saved.status == "waiting" else []
        finally:
            acts.close()


def answer(directory: Path, harness: Harness, act: str, said: Answer) -> Record:
    """Record what a person says of ``act``; durable when this returns. The run goes on at its next resume.

    Raises UsageError where that is not asked, and otherwise as :func:`open_questions`.
    """
    with harness.lease(directory) as lease:
        saved = _saved(directory, harness)
        acts = harness.ledger(directory, saved)
        try:
            known = {act_of(record): record for record in acts.unknown() if saved.status == "waiting"}
            if act not in known:
                text = f"{directory} does not ask about {act!r} ({', '.join(known) or 'nothing is asked'})"
                raise UsageError(text)
            record = replace(known[act], n=len(acts.records) + 1, outcome=said, result=_result(said))
            lease.require(saved.writer_epoch)
            acts.append(record)
        finally:
            acts.close()
    return record


def _saved(directory: Path, harness: Harness) -> Checkpoint:
    saved = harness.load(directory)
    if saved is None:
        text = f"there is no run in {directory}"
        raise UsageError(text)
    return saved


def gone_on(saved: Checkpoint, acts: Acts) -> Checkpoint:
    """A checkpoint that waited, once all is answered: running, with the answers as the user's words. Else as it is."""
    if saved.status != "waiting" or acts.unknown():
        return saved
    answers = [record for record in acts.records[saved.ledger_seen :] if record.result == _result(record.outcome)]
    said = "\n".join([HEADING, *map(_told, answers)])
    return replace(saved, status="running", messages=(*saved.messages, user(said)))


def _result(said: str) -> str:
    return f"a person says: {WORDS.get(said, said)}"


def _told(record: Record) -> str:
    ticket, _, _ = act_of(record).partition("/")
    return f"- {record.tool} {ticket}: {WORDS[record.outcome]}"
