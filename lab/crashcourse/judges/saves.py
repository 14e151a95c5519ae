"""Exercise 2.2: ``save(dir, state)`` and ``load(dir)``, judged as a store under every fault.

The states are checkpoints of protocol v2 as JSON objects, one of them several pages long; the seed chooses their
tickets, texts and number. What ``load`` makes of files of version 1, and of versions that nobody knows, is
asked for directory by directory.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from typing import TYPE_CHECKING, Any

from crashcourse.inside import Function, Loads
from crashcourse.judging import failed, guarded, never_whole, outcomes, timed
from crashcourse.result import Outcome, Shown
from crashlab import Store, Subject
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from crashcourse.judging import Bench

FAULTS = {
    "kill": "kill",
    "power": "power",
    "error:EIO": "error",
    "error:ENOSPC": "error",
    "damage": "damage",
    "race": "race",
}
PAGE_TEXT = 5_000
CALLS_OF_ITS_OWN = ("race",)
"""Cases whose findings are not about one ``load``."""
_STATE = re.compile(r'^\{"seq": (\d+), "version".*$')


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    save, load = (Function(str(bench.file), name) for name in ("save", "load"))
    values = tuple(states(bench.seed))
    store = Store(save=save, load=load, values=values, name=bench.exercise.slug)
    faults = bench.faults(FAULTS) or {"kill": "kill"}
    try:
        report = bench.explore(store, ",".join(faults), by_fault=True)
    except UsageError as error:
        return failed(bench.exercise, "end", str(error))
    if message := never_whole(report):
        return failed(bench.exercise, "end", message)
    end = Outcome(case="end", family="end", verdicts={"consistent": 1})
    v1 = [timed(lambda: _v1(bench, load))] if bench.wants("v1") else []
    return guarded(bench.exercise, report, [end, *map(_named, outcomes(report, faults)), *v1])


def _named(outcome: Outcome) -> Outcome:
    """With states called by their number: whoever reads of a crash need not read them whole."""
    found = outcome.finding
    if found is None:
        return outcome
    call = "" if outcome.case in CALLS_OF_ITS_OWN else "load(dir)"
    named = [_STATE.sub(r"seq \1", text) for text in found.expected.split("; ")]
    all_states = all(text.startswith("seq ") for text in named)
    expected = ("the value of " if all_states else "") + " or ".join(named)
    got = _STATE.sub(r"the value of seq \1", found.found)
    return dataclasses.replace(outcome, finding=dataclasses.replace(found, call=call, expected=expected, found=got))


def states(seed: int) -> list[dict[str, Any]]:
    """Three checkpoints of one run, as the loop would save them: short, several pages long, short again."""
    chance = random.Random(seed)  # noqa: S311 - the same twin for the same seed
    ticket, task = f"T-{chance.randrange(100, 1000)}", "Triage the inbox."
    text = "".join(chance.choices("abcdefgh \n", k=PAGE_TEXT))
    turns = (_asked(task), _called(ticket, chance), {"role": "user", "content": [_result(text)]})
    return [
        {
            "seq": seq,
            "version": 2,
            "run_id": f"run-{seed:016x}",
            "task": task,
            "status": "running",
            "end": None,
            "turns": sum(message["role"] == "assistant" for message in turns[:number]),
            "tokens_used": chance.randrange(100, 1_000) * number,
            "messages": list(turns[:number]),
            "pending_tool_use": [],
        }
        for seq, number in enumerate((2, 1, 3), 1)
    ]


def _asked(task: str) -> dict[str, Any]:
    return {"role": "user", "content": task}


def _called(ticket: str, chance: random.Random) -> dict[str, Any]:
    call = {"type": "tool_use", "id": f"toolu_{chance.randrange(10**9):09d}", "name": "read_ticket"}
    return {"role": "assistant", "content": [{**call, "input": {"ticket": ticket}}]}


def _result(text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": text}


# --- version 1 ------------------------------------------------------------------------------------


def folders(seed: int) -> dict[str, tuple[dict[str, Any], dict[str, Any] | str]]:
    """Files of version 1 and of none, each with the fields that ``load`` must give, or the name of the refusal."""
    chance = random.Random(seed)  # noqa: S311 - the same twin for the same seed
    asked, called = _asked("Triage the inbox."), _called(f"T-{chance.randrange(100, 1000)}", chance)
    call = called["content"][0]
    open_call = {"id": call["id"], "name": call["name"], "input": call["input"]}
    said = {"role": "assistant", "content": [{"type": "text", "text": "All is done."}]}
    base = {
        "version": 1,
        "task": asked["content"],
        "messages": [asked],
        "turns": 0,
        "tokens_used": chance.randrange(10, 999),
        "pending_tool_use": None,
    }
    started = [{**open_call, "started": True}]
    running = {"version": 2, "status": "running", "tokens_used": base["tokens_used"]}
    called_form = {**base, "messages": [asked, called], "turns": 1, "pending_tool_use": open_call}
    elsewhere = {**called_form, "pending_tool_use": {**open_call, "id": "toolu_elsewhere"}}
    return {
        "asked": (base, {**running, "turns": 0, "messages": [asked], "pending_tool_use": []}),
        "open-call": (called_form, {**running, "turns": 1, "pending_tool_use": started}),
        "late-turn": ({**called_form, "turns": 0}, {**running, "turns": 1, "pending_tool_use": started}),
        "said": ({**base, "messages": [asked, said], "turns": 1}, {"status": "stopped", "end": "v1_end_unknown"}),
        "call-from-nowhere": (elsewhere, "Damaged"),
        "version-3": ({**base, "version": 3}, "UnsupportedVersion"),
        "version-true": ({**base, "version": True}, "refused"),
        "version-text": ({**base, "version": "2"}, "refused"),
    }


def _v1(bench: Bench, load: Function) -> Outcome:
    wanted = folders(bench.seed)
    texts = {name: {"checkpoint.json": json.dumps(form)} for name, (form, _) in wanted.items()}
    try:
        found = bench.ended(Subject(Loads(load, texts), name=f"{bench.exercise.slug}, version 1"))
    except UsageError as error:
        return Outcome(case="v1", verdicts={"unmeasured": 1}, message=str(error))
    wrong = {name: text for name, (_, right) in wanted.items() if (text := _difference(found[name], right))}
    verdicts = {"consistent": len(wanted) - len(wrong), "violation": len(wrong)}
    if not wrong:
        return Outcome(case="v1", verdicts=verdicts)
    name, text = next(iter(wrong.items()))
    call = f"load(dir) where checkpoint.json is {texts[name]['checkpoint.json']:.160}"
    right = wanted[name][1]
    shown = Shown(kind="version", crash_point=name, call=call, expected=_words(right), found=text)
    return Outcome(case="v1", verdicts=verdicts, finding=shown)


def _words(right: dict[str, Any] | str) -> str:
    if isinstance(right, dict):
        return f"a state of version 2 with {json.dumps(right)}"
    return "a refusal" if right == "refused" else f"the error {right}"


def _difference(found: dict[str, Any], right: dict[str, Any] | str) -> str:
    """What is wrong about an answer; nothing where it is right."""
    if isinstance(right, str):
        if "error" in found and right in ("refused", found["error"]):
            return ""
        return f"the error {found['error']}" if "error" in found else f"the value {json.dumps(found['value']):.160}"
    if "error" in found:
        return f"the error {found['error']}: {found['text']}"
    value = found["value"] if isinstance(found["value"], dict) else {}
    for name, wanted in right.items():
        got = value.get(name)
        if name == "end" and isinstance(got, dict):
            got = got.get("reason")
        if name == "pending_tool_use" and isinstance(got, list):
            got = [
                {key: call.get(key) for key in wanted[0]} if wanted and isinstance(call, dict) else call for call in got
            ]
        if got != wanted or type(got) is not type(wanted):
            return f"{name} is {json.dumps(got):.160}"
    return ""
