"""A worker: makes one crash state after the other at the pinned place and runs the subject on each.

For each request it fills the root with the state's tree and gives every step a process of its own,
forked from here, on the directory that the step before left. It reads result and output while they
come, ends the process at the time limit, and sweeps what it left behind before it answers: a subject
that prints without end, closes every descriptor or kills itself costs that step and nothing else.

How a step ended: ``returned`` (a result, exit code 0), ``raised`` (an error), ``exit`` (the process
ended without either), ``signal``, ``hang`` (the time limit).
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from crashlab import directory
from crashlab import trace as t
from crashlab.crash.ids import state_of
from crashlab.crash.states import CrashState
from crashlab.recover import place, sweep, wire
from crashlab.recover.child import Job
from crashlab.recover.nursery import LaunchFor, Nursery
from crashlab.recover.warm import Warm
from crashlab.recover.watch import Ended, Output, Watch
from crashlab.tree import File, Tree

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from crashlab.recover.rivals import Rivals
    from crashlab.recover.wire import Message

OPS_PER_FRAME = 256
FRAME_CHARACTERS = 1 << 20
NOTHING_TOLD: dict[str, Any] = {
    "outside_writes": (),
    "unseen": (),
    "threads": 1,
    "mapped": False,
    "late": False,
    "origins": (),
    "calls": (),
    "first": 0,
}
"""What a recorded run that died tells beside its ops."""
_TOLD = ("step", "effects", "acked", "expected")
"""What a recovery that is recorded is told, beside its tree."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a worker is made for; it does not change while it lives."""

    root: str
    launch_for: LaunchFor
    trace: t.Trace | None = None
    expected: Any = None
    import_limit_s: float = 0.0
    tells: bool = True
    """Whether a recovery is told what was acked: a store or a log has no use for it, and could give it for loaded."""


def work(control: socket.socket, setting: Setting) -> NoReturn:
    """Pin the root, say so, and serve requests until the main process closes ``control``."""
    code = 1
    started: list[int] = []
    try:
        sweep.become_subreaper()
        refused = place.pin(setting.root)
        wire.send(control, {"ready": True, "refused": refused})
        worker = Worker(control, setting)
        started.append(worker.nursery_pid)
        worker.serve()
        code = 0
    except (ConnectionError, Abandoned):
        code = 0  # the main process is gone or has no more use for the answer
    except BaseException:
        sys.excepthook(*sys.exc_info())  # to the log, which the main process quotes
        raise
    finally:
        with contextlib.suppress(Exception):
            sweep.end_all(started)
        sys.stderr.flush()
        os._exit(code)


class Abandoned(Exception):  # noqa: N818 - no accident: nobody waits for the answer any more
    """The main process closed the connection while a step was running."""


def _told(request: Message, recovery: Message | None) -> Message:
    """What the process is told of what was before, or should come of it."""
    if recovery is None:
        return {"expected": request["expected"]}
    return {"watched": True, **{name: recovery[name] for name in _TOLD}}


@dataclass(frozen=True)
class Left:
    """What a recovery left: the digest of all files, whether it changed any, how many there are."""

    digest: str
    changed: bool
    count: int

    def alike(self, other: Left) -> bool:
        """Whether the two may differ by chance only."""
        return (self.changed, self.count) == (other.changed, other.count)


