"""Exercises that are explained: ``answers.toml`` with strict reading, and crash points that the lab goes back to.

Nothing of a submission runs here: it is a file of words. Whether they are true is measured each time, on a
:class:`Stage`: a subject of the course is run once, really killed where the learner says, or recovered from there.
A crash point has the id that the lab gives it, or a readable name (:func:`points`).
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from crashcourse.result import Outcome, Shown
from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.places import Places
from crashlab.errors import LabError, UsageError
from crashlab.recover import travel
from crashlab.recover.host import Host
from crashlab.reference import record_twice
from crashlab.toml_file import joined, known_keys, parsed, wrong
from longrun.subjects import REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from crashlab.crash.states import CrashState
    from crashlab.observation import RawRecording, Step
    from crashlab.reference import Recorded
    from crashlab.subject import AnySubject

LARGEST_BYTES = 64 * 2**10
NOT_STARTED = "not started"
"""What stands in a starter where an answer is wanted."""
_LONGEST_TEXT = 200
_NEAR = 3


# --- what was written -----------------------------------------------------------------------------


def answers(file: Path, tables: Sequence[str]) -> dict[str, Any]:
    """The tables of an ``answers.toml``. Raises UsageError where it is none, too large, or has other tables."""
    size = file.stat().st_size
    if size > LARGEST_BYTES:
        text = f"{file.name} has {size:,} bytes; an answer has at most {LARGEST_BYTES:,}"
        raise UsageError(text)
    try:
        form = parsed(file, option="--file")
    except (RecursionError, ValueError) as error:  # what tomllib raises beside its own: a number of 5,000 digits
        text = f"{file.name} cannot be read ({error}); an answer is a table of short texts and numbers"
        raise UsageError(text) from error
    known_keys("", form, tables)
    return form


@dataclass(frozen=True)
class Table:
    """One table of the answers, read strictly: each getter raises UsageError that names the key."""

    name: str
    form: Mapping[str, Any]

    @staticmethod
    def of(form: Mapping[str, Any], name: str, keys: Sequence[str]) -> Table:
        """The table ``name``, which has just these ``keys``, and may have ``why``, a text that nobody judges."""
        if name not in form:
            _missing(f"[{name}]")
        table = form[name]
        if not isinstance(table, dict):
            wrong(name, _short(table), f"a table: [{name}]")
        known_keys(name, table, (*keys, "why"))
        if "why" in table and not isinstance(table["why"], str):
            wrong(joined(name, "why"), table["why"], "a text")
        return Table(name, table)

    def _get(self, key: str) -> Any:
        if key not in self.form:
            _missing(joined(self.name, key))
        if self.form[key] == NOT_STARTED:
            text = f"{joined(self.name, key)} is not started"
            raise UsageError(text)
        return self.form[key]

    def text(self, key: str, among: Sequence[str] = ()) -> str:
        """A text, one of ``among`` where that is given."""
        value = self._get(key)
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT or (among and value not in among):
            wrong(joined(self.name, key), _short(value), " or ".join(map(repr, among)) or "a short text")
        return str(value)

    def number(self, key: str, least: int, most: int) -> int:
        """A whole number."""
        value = self._get(key)
        if type(value) is not int or not least <= value <= most:
            wrong(joined(self.name, key), _short(value), f"a whole number from {least} to {most}")
        return int(value)

    def numbers(self, key: str, most: int) -> list[int]:
        """A list of whole numbers from 1 to ``most``, each once, in any order."""
        value = self._get(key)
        if not isinstance(value, list) or any(type(each) is not int or not 1 <= each <= most for each in value):
            wrong(joined(self.name, key), _short(value), f"a list of whole numbers from 1 to {most}")
        return sorted(set(value))


def _missing(place: str) -> NoReturn:
    text = f"{place} is missing"
    raise UsageError(text)


def _short(value: Any) -> Any:
    """A value as a message can show it."""
    text = repr(value)
    return value if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


# --- where to crash -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """One subject, run once without a crash, and ready to be killed and resumed at any point of that run."""

    host: Host
    recorded: Recorded
    places: Mapping[str, Sequence[CrashState]]

    @property
    def trace(self) -> t.Trace:
        """The run."""
        return self.recorded.reference.trace

    @property
    def end(self) -> Any:
        """What the subject's run returned, after its ``view``."""
        return self.recorded.reference.end

    def at(self, table: Table, key: str = "point") -> CrashState:
        """The crash state that the learner names. Raises UsageError where there is none, or more than one."""
        name = table.text(key)
        found = self.places.get(name, ())
        if len(found) == 1:
            return found[0]
        if found:
            hint = f"it is the name of {len(found)} points; take one of {', '.join(each.id for each in found[:_NEAR])}"
        else:
            near = difflib.get_close_matches(name, self.places, n=_NEAR)
            hint = f"near it are {', '.join(near)}" if near else "an id such as kill@7 is always right"
        text = f"{joined(table.name, key)} is {name!r}, which is no crash point of this run: {hint}"
        raise UsageError(text)

    def killed(self, state: CrashState) -> RawRecording:
        """A run that was really killed there: its ops, and the directory that it left. Raises LabError if it was not.

        The kill hits the running process itself; nothing here is computed.
        """
        timeout_s = float(self.host.description["timeout_s"])
        whole = len(self.trace.ops)
        recording = self.host.record(kill=(state.last_op, state.cut_bytes or 0), timeout_s=timeout_s)
        if recording.how != "signal" and state.done != whole:
            text = f"{state.id} did not end by its kill: {recording.how} {recording.error}"
            raise LabError(text)
        return recording

    def recovered(self, state: CrashState) -> Step:
        """The subject's recovery from there, in a process of its own, on the directory that the crash leaves."""
        timeout_s = float(self.host.description["timeout_s"])
        request = {"state": state.id, "steps": [{"step": "first"}], "timeout_s": timeout_s}
        (answer,) = self.host.recover([request])
        return answer.steps[0]


