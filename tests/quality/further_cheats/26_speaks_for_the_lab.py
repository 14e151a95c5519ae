"""Writes answers of its own into every descriptor, from a thread, at its end and when it is deleted."""

import atexit
import json
import os
import threading


class Last:
    def __del__(self):
        for fd in range(3, 64):
            try:
                os.write(fd, b'{"result": {"value": null}}\n')
            except OSError:
                pass


last = Last()


def _thread():
    import time

    while True:
        time.sleep(0.001)
        for fd in range(3, 64):
            try:
                os.write(fd, b'{"watched": {}, "modules": []}\n')
            except OSError:
                pass


threading.Thread(target=_thread, daemon=True).start()
atexit.register(last.__del__)


def save(dir, state):
    (dir / "checkpoint.json").write_text(json.dumps(state))


def load(dir):
    return json.loads((dir / "checkpoint.json").read_text())
