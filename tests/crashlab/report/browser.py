"""A real browser for the tests of the page: headless Chromium, spoken to through a pipe.

The DevTools protocol needs no package: messages are JSON, ended by a zero byte, on the descriptors 3 and 4
of ``chromium --remote-debugging-pipe``. Whatever the page logs or asks for is collected as it happens.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 60
NAMES = ("chromium", "chromium-browser", "google-chrome")
_START = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
)


def chromium() -> str:
    """The browser of this machine; skips the test where there is none, and says what to install."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no browser: apt-get install chromium (Debian), or put chromium on PATH")
    return found


class Tab:
    """One page in the browser. ``requests`` are all that it asked for, ``complaints`` all that it logged.

    ``blocked`` says of each request that was not let out, why.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer, self._last, self._session = b"", 0, ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.blocked: list[str] = []
        self._loaded = False
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One call of the protocol, and its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(deadline - time.monotonic(), 0))
            assert ready, "the browser did not answer"
            piece = os.read(self._from, 1 << 16)
            assert piece, "the browser has gone"
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._take(message.get("method", ""), message.get("params", {}))
        return message

    def _take(self, method: str, said: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        elif method == "Network.loadingFailed" and "blockedReason" in said:
            self.blocked.append(said["blockedReason"])
        elif method == "Log.entryAdded":
            self.complaints.append(f"{said['entry']['level']}: {said['entry']['text']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {said['exceptionDetails']['text']}")
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console.{said['type']}")
        elif method == "Page.loadEventFired":
            self._loaded = True

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file from the disk, and wait until all of it is there."""
        self._loaded = False
        self.requests.clear()
        self.blocked.clear()
        self.ask("Page.navigate", url=path.as_uri() + fragment)
        while not self._loaded:
            self._next()

    def value(self, expression: str) -> Any:
        """What a line of script comes to."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """One key, down and up, as a person presses it."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)

    def look(self, *, width: int = 1200, dark: bool = False, height: int = 1000) -> None:
        """The size of the window, and whether the reader likes it dark."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self) -> bytes:
        """What is in the window, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A tab in a browser of its own, which is gone afterwards. ``profile`` is a new directory for it."""
    command = [chromium(), *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    (read_there, write_here), (read_here, write_there) = os.pipe(), os.pipe()
    starter = [sys.executable, "-c", _START, str(read_there), str(write_there)]
    process = subprocess.Popen(
        [*starter, *command],
        pass_fds=(read_there, write_there),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(read_there)
    os.close(write_there)
    try:
        yield Tab(write_here, read_here)
    finally:
        os.close(write_here)  # it ends where nobody speaks to it
        os.close(read_here)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the session that was started above
            process.wait()
