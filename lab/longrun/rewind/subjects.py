"""An agent that rewinds and forks as a subject of crashlab: run, back to turn 4, run, fork there too, run the fork.

Run and recovery are one program: each step finds what has been done of it and goes on, so that a kill may fall
anywhere, also while a rewind or a fork is being made. That each effect is done once the lab counts by itself. The check
adds what only this program can know; it reads the folders of points by what the files say, whatever their names are.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crashlab.errors import Violation
from crashlab.subject import Subject
from longrun.caps import Caps
from longrun.errors import ApiError, Damaged, InvalidTranscript, UnsupportedVersion
from longrun.fake_api import FakeApi
from longrun.inbox import DEFAULT_SEED, SHORT_BODY_BYTES, make_inbox
from longrun.ledger import LEDGER_NAME, read_records
from longrun.loop import TASK, Agent
from longrun.messages import canonical, check_messages, normalised, user
from longrun.protocol import Checkpoint, decode, encode
from longrun.rewind import points, timelines
from longrun.rewind.timelines import Goal
from longrun.subjects import REQUEST, STANDING_FACTS, demand, paid, tally
from longrun.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from crashlab.lab import Lab
    from longrun.harness import Harness
    from longrun.inbox import Ticket
    from longrun.personas import Persona

End = dict[str, Any]
BACK_TO = Goal(turn=4)
UNCAPPED = Caps()
FORK_NAME = "other"
_NEVER_FALL = ("tokens_used", "requests_started", "requests_saved", "writer_epoch")


def points_in(directory: Path) -> list[Checkpoint]:
    """All whole points of a directory, by their numbers, whatever the files are called."""
    return sorted(_read(directory)[0].values(), key=lambda point: point.seq)


def _read(directory: Path) -> tuple[dict[str, Checkpoint], int]:
    """The whole points by the digest of their bytes, and how many files are none."""
    whole, broken = {}, 0
    folder = directory / points.POINTS_NAME
    for path in sorted(folder.glob("*.json")):
        data = path.read_bytes()
        try:
            point = decode(data, path)
        except (Damaged, UnsupportedVersion):
            broken += 1
        else:
            whole[hashlib.sha256(data).hexdigest()] = point
    return whole, broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """A harness that keeps points, how it goes back, and where its lines are. A naive module exchanges one piece."""

    harness: Harness
    rewind: Callable[[Harness, Path, Goal], Checkpoint] = timelines.rewind
    fork: Callable[[Harness, Path, str, Goal], Path] = timelines.fork
    line: Callable[[Path], list[Checkpoint]] = points_in


@dataclass(frozen=True)
class Description:
    """The workload. ``first_seq`` is the number of the very first point, for numbers that grow a digit.

    Without ``forks`` it ends with the line to which it went back: enough where a fork would show nothing more.
    With ``beside`` the run is stopped after turn 4, so that it and the fork have all acts still before them; the
    recovery takes the fork first, and so does a second owner while the first one is in the run.
    """

    ways: Ways
    persona: Persona
    seed: int
    inbox: tuple[Ticket, ...]
    first_seq: int = 1
    forks: bool = True
    beside: bool = False

    def work(self, lab: Lab) -> End:
        """From whatever lies in the directory, and from nothing, to the end."""
        return self._work(lab, self._lines_beside if self.beside else self._steps)

    def fork_first(self, lab: Lab) -> End:
        """The same, with the fork before the run, if it is there already."""
        return self._work(lab, self._fork_first)

    def _work(self, lab: Lab, steps: Callable[[Lab, FakeApi, list[dict[str, Any]]], int]) -> End:
        api = FakeApi(self.persona, self.seed, asked=lambda: tally(lab))
        told: list[dict[str, Any]] = []
        try:
            again = steps(lab, api, told)
        except ApiError:
            return {"status": "refused by the server", "refusals": api.refusals, "lines": {}, "told": []}
        return self._end(lab, api, again, told)

    def _steps(self, lab: Lab, api: FakeApi, told: list[dict[str, Any]]) -> int:
        """All that is still to be done; how many requests were made on a line that was finished."""
        ways, again = self.ways, 0
        if self.first_seq > 1 and ways.harness.load(lab.dir) is None:
            self._begin(lab)
        if all(point.timeline == "main" for point in ways.line(lab.dir)):
            again += self._to_the_end(lab, api, lab.dir, told)
            told.append(_acked(lab, "rewind", ways.rewind(ways.harness, lab.dir, BACK_TO)))
        again += self._to_the_end(lab, api, lab.dir, told)
        if not self.forks:
            return again
        place = timelines.place_of(lab.dir, FORK_NAME)
        if not ways.line(place):
            ways.fork(ways.harness, lab.dir, FORK_NAME, BACK_TO)
            told.append(_acked(lab, "fork", ways.line(place)[0]))
        return again + self._to_the_end(lab, api, place, told)

    def _lines_beside(self, lab: Lab, api: FakeApi, told: list[dict[str, Any]]) -> int:
        ways, place = self.ways, timelines.place_of(lab.dir, FORK_NAME)
        if all(point.timeline == "main" for point in ways.line(lab.dir)):
            self._to_the_end(lab, api, lab.dir, told, cap=Caps(turns=4))
            if not ways.line(place):
                ways.fork(ways.harness, lab.dir, FORK_NAME, BACK_TO)
                told.append(_acked(lab, "fork", ways.line(place)[0]))
            told.append(_acked(lab, "rewind", ways.rewind(ways.harness, lab.dir, BACK_TO)))
        return sum(self._to_the_end(lab, api, directory, told) for directory in (lab.dir, place))

    def _fork_first(self, lab: Lab, api: FakeApi, told: list[dict[str, Any]]) -> int:
        place = timelines.place_of(lab.dir, FORK_NAME)
        again = self._to_the_end(lab, api, place, told) if self.ways.line(place) else 0
        return again + self._lines_beside(lab, api, told)

    def _begin(self, lab: Lab) -> None:
        harness = self.ways.harness
        first = Checkpoint(
            run_id="run-preset", task=TASK, messages=(user(TASK),), requests_started=1, seq=self.first_seq
        )
        with harness.lease(lab.dir):
            harness.clear(lab.dir)
            harness.save(lab.dir, first)
        _acked(lab, "preset", first)

    def _to_the_end(
        self, lab: Lab, api: FakeApi, directory: Path, said: list[dict[str, Any]], *, cap: Caps = UNCAPPED
    ) -> int:
        """Resume one line; how many requests it made although it was finished."""

        def told(place: str, value: dict[str, int]) -> None:
            if "seq" in value:
                said.append(_acked(lab, place, agent.state))
            else:
                lab.save_point(place)
                lab.ack(value)
                said.append(value)

        harness = replace(self.ways.harness, cap=cap)
        agent = Agent(directory, harness, api, World(lab, self.inbox), told)
        before = len(api.exchanges)
        agent.resume()
        for name, details in agent.unknown():
            lab.unknown(name, **details)
        return len(api.exchanges) - before if agent.opened and agent.opened.finished else 0

    def _places(self, lab: Lab) -> dict[str, Path]:
        """The directories with points, by the name of their line."""
        return {"main": lab.dir, **({FORK_NAME: timelines.place_of(lab.dir, FORK_NAME)} if self.forks else {})}

    def _end(self, lab: Lab, api: FakeApi, again: int, told: list[dict[str, Any]]) -> End:
        heads, counted, broken = {}, 0, 0
        for line, place in self._places(lab).items():
            head = self.ways.harness.load(place)
            assert head is not None
            heads[line] = head
            begun = self.ways.line(place)[0].requests_started if line == FORK_NAME else 0
            counted += head.requests_started - begun
            broken += _read(place)[1]
        return {
            "status": {line: head.status for line, head in heads.items()},
            "timelines": [re.sub(r"@.*", "@", head.timeline) for head in heads.values()],
            "world": World(lab, self.inbox).view(),
            "lines": {line: normalised(head.messages) for line, head in heads.items()},
            "told": told,
            "refusals": api.refusals,
            # Where points were damaged at rest, with how many requests a fork began may be what is lost.
            "requests_not_counted": 0 if broken else max(0, len(lab.records(REQUEST)) - counted),
            "requests_after_end": again,
        }

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the end is right; effects are counted by the lab itself."""
        if end["refusals"]:
            text = f"the server answered 400: {end['refusals'][0]}"
            raise Violation(text, kind="invalid-transcript")
        for messages in end["lines"].values():
            _require_sound(messages)
        self._require_kept(lab, [*lab.acked, *end["told"]])
        _require_once(lab)
        for directory in self._places(lab).values():
            _require_counters(self.ways.line(directory))
        wanted = ["main@", FORK_NAME][: len(self._places(lab))]
        demand(end["timelines"] == wanted, f"the heads are of the timelines {end['timelines']}, expected {wanted}")
        records = _records(lab)
        known = {record.key: record.outcome for record in records}
        right = "waiting" if "unknown" in known.values() else "done"
        for line, status in end["status"].items():
            demand(status == right, f"the head of {line} is {status}, expected {right}")
        demand(not end["requests_not_counted"], "the server counts more requests than the points")
        demand(not end["requests_after_end"], "a finished line asked the model again")
        expected = lab.expected
        for fact in STANDING_FACTS:
            found, uncrashed = end["world"][fact], expected["world"][fact]
            demand(found == uncrashed, f"{fact}: {found!r:.80}, uncrashed {uncrashed!r:.80}")
        # After an honest unknown the model had to take another way to the same world.
        if all(record.outcome != "unknown" for record in records):
            demand(view(end)["lines"] == expected["lines"], "a transcript differs from the uncrashed one")

    def _require_kept(self, lab: Lab, acks: Sequence[dict[str, Any]]) -> None:
        """Every point that was acked is there, byte for byte; one that was damaged at rest is no longer to be had."""
        whole: set[str] = set()
        broken = 0
        for directory in self._places(lab).values():
            found, bad = _read(directory)
            whole |= found.keys()
            broken += bad
        lost = [ack for ack in acks if "point" in ack and ack["point"] not in whole]
        if len(lost) > broken:
            text = f"{len(lost)} acked points are not there as they were, the first is {lost[0]['seq']}"
            raise Violation(text, kind="lost")
        promised = max((ack["ledger"] for ack in acks if "ledger" in ack), default=0)
        if len(_records(lab)) < promised:
            text = f"acked was record {promised}, the ledger has {len(_records(lab))}"
            raise Violation(text, kind="lost")


