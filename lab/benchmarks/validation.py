"""Many programs on one kind of real file system: what was looked at, what was seen, what lay outside of the model.

First the dangers, until each is seen; then, in turns, a pattern and a random program. It goes on until the
images are enough and every danger is seen and every false promise refuted, or no more is to be expected.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.dangers import DANGERS, Danger
from benchmarks.lies import LIES, Lie
from benchmarks.programs import PATTERNS, random_program
from benchmarks.real_runs import Run, Way, run
from crashlab.crash.power import PowerLoss
from crashlab.crash.profiles import parse_profile
from crashlab.disk.disk import RealDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashlab import trace as t

KINDS = ("ext4", "ext4[noauto_da_alloc]", "ext4[data=journal]", "xfs", "btrfs")
TRIES = 60
"""Runs of one danger before it counts as not seen: the rarest showed in one run of six."""

EXTRA = 60
"""Further programs after the images are enough, for a promise that is not refuted yet."""

_PER_MOMENT, _MOST = {"danger": 16, "pattern": 16, "random": 6}, {"danger": 60, "pattern": 100, "random": 60}


@dataclass
class Tally:
    """What one kind has shown so far. ``outside`` are JSON forms, see :meth:`benchmarks.real_runs.Run.outside_json`."""

    kind: str
    images: Counter[str] = field(default_factory=Counter)
    programs: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    seen: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    showings: Counter[str] = field(default_factory=Counter)
    looked: Counter[str] = field(default_factory=Counter)
    refuted: Counter[str] = field(default_factory=Counter)
    outside: list[dict[str, Any]] = field(default_factory=list)

    @property
    def dangers(self) -> list[Danger]:
        """Those that this kind should show."""
        return [danger for danger in DANGERS if self.kind in danger.kinds]

    @property
    def lies(self) -> list[Lie]:
        """Those about this kind."""
        return [lie for lie in LIES if lie.kind == self.kind]

    def open_questions(self) -> list[str]:
        """Dangers not seen and false promises not refuted."""
        unseen = [danger.name for danger in self.dangers if not self.showings[danger.name]]
        return unseen + [lie.name for lie in self.lies if not self.refuted[lie.name]]

    def add(self, group: str, done: Run) -> None:
        """Count a run, and hold it against the false promises."""
        self.images[group] += done.verdict.images
        self.programs[group] += 1
        self.pairs += len(done.verdict.judged)
        self.outside += done.outside_json(self.kind)
        if group == "pattern":
            self.seen[done.name] |= done.verdict.trees.keys()
        for lie in self.lies:
            self.refuted[lie.name] += lie.outside(done)


def validate(tally: Tally, images: int, seed: int, progress: Callable[[Tally], None] = lambda _: None) -> None:
    """Fill ``tally`` from a disk of its kind until ``images`` are looked at; what was reached stays in it."""
    with RealDisk(tally.kind) as disk:
        for danger in tally.dangers:
            _try(disk, tally, danger, seed)
            progress(tally)
        extra = 0
        for group, name, program, way in _programs(seed):
            if tally.images.total() >= images:
                if not tally.open_questions() or extra == EXTRA:
                    return
                extra += 1
            done = run(disk, name, program, way, per_moment=_PER_MOMENT[group], most=_MOST[group])
            tally.add(group, done)
            progress(tally)


def _try(disk: RealDisk, tally: Tally, danger: Danger, seed: int) -> None:
    for number in range(TRIES):
        way = Way(seed=seed + number, held=danger.held, actions=danger.actions)
        done = run(disk, danger.name, danger.program, way, per_moment=_PER_MOMENT["danger"], most=_MOST["danger"])
        tally.add("danger", done)
        tally.looked[danger.name] += done.verdict.images
        tally.showings[danger.name] += danger.images(done)
        if tally.showings[danger.name]:
            return


def _programs(seed: int) -> Iterator[tuple[str, str, t.Trace, Way]]:
    """Patterns and random programs in turns, for ever."""
    names = itertools.cycle(PATTERNS)
    for number in itertools.count():
        name = next(names)
        turn = seed + number // len(PATTERNS)
        yield "pattern", name, PATTERNS[name], Way.of(turn)
        yield "random", f"random {seed + number}", random_program(seed + number), Way.of(seed + number)


def states_in_model(kind: str, name: str) -> int:
    """How many different trees the model has for a pattern."""
    return len({recipe.digest for recipe in PowerLoss(PATTERNS[name], parse_profile(kind)).states()})
