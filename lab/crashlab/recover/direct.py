"""Recovering a program without a process of ours in between: the nursery itself starts it.

Of a :class:`~crashlab.subject.Commands` nothing runs in Python, so a fork of the nursery would protect nothing and
cost more than a small program does. The program starts by ``vfork`` and ``exec``, whatever the size of this process;
what it tells, its view, its check and its files are read here, by the code that a forked step would have run
(:mod:`crashlab.program`).

What stays as in a forked step: the program is neither leader of a session nor of a group, as in its recorded run; a
signal that ends it ends the step; a program that kills its parent kills the nursery, of which the worker makes a new
one. What a step needs more (watching it, failing its reads, two owners) is forked as before.
"""

from __future__ import annotations

import marshal
import os
import sys
from typing import TYPE_CHECKING

from crashlab import program, workload
from crashlab.recover.child import LAB_EXIT_CODE, Job, Pipe, Prepared, answer, lab_of

if TYPE_CHECKING:
    from crashlab.recover.nursery import Launch

_FORKED = ("watched", "kill", "disk", "error", "traced", "events", "warm", "race")
"""Fields of a job that ask for more than the program itself."""


def launch_for(prepared: Prepared, forked: Launch) -> Launch:
    """A launch that does here what needs no process, and ``forked`` the rest. To be called once, in the nursery."""
    os.setsid()
    program.keep_descriptors()

    def launch(data: bytes) -> tuple[int, bytes]:
        job = Job(**marshal.loads(data))  # noqa: S302 - from the lab's own worker
        return _done(prepared, job) if _needs_no_fork(job) else forked(data)

    return launch


def _needs_no_fork(job: Job) -> bool:
    return job.step is not None and "reads" not in job.step and not any(getattr(job, name) for name in _FORKED)


class _Lines(Pipe):
    """A pipe whose lines are kept: they go to the worker with the end of the step."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.told: list[str] = []

    def write(self, text: str) -> None:
        """Keep one line."""
        self.told.append(text)


def _done(prepared: Prepared, job: Job) -> tuple[int, bytes]:
    """One step; the wait status that a process of its own would have had, and its lines."""
    step, pipe = job.step, _Lines(prepared.pipe.descriptor)
    assert step is not None
    lab = lab_of(prepared, job, pipe.event)
    try:
        code = answer(pipe, lambda: workload.recover(prepared.subject, lab, step))
        sys.stderr.flush()
    except Exception:  # noqa: BLE001 - as in a forked step: to the output, which the report quotes
        sys.excepthook(*sys.exc_info())
        code = LAB_EXIT_CODE
    told = "".join(f"{line}\n" for line in pipe.told).encode()
    return -code if code < 0 else code << 8, told
