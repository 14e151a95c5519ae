"""Programs in any language, with children, with threads, and without an end."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Commands, Subject
from tests.crashlab.here import needs, needs_strace
from tests.use_cases import workshop
from tests.use_cases.cases import kinds, no_verdict, passes

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = Path(__file__).parent / "programs"
AGENT = f"node {shlex.quote(str(PROGRAMS / 'agent.js'))} {{dir}}"
BACKUP = f"sh {shlex.quote(str(PROGRAMS / 'backup.sh'))}"
VERIFY = f"sh {shlex.quote(str(PROGRAMS / 'verify.sh'))} {{dir}}"
COUNTER = f"{shlex.quote(sys.executable)} -S -E {shlex.quote(str(PROGRAMS / 'counter.py'))}"


# --- cases 6 and 7: other languages ---------------------------------------------------------------------------


def agent(**options: Any) -> Commands:
    """The agent in JavaScript."""
    return Commands(AGENT, f"{AGENT} --resume", view="cat {dir}/answer.json", timeout_s=20, **options)


@needs("node")
@needs_strace
def test_an_agent_in_javascript_passes(tmp_path: Path) -> None:
    """Commands say how to start it, to resume it and to see its answer; it tells its effects by lines in a file."""
    report = passes(agent(), tmp_path, faults="kill")
    assert (report.trace.effects, report.trace.acks) == (2, 2)


@needs("node")
@needs_strace
def test_an_agent_in_javascript_that_overwrites_its_notes_is_found(tmp_path: Path) -> None:
    """Emptied notes are no JSON, so it cannot come back."""
    assert kinds(agent(env={"CARELESS": "1"}), tmp_path, faults="kill") == {"kill stuck"}


@needs_strace
@pytest.mark.parametrize(("way", "found"), [("careful", None), ("hasty", {"kill diverged"})])
def test_a_backup_script_is_judged_by_its_own_check(tmp_path: Path, way: str, found: set[str] | None) -> None:
    """Run again after any kill, the careful one completes its copy; the hasty one takes half of it for the whole."""
    subject = Commands(f"{BACKUP} {way} {{dir}}", check=VERIFY, timeout_s=20)
    if found is None:
        passes(subject, tmp_path, faults="kill")
    else:
        assert kinds(subject, tmp_path, faults="kill") == found


# --- case 8: children and threads ------------------------------------------------------------------------------


@needs_strace
def test_children_that_write_are_seen(tmp_path: Path) -> None:
    """Nothing to say: the lab notices that this process did not write what changed."""
    assert passes(Subject(workshop.build), tmp_path, faults="kill").settings.recorder == "strace"


@needs_strace
def test_a_child_that_leaves_half_a_part_is_found(tmp_path: Path) -> None:
    """The part is there, and empty."""
    assert kinds(Subject(workshop.build_hastily), tmp_path, faults="kill") == {"kill diverged"}


def test_threads_need_nothing(tmp_path: Path) -> None:
    """Whichever writes first, every crash state leads to the same end."""
    passes(Subject(workshop.build_in_threads), tmp_path, faults="kill")


# --- case 18: without an end -----------------------------------------------------------------------------------


def service(run: Callable[..., Any], **options: Any) -> Subject:
    """The service; ``check`` judges, since there is no end to compare."""
    return Subject(run, workshop.recover, check=workshop.keeps_what_it_told, **options)


def test_a_service_is_ended_at_an_ack(tmp_path: Path) -> None:
    """Its saves are acked, and at the third the recording ends."""
    assert passes(service(workshop.serve, stop_after_acks=3), tmp_path).trace.acks == 3


def test_a_service_that_tells_too_early_is_found(tmp_path: Path) -> None:
    """Its own check names the kind."""
    assert kinds(service(workshop.serve_early, stop_after_acks=3), tmp_path, faults="kill") == {"kill lost"}


def test_a_service_that_is_not_ended_cannot_be_judged(tmp_path: Path) -> None:
    """The message says what to pass. A run that is recorded gets six times the limit of a recovery."""
    codes, message = no_verdict(service(workshop.serve, timeout_s=0.5), tmp_path, faults="kill")
    assert codes == {"time-limit"}
    assert "stop_after_acks" in message


@needs_strace
@pytest.mark.parametrize(("way", "found"), [("serve", None), ("early", {"kill diverged"})])
def test_a_service_of_commands_is_ended_at_an_ack(tmp_path: Path, way: str, found: set[str] | None) -> None:
    """The same in another process, judged by a command that exits with 1 where a number was lost."""
    subject = Commands(
        f"{COUNTER} {way} {{dir}}",
        f"{COUNTER} recover {{dir}}",
        check=f"{COUNTER} verify {{dir}}",
        stop_after_acks=3,
        timeout_s=20,
    )
    if found is None:
        passes(subject, tmp_path, faults="kill")
    else:
        assert kinds(subject, tmp_path, faults="kill") == found
