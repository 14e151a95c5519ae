"""Starting the keeper: a fresh interpreter, or a fork of a process that stands ready and is as clean as one."""

from __future__ import annotations

import json
import os
import site
import socket
import subprocess
import sys
import tempfile

from crashlab.errors import UsageError
from crashlab.recover import guest, ready
from crashlab.recover.compiled import keep_compiled
from crashlab.recover.wire import BOOTSTRAP, Channel

_NAME = "the lab's keeper"


def _temporary_folder() -> str:
    """Where temporary files go. Not by tempfile if it can be told: that writes a probe, and a kill would leave it."""
    named = os.environ.get("TMPDIR", "")
    if tempfile.tempdir is None and named and os.path.isdir(named) and os.access(named, os.W_OK | os.X_OK):
        return os.path.abspath(named)
    return tempfile.gettempdir()


def start_keeper(root: str | None) -> tuple[subprocess.Popen[bytes] | ready.Forked, Channel]:
    """The keeper, and the connection to it. It makes its folder at the recorded ``root``, or a new one.

    Raises UsageError on a system without process groups and descriptors that can be handed over.
    """
    if sys.platform == "win32":
        text = f"crashlab runs recoveries on Linux and macOS, not on {sys.platform}; use WSL there"
        raise UsageError(text)
    keep_compiled()
    ours, theirs = socket.socketpair()
    somebody = guest.current()
    arguments = {
        "control": theirs.fileno(),
        "main": os.getpid(),
        "temporary": somebody.temporary if somebody else _temporary_folder(),
        "root": root or "",
        "guest": somebody.form() if somebody else None,
    }
    # HOME becomes the traced one; packages that the user installed for themselves stay where they are.
    base = {"PYTHONUSERBASE": site.getuserbase()} if site.ENABLE_USER_SITE else {}
    env = {**os.environ, **base, **ready.FIXED}
    with theirs:
        if (forker := ready.current()) is not None:
            return _forked(forker, arguments, ours, theirs, env), Channel(ours, _NAME)
        keeper = subprocess.Popen(
            [
                *(sys.executable, *["-O"] * sys.flags.optimize),
                *("-c", BOOTSTRAP, json.dumps(sys.path), "crashlab.recover.keeper", json.dumps(arguments)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return keeper, Channel(ours, _NAME)


def _forked(
    forker: ready.Ready, arguments: dict[str, object], ours: socket.socket, theirs: socket.socket, env: dict[str, str]
) -> ready.Forked:
    """A keeper that is forked; ``ours`` is closed where there is none."""
    try:
        return forker.fork(arguments, theirs, env)
    except BaseException:
        ours.close()
        raise
