"""An agent that does each act once: it names it, asks for it, marks it, does it, and records it."""

UNKNOWN = "outcome unknown: the process died meanwhile, so it may or may not have been done"
BLOCKED = "blocked: nobody knows how an earlier attempt ended, and a person must decide; go on without it"


def resume(desk):
    """Go on from what is saved, to the end; start where nothing is saved."""
    state = desk.load()
    if state is None:
        state = beginning(desk)
        # TODO: the ledger comes after the first save, never before it
    elif state["status"] != "running":
        return
    elif not state["pending_tool_use"]:
        state["requests_started"] += 1
    # TODO: open the ledger of a saved run, or refuse, before anything is saved over it
    save(desk, state)  # R
    if state["pending_tool_use"]:
        answer_all(desk, state)
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
        "ledger_seen": 0,
    }


def save(desk, state):
    """Save, with the number of lines that the ledger has by now."""
    state["ledger_seen"] = 0  # TODO
    desk.save(state)


def turn(desk, state):
    """Ask once, and answer the calls that are named."""
    response = desk.ask(state["messages"])
    state["messages"].append({"role": "assistant", "content": response["content"]})
    state["turns"] += 1
    state["tokens_used"] += sum(response["usage"].values())
    calls = [block for block in response["content"] if block["type"] == "tool_use"]
    if not calls:
        state["status"] = "done"
        state["end"] = {"reason": response["stop_reason"], "text": response["content"][0]["text"]}
        save(desk, state)  # E
        return
    state["pending_tool_use"] = [
        {"id": call["id"], "name": call["name"], "input": call["input"], "started": False} for call in calls
    ]
    save(desk, state)  # A
    answer_all(desk, state)


def answer_all(desk, state):
    """All open calls are answered, in one message, and the next request is counted."""
    results = [answer(desk, call) for call in state["pending_tool_use"]]
    state["messages"].append({"role": "user", "content": results})
    state["pending_tool_use"] = []
    state["requests_started"] += 1
    save(desk, state)  # B


def answer(desk, call):
    """The result of one call, whoever names it and whenever."""
    if desk.tools[call["name"]]["nature"] == "read-only":
        return result(call, desk.do(call["name"], call["input"]))
    # TODO: the gate. What does the ledger know of this act? Was this call begun? Can the world be asked?
    return act(desk, call)


def act(desk, call):
    """Do it."""
    # TODO: the mark (S) before it, the record after it
    return result(call, desk.do(call["name"], call["input"], act_key(desk.run_id, call)))


def act_key(run_id, call):
    """The name of an act, the same whoever names it again."""
    return f"{run_id}/{call['id']}"  # TODO: is it?


def result(call, text, *, is_error=False):
    """The answer to one call."""
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
    return {**block, "is_error": True} if is_error else block
