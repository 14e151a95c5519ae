"""An agent that goes on where it was killed: what a resume does with what it finds."""

UNKNOWN = "outcome unknown: the process died meanwhile, so it may or may not have been done"


def resume(desk):
    """Go on from what is saved, to the end; start where nothing is saved."""
    state = desk.load()  # what is damaged raises, and is left as it lies
    if state is None:
        state = beginning(desk)
    elif state["status"] != "running":
        return  # what is finished stays finished
    elif not state["pending_tool_use"]:
        state["requests_started"] += 1  # the request that was counted may have been sent
    desk.save(state)  # R
    if state["pending_tool_use"]:
        close(desk, state, [reconciled(desk, call) for call in state["pending_tool_use"]])
    while state["status"] == "running":
        turn(desk, state)


def beginning(desk):
    """The state before the first request, which is counted already."""
    return {
        "task": desk.task,
        "status": "running",
        "end": None,
        "messages": [{"role": "user", "content": desk.task}],
        "pending_tool_use": [],
        "turns": 0,
        "tokens_used": 0,
        "requests_started": 1,
    }


def turn(desk, state):
    """Ask once, and make the calls that the answer names."""
    response = desk.ask(state["messages"])
    state["messages"].append({"role": "assistant", "content": response["content"]})
    state["turns"] += 1
    state["tokens_used"] += sum(response["usage"].values())
    calls = [block for block in response["content"] if block["type"] == "tool_use"]
    if not calls:
        state["status"] = "done"
        state["end"] = {"reason": response["stop_reason"], "text": response["content"][0]["text"]}
        desk.save(state)  # E
        return
    state["pending_tool_use"] = [{"id": call["id"], "name": call["name"], "input": call["input"]} for call in calls]
    desk.save(state)  # A
    close(desk, state, [answer(desk, call) for call in calls])


def close(desk, state, results):
    """All open calls are answered, in one message, and the next request is counted."""
    state["messages"].append({"role": "user", "content": results})
    state["pending_tool_use"] = []
    state["requests_started"] += 1
    desk.save(state)  # B


def answer(desk, call):
    """The result of one call that is made now."""
    return {"type": "tool_result", "tool_use_id": call["id"], "content": desk.do(call["name"], call["input"])}


def reconciled(desk, call):
    """The result of one call that was open: it may have been made, and nothing tells."""
    if desk.tools[call["name"]]["nature"] != "non-idempotent":
        return answer(desk, call)  # once more is as good as once
    desk.unknown(call["name"], call["input"])
    return {"type": "tool_result", "tool_use_id": call["id"], "content": UNKNOWN, "is_error": True}
