"""Process A of the demonstration: it writes a turn up to the first result of a tool, and dies there by SIGKILL."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from longrun.eventlog.agent import LogAgent
from longrun.eventlog.opening import Opening, open_log
from longrun.fake_api import FakeApi
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.world import FileOutside, World


def main(root: Path, session_id: str) -> None:
    """Work until the model is asked for the second time: by then the first result is durable."""
    api = FakeApi()
    world = World(FileOutside(root / "world"), make_inbox(body_bytes=SHORT_BODY_BYTES))

    class Dying:
        def reply(self, request: dict[str, object]) -> dict[str, object]:
            if any(message["role"] == "assistant" for message in request["messages"]):  # type: ignore[attr-defined,index]  # a request's messages
                os.kill(os.getpid(), signal.SIGKILL)
            return api.reply(request)

    LogAgent(open_log(root, session_id, Opening(writer="A")), Dying(), world).triage("Triage the inbox.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
