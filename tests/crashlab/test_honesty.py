"""When "unknown" is honest: only where the files cannot tell."""

from __future__ import annotations

import pytest

from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.states import state_of
from crashlab.honesty import Honesty, matches
from tests.crashlab.traces import ack, create, effect, save_point, trace_of, write

MAIL = t.Unknown(n=0, name="mail", detail={"to": "ada"})

#    1 ledger made   2-3 S is written   4 acked   5 effect   6 record   7 acked   8-9 B   10 page
TRACE = trace_of(
    create("ledger", 11),
    create("state", 10),
    write("state", 10, b"started"),
    ack(),
    effect("mail", to="ada"),
    write("ledger", 11, b"z" * 5000),
    ack(),
    write("state", 10, b"STARTED"),
    save_point("B"),
    effect("page"),
)


@pytest.mark.parametrize(
    ("state_id", "honest"),
    [
        ("kill@0", False),
        ("kill@1", True),
        ("kill@2", True),  # who takes the beginning of the mark for the mark is careful, not wrong
        ("kill@3", True),  # the mark is there; the files are those of kill@5
        ("kill@4", True),
        ("kill@5", True),
        ("kill@6+4096", True),  # half a record is nobody's evidence
        ("kill@6", True),  # the record is there, its save not finished
        ("kill@7", False),  # the record was acked
        ("kill@9", False),
        ("kill@10", False),
    ],
)
def test_unknown_is_honest_between_the_mark_and_the_record(state_id: str, honest: bool) -> None:
    """Before the mark and after the acked record the files tell."""
    honesty = Honesty(TRACE, kill_states(TRACE))
    assert honesty.honest(MAIL, state_of(TRACE, state_id)) is honest


def test_unknown_about_something_that_never_happens_is_needless() -> None:
    """No crash state has that effect, so every state tells."""
    honesty = Honesty(TRACE, kill_states(TRACE))
    odd = t.Unknown(n=0, name="mail", detail={"to": "bob"})
    assert not any(honesty.honest(odd, state) for state in kill_states(TRACE))


def test_unknown_matches_by_name_and_details() -> None:
    """Fewer details match, other details do not."""
    done = t.Effect(n=1, name="mail", detail={"to": "ada", "n": 1})
    assert matches(MAIL, done)
    assert matches(t.Unknown(n=0, name="mail"), done)
    assert not matches(t.Unknown(n=0, name="page"), done)
    assert not matches(t.Unknown(n=0, name="mail", detail={"to": "bob"}), done)
    assert not matches(t.Unknown(n=0, name="mail", detail={"cc": "ada"}), done)
