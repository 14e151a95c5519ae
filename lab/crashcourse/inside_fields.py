"""Exercise 2.1 in the child: an agent that saves the six fields of version 1, and a resume that misses one of them.

The agent of lesson 3 resumes. Between it and the file stands a lenient reader: a field that is not there is filled in
as programs do it, with its own version, an empty text, zero, nothing. So what a field is for shows in what goes wrong
without it. All variants go on from one crash, each in a directory and a world of its own. The model names one
call at a time, as version 1 knows it. No submission is ever loaded here.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from longrun import files
from longrun.caps import TURN_LIMIT, Caps
from longrun.checkpoint import correct
from longrun.errors import ApiError, LongrunError
from longrun.fake_api import FakeApi, usage_of
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.loop import MAX_TOKENS, MODEL_NAME, TASK, Agent
from longrun.messages import canonical, tool_result, tool_uses, user
from longrun.protocol import CHECKPOINT_NAME, NO_USAGE, VERSION, Checkpoint, OpenCall
from longrun.resume import trusting
from longrun.subjects import REQUEST
from longrun.tools import DEFINITIONS, TOOLS, act_key
from longrun.world import FileEffect, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from crashlab.lab import Lab
    from longrun.messages import Message
    from longrun.world import Effect, Outside

FILLED_IN: dict[str, Any] = {"version": VERSION, "task": "", "turns": 0, "tokens_used": 0, "pending_tool_use": None}
"""What stands for each field that is missing; the sixth, ``messages``, is the one that nobody would forget."""
FIELDS = tuple(FILLED_IN)
CAPS = {"turns": "turn-cap", "tokens_used": "token-cap"}
"""Fields on which a cap goes by, and what it is called that it was evaded."""
SYMPTOMS = ("none", "duplicate-effect", "invalid-transcript", *CAPS.values(), "stuck")
RUN_ID = "run-of-version-1"
_WHOLE = "whole"

Acts = Counter[tuple[str, str]]
State = dict[str, Any]


# --- the run that is killed -----------------------------------------------------------------------


def one_call(api: FakeApi, request: dict[str, Any]) -> dict[str, Any]:
    """The answer with its first call only; what it costs is again a pure function of the conversation."""
    response = api.reply(request)
    texts = [block for block in response["content"] if block["type"] == "text"]
    content = [*texts, *tool_uses({"role": "assistant", "content": response["content"]})[:1]]
    return {**response, "content": content, "usage": usage_of(request["messages"], content)}


def work(api: FakeApi, world: World, save: Callable[[str, State], None]) -> State:
    """The whole run, saved at R, at each A and B, and at the end. The last state."""
    state: State = {**FILLED_IN, "version": 1, "task": TASK, "messages": []}
    save("turn0.R", state)
    while True:
        messages = state["messages"] or [user(TASK)]
        request = {"model": MODEL_NAME, "max_tokens": MAX_TOKENS, "tools": DEFINITIONS, "messages": messages}
        response = one_call(api, request)
        said = {"role": "assistant", "content": response["content"]}
        cost = sum(response["usage"].values())
        counted = {"turns": state["turns"] + 1, "tokens_used": state["tokens_used"] + cost}
        state = {**state, **counted, "messages": [*messages, said]}
        if not tool_uses(said):
            save(f"turn{state['turns']}.E", state)
            return state
        (call,) = tool_uses(said)
        pending = {name: call[name] for name in ("id", "name", "input")}
        save(f"turn{state['turns']}.A", {**state, "pending_tool_use": pending})
        tool = TOOLS[call["name"]]
        result = tool_result(call["id"], tool.run(world, call["input"], act_key(RUN_ID, tool, call) or ""))
        state = {**state, "messages": [*state["messages"], {"role": "user", "content": [result]}]}
        save(f"turn{state['turns']}.B", state)


def put(directory: Path, state: State) -> None:
    """Replace the checkpoint by one with the six fields of version 1, durably."""
    temporary = files.temporary_name(directory / CHECKPOINT_NAME)
    files.write_new(temporary, canonical(state).encode(), sync=True)
    os.rename(temporary, directory / CHECKPOINT_NAME)
    files.sync_directory(directory)


@dataclass(eq=False)
class Branch:
    """A world of its own that goes on from what was done before."""

    effects: list[Effect] = field(default_factory=list)

    def records(self, name: str | None = None) -> Sequence[Effect]:
        """What was done, under that name or altogether."""
        return [each for each in self.effects if name in (None, each.name)]

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """Do it; with a known key it is done once."""
        known = key is not None and any((each.name, each.key) == (name, key) for each in self.effects)
        receipt = f"{name}-{key or len(self.effects)}"
        self.effects.append(FileEffect(name, key, detail, receipt, counted=not known))
        return receipt

    def acts(self) -> Acts:
        """What was done to it, requests left out."""
        done = (each for each in self.effects if each.counted and each.name != REQUEST)
        return Counter((each.name, canonical(dict(each.detail))) for each in done)


@lru_cache(maxsize=8)
def whole(seed: int) -> tuple[Acts, tuple[int, ...]]:
    """What the run without a crash does to the world, and what has been paid after each of its answers."""
    world, paid = Branch(), list[int]()

    def note(point: str, state: State) -> None:
        if point.endswith((".A", ".E")):
            paid.append(state["tokens_used"])

    work(_api(seed, world), _world(seed, world), note)
    return world.acts(), tuple(paid)


def _world(seed: int, outside: Outside) -> World:
    return World(outside, make_inbox(seed, body_bytes=SHORT_BODY_BYTES))


def _api(seed: int, outside: Outside) -> FakeApi:
    return FakeApi("careful", seed, asked=lambda: _tally(outside))


def _tally(outside: Outside) -> None:
    outside.effect(REQUEST, key="requests")


# --- the resume that misses a field ---------------------------------------------------------------


def lenient(directory: Path, *, missing: str | None) -> Checkpoint | None:
    """The checkpoint in ``directory``, the field ``missing`` filled in where version 1 has written it."""
    data = correct.read(directory / CHECKPOINT_NAME)
    if data is None or data.startswith(b'{"checksum":'):
        return trusting.load(directory)
    form = {name: value for name, value in json.loads(data).items() if name != missing}
    form = {**FILLED_IN, **form}
    messages: tuple[Message, ...] = tuple(form["messages"]) or ((user(form["task"]),) if form["task"] else ())
    ended = bool(messages) and messages[-1]["role"] == "assistant" and not tool_uses(messages[-1])
    return Checkpoint(
        run_id=RUN_ID,
        task=form["task"],
        messages=messages,
        status="stopped" if ended else "running",
        end={"reason": "v1_end_unknown", "text": ""} if ended else None,
        seq=1,
        turns=form["turns"],
        requests_started=form["turns"],
        requests_saved=form["turns"],
        usage={**NO_USAGE, "legacy": form["tokens_used"]},
        tokens_used=form["tokens_used"],
        pending_tool_use=()
        if form["pending_tool_use"] is None
        else (_open(form["pending_tool_use"], form["version"]),),
    )


def _open(call: dict[str, Any], version: int) -> OpenCall:
    """An open call. Version 1 did not mark what it began, so that it may have been; version 2 marks it."""
    begun = version == 1
    key = act_key(RUN_ID, TOOLS[call["name"]], call)
    return OpenCall(**call, key=key, attempts=int(begun), started=begun)


class _CapReachedError(Exception):
    """All tokens are spent that there were."""


@dataclass(frozen=True)
class Variant:
    """One way to resume: without the field ``missing``, and with a cap of ``cap`` answers that goes by ``capped``."""

    missing: str | None = None
    capped: str | None = None
    cap: int = 0

    @property
    def name(self) -> str:
        """How its outcome is called."""
        return f"{self.missing or _WHOLE}/{self.capped or ''}/{self.cap}"

    def resumed(self, seed: int, directory: Path, world: Branch) -> str:
        """The symptom: the gravest thing that is wrong once the agent has gone on to its end."""
        acts, paid = whole(seed)
        limit = paid[self.cap - 1] if self.capped == "tokens_used" else None
        refused = stuck = False
        harness = replace(
            trusting.HARNESS,
            load=partial(lenient, missing=self.missing),
            convert=lambda _directory: None,
            cap=Caps(turns=self.cap if self.capped == "turns" else TURN_LIMIT),
        )
        model = _Spending(_api(seed, world), limit)
        agent = model.agent = Agent(directory, harness, model, _world(seed, world))
        try:
            agent.resume()
        except ApiError:
            refused = True
        except _CapReachedError:
            pass  # it stopped where it should, by what it believes
        except LongrunError:
            stuck = True
        if any(count > acts[act] for act, count in world.acts().items()):
            return "duplicate-effect"
        if refused or stuck:
            return "invalid-transcript" if refused else "stuck"
        answers = sum(message["role"] == "assistant" for message in agent.state.messages)
        return CAPS[self.capped] if self.capped and answers > self.cap else "none"


@dataclass(eq=False)
class _Spending:
    """The model, one call at a time, up to a cap on what the agent believes to have spent."""

    api: FakeApi
    limit: int | None
    agent: Agent | None = None

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer, or _CapReachedError."""
        assert self.agent is not None
        if self.limit is not None and self.agent.state.tokens_used >= self.limit:
            raise _CapReachedError
        return one_call(self.api, request)


@dataclass(frozen=True)
class SixFields:
    """The run as the workload; as its recovery, all ``variants`` of a resume side by side."""

    seed: int
    variants: tuple[Variant, ...]

    def run(self, lab: Lab) -> State:
        """From an empty directory to the end."""

        def save(point: str, state: State) -> None:
            put(lab.dir, state)
            lab.save_point(point)

        return {"turns": work(_api(self.seed, lab), _world(self.seed, lab), save)["turns"]}

    def resume(self, lab: Lab) -> dict[str, str]:
        """The symptom of each variant."""
        stored = correct.read(lab.dir / CHECKPOINT_NAME)
        found = {}
        for number, variant in enumerate(self.variants):
            directory = lab.dir / f"variant{number}"
            directory.mkdir()
            if stored is not None:
                (directory / CHECKPOINT_NAME).write_bytes(stored)
            found[variant.name] = variant.resumed(self.seed, directory, Branch(list(lab.records())))
        return found
