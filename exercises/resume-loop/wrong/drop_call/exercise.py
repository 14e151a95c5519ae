"""An agent that goes on where it was killed: what a resume does with what it finds."""


def resume(desk):
    """Go on from what is saved, to the end; start where nothing is saved."""
    state = desk.load()  # what is damaged raises, and is left as it lies
    if state is None:
        state = beginning(desk)
    elif state["status"] != "running":
        return  # what is finished stays finished
    else:
        state["requests_started"] += 1
        if state["pending_tool_use"]:  # half a turn: take it back, the model will name its calls again
            state["messages"].pop()
            state["turns"] -= 1
            state["pending_tool_use"] = []
    desk.save(state)  # R
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
