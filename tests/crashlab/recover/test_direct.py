"""Programs that the nursery starts itself: nothing of theirs reaches the lab or the next state."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Commands
from crashlab import trace as t
from crashlab.recover import sweep, travel
from crashlab.recover.host import Host
from crashlab.recover.place import base_tree

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.observation import Step

pytestmark = pytest.mark.skipif(not sweep.CAN_SWEEP, reason="programs are started so on Linux only")


def resumed(command: str | list[str], *, timeout_s: float = 60.0, states: int = 1) -> list[Step]:
    """How the first step of each state ends; what it prints is its view."""
    with Host(travel.pack(Commands(["true"], command)), jobs=1) as host:
        host.prepare(t.Trace(root=host.root, base=base_tree(), ops=()))
        asked = {"state": "kill@0", "steps": [{"step": "first"}], "timeout_s": timeout_s}
        return [answer.steps[0] for answer in host.recover(dict(asked) for _ in range(states))]


def test_no_process_of_the_lab_is_made_for_a_state() -> None:
    """The parent of each program is the same one."""
    steps = resumed("echo $PPID", states=3)
    assert [step.how for step in steps] == ["returned"] * 3
    assert len({step.stdout for step in steps}) == 1


@pytest.mark.parametrize(
    ("bad", "how", "error"),
    [
        ("kill -TERM $$", "signal", ""),
        ("kill -KILL $PPID; sleep 600", "signal", "the program killed its parent process"),
        ("kill -TERM 0; sleep 600", "signal", ""),
        ("echo no >&2; exit 3", "exit", "exited with 3"),
        ("echo nonsense >> $CRASHLAB_EVENTS", "raised", "UsageError"),
        ("rm $CRASHLAB_EVENTS; mkdir -p $CRASHLAB_EVENTS/in", "raised", "UsageError: the program emptied or replaced"),
    ],
)
def test_what_a_program_does_to_itself_or_to_its_parent_is_told(bad: str, how: str, error: str) -> None:
    """And the next state is recovered as if nothing had been."""
    with Host(travel.pack(Commands(["true"], f"if [ -e {{dir}}/bad ]; then {bad}; fi; echo well")), jobs=1) as host:
        create = t.Create(n=1, path="dir/bad", inode=100)
        host.prepare(t.Trace(root=host.root, base=base_tree(), ops=(create,)))
        asked: list[dict[str, Any]] = [
            {"state": state, "steps": [{"step": "first"}], "timeout_s": 60.0} for state in ("kill@1", "kill@0")
        ]
        worse, well = (answer.steps[0] for answer in host.recover(asked))
    assert worse.how == how, worse
    assert error in worse.error
    assert (well.how, well.stdout, well.left) == ("returned", "well\n", ())


def test_a_program_that_stops_its_parent_is_a_hang_and_the_next_one_is_not() -> None:
    """A parent that stands still could not tell of any end."""
    with Host(
        travel.pack(Commands(["true"], "[ ! -e {dir}/bad ] || { kill -STOP $PPID; sleep 600; }")), jobs=1
    ) as host:
        create = t.Create(n=1, path="dir/bad", inode=100)
        host.prepare(t.Trace(root=host.root, base=base_tree(), ops=(create,)))
        asked: list[dict[str, Any]] = [
            {"state": state, "steps": [{"step": "first"}], "timeout_s": limit}
            for state, limit in (("kill@1", 0.5), ("kill@0", 60.0))
        ]
        assert [answer.steps[0].how for answer in host.recover(asked)] == ["hang", "returned"]


def test_a_daemon_is_named_and_gone() -> None:
    """Also one in a session of its own, whose parent has ended."""
    daemon = "setsid sh -c '> {home}/up; exec sleep 601' & while [ ! -e {home}/up ]; do sleep 0.1; done"
    steps = resumed(daemon, states=2)
    assert [len(step.left) for step in steps] == [1, 1]  # two, had the first one lived on
    assert all("sleep 601" in step.left[0] for step in steps)


def test_a_program_leads_no_group_and_no_session() -> None:
    """As in its recorded run: one that makes its own session must be able to."""
    code = "import os; assert os.getpid() not in (os.getpgrp(), os.getsid(0)); os.setsid()"
    (step,) = resumed([sys.executable, "-c", code])
    assert step.how == "returned", step.stderr


def test_a_program_inherits_standard_descriptors_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what the module that describes it has opened for children, nor what the lab has."""
    (tmp_path / "opened.py").write_text(
        "import os, sys\nfrom crashlab import Commands\nos.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)\n"
        "CODE = \"import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))\"\n"
        "SUBJECT = Commands(['true'], [sys.executable, '-c', CODE])\n"
    )
    monkeypatch.chdir(tmp_path)
    with Host(travel.pack("opened:SUBJECT"), jobs=1) as host:
        host.prepare(t.Trace(root=host.root, base=base_tree(), ops=()))
        asked = {"state": "kill@0", "steps": [{"step": "first"}], "timeout_s": 60.0}
        (answer,) = host.recover([asked])
    assert answer.steps[0].stdout == "[0, 1, 2, 3]\n", answer.steps[0]  # 3 is the listing itself
