"""The event log as subjects of crashlab: bare, as a list that only grows; and with an agent that works on it.

An event of the bare log is a ``note``. What is acked was promised, so no crash may lose it, and no damage may hide it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab.errors import Violation
from crashlab.subject import Log, Subject
from longrun.errors import ApiError, InvalidTranscript
from longrun.eventlog.agent import LogAgent, asking
from longrun.eventlog.conduct import CONDUCT
from longrun.eventlog.design import DESIGN
from longrun.eventlog.events import Note
from longrun.eventlog.opening import Opening, inspect, open_log
from longrun.eventlog.project import context, effects, messages, request_sha256
from longrun.eventlog.snapshot import write_snapshot
from longrun.fake_api import FakeApi
from longrun.inbox import DEFAULT_SEED, SHORT_BODY_BYTES, make_inbox
from longrun.loop import TASK
from longrun.messages import check_messages
from longrun.subjects import End, check_world, demand
from longrun.tools import TOOLS
from longrun.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from crashlab.lab import Lab
    from longrun.eventlog.conduct import Conduct
    from longrun.eventlog.design import Design
    from longrun.eventlog.log import EventLog
    from longrun.eventlog.project import Act
    from longrun.eventlog.record import Record
    from longrun.inbox import Ticket
    from longrun.knobs import Knobs
    from longrun.personas import Persona

SESSION = "s"
LONG = "0123456789abcdef" * 400
SINGLE: tuple[list[Any], ...] = ([{"n": 0}], [{"n": 1, "text": LONG}], [{"n": 2}], [{"n": 3}])
GROUPS: tuple[list[Any], ...] = (
    [{"n": 0}, {"n": 1}],
    [{"n": 2}, {"n": 3, "text": LONG}, {"n": 4, "text": LONG[:3000]}, {"n": 5}],
    [{"n": 6}, {"n": 7}, {"n": 8}],
)


def filling(number: int, size: int) -> dict[str, Any]:
    """A note whose line, with its LF, has ``size`` bytes in a log of less than ten records."""
    return {"n": number, "text": "x" * (size - NOTE_BYTES)}


BLOCK_BYTES, NOTE_BYTES, STARTS_BYTES, SEGMENT_BYTES = 4096, 154, 332, 191
"""Of a block; of a note's line but for its text; of ``session/start`` and ``writer/start``; of ``segment/start``."""
BLOCKS: tuple[list[Any], ...] = (
    [filling(0, BLOCK_BYTES - STARTS_BYTES), filling(1, BLOCK_BYTES)],
    [filling(2, BLOCK_BYTES - SEGMENT_BYTES), filling(3, BLOCK_BYTES), filling(4, BLOCK_BYTES)],
)
"""Records that begin and end with a block: one that is written into another file is a whole line there."""


@dataclass(eq=False)
class Handle:
    """A log as a program holds it that goes on after an error: it opens a broken one again.

    After a failed append nobody knows how much of it is there. So whoever repeats it looks first.
    """

    root: Path
    opening: Opening
    log: EventLog
    snapshots: bool = False
    segments: bool = False
    unsure: bool = False

    def append(self, events: list[Any]) -> None:
        """Append the batch in one flush, and promise it; what an attempt that failed has left there counts."""
        if self.unsure:
            self._look()
            have = self.load()
            there = next(n for n in range(len(events), -1, -1) if events[:n] == have[len(have) - n :])
            events = events[there:]
        self.unsure = True
        if self.segments and self.load():
            self.log.rotate(force=True)
        for event in events:
            self.log.append(Note(note=event))
        self.log.barrier()
        if self.snapshots:
            self.log.rotate(force=True)
            write_snapshot(self.log)
        self.unsure = False

    def _look(self) -> None:
        """Open a broken log again: it is read anew, and what was not promised is written anew."""
        if self.log.broken:
            self.log.abandon()
            self.log = open_log(self.root, SESSION, self.opening)

    def load(self) -> list[Any]:
        """All notes."""
        return [record.data for record in self.log.records if record.type == "note"]

    def close(self) -> None:
        """Let the next writer in."""
        self.log.close()


def bare(
    design: Design = DESIGN,
    *,
    name: str,
    values: tuple[list[Any], ...] = SINGLE,
    snapshots: bool = False,
    segments: bool = False,
) -> Log:
    """The subject that appends ``values`` to a log of ``design``.

    With ``segments`` each goes into a segment of its own; with ``snapshots`` each segment is ended, and known by one.
    """

    def opened(lab: Lab) -> Handle:
        opening = Opening(design=design, writer="w", clock=lambda: 0)
        return Handle(lab.dir, opening, open_log(lab.dir, SESSION, opening), snapshots, segments)

    return Log(Handle.append, Handle.load, open=opened, close=Handle.close, name=name, values=values)


def inspected(design: Design = DESIGN, *, name: str, values: tuple[list[Any], ...] = SINGLE) -> Log:
    """The same log, of which ``load`` is an inspection: it opens nothing, and must change nothing."""

    def appended(directory: Path, events: list[Any]) -> None:
        with open_log(directory, SESSION, Opening(design=DESIGN, writer="w", clock=lambda: 0)) as log:
            for event in events:
                log.append(Note(note=event))
            log.barrier()

    def looked(directory: Path) -> list[Any]:
        found = inspect(directory, SESSION, Opening(design=design))
        return [record.data for record in found.records if record.type == "note"]

    return Log(appended, looked, name=name, values=values)


