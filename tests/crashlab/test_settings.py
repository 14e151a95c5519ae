"""Arguments, environment, defaults: what wins, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashlab.errors import UsageError
from crashlab.settings import resolve
from crashlab.subject import FULL, QUICK, Budget, Policy


def test_defaults() -> None:
    """Without anything: kill and power on three file systems, quick, seed 0, .crashlab."""
    asked = resolve(jobs=1)
    assert ([str(fault) for fault in asked.faults], asked.budget, asked.seed, asked.out) == (
        ["kill", "power"],
        QUICK,
        0,
        Path(".crashlab"),
    )
    assert asked.profile == "ext4,xfs,btrfs"


def test_environment_fills_in_and_the_argument_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """CRASHLAB_* are read where no argument is given."""
    for name, value in {"BUDGET": "full", "FAULTS": "kill[cut=byte]", "OUT": "/there", "JOBS": "3"}.items():
        monkeypatch.setenv(f"CRASHLAB_{name}", value)
    asked = resolve()
    assert ([str(fault) for fault in asked.faults], asked.budget, asked.jobs) == (["kill[cut=byte]"], FULL, 3)
    assert asked.out == Path("/there")
    given = resolve(budget="quick", faults="kill", out="here", jobs=1)
    assert ([str(fault) for fault in given.faults], given.budget, given.jobs) == (["kill"], QUICK, 1)
    assert given.out == Path("here")


def test_xdist_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under many xdist workers each check uses one."""
    monkeypatch.delenv("CRASHLAB_JOBS", raising=False)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "10000")
    assert resolve().jobs == 1


def test_a_policy_is_laid_over_the_default_of_its_fault() -> None:
    """Unset fields come from what kill demands."""
    asked = resolve(policy={"kill": Policy(effects="at-least-once")}, jobs=1)
    assert asked.policy_of("kill") == Policy(refuse=False, acked="keep", effects="at-least-once", evidence="keep")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": "huge"}, "unknown budget 'huge'"),
        ({"jobs": 0}, "jobs is 0"),
        ({"recorder": "dtrace"}, "unknown recorder 'dtrace'; known: auto, python, strace"),
        ({"policy": {"power": Policy()}, "faults": "kill"}, "policy for 'power'"),
        ({"policy": {"damage": Policy()}}, "policy for 'damage'"),
        ({"policy": {"kill": "once"}}, "policy for 'kill'"),
        ({"faults": "powerloss"}, "unknown fault 'powerloss'"),
        ({"profile": "xsf"}, "unknown profile 'xsf'; did you mean 'xfs'"),
    ],
)
def test_what_means_nothing_is_refused(arguments: dict[str, object], message: str) -> None:
    """Each mistake is named with what was found."""
    with pytest.raises(UsageError, match=message):
        resolve(**arguments)  # type: ignore[arg-type]  # the wrong types are the point


def test_a_budget_of_ones_own() -> None:
    """A Budget passes through; its shape is in the report's settings."""
    asked = resolve(budget=Budget(states=7), jobs=1)
    assert asked.shown(recovery="isolated", recorder="python").budget["states"] == 7


def test_a_misspelt_argument_is_refused() -> None:
    """It must not be passed over: the check would be another one than was meant."""
    with pytest.raises(UsageError, match="unknown argument 'fault'; did you mean 'faults'"):
        resolve(fault="kill")  # type: ignore[call-arg]  # the mistake under test
