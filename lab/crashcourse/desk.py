"""The desk at which a learner's harness works: a model to ask, tools to use, a directory, and the correct pieces.

A submission cannot import the agent of the course, so everything that it needs is handed to it as one object, in
plain dictionaries and strings. What is behind it is the agent's own: the strict fake server, the world with its own
record, the save of protocol v2. Nothing here decides anything: when to save, and what, is the learner's business.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from longrun.checkpoint import correct
from longrun.errors import ApiError, Damaged, IncompleteResponse, InvalidInput
from longrun.fake_api import FakeApi
from longrun.files import remove_temporary, sync_directory
from longrun.inbox import DEFAULT_SEED, SHORT_BODY_BYTES, make_inbox
from longrun.ledger import LEDGER_NAME, open_ledger
from longrun.loop import MAX_TOKENS, MODEL_NAME, TASK
from longrun.protocol import NO_USAGE, Checkpoint, OpenCall
from longrun.resume import trusting
from longrun.subjects import REQUEST
from longrun.tools import DEFINITIONS, TOOLS, act_key
from longrun.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from longrun.inbox import Ticket
    from longrun.knobs import Knobs
    from longrun.messages import Message
    from longrun.personas import Persona
    from longrun.world import Effect

State = dict[str, Any]
PUBLIC_SEED = 1
KINDS = ("outage", "charge", "duplicate", "spam")
_LEGACY = "legacy"
"""Where tokens are booked whose four counters nobody has told, as those of version 1 are."""


class Place(Protocol):
    """What the desk needs of a lab: its directory, its record of effects, and the ways to tell it things.

    The lab itself is one; :class:`Corner` is another.
    """

    @property
    def dir(self) -> Path:
        """The directory whose files survive."""

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """Do something to the outside world."""

    def records(self, name: str | None = None) -> Sequence[Effect]:
        """What was done to it."""

    def ack(self, value: Any = None) -> None:
        """A promise."""

    def save_point(self, name: str) -> None:
        """All on disk is complete."""

    def unknown(self, name: str, *, key: str | None = None, **detail: Any) -> None:
        """A person must decide."""


def inbox_seed(seed: int, *, same: bool = False) -> int:
    """The seed of the inbox for a twin: the default inbox for the public seed, another one for any other.

    Each has an outage and a charge, and at most four letters, so that every act happens and a check is
    short. With ``same`` their order is that of the default inbox, too: then all twins have equal crash points.

    >>> inbox_seed(PUBLIC_SEED)
    0
    """
    if seed == PUBLIC_SEED:
        return DEFAULT_SEED
    for tried in range(1 + seed * 1_000, 1 + (seed + 20) * 1_000):
        kinds = [_kind(ticket) for ticket in make_inbox(tried, body_bytes=0)]
        if same and kinds == list(KINDS):
            return tried
        if not same and len(kinds) <= len(KINDS) and kinds.count("outage") == 1 and "charge" in kinds:
            return tried
    text = f"no inbox that is like the default one near seed {seed}"  # of 20,000 seeds about 160 are
    raise LookupError(text)


def _kind(ticket: Ticket) -> str:
    for word, kind in (("Duplicate of", "duplicate"), ("is down", "outage"), ("harged twice", "charge")):
        if word in ticket.subject:
            return kind
    return "spam"


@dataclass(eq=False)
class Desk:
    """What a learner's function receives.

    ``dir`` is the directory whose files survive, ``task`` the user's words. ``tools`` says of each tool its nature
    (``read-only``, ``idempotent``, ``non-idempotent``) and whether ``look_up`` can find out if it was done.
    """

    dir: Path
    task: str
    tools: dict[str, dict[str, Any]]
    _place: Place
    _world: World
    _api: FakeApi
    _load: Callable[[Path], Checkpoint | None]
    _with_ledger: bool = True
    _kept: dict[str, Any] = field(default_factory=dict)

    # --- the model -----------------------------------------------------------------------------

    def ask(self, messages: list[Message]) -> dict[str, Any]:
        """Send one request, and get the model's answer: ``content``, ``stop_reason``, ``usage``.

        Raises ConnectionError where the line broke, and ValueError with the server's words where it answers 400.
        """
        request = {"model": MODEL_NAME, "max_tokens": MAX_TOKENS, "tools": DEFINITIONS, "messages": _plain(messages)}
        try:
            return copy.deepcopy(self._api.reply(request))
        except IncompleteResponse as error:
            raise ConnectionError(str(error)) from error
        except ApiError as error:
            raise ValueError(str(error)) from error

    # --- the tools -----------------------------------------------------------------------------

    def do(self, name: str, input: Mapping[str, Any], key: str = "") -> str:  # noqa: A002 - the API's own word
        """Use a tool, and get the text of its result. ``key`` is the act's, for tools that take one.

        Raises ValueError for a tool that is not there, or an input that does not fit.
        """
        tool = TOOLS.get(name)
        if tool is None:
            text = f"there is no tool {name!r}"
            raise ValueError(text)
        try:
            tool.check(self._world, dict(input))
        except InvalidInput as error:
            raise ValueError(str(error)) from error
        return tool.run(self._world, dict(input), key or self.key(name, input) or "")

    def look_up(self, name: str, input: Mapping[str, Any]) -> str | None:  # noqa: A002 - the API's own word
        """The text of the result of an act that was done, or None: it was not, or nobody can tell (see ``tools``)."""
        find = TOOLS[name].find
        return None if find is None else find(self._world, dict(input))

    def key(self, name: str, input: Mapping[str, Any]) -> str | None:  # noqa: A002 - the API's own word
        """The name of the act: run, ticket, tool. The same whoever names it again; None for a read."""
        return act_key(self.run_id, TOOLS[name], {"input": dict(input)})

    @property
    def run_id(self) -> str:
        """The name of this run; a new one until something was saved or loaded."""
        if "run_id" not in self._kept:
            self._kept["run_id"] = f"run-{os.urandom(8).hex()}"
        return str(self._kept["run_id"])

    @property
    def refusals(self) -> list[str]:
        """What the server said where it answered 400."""
        return self._api.refusals

    # --- telling -------------------------------------------------------------------------------

    def ack(self, value: Any) -> None:
        """Promise that ``value`` is saved."""
        self._place.ack(value)

    def save_point(self, name: str) -> None:
        """Say that all on disk is complete here, such as ``turn5.A``."""
        self._place.save_point(name)

    def unknown(self, name: str, input: Mapping[str, Any]) -> None:  # noqa: A002 - the API's own word
        """Report that this act may have been done, and that a person must decide."""
        self._place.unknown(name, **input)

    # --- files ---------------------------------------------------------------------------------

    def save(self, state: Mapping[str, Any]) -> None:
        """Keep ``state`` in ``checkpoint.json``, durable when this returns, and tell the lab.

        What ``state`` leaves out is filled in: number of the save, run, keys of the calls. Open calls without marks
        count as begun, since nobody will know better. Raises ValueError for a state that is none.
        """
        checkpoint = self._checkpoint(state)
        correct.save(self.dir, checkpoint)
        self._kept["seq"] = checkpoint.seq
        if checkpoint.seq == 1 and self._with_ledger and not (self.dir / LEDGER_NAME).exists():
            open_ledger(self.dir, None).close()  # the reference's, for whoever resumes
        self.save_point(_place_of(checkpoint))
        if self._with_ledger:
            self.ack({"seq": checkpoint.seq})
        else:
            known = digests(self.dir)
            seen = checkpoint.ledger_seen
            self.ack({"seq": checkpoint.seq, "ledger": seen, "digest": known[seen] if seen < len(known) else ""})

    def load(self) -> State | None:
        """The latest saved state, None where nothing was ever saved.

        Raises Damaged, with the file and what is wrong about it, and then has changed nothing: also where a ledger lies
        there without a checkpoint. What a killed process has left half written is removed.
        """
        saved = self._load(self.dir)
        if saved is None and (self.dir / LEDGER_NAME).exists():
            raise Damaged(self.dir / LEDGER_NAME, "a ledger without a checkpoint: the checkpoint is lost")
        remove_temporary(self.dir)
        if saved is None:
            return None
        sync_directory(self.dir)  # the name that was read may be in the page cache only
        self._kept = {"run_id": saved.run_id, "seq": saved.seq}
        state: State = _plain(saved.to_json())
        return state

    def _checkpoint(self, state: Mapping[str, Any]) -> Checkpoint:
        form = checked_state(state)
        seq = int(self._kept.get("seq", 0)) + 1
        self._kept["run_id"] = form.get("run_id", self.run_id)
        usage = {**NO_USAGE, **form.get("usage", {})}
        unknown = form["tokens_used"] - sum(usage.values())
        if unknown:
            usage[_LEGACY] = usage.get(_LEGACY, 0) + unknown
        filled = {
            "task": self.task,
            "requests_saved": form["turns"],
            **form,
            "run_id": self.run_id,
            "seq": seq,
            "parent": seq - 1 or None,
            "usage": usage,
            "messages": tuple(form["messages"]),
            "pending_tool_use": tuple(self._open_call(call) for call in form["pending_tool_use"]),
        }
        return Checkpoint(**filled)

    def _open_call(self, call: dict[str, Any]) -> OpenCall:
        key = call.get("key") or (self.key(call["name"], call["input"]) if call["name"] in TOOLS else None)
        started, attempts = call.get("started", True), call.get("attempts", 1)
        return OpenCall(
            id=call["id"], name=call["name"], input=call["input"], key=key, attempts=attempts, started=started
        )


_DEMANDED: dict[str, tuple[type, ...]] = {
    "messages": (list,),
    "pending_tool_use": (list,),
    "turns": (int,),
    "requests_started": (int,),
    "tokens_used": (int,),
}
_OPTIONAL: dict[str, tuple[type, ...]] = {
    "version": (int,),
    "run_id": (str,),
    "status": (str,),
    "end": (dict, type(None)),
    "seq": (int,),
    "parent": (int, type(None)),
    "timeline": (str,),
    "writer_epoch": (int,),
    "requests_saved": (int,),
    "usage": (dict,),
    "context_tokens": (int,),
    "ledger_seen": (int,),
}


def checked_state(state: Any) -> State:
    """A copy of a state that may be saved. Raises ValueError that names the field which is missing, odd or unknown."""
    if not isinstance(state, dict):
        text = f"the state is {state!r:.60}; expected a dictionary"
        raise ValueError(text)  # noqa: TRY004 - one error for all that is wrong about a state
    known = {**_DEMANDED, "task": (str,), **_OPTIONAL}
    for name in state:
        if name not in known:
            text = f"the state has a field {name!r} that nobody knows; known: {', '.join(known)}"
            raise ValueError(text)
    for name, kinds in known.items():
        if name not in state and name in _DEMANDED:
            text = f"the state has no field {name!r}"
            raise ValueError(text)
        if name in state and type(state[name]) not in kinds:
            text = f"state[{name!r}] is {state[name]!r:.60}; expected {' or '.join(kind.__name__ for kind in kinds)}"
            raise ValueError(text)
    _demand_each("a message", state["messages"], {"role": str})
    _demand_each("an open call", state["pending_tool_use"], {"id": str, "name": str, "input": dict})
    copied: State = _plain(state)
    return copied


def _demand_each(what: str, listed: list[Any], kinds: Mapping[str, type]) -> None:
    for each in listed:
        if not isinstance(each, dict) or any(type(each.get(name)) is not kind for name, kind in kinds.items()):
            text = f"{what} is {each!r:.80}; expected a dictionary with {', '.join(kinds)}"
            raise ValueError(text)


def _plain(value: Any) -> Any:
    """A copy of a JSON value: whoever changes theirs later does not change what was sent or saved."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except TypeError as error:
        text = f"not JSON: {error}"
        raise ValueError(text) from error


