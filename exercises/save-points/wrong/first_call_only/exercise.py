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
        "requests_started": 1,
    }
    desk.save(state)  # R: the request is counted before it is sent
    while True:
        response = desk.ask(state["messages"])
        if not complete(response):
            raise RuntimeError("half an answer: nothing of it may be saved; whoever started this resumes it")
        book(state, response)
        if response["stop_reason"] != "tool_use":
            state["status"] = "done"
            state["end"] = {"reason": response["stop_reason"], "text": response["content"][0]["text"]}
            desk.save(state)
            return
        calls = [block for block in response["content"] if block["type"] == "tool_use"]
        state["pending_tool_use"] = [
            {"id": call["id"], "name": call["name"], "input": call["input"]} for call in calls[:1]
        ]
        desk.save(state)  # A: the answer is there, its calls are open
        results = [answer(desk, call) for call in calls]
        state["messages"].append({"role": "user", "content": results})
        state["pending_tool_use"] = []
        state["requests_started"] += 1
        desk.save(state)  # B: all calls are answered, and the next request is counted


def complete(response):
    """Whether the whole answer came. A stream that was cut cleanly has no stop reason."""
    return response.get("stop_reason") in ("tool_use", "end_turn", "stop_sequence")


def book(state, response):
    """The answer and what it cost, together: who has the one has the other."""
    state["messages"].append({"role": "assistant", "content": response["content"]})
    state["turns"] += 1
    state["tokens_used"] += sum(response["usage"].values())


def answer(desk, call):
    """The result of one call."""
    text = desk.do(call["name"], call["input"])
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text}
