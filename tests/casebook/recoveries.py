"""Recoveries that went wrong by themselves: they act twice, wait for nobody, never end, or find nothing.

Every function that is wrong says so, and where it was met.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import Policy, Subject, Violation
from tests.casebook.durable import append_lines, read_json, read_lines, replace_json
from tests.casebook.scenario import Scenario, scenario

if TYPE_CHECKING:
    from crashlab import Lab

TRIES = 3
HANGS_S = 1.5
"""The time limit where a recovery never ends, as each is waited for; the recorded run has six times as much."""


def kinds_of(lab: Lab) -> list[str]:
    """What the log of events holds, by kind."""
    return [each["kind"] for each in read_lines(lab.dir / "events.jsonl")]


def note(lab: Lab, kind: str) -> None:
    """Append one event."""
    append_lines(lab.dir / "events.jsonl", [{"kind": kind}])


# --- one action, two outcomes -------------------------------------------------------------------------


def act(lab: Lab) -> str:
    """An action is decided, done and observed."""
    note(lab, "action")
    lab.effect("deploy")
    note(lab, "observation")
    return "done"


def match_observations(lab: Lab) -> str:
    """Wrong: recovery answers the open action with an error, then runs it: only observations count as answers.

    https://github.com/OpenHands/software-agent-sdk/issues/2298
    """
    if "action" not in kinds_of(lab):
        return act(lab)
    if "observation" not in kinds_of(lab):
        if "error" not in kinds_of(lab):
            note(lab, "error")
        lab.effect("deploy")
        note(lab, "observation")
    return "done"


def match_outcomes(lab: Lab) -> str:
    """Right: the error that recovery adds is an answer like any other; whether it was done a person must say."""
    if "action" not in kinds_of(lab):
        return act(lab)
    if "observation" in kinds_of(lab):
        return "done"
    if "error" not in kinds_of(lab):
        note(lab, "error")
    lab.unknown("deploy")
    return "asked"


def check_outcomes(lab: Lab, _: str) -> None:
    """One outcome per action."""
    outcomes = [each for each in kinds_of(lab) if each != "action"]
    if len(outcomes) != 1:
        text = f"the action has the outcomes {outcomes}"
        raise Violation(text, kind="invalid-transcript")


# --- a turn that nobody runs --------------------------------------------------------------------------


def take_turn(lab: Lab) -> str:
    """A turn begins, calls, and ends."""
    for kind in ("turn started", "call", "turn ended"):
        note(lab, kind)
    return "idle"


def wait_for_the_turn(lab: Lab) -> str:
    """Wrong: a log whose turn has no end is taken for a turn at work; https://github.com/openai/codex/issues/12382."""
    while kinds_of(lab)[-1:] not in ([], ["turn ended"]):
        time.sleep(0.02)  # the fault itself: it waits for a turn that nobody will end, and must not burn a core
    return "idle" if kinds_of(lab) else take_turn(lab)


def end_the_turn(lab: Lab) -> str:
    """Right: who opens the log is its only owner, so an open turn was interrupted."""
    if kinds_of(lab) and kinds_of(lab)[-1] != "turn ended":
        note(lab, "turn ended")
    return "idle" if kinds_of(lab) else take_turn(lab)


# --- an approval that was pending ---------------------------------------------------------------------


def ask_approval(lab: Lab) -> str:
    """A call waits for a person, who allows it."""
    replace_json(lab.dir / "pending.json", {"message": "m1", "call": "t1"})
    replace_json(lab.dir / "pending.json", {})
    replace_json(lab.dir / "answer.json", "allowed")
    return "allowed"


def reject(lab: Lab, call: str) -> bool:
    """Close the pending call of this id; False where none has it."""
    pending = read_json(lab.dir / "pending.json") or {}
    if pending.get("call") != call:
        return False
    replace_json(lab.dir / "pending.json", {})
    return True


def resume_approval(lab: Lab, *, by: str) -> str:
    """Reject what is pending, then ask anew. Wrong with ``by="message"``: that names no call, and nobody looks.

    https://github.com/letta-ai/lettabot/issues/479
    """
    pending = read_json(lab.dir / "pending.json")
    if pending:
        reject(lab, pending[by])
    if read_json(lab.dir / "pending.json"):
        text = "conflict: an approval is pending"
        raise RuntimeError(text)
    return read_json(lab.dir / "answer.json") or ask_approval(lab)


def ask_renamed(lab: Lab) -> str:
    """The same, but the server gave the call another name than the one that was saved."""
    replace_json(lab.dir / "pending.json", {"message": "m1", "call": "t1", "named": "t9"})
    replace_json(lab.dir / "pending.json", {})
    return "allowed"