@contextmanager
def stage(subject: AnySubject) -> Iterator[Stage]:
    """The subject on its stage. Raises LabError where it fails without any crash: it is the course's own."""
    with Host(travel.pack(subject)) as host:
        try:
            recorded = record_twice(host, "python")
        except UsageError as error:
            raise LabError(str(error)) from error
        if not recorded.usable:
            text = "; ".join(reason.detail for reason in recorded.unmeasured)
            raise LabError(text)
        host.prepare(recorded.reference.trace, modules=recorded.modules, expected=recorded.reference.end)
        yield Stage(host, recorded, points(recorded.reference.trace))


def points(trace: t.Trace) -> dict[str, list[CrashState]]:
    """The kill states of an agent's run by all their names; a name may stand for several.

    Each has its id. ``start`` is before everything. A request to the model is ``turn5.request``, an act
    ``turn5.tool2.effect``, any other op has the lab's name, such as ``turn4.B.rename``; each with ``+`` for just
    after it, with ``-`` for just before it. A write that is cut is ``turn4.B.data@4096``.
    """
    places, acts = Places(trace), _acts(trace)
    found: defaultdict[str, list[CrashState]] = defaultdict(list)
    for state in kill_states(trace):
        found[state.id].append(state)
        if state.cut_bytes is not None:
            found[places.of(state)].append(state)
            continue
        found[f"{acts.get(state.done) or places.op(state.done)}+" if state.done else "start"].append(state)
        if state.done < len(trace.ops):
            found[f"{acts.get(state.done + 1) or places.op(state.done + 1)}-"].append(state)
    return dict(found)


def _acts(trace: t.Trace) -> dict[int, str]:
    """The names of requests and acts, by the numbers of their ops."""
    turn = tool = 0
    names: dict[int, str] = {}
    for op in trace.ops:
        if not isinstance(op, t.Effect):
            continue
        if op.name == REQUEST:
            turn, tool = turn + 1, 0
            names[op.n] = f"turn{turn}.request"
        else:
            tool += 1
            names[op.n] = f"turn{turn}.tool{tool}.effect"
    return names


# --- what it comes to -----------------------------------------------------------------------------


def judged(case: str, parts: Mapping[str, Callable[[], Shown | str | None]]) -> Outcome:
    """One case of several parts: each is a state that came out right (None), or that is told.

    A UsageError is a learner's mistake of form, and loses its part with that message.
    """
    wrong_parts: dict[str, Shown] = {}
    for name, work in parts.items():
        try:
            found = work()
        except UsageError as error:
            found = str(error)
        if isinstance(found, str):
            found = Shown(kind="wrong-answer", crash_point=name, found=found)
        if found is not None:
            wrong_parts[name] = found
    verdicts = {"consistent": len(parts) - len(wrong_parts), "violation": len(wrong_parts)}
    return Outcome(
        case=case,
        family=case,
        verdicts={name: number for name, number in verdicts.items() if number},
        finding=next(iter(wrong_parts.values()), None),
    )
