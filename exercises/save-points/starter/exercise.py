"""An agent that can be killed at any moment: what is saved when."""


def run(desk):
    """Work on the task until the model has come to its end."""
    state = {
        "task": desk.task,
        "status": "running",
        "end": None,
        "messages": [{"role": "user", "content": desk.task}],
        "pending_tool_use": [],
        "turns": 0,
        "tokens_used": 0,
        "requests_started": 0,
    }
    # TODO: R. Killed while the model thinks, the request is paid, and nobody knows that it was ever sent
    while True:
        response = desk.ask(state["messages"])
        # TODO: is the answer whole? A stream that was cut looks like an answer, too
        state["messages"].append({"role": "assistant", "content": response["content"]})
        calls = [block for block in response["content"] if block["type"] == "tool_use"]
        if not calls:
            state["status"] = "done"
            state["end"] = {"reason": "end_turn", "text": response["content"][0]["text"]}
            book(state, response)
            desk.save(state)
            return
        # TODO: A. Killed in the middle of these calls, the answer that named them is gone, and they are named again
        results = [answer(desk, call) for call in calls]
        state["messages"].append({"role": "user", "content": results})
        book(state, response)
        desk.save(state)  # B


def book(state, response):
    """What the answer cost."""
    # TODO: is it counted in time? See where this is called, and what is saved before
    state["turns"] += 1
    state["tokens_used"] += sum(response["usage"].values())
    state["requests_started"] += 1


def answer(desk, call):
    """The result of one call."""
    text = desk.do(call["name"], call["input"])
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text}
