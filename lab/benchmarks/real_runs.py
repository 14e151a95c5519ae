"""One program on one real file system in one way, its crash images held against the model; and again from a file.

A *way* is everything that a run depends on beside the program: the seed of the perturbations, whether data
writes are held back, whether descriptors stay open, whether requests are torn at 4 KiB. What the kernel does
of its own accord, by its clock and its threads, no seed decides: the same way may give other images.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.crash.membership import contains
from crashlab.crash.moments import Moment
from crashlab.crash.profiles import parse_profile
from crashlab.disk.disk import RealDisk
from crashlab.disk.enact import Verdict, enact, judge
from crashlab.disk.perturb import ACTIONS
from crashlab.errors import UsageError
from crashlab.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = "crashlab.outside/1"


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a program is run. ``actions``: what may happen between two ops."""

    seed: int
    held: bool = False
    keep_open: bool = True
    torn: bool = False
    actions: Sequence[str] = ACTIONS

    @staticmethod
    def of(seed: int) -> Way:
        """The knobs turn with the seed, so that each combination comes up.

        >>> Way.of(5).held, Way.of(5).keep_open, Way.of(5).torn
        (True, True, True)
        """
        return Way(seed=seed, held=bool(seed & 1), keep_open=not seed & 2, torn=bool(seed & 4))


@dataclass(frozen=True)
class Run:
    """A program that was run, with what its images showed. ``trace`` is as the disk saw it."""

    name: str
    way: Way
    trace: t.Trace
    verdict: Verdict

    def outside_json(self, kind: str) -> list[dict[str, Any]]:
        """Each image outside of the model, with all that is needed to look into it and to try again."""
        return [
            {
                "schema": SCHEMA,
                "kind": kind,
                "program": self.name,
                "way": asdict(self.way),
                "moment": [each.moment.done, each.moment.started],
                "image": {"floor": each.image.floor, "pieces": each.image.pieces},
                "difference": each.tree.difference(self.at(each.moment)),
                "tree": each.tree.to_json(),
                "trace": self.trace.to_json(),
            }
            for each in self.verdict.outside
        ]

    def at(self, moment: Moment) -> Tree:
        """The tree that the running system had."""
        tree = self.trace.base
        for op in self.trace.ops[: moment.started]:
            tree = tree.apply(op)
        return tree


def run(  # noqa: PLR0913 - what is run, how, and two bounds by name
    disk: RealDisk, name: str, program: t.Trace, way: Way, *, per_moment: int, most: int
) -> Run:
    """Run a program and look at up to ``most`` of its images."""
    seen = enact(disk, program, seed=way.seed, actions=way.actions, held=way.held, keep_open=way.keep_open)
    verdict = judge(disk, seen, seed=way.seed, per_moment=per_moment, most=most, torn=way.torn)
    return Run(name, way, seen, verdict)


def again(path: Path, *, tries: int = 10) -> tuple[bool, int]:
    """Whether the model still has no place for a written image, and in how many of ``tries`` new runs one comes up.

    Raises UsageError for a file of another kind.
    """
    form = json.loads(path.read_text())
    if not isinstance(form, dict) or form.get("schema") != SCHEMA:
        text = f"{path} holds no image outside of the model (expected schema {SCHEMA!r})"
        raise UsageError(text)
    trace, tree, moment = t.Trace.from_json(form["trace"]), Tree.from_json(form["tree"]), Moment(*form["moment"])
    still = not contains(trace, moment, tree, parse_profile(form["kind"]))
    way = Way(**form["way"])
    with RealDisk(form["kind"]) as disk:
        runs = (run(disk, form["program"], trace, way, per_moment=64, most=1_000) for _ in range(tries))
        return still, sum(bool(each.verdict.outside) for each in runs)
