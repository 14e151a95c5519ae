"""When "unknown" is honest: only where the files cannot tell."""

from __future__ import annotations

import pytest

from crashlab import trace as t
from crashlab.crash.ids import state_of
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.profiles import parse_profiles
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


# --- power loss -----------------------------------------------------------------------------------

#    1-2 pending   3 effect   4 done   5 told: nothing of it is synced
UNSYNCED = trace_of(
    create("pending", 11), write("pending", 11, b"p"), effect("mail", to="ada"), create("done", 12), save_point("done")
)
#    the same, with a barrier before the save point: who finds no "done" there knows that power was lost before
SYNCED = trace_of(
    create("pending", 11),
    write("pending", 11, b"p"),
    effect("mail", to="ada"),
    create("done", 12),
    (t.Fsync, {"path": "dir", "inode": 1}),
    save_point("done"),
)


def answers(trace: t.Trace, profile: str, *, lossy: bool = True) -> dict[str, bool]:
    """Per power loss whether an unknown about the mail is honest; only kills are considered unless ``lossy``."""
    losses = Losses(trace, parse_profiles(profile))
    honesty = Honesty(trace, kill_states(trace), losses if lossy else None)
    return {state.id: honesty.honest(MAIL, state) for state in losses.states()}


@pytest.mark.parametrize(
    ("state_id", "honest"),
    [
        ("power@5", False),  # what was told is there
        ("power@5-2", False),  # "done" is there, which nobody writes before the effect
        ("power@5-2d0", False),
        ("power@5-4..", True),  # the files of kill@3
        ("power@5-2,4..", True),  # no kill leaves an empty "pending" and a done mail, a loss on either side does
        ("power@5-2d0,4..", True),
        ("power@2-2d0", True),
    ],
)
def test_unknown_is_honest_where_a_loss_leaves_the_same_files_on_the_other_side(state_id: str, honest: bool) -> None:
    """What was saved after the effect and lost again tells nobody that it was done."""
    assert answers(UNSYNCED, "ext4")[state_id] is honest


def test_kills_alone_do_not_know_what_power_may_leave() -> None:
    """Without the losses such an unknown would be blamed."""
    kills, both = answers(UNSYNCED, "ext4", lossy=False), answers(UNSYNCED, "ext4")
    assert (kills["power@5-2,4.."], both["power@5-2,4.."]) == (False, True)
    assert {state_id for state_id, honest in kills.items() if honest} < {
        each for each, honest in both.items() if honest
    }


@pytest.mark.parametrize("profile", ["ext4", "xfs", "btrfs", "posix", "ext4,xfs,btrfs,posix"])
def test_unknown_is_needless_behind_a_barrier(profile: str) -> None:
    """After the synced record no loss leaves what was there before the effect; until it returns, one may."""
    found = answers(SYNCED, profile)
    assert {honest for state_id, honest in found.items() if state_id.startswith("power@6")} == {False}
    assert {honest for state_id, honest in found.items() if state_id.startswith("power@2")} == {True}
