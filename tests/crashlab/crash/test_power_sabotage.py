"""Every law of the power-loss model can fail: with one rule or one part broken, it does.

The laws are those of ``test_power_random``. Each is called with one program, chosen so that the broken
part matters: the law must turn red, and with nothing broken it must hold for the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from crashlab import trace as t
from crashlab.crash import membership, orders, power
from crashlab.crash.moments import Moment
from crashlab.crash.profiles import PROFILES
from crashlab.crash.variants import Variants
from tests.crashlab.crash import test_power_random as laws
from tests.crashlab.crash.power_traces import Program

Break = Callable[[pytest.MonkeyPatch], None]


def rule(profile: str, **changes: Any) -> Break:
    """One rule of one profile broken."""
    return lambda patch: patch.setitem(PROFILES, profile, replace(PROFILES[profile], **changes))


def part(owner: object, name: str, value: object) -> Break:
    """One function of the model broken."""
    return lambda patch: patch.setattr(owner, name, value)


def only_the_end(trace: t.Trace) -> list[Moment]:
    return [Moment(len(trace.ops), len(trace.ops))]


@dataclass(frozen=True)
class Sabotage:
    """A law, the program and the rest that it is called with, and what is broken."""

    law: Any
    program: Callable[[], Program]
    breaks: Break
    given: dict[str, Any] = field(default_factory=dict)


def grown() -> Program:
    return Program().create("a").write("a", 9_000)


def renamed() -> Program:
    return Program(a=10).rename("a", "b")


def replaced() -> Program:
    return Program(ck=10).create("tmp").rename("tmp", "ck")


def overwritten() -> Program:
    return Program(a=5_000).write("a", 5_000)


ALWAYS, NEVER = (lambda *_: True), (lambda *_: False)
EXT4, POSIX = {"profile": "ext4"}, {"profile": "posix"}

SABOTAGES = {
    "posix promises more": Sabotage(
        laws.test_posix_holds_the_states_of_every_other_profile,
        grown,
        rule("posix", sizes=lambda _old, end: [end]),
        EXT4,
    ),
    "posix has fewer digests": Sabotage(
        laws.test_posix_has_the_digests_of_every_other_profile,
        grown,
        rule("posix", sizes=lambda _old, end: [end]),
        EXT4,
    ),
    "a barrier takes a promise back": Sabotage(
        laws.test_one_more_barrier_adds_no_state,
        replaced,
        rule("btrfs", may_vanish=lambda *, source_synced, **_: source_synced),
        {"profile": "btrfs", "at": 1, "kind": "fsync"},
    ),
    "sync forces no names": Sabotage(
        laws.test_a_full_sync_leaves_one_state, renamed, rule("posix", first_version=lambda _covered: 0), POSIX
    ),
    "the newest name never shows": Sabotage(
        laws.test_a_kill_between_two_ops_is_a_power_loss_that_loses_nothing,
        grown,
        rule("ext4", prefixes=lambda floor, issued: range(floor, max(issued, floor + 1))),
        EXT4,
    ),
    "data=journal cuts no write": Sabotage(
        laws.test_data_journal_without_barriers_is_a_kill, grown, part(orders, "cut_points", lambda _op: [])
    ),
    "moments before a sync are passed over": Sabotage(
        laws.test_no_state_lies_between_the_moments,
        lambda: grown().add(t.Sync),
        part(power, "moments_of", only_the_end),
        EXT4,
    ),
    "nothing is contained": Sabotage(
        laws.test_what_is_enumerated_is_contained, overwritten, part(Variants, "holds", NEVER), POSIX
    ),
    "every content is contained": Sabotage(
        laws.test_what_is_contained_is_enumerated,
        grown,
        part(Variants, "holds", ALWAYS),
        {"profile": "xfs", "other": "ext4"},
    ),
    "a mutant is contained": Sabotage(
        laws.test_a_mutant_is_contained_only_where_it_is_enumerated,
        overwritten,
        part(Variants, "holds", ALWAYS),
        {"profile": "btrfs", "kind": "bytes", "pick": 0},
    ),
    "a mutant with another mode is contained": Sabotage(
        laws.test_a_mutant_is_contained_only_where_it_is_enumerated,
        renamed,
        part(membership, "_plain", type),
        {"profile": "btrfs", "kind": "mode", "pick": 1},
    ),
}


@pytest.mark.parametrize("name", SABOTAGES)
def test_the_law_holds_and_sabotage_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Green with the true model, red with the broken one, for the same program."""
    each = SABOTAGES[name]
    law = each.law.hypothesis.inner_test
    law(**each.given, program=each.program())
    each.breaks(monkeypatch)
    with pytest.raises(AssertionError):
        law(**each.given, program=each.program())