class Ops:
    """The ops of one recording on their way, a frame at a time; ``outside`` are its effects and acks."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._waiting: list[Message] = []
        self._size = 0
        self.outside: list[Message] = []

    def take(self, op: Message) -> None:
        """One more."""
        self._waiting.append(op)
        self.outside += [op] if op["op"] in (t.Effect.KIND, t.Ack.KIND) else []
        self._size += len(op["data"]["base64"]) if op["op"] == t.Write.KIND else 0
        if len(self._waiting) >= OPS_PER_FRAME or self._size >= FRAME_CHARACTERS:
            self.send()

    def send(self) -> None:
        """Send those that wait."""
        wire.send(self._control, {"ops": self._waiting})
        self._waiting, self._size = [], 0


class Worker:
    """Serves the requests of one connection."""

    def __init__(self, control: socket.socket, setting: Setting) -> None:
        self._control = control
        self._setting = setting
        self._root = setting.root
        gc.collect()
        gc.freeze()  # a collection in a child would touch, and so copy, every page that it shares with us
        output = Output()
        self._warm: Warm | None = None
        self._rivals: Rivals | None = None
        self._nursery = Nursery(setting.launch_for, output, self._forget)
        self._watch = Watch(control, output, self._nursery)
        if not setting.import_limit_s:  # these start fresh interpreters
            self._warm = Warm(control, lambda also: Nursery(setting.launch_for, output, lambda: self._forget_all(also)))

    def _forget(self) -> None:
        """In the nursery: close what belongs to the worker."""
        self._control.close()
        if self._warm is not None:
            self._warm.forget()

    def _forget_all(self, also: Callable[[], None]) -> None:
        """In the nursery of the warm process: the same, and what belongs to the other one."""
        self._control.close()
        self._nursery.forget()
        also()

    @property
    def nursery_pid(self) -> int:
        """The process that starts the subject's."""
        return self._nursery.pid

    def serve(self) -> None:
        """Answer requests until there are no more."""
        while (request := wire.receive(self._control)) is not None:
            if "record" in request:
                self._record(request["record"])
            elif "race" in request:
                wire.send(self._control, {"race": self._race(request["race"])})
            elif "bare_forks" in request:
                wire.send(self._control, {"per_second": bare_forks(request["bare_forks"])})
            else:
                wire.send(self._control, self._recover(request))

    # --- recording -----------------------------------------------------------------------------

    def _record(self, request: Message) -> None:
        on_disk, recovery = request["disk"], request["recovery"]
        if on_disk is None:
            place.refill(self._root, Tree.from_json(recovery["tree"]) if recovery else place.base_tree())
        else:
            place.put_on(self._root, on_disk["path"])
        base, numbers = directory.read_numbered(self._root)
        wire.send(self._control, {"base": base.to_json()})
        job = Job(
            kill=request["kill"],
            disk=None if on_disk is None else (on_disk["marks"], on_disk["seed"]),
            error=request["error"],
            stop_after_acks=request["stop_after_acks"],
            numbers=tuple((device, inode, number) for (device, inode), number in numbers.items()),
            outside=tuple(request["outside"]),
            traced=request["traced"],
            rebuilt=tuple(request["rebuilt"]),
            **_told(request, recovery),
        )
        ops = Ops(self._control)
        ended = self._step(job, request["timeout_s"], ops.take, limit_bytes=wire.FRAME_LIMIT_BYTES)
        ops.send()
        told = {**NOTHING_TOLD, **ended.watched}
        last = directory.read(self._root).to_json()
        if request["view"] and ended.how == "returned":
            ended = self._viewed(ended, ops.outside, request["timeout_s"])
        if on_disk is not None:
            place.take_off(self._root)
        wire.send(self._control, {"done": {**ended.form(), **told, "modules": ended.modules, "last": last}})

    def _viewed(self, ended: Ended, told: list[Message], timeout_s: float) -> Ended:
        """The end of a program that was watched from outside; a view may write, so the tree has been read by now."""
        effects = [op for op in told if op["op"] == t.Effect.KIND]
        acked = [op.get("value") for op in told if op["op"] == t.Ack.KIND]
        job = Job(step={"step": "view"}, effects=effects, acked=acked)
        viewed = self._step(job, timeout_s, lambda _: None, limit_bytes=wire.LINE_LIMIT_BYTES)
        return replace(viewed, watched=ended.watched, modules=ended.modules, left=(*ended.left, *viewed.left))

    def _race(self, request: Message) -> Message:
        from crashlab.recover import rivals  # noqa: PLC0415 - few checks let a second owner in

        if self._rivals is None:
            setting = self._setting
            self._rivals = rivals.Rivals(
                self._control,
                self._root,
                setting.launch_for,
                setting.import_limit_s,
                forget=lambda: self._forget_all(lambda: None),
            )
        try:
            return self._rivals.run(request)
        except rivals.Gone:
            raise Abandoned from None

    # --- recovering ----------------------------------------------------------------------------

    def _recover(self, request: Message) -> Message:
        trace, expected = self._setting.trace, self._setting.expected
        assert trace is not None, "a recovery worker is made after prepare"
        state = _asked_state(trace, request)
        place.refill(self._root, state.tree)
        effects = request["effects"] if "effects" in request else [t.op_to_json(op) for op in state.effects]
        acked = request["acked"] if "acked" in request else [op.value for op in state.acks]
        if not self._setting.tells:
            acked = []
        known = {"effects": effects, "acked": acked, "expected": expected}
        if request.get("warm") and self._warm is not None:
            shared = self._shared(request, state, known)
            if shared is not None and not request.get("compared"):
                return {"state": request["state"], "steps": shared, "shared": True}
            if shared is not None:
                return {"state": request["state"], "compared": shared, **self._compared(request, state, known)}
            place.refill(self._root, state.tree)
        return {"state": request["state"], "steps": self._alone(request, state, known)}

    def _shared(self, request: Message, state: CrashState, known: Message) -> list[Message] | None:
        """The steps in the process that many states share; None where the state must have processes of its own.

        Of a step that raised it is looked at here what it did to the files, as for one alone; where it has moved some
        out of the way, the step that would follow needs a new process.
        """
        assert self._warm is not None
        steps = self._warm.steps({"steps": request["steps"], **known}, request["timeout_s"])
        for step in steps or ():
            if step["how"] != "returned":
                step["destroyed"], step["aside"] = self._changed(state)
        return None if any(step["aside"] for step in steps or ()) else steps

    def _alone(self, request: Message, state: CrashState, known: Message) -> list[Message]:
        """The steps, each in a process of its own, up to the first that does not return."""
        steps: list[Message] = []
        asked, effects = list(request["steps"]), list(known["effects"])
        while asked:
            step = asked.pop(0)
            events: list[Message] = []
            job = Job(**{**known, "step": step, "effects": effects})
            ended = self._step(job, request["timeout_s"], events.append, limit_bytes=wire.LINE_LIMIT_BYTES)
            destroyed, aside = ((), ()) if ended.how == "returned" else self._changed(state)
            told = {"events": events, "destroyed": destroyed, "aside": aside}
            steps.append({"step": step["step"], **ended.form(), **told})
            effects.extend(op for op in events if op["op"] == t.Effect.KIND)
            if ended.how != "returned" and not step.get("go_on"):
                # What a refusal has moved out of the way must be missed by the next recovery too.
                again = aside and step["step"] == "first"
                asked = [{**step, "step": "second", "again": False}] if again else []
        return steps

    def _compared(self, request: Message, state: CrashState, known: Message) -> Message:
        """The steps in processes of their own, and whether they leave the same files as those of the shared one did.

        Where they do not, they are done once more: other files each time are the subject's own choice.
        """
        shared = self._left(state)
        steps, alone = self._once_more(request, state, known)
        if shared.digest == alone.digest:
            return {"steps": steps, "left_same": True}
        _, again = self._once_more(request, state, known)
        return {"steps": steps, "left_same": again.digest != alone.digest and shared.alike(alone)}

    def _once_more(self, request: Message, state: CrashState, known: Message) -> tuple[list[Message], Left]:
        place.refill(self._root, state.tree)
        return self._alone(request, state, known), self._left(state)

    def _left(self, state: CrashState) -> Left:
        tree = directory.read(self._root)
        return Left(tree.digest, tree.digest != state.tree.digest, len(tree.nodes))

    def _step(self, job: Job, timeout_s: float, take: Callable[[Message], None], *, limit_bytes: int) -> Ended:
        limit_s = self._setting.import_limit_s or timeout_s
        self._nursery.start(vars(job))
        ended = self._watch.follow(limit_s, timeout_s, wire.Lines(limit_bytes), take)
        if ended is None:
            raise Abandoned
        return ended

    def _changed(self, state: CrashState) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Files of the state, in ``dir`` and ``home``, whose bytes are gone, and those whose bytes have a new name."""
        now = directory.read(self._root)
        held, holds = _digests(state.tree), _digests(now)
        new = {digest for path, digest in holds.items() if held.get(path) != digest}
        changed = [path for path, digest in held.items() if holds.get(path) != digest]
        gone = tuple(path for path in changed if held[path] not in new)
        return gone, tuple(path for path in changed if held[path] in new)


def _asked_state(trace: t.Trace, request: Message) -> CrashState:
    """The state of a request: by its id, or, where no recipe of this trace leads to it, as a whole tree."""
    if "tree" in request:
        tree = Tree.from_json(request["tree"])
        return CrashState(id=request["state"], fault="", trace=trace, tree=tree, done=request["done"])
    return state_of(trace, request["state"], profile=request.get("profile"), rebuilt=request.get("rebuilt", ()))


def _digests(tree: Tree) -> dict[str, str]:
    """What each file in ``dir`` and ``home`` holds."""
    files = ((path, node) for path, _, node in tree.walk() if isinstance(node, File))
    return {path: node.content.digest for path, node in files if not path.startswith("tmp/")}


def bare_forks(count: int) -> float:
    """How many children per second this process can fork and see end, doing nothing: what a benchmark compares with."""
    start = time.perf_counter()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return count / (time.perf_counter() - start)
