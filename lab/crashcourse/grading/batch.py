"""All submissions of a folder: some at a time, each behind a warden, and only what has no result yet.

The same bytes are judged once, whoever handed them in: the same seed and the same judge come to the same result, and
each result says that it was judged so. One that hangs, kills itself or breaks its judge costs its own result.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from crashcourse.grading import secret
from crashcourse.marking import seed_sha256, unjudged
from crashcourse.result import JUDGE_FAILED
from crashlab.recover import ready, sweep
from crashlab.recover.compiled import keep_compiled
from crashlab.recover.wire import BOOTSTRAP

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator, Mapping, Sequence

    from crashcourse.grading.roster import Submission
    from crashcourse.grading.shelf import Shelf

LIMIT_S = 180.0
"""How long one submission may be judged. The lab's own limits end a hanging step long before."""
ENDING_S = 30.0
"""How long a warden may take, beyond its limit, to end everything and answer."""
TWICE = "handed in more than once, byte for byte; judged once"
GLANCE_S = 1.0
"""So often it is looked whether a warden waits. One that has computed nothing since the last time does."""
WAITING_BESIDE = 4
"""Beside each one that computes so many may wait."""
JUDGE_BYTES = 3 * 2**30
"""The memory of a judge, and of what it starts: a submission that writes without end must not take the machine's."""
_READ_BYTES = 1 << 16
_KEPT = ("PATH", "LANG", "LC_ALL", "CRASHLAB_NO_NAMESPACE")
"""Of the environment no more than this reaches a warden, and a submission: names and keys of the grader do not."""

Both = tuple[dict[str, Any], dict[str, Any]]
"""The whole and the public result, as JSON."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a batch is judged. ``isolation`` as :func:`crashcourse.grading.housing.find` names it."""

    shelf: Shelf
    isolation: str = "same-user"
    hidden: Sequence[str] = ()
    jobs: int = 1
    limit_s: float = LIMIT_S
    cases: Sequence[str] | None = None

    def seed(self, submission: Submission) -> int:
        """The private seed."""
        return secret.seed(self.shelf.secret, submission.exercise.slug)


@dataclass(frozen=True, kw_only=True)
class Graded:
    """One submission and what came of it; ``before``: an earlier run of the command had judged it."""

    submission: Submission
    whole: Mapping[str, Any]
    public: Mapping[str, Any]
    before: bool = False


def grade(plan: Plan, submissions: Sequence[Submission], told: Callable[[Graded], None]) -> list[Graded]:
    """Judge them all; ``told`` hears of each result once it is kept. The list is in the order of ``submissions``.

    Raises OSError where a result cannot be kept. An interruption leaves every result that was kept.
    """
    graded: dict[str, Graded] = {}
    waiting: dict[tuple[str, str, str], list[Submission]] = {}
    for submission in submissions:
        known = plan.shelf.known(submission, seed_sha256(plan.seed(submission)))
        if known is not None:
            graded[submission.owner] = Graded(submission=submission, whole=known[0], public=known[1], before=True)
            told(graded[submission.owner])
        else:
            waiting.setdefault((submission.exercise.slug, submission.sha256, submission.problem), []).append(submission)
    keep_compiled()
    with contextlib.closing(_judged(plan, list(waiting.values()))) as results:
        for group, both in results:
            for submission in group:
                graded[submission.owner] = _kept(plan.shelf, submission, both, alone=len(group) == 1)
                told(graded[submission.owner])
    return [graded[submission.owner] for submission in submissions]


def _kept(shelf: Shelf, submission: Submission, both: Both, *, alone: bool) -> Graded:
    whole, public = both
    if not alone:
        whole, public = ({**each, "notices": [*each["notices"], TWICE]} for each in both)
    shelf.put(submission, whole, public)
    return Graded(submission=submission, whole=whole, public=public)


def _judged(
    plan: Plan, groups: Sequence[Sequence[Submission]]
) -> Generator[tuple[Sequence[Submission], Both], None, None]:
    """Each group with the results of its one file, as they come."""
    running: dict[int, _Warden] = {}
    idle: list[_Warden] = []
    rest = iter(groups)
    poll = select.poll()
    try:
        while True:
            while _has_room(plan, running) and (group := next(rest, None)) is not None:
                if group[0].problem:
                    yield group, _missing(plan, group[0])
                    continue
                warden = idle.pop() if idle else _Warden(plan)
                running[warden.reading] = warden
                poll.register(warden.reading, select.POLLIN)
                warden.ask(group)
            if not running:
                return
            for descriptor in _ready(poll, running):
                warden = running[descriptor]
                if warden.read():
                    continue
                poll.unregister(descriptor)
                del running[descriptor]
                both = warden.answer()
                idle += [warden] if warden.lives else []
                yield warden.group, both
    finally:
        for warden in (*running.values(), *idle):
            warden.give_up()
        for warden in (*running.values(), *idle):
            warden.leave()


def _has_room(plan: Plan, running: Mapping[int, _Warden]) -> bool:
    """Whether one more may be judged: one that waits for a hanging submission leaves its core to another."""
    waiting = sum(warden.waits() for warden in running.values())
    return len(running) - min(waiting, plan.jobs * WAITING_BESIDE) < plan.jobs