def digests(directory: Path) -> list[str]:
    """Digests of the ledger's first 0, 1, 2 ... whole lines, whatever stands in them."""
    path = directory / LEDGER_NAME
    whole = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    digest = hashlib.sha256()
    found = [digest.hexdigest()[:16]]
    for line in whole:
        digest.update(line + b"\n")
        found.append(digest.hexdigest()[:16])
    return found


def _place_of(saved: Checkpoint) -> str:
    """The name of a save point, by what is saved: ``R``, or ``turn5.A`` with open calls, ``turn5.B`` without."""
    turn = sum(message.get("role") == "assistant" for message in saved.messages)
    if saved.status != "running":
        return f"turn{turn}.E"
    if not turn and not saved.pending_tool_use:
        return "turn0.R"
    return f"turn{turn}.{'A' if saved.pending_tool_use else 'B'}"


def desk_of(  # noqa: PLR0913 - all but one by keyword
    place: Place,
    *,
    seed: int = DEFAULT_SEED,
    persona: Persona = "careful",
    knobs: Mapping[int, Knobs] | None = None,
    body_bytes: int = SHORT_BODY_BYTES,
    strict: bool = False,
    with_ledger: bool = True,
    task: str = TASK,
    inbox: Sequence[Ticket] | None = None,
) -> Desk:
    """The desk at ``place``, a lab or a part of one, with the inbox of ``seed``, or another ``inbox`` and ``task``.

    Each request is an effect of one name and key: the lab's record of them is the server's tally. ``strict``: its
    ``load`` refuses what no correct writer has saved; without it, ``load`` believes whatever is whole. Without
    ``with_ledger`` the ledger is the learner's business.
    """
    api = FakeApi(persona, seed, knobs=knobs or {}, asked=lambda: _tally(place))
    return Desk(
        dir=place.dir,
        task=task,
        tools={name: {"nature": tool.nature, "look_up": tool.find is not None} for name, tool in TOOLS.items()},
        _place=place,
        _world=World(place, make_inbox(seed, body_bytes=body_bytes) if inbox is None else inbox),
        _api=api,
        _load=correct.load if strict else trusting.load,
        _with_ledger=with_ledger,
    )


