"""A process that stands ready: a keeper is a fork of it instead of a new interpreter, which takes ten times as long.

::

    whoever checks much ─┬─ main, one for each check
                         └─ the ready process ── keeper ── …

It is started clean and has one thread, loads the code of a keeper and nothing of any subject, and is never told what a
check is about. It is the subreaper of all keepers, so that it can prove, between two checks, that nothing of the last
one lives. Where its last user is gone it ends everything and itself. Its users have :mod:`crashlab.recover.ready`.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import socket
import sys
import time
import traceback
from typing import Any, NoReturn

from crashlab.errors import LabError
from crashlab.recover import keeper, sweep
from crashlab.recover.ready import LINE_BYTES


def main() -> None:
    """Serve the connection whose descriptor the arguments name, until nobody holds its other end."""
    form = json.loads(sys.argv[3])
    link = socket.socket(fileno=form["link"])
    link.set_inheritable(False)
    resource.setrlimit(resource.RLIMIT_DATA, (form["data_bytes"], resource.RLIM_INFINITY))
    os.chdir("/")
    sweep.become_subreaper()
    gc.collect()
    gc.freeze()
    try:
        while request := _next(link):
            _answer(link, *request)
    except ConnectionError:
        pass  # whoever asked is gone
    finally:
        sweep.end_all()


def _next(link: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    data, descriptors, _, _ = socket.recv_fds(link, LINE_BYTES, 1)
    return (json.loads(data), descriptors) if data else None


def _answer(link: socket.socket, request: dict[str, Any], descriptors: list[int]) -> None:
    number = {"number": request["number"]}
    if "sweep" in request:
        try:
            sweep.let_end(grace_s=request["sweep"])
            sweep.end_all()
        except LabError as error:
            number["failed"] = str(error)
        link.send(json.dumps(number).encode())
        return
    sweep.nothing_lives()  # reaps the keepers that have ended
    control, parent = descriptors[0], os.getpid()
    try:
        pid = os.fork()
    except OSError as error:  # no room for a process now; another time there may be
        os.close(control)
        link.send(json.dumps({**number, "failed": f"fork: {error.strerror}"}).encode())
        return
    if pid == 0:
        link.close()
        _keep(request, control, parent)
    os.close(control)
    descriptor = os.pidfd_open(pid)
    try:
        socket.send_fds(link, [json.dumps({**number, "pid": pid}).encode()], [descriptor])
    finally:
        os.close(descriptor)


def _keep(request: dict[str, Any], control: int, parent: int) -> NoReturn:
    """Be a keeper in this process, which was just forked, as a new interpreter would be."""
    code = 1
    try:
        os.setsid()
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()
        with contextlib.suppress(OSError):  # a folder that is gone, as it may be below a new interpreter
            os.chdir(request["cwd"])
        arguments = json.dumps({**request["arguments"], "control": control, "parent": parent})
        sys.path[:] = request["sys_path"]
        sys.argv = ["-c", "", keeper.__name__, arguments]
        keeper.main()
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may return into the code of the process that forked this one
        traceback.print_exc()
    finally:
        os._exit(code)