def resume_for_ever(lab: Lab) -> str:
    """Wrong: a call that cannot be closed is closed again and again.

    https://github.com/letta-ai/lettabot/issues/554
    """
    while pending := read_json(lab.dir / "pending.json"):
        reject(lab, pending["named"])
        time.sleep(0.02)  # the fault itself: it never ends, and must not burn a core
    return "allowed"


def resume_bounded(lab: Lab) -> str:
    """Right: after three tries the conversation is put aside, with the reason."""
    for _ in range(TRIES):
        pending = read_json(lab.dir / "pending.json")
        if not pending or reject(lab, pending["named"]):
            return "allowed"
    return f"put aside: no call is named {pending['named']}"


def check_told(_: Lab, end: str) -> None:
    """Either it went on, or the reason is given."""
    assert end == "allowed" or end.startswith("put aside: "), end


# --- steps, and what is known of them -----------------------------------------------------------------


def count_steps(lab: Lab, *, key: str | None, remember: bool) -> int:
    """Three steps, each with an effect. Wrong without ``key`` or without ``remember``.

    A step whose effect was done before the kill runs again: measured on a released workflow library.
    All that was done is known in memory only: https://github.com/Significant-Gravitas/AutoGPT/issues/3219.
    """
    done = read_json(lab.dir / "step.json") or 0
    for step in range(done, 3):
        lab.effect("mail", key=key and f"{key}/{step}", step=step)
        if remember:
            replace_json(lab.dir / "step.json", step + 1)
    replace_json(lab.dir / "step.json", 3)
    return 3


def talk(lab: Lab, *, keep: tuple[str, ...]) -> str:
    """Ask, call, answer; the session saves the kinds of items in ``keep``.

    Wrong without ``call`` and ``result``: the model sees no call, and makes it again.
    https://github.com/openai/openai-agents-python/issues/2426
    """
    session = lab.dir / "session.json"
    items = read_json(session) or []

    def add(item: str) -> None:
        items.append(item)
        replace_json(session, [each for each in items if each in keep])

    if "answer" in items:
        return "paid"
    if not items:
        add("question")
    if "call" in items and "result" not in items:
        lab.unknown("pay", yen=1000)
        return "asked"
    if "result" not in items:
        add("call")
        lab.effect("pay", yen=1000)
        add("result")
    add("answer")
    return "paid"


def check_paid(_: Lab, end: str) -> None:
    """Paid, or a person was asked."""
    assert end in ("paid", "asked")


def run_nodes(lab: Lab, *, late: bool) -> str:
    """Two nodes of a graph; what each gave is written before the next begins. Wrong with ``late``: after it.

    Saving is left to a pool that gives no order: https://github.com/langchain-ai/langgraph/issues/8039.
    """
    written, waiting = read_json(lab.dir / "writes.json") or [], []
    for node in ("fetch", "mail"):
        if node in written:
            continue
        lab.effect(node)
        waiting.append(node)
        if not late or node == "mail":
            replace_json(lab.dir / "writes.json", written := [*written, *waiting])
            waiting = []
        lab.ack(node)
    replace_json(lab.dir / "checkpoint.json", 2)
    return "done"


def check_nodes(lab: Lab, _: str) -> None:
    """A node that was reported as done has not run again: that is promised even where steps may run twice."""
    for node in lab.acked:
        if sum(each.name == node for each in lab.effects) > 1:
            text = f"{node} was saved, and ran again"
            raise Violation(text, kind="duplicate-effect")


def accept(lab: Lab, *, admit: bool) -> str:
    """A run is accepted, then begins. Wrong unless ``admit``: nothing is saved before the first checkpoint.

    https://github.com/langchain-ai/langgraph/issues/8764
    """
    if admit:
        replace_json(lab.dir / "runs.json", ["r1"])
    lab.ack("r1")
    replace_json(lab.dir / "checkpoint.json", {"run": "r1", "step": 1})
    return "done"


def ask_for_run(lab: Lab) -> str:
    """What became of the run."""
    known = read_json(lab.dir / "runs.json") or read_json(lab.dir / "checkpoint.json")
    return "done" if known else "no such run"


def check_accepted(lab: Lab, end: str) -> None:
    """A run that was accepted is known."""
    if lab.acked and end != "done":
        text = f"r1 was accepted; now: {end}"
        raise Violation(text, kind="lost")


# --- what is left behind, and what is taken for one's own ---------------------------------------------