def _ready(poll: select.poll, running: Mapping[int, _Warden]) -> list[int]:
    """Wardens that have said something, or whose time is over; those are ended, and so say that they end.

    Now and then nothing: somebody may have begun to wait.
    """
    left_s = min(warden.deadline for warden in running.values()) - time.monotonic()
    found = [descriptor for descriptor, _ in poll.poll(max(0.0, min(left_s, GLANCE_S)) * 1000)]
    if not found:
        for warden in running.values():
            warden.end_late()
    return found


def _missing(plan: Plan, submission: Submission) -> Both:
    """The result where there is no file to judge."""
    text = f"not judged: {submission.problem}"
    result = unjudged(submission.exercise, submission.data, plan.seed(submission), message=text)
    return result.to_json(), result.public().to_json()


class _Warden:
    """One warden with its ready process. It judges a file at a time, each for a group of submissions of these bytes."""

    group: Sequence[Submission]

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._parts: list[bytes] = []
        self._folder = ""
        self._used: dict[int, float] = {}
        self._waits, self._looked = False, 0.0
        self.lives, self.deadline = True, math.inf
        self._forker: subprocess.Popen[bytes] | None
        link: socket.socket | None
        self._forker, link = ready.start(data_bytes=JUDGE_BYTES) if ready.CAN_BE_READY else (None, None)
        number = -1 if link is None else link.fileno()
        with link or contextlib.nullcontext():
            module, path = "crashcourse.grading.warden", json.dumps(sys.path)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", BOOTSTRAP, path, module, f"{number}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                pass_fds=[] if link is None else [number],
                start_new_session=True,  # what a terminal sends reaches the command, which ends its wardens in order
            )

    def ask(self, group: Sequence[Submission]) -> None:
        """Let it judge the file of this group."""
        self.group, self._parts = group, []
        self._used, self._waits, self._looked = {}, False, time.monotonic()
        self._folder = os.path.join(tempfile.gettempdir(), f"crashcourse-{os.urandom(8).hex()}")
        self.deadline = time.monotonic() + self._plan.limit_s + ENDING_S
        request = {
            "exercise": group[0].exercise.slug,
            "data": group[0].data.hex(),
            "seed": self._plan.seed(group[0]),
            "isolation": self._plan.isolation,
            "hidden": list(self._plan.hidden),
            "folder": self._folder,
            "limit_s": self._plan.limit_s,
            "data_bytes": JUDGE_BYTES,
            "cases": self._plan.cases,
        }
        with contextlib.suppress(BrokenPipeError):  # it has ended; its end says how
            self._pipe("stdin").write(json.dumps(request).encode() + b"\n")
            self._pipe("stdin").flush()

    def waits(self) -> bool:
        """Whether nothing of it has computed since it was last asked, or what it said then where that was just now."""
        now = time.monotonic()
        if now - self._looked < GLANCE_S:
            return self._waits
        tops = [self._process.pid, *([self._forker.pid] if self._forker is not None else [])]
        used = {pid: sweep.used_s(pid) for top in tops for pid in (top, *sweep.descendants(top))}
        self._waits, self._used, self._looked = used == self._used, used, now
        return self._waits

    def _pipe(self, name: str) -> IO[bytes]:
        pipe: IO[bytes] | None = getattr(self._process, name)
        assert pipe is not None
        return pipe

    @property
    def reading(self) -> int:
        """The descriptor of its answers."""
        return self._pipe("stdout").fileno()

    def read(self) -> bool:
        """Take what it says; False where that was the end of the answer, or of all."""
        part = os.read(self.reading, _READ_BYTES)
        self._parts.append(part)
        return bool(part) and not part.endswith(b"\n")

    def answer(self) -> Both:
        """Its answer, or the word that there is none: then it lives no longer."""
        data = b"".join(self._parts)
        if data.endswith(b"\n"):
            self._folder = ""
            answer = json.loads(data)
            return answer["whole"], answer["public"]
        submission, said = self.group[0], self.leave()
        error = f"the warden ended with {self._process.returncode}. {said}".strip()
        result = unjudged(
            submission.exercise, submission.data, self._plan.seed(submission), message=JUDGE_FAILED, error=error
        )
        return result.to_json(), result.public().to_json()

    def give_up(self) -> None:
        """Tell it that nobody waits for its answer any more; it then ends everything."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.stdin = None  # else communicate would write to it

    def end_late(self) -> None:
        """End it where its time is over: it has failed at what it is for, and its keepers do the rest."""
        if time.monotonic() >= self.deadline:
            self._process.kill()

    def leave(self) -> str:
        """Wait for its end and for that of its ready process; what it complained of."""
        self.give_up()
        self.lives = False
        said = _ended(self._process)
        if self._forker is not None:
            _ended(self._forker)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)  # it is there only where the warden was killed
        return said[-_READ_BYTES:].decode(errors="replace").strip()


def _ended(process: subprocess.Popen[bytes]) -> bytes:
    """Wait for the end of one that was told to end; what it said on standard error."""
    try:
        _, said = process.communicate(timeout=ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
    return said or b""


def counts(graded: Sequence[Graded]) -> Counter[str]:
    """How many came to which status."""
    return Counter(each.whole["status"] for each in graded)
