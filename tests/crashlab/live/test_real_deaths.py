"""Computed kill states are what SIGKILL really leaves, for random programs.

Each example runs a program once under the recorder and once more until a real SIGKILL between two
ops or inside a write. The directory of the dead process must be, byte for byte, the state that was
computed from the first run; and the one computed from the ops of the dead process itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crashlab import Subject
from crashlab import trace as t
from crashlab.confirm import compare
from crashlab.crash.ids import state_of
from crashlab.crash.kill import kill_states
from crashlab.record.proof import replay_proof
from crashlab.recover import travel
from crashlab.recover.host import Host
from tests.crashlab.programs import PROGRAMS, Runs, Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that holds the program to run next."""
    return tmp_path_factory.mktemp("program") / "steps.json"


@pytest.fixture(scope="module")
def host(program: Path) -> Iterator[Host]:
    """One recording server for all examples: its subject reads the program anew in each run."""
    with Host(travel.pack(Subject(Runs(str(program)))), jobs=1) as host:
        yield host


@given(steps=PROGRAMS, pick=st.integers(0, 10_000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_real_kill_leaves_the_computed_state(steps: list[Step], pick: int, host: Host, program: Path) -> None:
    """Byte for byte, with modes, links and names."""
    program.write_text(json.dumps(steps))
    run = host.record(timeout_s=10)
    trace = t.Trace(root=run.root, base=run.base, ops=run.ops)
    assert replay_proof(trace, run.last, ()) == ()
    ids = [state.id for state in kill_states(trace)]
    chosen = state_of(trace, ids[pick % len(ids)])
    cut_bytes = chosen.cut_bytes or 0
    dead = host.record(kill=(chosen.last_op, cut_bytes), timeout_s=10)
    assert compare(dead, chosen.last_op, cut_bytes).difference == ()
    assert chosen.tree.difference(dead.last) == []
    assert chosen.tree.digest == dead.last.digest
    told = [type(op) for op in dead.ops if isinstance(op, (t.Effect, t.Ack))]
    assert told == [type(op) for op in trace.ops[: chosen.done] if isinstance(op, (t.Effect, t.Ack))]


def test_a_kill_between_two_ops_never_shows_the_next(host: Host, program: Path) -> None:
    """Killed after op 1 the file is there and empty: the buffered bytes died with the process."""
    program.write_text(json.dumps([["buffered", "a", [9000]]]))
    dead = host.record(kill=(1, 0), timeout_s=10)
    node = dead.last.node("dir/a")
    assert (dead.how, len(dead.ops), node.content.size) == ("signal", 1, 0)


def test_a_kill_inside_a_write_leaves_its_first_bytes(host: Host, program: Path) -> None:
    """Killed inside op 2 after 4,096 bytes exactly these are there."""
    program.write_text(json.dumps([["overwrite", "a", 9000]]))
    dead = host.record(kill=(2, 4096), timeout_s=10)
    assert dead.last.node("dir/a").content.size == 4096