def retire(lab: Lab, *, first: str) -> str:
    """A workflow runs, is removed from both databases, and a new one takes its id.

    Wrong with ``first="status"``: killed between the two, the new one finds the old one's output.
    https://github.com/dbos-inc/dbos-transact-py/issues/769
    """
    replace_json(lab.dir / "output.json", {"w1": "old"})
    replace_json(lab.dir / "status.json", {"w1": "done", "era": 1})
    return retire_again(lab, first=first)


def retire_again(lab: Lab, *, first: str) -> str:
    """The same from whatever is there."""
    status = read_json(lab.dir / "status.json")
    if status is None:
        return retire(lab, first=first)
    if status["era"] == 1:
        status = clean(lab, status, first)
    replace_json(lab.dir / "status.json", status | {"w1": "running", "era": 2})
    outputs = read_json(lab.dir / "output.json")
    if "w1" not in outputs:
        replace_json(lab.dir / "output.json", outputs := {"w1": "new"})
    return str(outputs["w1"])


def clean(lab: Lab, status: dict[str, Any], first: str) -> dict[str, Any]:
    """Remove the old workflow from both files, ``first`` from one."""
    if "w1" not in status:
        return status  # removed already, as far as this file knows
    removed = {"era": 1}
    order = {"status": removed, "output": {}}
    for name in (first, *order.keys() - {first}):
        replace_json(lab.dir / f"{name}.json", order[name])
    return removed


def continue_newest(lab: Lab, *, own: bool) -> str:
    """Go on with this job's session. Wrong unless ``own``: an empty store means the newest local one.

    Measured on a released agent library: another job's conversation was continued.
    """
    if read_json(lab.dir / "local.json") is None:
        replace_json(lab.dir / "local.json", "what another job said")
    stored = read_json(lab.dir / "store.json")
    if stored is None and not own and lab_was_here(lab):
        return str(read_json(lab.dir / "local.json"))
    replace_json(lab.dir / "started.json", "job 7")
    replace_json(lab.dir / "store.json", "what job 7 said")
    return "what job 7 said"


def lab_was_here(lab: Lab) -> bool:
    """Whether job 7 was started before, so that this is a resume."""
    return (lab.dir / "started.json").exists()


SCENARIOS: dict[str, Scenario] = {
    "an action with two outcomes": scenario(
        Subject(act, match_observations, check=check_outcomes),
        Subject(act, match_outcomes, check=check_outcomes),
        "kill,recovery",
        *("duplicate-effect", "invalid-transcript"),
    ),
    "a turn without an end": scenario(
        Subject(take_turn, wait_for_the_turn, timeout_s=HANGS_S), Subject(take_turn, end_the_turn), "kill", "hang"
    ),
    "an approval closed by the wrong id": scenario(
        Subject(ask_approval, partial(resume_approval, by="message"), view=str),
        Subject(ask_approval, partial(resume_approval, by="call"), view=str),
        "kill",
        "stuck",
    ),
    "a recovery without a bound": scenario(
        Subject(ask_renamed, resume_for_ever, check=check_told, timeout_s=HANGS_S),
        Subject(ask_renamed, resume_bounded, check=check_told),
        "kill",
        "hang",
    ),
    "a step without a key": scenario(
        Subject(partial(count_steps, key=None, remember=True)),
        Subject(partial(count_steps, key="job 7", remember=True)),
        "kill",
        "duplicate-effect",
    ),
    "all of it in memory": scenario(
        Subject(partial(count_steps, key=None, remember=False)),
        Subject(partial(count_steps, key="job 7", remember=True)),
        "kill",
        "duplicate-effect",
    ),
    "a session without its calls": scenario(
        Subject(partial(talk, keep=("question", "answer")), check=check_paid),
        Subject(partial(talk, keep=("question", "call", "result", "answer")), check=check_paid),
        "kill",
        "duplicate-effect",
    ),
    "a result saved late": scenario(
        Subject(partial(run_nodes, late=True), check=check_nodes),
        Subject(partial(run_nodes, late=False), check=check_nodes),
        "kill",
        "duplicate-effect",
        kill=Policy(effects="at-least-once"),
    ),
    "accepted before it is saved": scenario(
        Subject(partial(accept, admit=False), ask_for_run, check=check_accepted),
        Subject(partial(accept, admit=True), ask_for_run, check=check_accepted),
        "kill,power",
        "lost",
    ),
    "two databases cleaned in turn": scenario(
        Subject(partial(retire, first="status"), partial(retire_again, first="status")),
        Subject(partial(retire, first="output"), partial(retire_again, first="output")),
        "kill",
        "diverged",
    ),
    "the newest session of anybody": scenario(
        Subject(partial(continue_newest, own=False)), Subject(partial(continue_newest, own=True)), "kill", "diverged"
    ),
}
