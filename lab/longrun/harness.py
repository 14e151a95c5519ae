"""The exchangeable pieces of the durable agent loop.

The loop is the same for every module of a lesson; a naive module exchanges one piece, and that is
its one fault. ``save_points`` are the kinds of save that are made: R at each opening, A after an
answer, S before each act, B when all calls are answered, E at the end.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longrun import booking, files, v1
from longrun.caps import Caps
from longrun.effects.acting import act, close
from longrun.lease import Lease
from longrun.ledger import LEDGER_NAME, open_ledger
from longrun.model import require_complete
from longrun.protocol import CHECKPOINT_NAME
from longrun.resume.reconcile import decide, reopen
from longrun.tools import act_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from longrun.lease import Owner
    from longrun.ledger import Acts
    from longrun.loop import Agent
    from longrun.messages import Block
    from longrun.protocol import Checkpoint, OpenCall
    from longrun.resume.reconcile import Decision, Evidence
    from longrun.tools import Tool

SAVE_POINTS = frozenset({"R", "A", "S", "B", "E"})


def _leave_to_the_loop(_agent: Agent) -> None:
    """Calls that are open at an opening are answered as all others are."""


def _history(directory: Path) -> list[str]:
    """The files by which a directory holds a run already."""
    return [name for name in (CHECKPOINT_NAME, LEDGER_NAME, v1.EFFECTS_NAME) if (directory / name).exists()]


def _alone(_acts: Acts, _call: OpenCall) -> AbstractContextManager[bool]:
    """The run has one timeline, so nobody else can do, or have begun, an act of it."""
    return nullcontext(False)  # noqa: FBT003 - the answer: begun by nobody else


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """The pieces. All but ``save`` and ``load`` have their correct form as a default.

    * ``save(directory, checkpoint)`` is durable when it returns.
    * ``load(directory)`` gives None for nothing there.
    * ``convert(directory)`` makes an older protocol's files this one's, and leaves all others alone.
    * ``reopen(checkpoint)`` is what a resume makes of a checkpoint before it saves it and goes on.
    * ``reconcile(agent)`` is what a resume then does with open calls on its own, before the loop.
    * ``decide(evidence)`` is the row of the table for one open call.
    * ``accept(response)`` raises IncompleteResponse unless the answer is whole.
    * ``book(checkpoint, gain, point)`` raises the counters for an answer.
    * ``key(run_id, tool, call)`` is the name of the act that a call names; None for a read.
    * ``act(agent, call, tool, place)`` does an act, with what is saved before and after it, and answers the call.
    * ``close(agent, results)`` saves the answers to all open calls.
    * ``ledger(directory, checkpoint)`` opens the record of acts; a new one for None.
    * ``cap(checkpoint, opened)`` is the end of a run that must not ask again, None where it may.
    * ``lease(directory)`` is held for the length of the run.
    * ``history(directory)`` names what a plain start would write over.
    * ``clear(directory)`` removes what killed processes left, once the lease is held.
    * ``claim(acts, call)`` is held around one call; True where another timeline has begun the same act.
    """

    save: Callable[[Path, Checkpoint], None]
    load: Callable[[Path], Checkpoint | None]
    save_points: frozenset[str] = SAVE_POINTS
    convert: Callable[[Path], None] = v1.convert
    reopen: Callable[[Checkpoint], Checkpoint] = reopen
    reconcile: Callable[[Agent], None] = _leave_to_the_loop
    decide: Callable[[Evidence], Decision] = decide
    accept: Callable[[dict[str, Any]], dict[str, Any]] = require_complete
    book: Callable[[Checkpoint, booking.Gain, str], Checkpoint] = booking.book
    key: Callable[[str, Tool, Block], str | None] = act_key
    act: Callable[[Agent, OpenCall, Tool, str], Block] = act
    close: Callable[[Agent, list[Block]], None] = close
    ledger: Callable[[Path, Checkpoint | None], Acts] = open_ledger
    cap: Callable[[Checkpoint, Checkpoint | None], dict[str, str] | None] = Caps()  # noqa: RUF009 - it is frozen
    lease: Callable[[Path], Owner] = Lease.take
    history: Callable[[Path], list[str]] = _history
    clear: Callable[[Path], None] = files.remove_temporary
    claim: Callable[[Acts, OpenCall], AbstractContextManager[bool]] = _alone