def _acked(lab: Lab, place: str, point: Checkpoint) -> dict[str, Any]:
    """Tell the lab of a point that is durable, by its bytes."""
    lab.save_point(place)
    ack = {"seq": point.seq, "timeline": point.timeline, "point": hashlib.sha256(encode(point)).hexdigest()}
    lab.ack(ack)
    return ack


def _require_sound(messages: list[dict[str, Any]]) -> None:
    try:
        check_messages(messages, may_end_with_assistant=True)
    except InvalidTranscript as error:
        text = f"the saved transcript is refused: {error}"
        raise Violation(text, kind="invalid-transcript") from error


def _require_once(lab: Lab) -> None:
    """Nobody is written to, paged or paid twice for one ticket, in however many lines it was decided."""
    for name in ("send_reply", "page_oncall"):
        tickets = Counter(each.detail["ticket"] for each in lab.records(name))
        if twice := [ticket for ticket, count in tickets.items() if count > 1]:
            text = f"{name} was done twice for {', '.join(twice)}"
            raise Violation(text, kind="duplicate-effect")


def _records(lab: Lab) -> list[Any]:
    path = lab.dir / LEDGER_NAME
    return read_records(path, path.read_bytes() if path.exists() else b"", seen=0)[0]


def _require_counters(line: Sequence[Checkpoint]) -> None:
    """No counter of a directory ever falls, and each answer is paid for once more than all before it."""
    by_seq = {point.seq: point for point in line}
    for point in line:
        before = by_seq.get(point.seq - 1)
        if before is None:
            continue
        for name in _NEVER_FALL:
            was, now = getattr(before, name), getattr(point, name)
            demand(now >= was, f"{name} fell from {was} to {now} at point {point.seq}")
        parent = by_seq.get(point.parent or 0, before)
        if len(point.messages) > len(parent.messages):
            cost = paid(point.messages) - paid(parent.messages)
            demand(point.tokens_used >= before.tokens_used + cost, f"point {point.seq} does not count what it cost")


