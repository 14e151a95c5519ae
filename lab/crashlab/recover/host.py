"""The main process's side of the lab's processes: start them, ask them, and leave nothing behind.

::

    main ── keeper ─┬─ server for recording ──── worker ── child, one per run
                    └─ server for recovery ─┬─── worker ── child, one per step
                                            └─── worker ── child

The main process may be anything and is never forked; the keeper is a fresh interpreter. Should the
main process die at any moment, the keeper ends everything and removes the folder.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from crashlab import trace as t
from crashlab.errors import Disturbed, LabError, UsageError
from crashlab.observation import Answer, RawRecording
from crashlab.recover import sweep, travel
from crashlab.recover.crew import IN_FLIGHT, Crew
from crashlab.recover.recorders import Recorders
from crashlab.recover.start import start_keeper
from crashlab.recover.wire import Channel, Message
from crashlab.subject import Commands
from crashlab.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

WARM, ISOLATED, INTERPRETER = "warm", "isolated", "interpreter"
"""Where a step of a recovery runs: in one process for many states, in one of its own, in a fresh interpreter."""
ALWAYS_ISOLATED = "CRASHLAB_ISOLATED"
"""Environment switch: ``1`` gives every step a process of its own."""
IMPORT_LIMIT_S = 30.0
_ANSWER_LIMIT_S = 60.0
_CLOSE_LIMIT_S = 15.0
_LOG_CHARACTERS = 2_000


class Way(TypedDict, total=False):
    """How one run is recorded, and what happens in it.

    * ``kill=(n, 0)`` ends it by a real SIGKILL after op ``n``, ``(n, byte)`` inside op ``n``.
    * ``disk`` puts it on a real file system: ``{"path": directory there, "marks": control socket, "seed": number}``.
    * ``traced`` watches it by its system calls, as the run of a Commands always is: ``{}``, with ``hold_us`` each
      call is held for so long, to see stores into mapped files, and with ``kill_call``, ``(name, number)``, it dies
      by SIGKILL when it makes that call for so many times.
    * ``recovery`` runs one step of the recovery instead, on the tree of a crash state: ``{"tree": form, "step": step,
      "effects": [op, …], "acked": [value, …], "expected": end}``, the effects and the acks being those before it.
    * ``error`` lets calls fail, as :class:`crashlab.live.errors.ErrorGate` has it, also with ``traced``;
      ``expected`` is then the uncrashed end, for the subject's ``check``.
    """

    kill: tuple[int, int] | None
    disk: Mapping[str, Any] | None
    traced: Mapping[str, Any] | None
    recovery: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    expected: Any


class Host:
    """The processes of one subject, as a context manager. ``traced`` is how runs are watched from outside, if at all.

    ``subject`` is the form that :func:`crashlab.recover.travel.pack` made. ``jobs`` is how many
    recoveries run at the same time. ``interpreter`` runs every step in a fresh interpreter. ``mode`` is
    WARM as long as one process may recover many states; a caller who finds that it may not sets ISOLATED. ``root``
    repeats a stored run at its recorded place. ``only_records``: no recovery is asked for.

    Raises UsageError where the subject cannot be imported, LabError where the lab itself fails.
    """

    def __init__(  # noqa: PLR0913 - all but one by keyword
        self,
        subject: dict[str, Any],
        *,
        jobs: int = 1,
        env: Mapping[str, str] | None = None,
        interpreter: bool = False,
        root: str | None = None,
        only_records: bool = False,
        import_limit_s: float = IMPORT_LIMIT_S,
    ) -> None:
        self.subject = subject
        self.description: dict[str, Any] = {}
        self.mode = INTERPRETER if interpreter else _best_mode()
        self.pinned = ""
        self.jobs = max(1, jobs)
        self.in_flight = IN_FLIGHT
        self.root = ""
        self.traced: Mapping[str, Any] | None = None
        self._roles = ("record",) if only_records else ("record", "recover")
        self._env = dict(env or {})
        self._import_limit_s = import_limit_s
        self._folder = ""
        self._servers: dict[str, Channel] = {}
        self._server_pids: dict[str, int] = {}
        self._recorder: Channel | None = None
        self._recorders: Recorders | None = None
        self._crew: Crew | None = None
        self._prepared: Message | None = None
        self._closed = False
        with travel.no_check_inside():
            self._keeper, self._control = start_keeper(root)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what a caller asks --------------------------------------------------------------------

    @property
    def watches_from_outside(self) -> bool:
        """Whether runs are watched by their system calls, so that nobody inside can die at an op."""
        return self.traced is not None or bool(self.description["kind"] == Commands.kind)

    def record(self, *, timeout_s: float, **way: Unpack[Way]) -> RawRecording:
        """Run the workload once under the recorder, on an empty place, in the way that is asked for."""
        self._one_at_a_time()
        if self._recorder is None:
            self._recorder = self._worker("record")
        self._recorder.put({"record": self._recording_of(timeout_s, way)})
        return self._recording(self._recorder)

    def record_many(self, ways: Iterable[Way], *, timeout_s: float) -> Generator[RawRecording, None, None]:
        """The same for each way, in their order, ``jobs`` at a time; ways are taken as workers get free."""
        self._one_at_a_time()
        if self._recorders is not None and not self._recorders.whole:
            self._recorders.close()
            self._recorders = None
        if self._recorders is None:
            self._recorders = Recorders([self._worker("record") for _ in range(self.jobs)], self._recording)
        yield from self._recorders.record(self._recording_of(timeout_s, way) for way in ways)

    def _recording_of(self, timeout_s: float, way: Way) -> Message:
        """The request for one recorded run."""
        nothing = dict.fromkeys(Way.__annotations__)
        traced = way.get("traced", {} if self.traced is None and self.watches_from_outside else self.traced)
        return {
            **nothing,
            **way,
            "traced": traced,
            "rebuilt": self.description["rebuilt"],
            "view": self.description["kind"] == Commands.kind,
            "timeout_s": timeout_s,
            "stop_after_acks": None if way.get("recovery") else self.description["stop_after_acks"],
            "outside": self.description["outside"],
        }

    def race(self, *, after: int, switch: int | None, nothing: str | None, timeout_s: float, limit_s: float) -> Message:
        """Run the workload with a second owner that enters after op ``after``; see :mod:`crashlab.recover.rivals`.

        The second owner runs to its end, or is stopped after its op ``switch`` while the first one goes on.
        ``nothing`` is the type of the error by which a load says that nothing is there. A stretch of the first owner
        takes at most ``limit_s`` seconds, one of the second ``timeout_s``.
        """
        self._one_at_a_time()
        if self._recorder is None:
            self._recorder = self._worker("record")
        request = {"after": after, "switch": switch, "nothing": nothing, "timeout_s": timeout_s, "limit_s": limit_s}
        told = {name: self.description[name] for name in ("stop_after_acks", "outside")}
        self._recorder.put({"race": {**request, **told}})
        (message,) = self._all(self._recorder)
        race: Message = message["race"]
        return race

    def prepare(self, trace: t.Trace, *, modules: Sequence[str] = (), expected: Any = None) -> None:
        """Give the recovery workers a trace, and import ``modules`` before they are forked.

        ``expected`` is the uncrashed end in tagged form, for a subject's ``check``.
        """
        if trace.root != self.root:
            text = f"the trace was recorded at {trace.root} and this lab is at {self.root}; pass root={trace.root!r}"
            raise UsageError(text)
        self._end_crew()
        self._prepared = {"trace": trace.to_json(), "expected": expected}
        if self.mode != INTERPRETER:
            request = {"do": "prepare", **self._prepared, "modules": list(modules)}
            answer = self._ask_server("recover", request, self._import_limit_s)
            if answer["threads"] > 1:
                self.mode = INTERPRETER  # a module that the run imported late starts threads

    def recover(self, requests: Iterable[Message]) -> Generator[Answer, None, None]:
        """Run these requests and yield answers as they come. Raises LabError where a worker dies.

        A request is ``{"state": id, "steps": [{"step": name, …}, …], "timeout_s": seconds}``.
        """
        self._one_at_a_time()
        if self._crew is None:
            self._crew = self._new_crew(self.mode, self.jobs)
        yield from self._crew.recover(requests)

    def recover_fresh(self, requests: Iterable[Message]) -> Iterator[Answer]:
        """The same in fresh interpreters, whatever the mode: a control of the forked way."""
        self._one_at_a_time()
        crew = self._new_crew(INTERPRETER, self.jobs)
        try:
            yield from crew.recover(requests)
        finally:
            crew.stop()

    @contextlib.contextmanager
    def bare_forker(self) -> Iterator[Callable[[int], float]]:
        """A further recovery worker that only forks: the floor of a benchmark, as children per second."""
        channel = self._worker("recover")

        def forks_per_second(count: int) -> float:
            answer = channel.ask({"bare_forks": count}, timeout_s=_ANSWER_LIMIT_S)
            return float(self._checked(channel, answer)["per_second"])

        try:
            yield forks_per_second
        finally:
            channel.close()

    def close(self) -> None:
        """End every process and remove the folder. Doing it again changes nothing."""
        if self._closed:
            return
        self._closed = True
        self._control.close()
        try:
            self._keeper.wait(_CLOSE_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        for channel in [*self._servers.values(), *([self._recorder] if self._recorder else [])]:
            channel.close()
        if self._recorders is not None:
            self._recorders.close()
        if self._crew is not None:
            self._crew.stop()
        if self._folder and os.path.exists(self._folder):
            text = f"the lab could not remove {self._folder}; its keeper ended with {self._keeper.returncode}"
            raise LabError(text)

    # --- starting ------------------------------------------------------------------------------

    def _start(self) -> None:
        hello = self._next(self._control, _ANSWER_LIMIT_S)
        self._folder, self.root = hello["folder"], hello["root"]
        for role in self._roles:
            self._servers[role], self._server_pids[role] = self._fork({"do": "server", "role": role, "env": self._env})
            self._servers[role].put({"do": "import", "subject": self.subject})
        answers = [self._ask_server(role, None, self._import_limit_s) for role in self._roles]
        self.description = answers[-1]["description"]
        if any(answer["threads"] > 1 for answer in answers):
            self.mode = INTERPRETER
        self._recorder = self._worker("record")

    def _fork(self, request: Message, name: str = "") -> tuple[Channel, int]:
        channel, answer = self._asked_for(self._control, request, name or f"the lab's server for {request['role']}")
        return channel, answer["forked"]

    def _asked_for(self, asked: Channel, request: Message, name: str) -> tuple[Channel, Message]:
        """A connection to the process that ``asked`` forks for this request, and what it answered."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                answer = self._checked(asked, asked.ask(request, given=theirs, timeout_s=_ANSWER_LIMIT_S))
        except BaseException:
            ours.close()
            raise
        return Channel(ours, name), answer

    def _worker(self, role: str, mode: str | None = None) -> Channel:
        """A new worker that is ready to work; finds out whether places can be pinned."""
        name = "a recording worker" if role == "record" else "a recovery worker"
        if (mode or self.mode) == INTERPRETER:
            stored = self._prepared if role == "recover" else None
            request = {"trace": None, "expected": None, **(stored or {}), "subject": self.subject}
            env = {**self._env, **self.description["env"]}
            limit = {"import_limit_s": self._import_limit_s}
            channel, _ = self._fork({"do": "interpreter", "env": env, **request, **limit}, name)
        else:
            asked = {"do": "fork", "watches": role == "record" and self.watches_from_outside}
            channel, _ = self._asked_for(self._servers[role], asked, name)
        ready = self._next(channel, _ANSWER_LIMIT_S)
        self.pinned = f"one at a time: {ready['refused']}" if ready["refused"] else "namespace"
        if ready["refused"]:
            self.jobs = 1
        return channel

    def _new_crew(self, mode: str, jobs: int) -> Crew:
        if self._prepared is None:
            text = "recover was called before prepare: the workers have no trace yet"
            raise LabError(text)
        return Crew([self._worker("recover", mode) for _ in range(jobs)], self._log, in_flight=self.in_flight)

    def _one_at_a_time(self) -> None:
        """End a stream of answers that nobody read to its end; its workers hold the place."""
        if self._closed:
            text = "the lab is closed"
            raise LabError(text)
        if self._crew is not None and self._crew.busy:
            self._end_crew()

    def _end_crew(self) -> None:
        if self._crew is not None:
            self._crew.stop()
            self._crew = None

    # --- asking --------------------------------------------------------------------------------

    def _recording(self, channel: Channel) -> RawRecording:
        base: Tree | None = None
        ops: list[t.Op] = []
        while True:
            for message in self._all(channel):
                if "base" in message:
                    base = Tree.from_json(message["base"])
                elif "ops" in message:
                    ops.extend(t.op_from_json(op) for op in message["ops"])
                else:
                    assert base is not None
                    return _raw(self.root, base, ops, message["done"])

    def _all(self, channel: Channel) -> list[Message]:
        messages = channel.pull()
        while not messages:
            if channel.ended:
                text = f"{channel.name} died. Its log ends: {self._log() or '(empty)'}"
                raise Disturbed(text)
            channel.wait(None)
            messages = channel.pull()
        return messages

    def _ask_server(self, role: str, request: Message | None, limit_s: float) -> Message:
        """Ask a server that runs the subject's import, or wait for its answer to the question it has."""
        server = self._servers[role]
        if request is not None:
            server.put(request)
        try:
            answer = server.next(time.monotonic() + limit_s)
        except TimeoutError:
            text = (
                f"importing the subject did not end within {limit_s:g} s in a fresh process; import less, or start less"
            )
            raise UsageError(text) from None
        if answer is None:
            raise UsageError(self._import_death(role))
        return self._checked(server, answer)

    def _import_death(self, role: str) -> str:
        asked = self._control.ask({"do": "status", "pid": self._server_pids[role]}, timeout_s=_ANSWER_LIMIT_S)
        code = (asked or {"exit": None})["exit"]
        how = f"signal {-code}" if isinstance(code, int) and code < 0 else f"exit code {code}"
        said = self._log()
        return f"importing the subject ended the fresh process with {how}" + (f". It printed: {said}" if said else "")

    def _next(self, channel: Channel, limit_s: float) -> Message:
        try:
            return self._checked(channel, channel.next(time.monotonic() + limit_s))
        except TimeoutError as error:
            text = f"{error} within {limit_s:g} s. Its log ends: {self._log() or '(empty)'}"
            raise LabError(text) from error

    def _checked(self, channel: Channel, answer: Message | None) -> Message:
        if answer is None:
            text = f"{channel.name} died. Its log ends: {self._log() or '(empty)'}"
            raise Disturbed(text)
        if "usage" in answer:
            raise UsageError(answer["usage"])
        if "failed" in answer:
            text = f"{channel.name} failed: {answer['failed']}"
            raise LabError(text)
        return answer

    def _log(self) -> str:
        try:
            with open(os.path.join(self._folder, "lab.log"), encoding="utf-8", errors="replace") as file:
                return file.read()[-_LOG_CHARACTERS:].strip()
        except OSError:  # the keeper has removed it, or never made it
            return ""


def _best_mode() -> str:
    """One process for many states only where nothing that it starts can escape."""
    return WARM if sweep.CAN_SWEEP and os.environ.get(ALWAYS_ISOLATED) != "1" else ISOLATED


def _raw(root: str, base: Tree, ops: list[t.Op], done: Message) -> RawRecording:
    fields: dict[str, Any] = {name: tuple(done[name]) for name in ("outside_writes", "unseen", "modules", "left")}
    for what in ("origins", "calls"):
        fields[what] = tuple((pid, name, number) for pid, name, number in done[what])
    fields |= {
        name: done[name]
        for name in ("how", "value", "error", "traceback", "stdout", "stderr", "threads", "mapped", "late", "first")
    }
    return RawRecording(root=root, base=base, ops=tuple(ops), last=Tree.from_json(done["last"]), **fields)