def _tally(place: Place) -> None:
    place.effect(REQUEST, key="requests")


@dataclass(frozen=True)
class Corner:
    """A part of a lab: a folder of its own, and effects under names of their own, such as ``dirty:send_reply``.

    So several runs in one process stay apart in the lab's one record.
    """

    lab: Any
    name: str

    @property
    def dir(self) -> Path:
        """Its folder, made when it is first asked for."""
        folder: Path = self.lab.dir / self.name
        folder.mkdir(exist_ok=True)
        return folder

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """Do it, under its own name. The receipt counts what was done here, as if there were nothing else."""
        receipt = self.lab.effect(f"{self.name}:{name}", key=key, **detail)
        done = [each.receipt for each in self.records() if each.counted]
        return f"{name}-{1 + done.index(receipt)}"

    def records(self, name: str | None = None) -> list[Any]:
        """What was done here."""
        prefix = f"{self.name}:"
        here = (each for each in self.lab.records() if each.name.startswith(prefix))
        renamed = (dataclasses.replace(each, name=each.name.removeprefix(prefix)) for each in here)
        return [each for each in renamed if name in (None, each.name)]

    def ack(self, value: Any = None) -> None:
        """A promise that nobody judges."""

    def save_point(self, name: str) -> None:
        """A save point that nobody judges."""

    def unknown(self, name: str, *, key: str | None = None, **detail: Any) -> None:
        """A question that nobody judges."""