def view(end: End) -> End:
    """What counts in an end: the same, with the digests of its transcripts, which are long, in their place."""
    said = {name: value for name, value in end.items() if name != "told"}
    lines = {line: hashlib.sha256(canonical(text).encode()).hexdigest() for line, text in end["lines"].items()}
    return {**said, "lines": lines}


def describe(  # noqa: PLR0913 - all but one by keyword
    ways: Ways,
    *,
    name: str,
    persona: Persona = "careful",
    seed: int = DEFAULT_SEED,
    body_bytes: int = SHORT_BODY_BYTES,
    first_seq: int = 1,
    forks: bool = True,
) -> Subject:
    """The subject that runs, rewinds and forks with ``ways`` on the inbox of ``seed``, its letters so long."""
    inbox = make_inbox(seed, body_bytes=body_bytes)
    description = Description(ways, persona, seed, inbox, first_seq, forks)
    return Subject(description.work, check=description.check, view=view, name=name)


def describe_beside(ways: Ways, *, name: str, persona: Persona = "careful", seed: int = DEFAULT_SEED) -> Subject:
    """The subject in which the run and its fork are at work at the same time, if there is a second owner."""
    inbox = make_inbox(seed, body_bytes=SHORT_BODY_BYTES)
    description = Description(ways, persona, seed, inbox, beside=True)
    return Subject(description.work, description.fork_first, check=description.check, view=view, name=name)
