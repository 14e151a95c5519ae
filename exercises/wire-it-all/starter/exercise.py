"""The bare loop: it works as long as nothing happens to it."""

import json


def start(desk):
    """A run from the beginning."""
    # TODO: is there a run in desk.dir already? Whose is the directory while this works?
    state = {
        "status": "running",
        "end": None,
        "messages": [{"role": "user", "content": desk.task}],
        "turns": 0,
        "tokens_used": 0,
        "requests_started": 0,
    }
    while state["status"] == "running":
        # TODO: desk.turn_limit
        turn(desk, state)
        keep(desk, state)
    return state


def resume(desk):
    """Go on from what is stored, to the end; start where nothing is stored."""
    # TODO: load, refuse, return, reconcile, loop
    return start(desk)


def turn(desk, state):
    """Ask once, and make the calls that are named."""
    state["requests_started"] += 1
    response = desk.ask(state["messages"])
    state["messages"].append({"role": "assistant", "content": response["content"]})
    state["turns"] += 1
    state["tokens_used"] += sum(response["usage"].values())
    calls = [block for block in response["content"] if block["type"] == "tool_use"]
    if calls:
        state["messages"].append({"role": "user", "content": [answer(desk, call) for call in calls]})
    else:
        state["status"] = "done"
        state["end"] = {"reason": response["stop_reason"], "text": response["content"][0]["text"]}


def keep(desk, state):
    """Write the state down, and promise that it is saved."""
    # TODO: is it? And what is written too late, what is missing, and who ever reads it?
    (desk.dir / "checkpoint.json").write_text(json.dumps(state))
    desk.ack(state)


def answer(desk, call):
    """The result of one call."""
    # TODO: a name for the act, a gate, a mark, a record; and where no answer comes, desk.do raises TimeoutError
    text = desk.do(call["name"], call["input"], "")
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text}
