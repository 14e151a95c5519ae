"""Tests of longrun.resume.reconcile: every row of the table, and what a resume makes of a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longrun.ledger import Record
from longrun.messages import user
from longrun.protocol import Checkpoint, OpenCall
from longrun.resume.reconcile import Decision, Evidence, begun_before, decide, reopen

if TYPE_CHECKING:
    from longrun.ledger import Outcome
    from longrun.tools import Nature


def record(outcome: Outcome) -> Record:
    return Record(
        n=1,
        run_id="r",
        timeline="main",
        writer_epoch=1,
        key="k",
        tool="send_reply",
        args_digest="d",
        tool_use_id="toolu_1",
        outcome=outcome,
        result="x",
    )


DONE = {"record": record("done"), "started": True, "attempts": 1}
UNKNOWN = {"record": record("unknown")}
ROWS: list[tuple[str, Nature, dict[str, Any], Decision]] = [
    ("done, same input", "idempotent", DONE, Decision.REUSE),
    ("done, same input", "non-idempotent", DONE, Decision.REUSE),
    ("done, same input, often begun", "non-idempotent", {**DONE, "attempts": 9}, Decision.REUSE),
    ("done, other input", "idempotent", {**DONE, "same_input": False}, Decision.CONFLICT),
    ("done, other input", "non-idempotent", {**DONE, "same_input": False}, Decision.CONFLICT),
    ("gave up", "idempotent", {"record": record("gave_up")}, Decision.GIVE_UP),
    ("three attempts", "read-only", {"attempts": 3, "started": True}, Decision.GIVE_UP),
    ("three attempts", "idempotent", {"attempts": 3, "started": True}, Decision.GIVE_UP),
    ("three attempts", "non-idempotent", {"attempts": 3, "started": True}, Decision.RECORD_UNKNOWN),
    ("two attempts", "read-only", {"attempts": 2, "started": True}, Decision.RUN),
    ("two attempts", "idempotent", {"attempts": 2, "started": True}, Decision.RUN),
    ("unknown", "idempotent", UNKNOWN, Decision.RUN),
    ("unknown, look-up", "non-idempotent", {**UNKNOWN, "can_look_up": True}, Decision.LOOK_UP),
    ("unknown, no look-up", "non-idempotent", UNKNOWN, Decision.BLOCKED),
    ("unknown, often begun", "non-idempotent", {**UNKNOWN, "attempts": 3}, Decision.BLOCKED),
    ("started", "read-only", {"attempts": 1, "started": True}, Decision.RUN),
    ("started", "idempotent", {"attempts": 1, "started": True}, Decision.RUN),
    ("started", "non-idempotent", {"attempts": 1, "started": True}, Decision.RECORD_UNKNOWN),
    (
        "started, look-up",
        "non-idempotent",
        {"attempts": 1, "started": True, "can_look_up": True},
        Decision.RECORD_UNKNOWN,
    ),
    ("not started", "read-only", {}, Decision.RUN),
    ("not started", "idempotent", {}, Decision.RUN),
    ("not started", "non-idempotent", {}, Decision.RUN),
]


@pytest.mark.parametrize(("row", "nature", "given", "decision"), ROWS)
def test_each_row_of_the_table(row: str, nature: Nature, given: dict[str, Any], decision: Decision) -> None:
    """The evidence of the row leads to its decision."""
    evidence = Evidence(**{"nature": nature, "attempts": 0, "started": False, **given})
    assert decide(evidence) is decision, row


def test_nothing_that_cannot_be_repeated_runs_after_it_was_begun() -> None:
    """Whatever the ledger and the counters say, a started non-idempotent act is never simply run."""
    for outcome in (None, "done", "unknown", "gave_up"):
        for attempts in range(1, 5):
            known = {} if outcome is None else {"record": record(outcome)}  # type: ignore[arg-type]  # one of them
            evidence = Evidence(nature="non-idempotent", attempts=attempts, started=True, **known)
            assert decide(evidence) is not Decision.RUN


def test_resume_counts_the_coming_request_or_marks_the_reads() -> None:
    """With no open call a request comes next; with open calls the reads get their next mark, acts none."""
    read = OpenCall(id="a", name="read_ticket", input={}, key=None, attempts=1, started=True)
    act = OpenCall(id="b", name="send_reply", input={}, key="k", attempts=1, started=True)
    idle = Checkpoint(run_id="r", task="t", messages=(user("t"),), requests_started=4)
    assert reopen(idle).requests_started == 5
    busy = reopen(replace(idle, pending_tool_use=(read, act)))
    assert busy.requests_started == 4
    assert [call.attempts for call in busy.pending_tool_use] == [2, 1]
    assert [begun_before(call) for call in busy.pending_tool_use] == [1, 1]