# --- with an agent ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Description:
    """An agent of one conduct on one inbox, under a :class:`crashlab.Lab`."""

    conduct: Conduct
    persona: Persona
    inbox: tuple[Ticket, ...]
    knobs: Mapping[int, Knobs]
    keep: int | None = None
    tells: bool = True

    def run(self, lab: Lab) -> End:
        """The workload."""
        return self._work(lab, {})

    def resume(self, lab: Lab) -> End:
        """The recovery: from whatever lies in the directory to the end."""
        return self._work(lab, self.knobs)

    def _work(self, lab: Lab, knobs: Mapping[int, Knobs]) -> End:
        def told(place: str, promised: dict[str, Any] | None) -> None:
            lab.save_point(place)
            if promised is not None and self.tells:
                lab.ack(promised)

        api, world = FakeApi(self.persona, knobs=knobs), World(lab, self.inbox)
        opening = Opening(design=self.conduct.design, ask=asking(world, TOOLS), writer="w", clock=lambda: 0)
        with open_log(lab.dir, SESSION, opening) as log:
            agent = LogAgent(log, api, world, conduct=self.conduct, told=told)
            try:
                status = agent.triage(TASK)
                if self.keep is not None and status == "completed":
                    agent.compact("The inbox is triaged.", keep=self.keep)
            except ApiError:
                status = "refused by the server"
            return self._end(lab, log, api, world, status)

    def _end(self, lab: Lab, log: EventLog, api: FakeApi, world: World, status: str) -> End:
        unknown = [act for act in latest(effects(log.records)) if act.outcome == "unknown" and act.policy == "ask"]
        for act in unknown:
            lab.unknown(act.name, **act.input)
        return {
            "status": status,
            "world": world.view(),
            "unknown": [act.name for act in unknown],
            "refusals": api.refusals,
            "transcript": messages(log.records),
            "history": [record.sum for record in log.records],
            "other_requests": other_requests(log.records),
        }

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the end is right; effects are counted by the lab itself."""
        if end["refusals"]:
            text = f"the server answered 400: {end['refusals'][0]}"
            raise Violation(text, kind="invalid-transcript")
        try:
            check_messages(end["transcript"], may_end_with_assistant=True)
        except InvalidTranscript as error:
            text = f"the transcript is refused: {error}"
            raise Violation(text, kind="invalid-transcript") from error
        for ack in lab.acked:
            seq, history = ack["seq"], end["history"]
            if seq >= len(history) or history[seq] != ack["sum"]:
                text = f"record {seq} with the sum {ack['sum']} was promised; the log has {len(history)} others"
                raise Violation(text, kind="lost")
        demand(not end["other_requests"], f"requests cannot be made again: {end['other_requests']}")
        demand(end["status"] == "completed", f"the last turn is {end['status']}")
        check_world(lab, end)


def latest(acts: Iterable[Act]) -> list[Act]:
    """Of each key, and of each call without one, what became of it last."""
    return list({act.key or act.call_id: act for act in acts}.values())


def other_requests(records: Sequence[Record]) -> list[int]:
    """The ``model/call`` records whose request cannot be made again, byte for byte, from what stands before them."""
    return [
        record.seq
        for record in records
        if record.type == "model/call" and request_sha256(context(records, record.seq)) != record.data["request_sha256"]
    ]


def view(end: End) -> End:
    """What counts in an end: histories differ by their ids, and transcripts by what a crash adds."""
    return {name: value for name, value in end.items() if name not in ("transcript", "history")}


def agent_on_log(  # noqa: PLR0913 - all but one by keyword
    conduct: Conduct = CONDUCT,
    *,
    name: str,
    persona: Persona = "careful",
    seed: int = DEFAULT_SEED,
    knobs: Mapping[int, Knobs] | None = None,
    keep: int | None = None,
    tells: bool = True,
) -> Subject:
    """The subject that triages the short inbox of ``seed`` on a log.

    ``knobs`` are turned at the server that a resumed agent meets; ``keep`` has it compact to so many records at its
    end; with ``tells`` False nobody is told what was promised, so that effects alone can show a loss.
    """
    inbox = make_inbox(seed, body_bytes=SHORT_BODY_BYTES)
    description = Description(conduct, persona, inbox, knobs or {}, keep, tells)
    return Subject(description.run, description.resume, check=description.check, view=view, name=name)


single = bare(name="eventlog/correct, single appends")
grouped = bare(name="eventlog/correct, group commit", values=GROUPS)
agent = agent_on_log(name="eventlog/correct, an agent")
agent_hasty = agent_on_log(name="eventlog/correct, an agent, hasty model", persona="hasty")
single_inspected = inspected(name="eventlog/correct, inspected")
agent_compacted = agent_on_log(name="eventlog/correct, an agent that compacts", keep=3)
blocks = bare(name="eventlog/correct, a segment each, of whole blocks", values=BLOCKS, segments=True)
rotated = bare(name="eventlog/correct, a segment and a snapshot each", values=GROUPS[:2], snapshots=True)
