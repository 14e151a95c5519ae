"""One subject on a real file system: what a power cut leaves of it for real, met by the real recovery.

The workload runs again, on a disk of our own (:mod:`crashlab.disk`) that logs each block write and each
flush. A crash image is every write before the last flush and any subset of the later ones; the kernel
mounts it, and the tree that it shows is a crash state like any other: recovered, judged, reported. Each
tree must also be one that the model allows. If it is not, the model is wrong here, and nothing passes.

Runs take turns: as it comes, with writes of file data held back as by a slow disk, and again. The
recovery meets the tree at the recorded path, copied out of the image, not on the image itself.

A program that was watched from outside is not run there: nobody could mark each of its ops in time. What it
was seen to do is done again on the disk, op by op (:mod:`crashlab.disk.enact`), and its own recovery
meets the images. What is not real then is the time that passes between its ops.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.membership import within
from crashlab.crash.moments import Moment
from crashlab.crash.orders import cuts_of
from crashlab.crash.profiles import parse_profile
from crashlab.crash.states import CrashState
from crashlab.disk import kernel
from crashlab.disk.disk import RealDisk
from crashlab.disk.enact import enact, moments, pages_of, visible
from crashlab.disk.log import images
from crashlab.errors import LabError
from crashlab.faults import FaultRequest
from crashlab.honesty import Honesty
from crashlab.live.on_disk import BYSTANDER
from crashlab.record.proof import without_rebuilt
from crashlab.recover.host import Host
from crashlab.reference import RECORDED_RUN_FACTOR
from crashlab.report.model import Control, FaultCount, UnmeasuredReason
from crashlab.rounds import Round

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashlab.demands import Reference
    from crashlab.judge import Judgement
    from crashlab.observation import Answer
    from crashlab.settings import Asked
    from crashlab.tree import Tree

_DIFFERENCES = 4
IMAGES_PER_PLACE = 2
"""At least so many images at each place of the log that is looked at; of many places some are left out."""


class Run(NamedTuple):
    """One run on the disk: its seed, and whether data writes are held back."""

    seed: int
    held: bool


RUNS = (Run(0, held=False), Run(1, held=True), Run(2, held=False), Run(3, held=True))


@dataclass
class Images:
    """The crash images of one run as a source of states: each distinct tree once."""

    trace: t.Trace
    found: list[CrashState] = field(default_factory=list)
    looked_at: int = 0
    moments: int = 0
    outside: list[str] = field(default_factory=list)

    def states(self) -> Iterator[CrashState]:
        """Every distinct tree that an image showed."""
        return iter(self.found)

    def count(self, limit: int) -> int:
        """How many there are, up to ``limit``."""
        return min(len(self.found), limit)

    def one(self, state_id: str) -> CrashState:
        """A state by its id. Raises LabError where no image showed it."""
        for state in self.found:
            if state.id == state_id:
                return state
        text = f"no image of this run showed {state_id}"
        raise LabError(text)


class DiskTrial:
    """One subject tried on a real disk of ``kind``; afterwards ``rounds``, ``control`` and ``unmeasured`` tell.

    Raises UsageError where this machine cannot do it, LabError where a disk fails us.
    """

    def __init__(self, first: Host, asked: Asked, reference: Reference, kind: str) -> None:
        self._first, self._asked, self._reference, self._kind = first, asked, reference, kind
        self.rounds: list[Round] = []
        self.images = self.distinct = self.points = 0
        self.unmeasured: list[UnmeasuredReason] = []
        self.notes: list[str] = []
        if first.traced is not None:
            text = "what the program was seen to do was done again there op by op; the program itself ran elsewhere."
            self.notes.append(f"{kind} disk: {text}")

    def judge(self, progress: Callable[[str, int, int], None]) -> Iterator[tuple[Judgement, Answer]]:
        """Run, cut the power at every moment, recover and judge each distinct tree; the violations.

        Each comes with the model's id, by which it can be replayed; one outside of the model has none.
        """
        seen: set[str] = set()
        with RealDisk(self._kind) as disk:  # before the lab's own processes: they must see its mounts
            for number, run in enumerate(RUNS):
                progress(f"{self._kind} disk", number, len(RUNS))
                if self._first.traced is not None:
                    yield from self._judged(disk, self._first, self._done_again(disk, run), run, seen)
                    continue
                disk.renew()
                with Host(self._first.subject, jobs=self._asked.jobs) as host:
                    reference = self._recorded(disk, host, run)
                    if reference is not None:
                        host.prepare(reference.trace, expected=reference.end)
                        yield from self._judged(disk, host, reference, run, seen)

    def _judged(
        self, disk: RealDisk, host: Host, reference: Reference, run: Run, seen: set[str]
    ) -> Iterator[tuple[Judgement, Answer]]:
        source = self._imaged(disk, reference, run, seen)
        self.images += source.looked_at
        self.points += source.moments
        self.distinct += len(source.found)
        for text in source.outside[:1]:
            self._doubt("real-disk-disagrees", f"{self._kind}: {text}", "Please report this: the model is wrong here.")
        kind = Losses(reference.trace, [parse_profile(self._kind)], rebuilt=reference.rebuilt)
        named = Losses(reference.trace, self._asked.named_profiles, rebuilt=reference.rebuilt)
        honesty = Honesty(reference.trace, kill_states(reference.trace), kind)
        tried = Round(host, self._asked, reference, FaultRequest("power"), source=source, honesty=honesty)
        for judgement, answer in tried.judge(lambda *_: None):
            if judgement.verdict == "violation":
                yield replace(judgement, state=_named(named, judgement.state)), answer
        self.rounds.append(tried)
        # A later run looks only at what no earlier one showed: that none of this recovered says nothing.
        self.unmeasured += [reason for reason in tried.unmeasured if reason.code != "never-recovered"]
        self.notes += tried.notes

    def _done_again(self, disk: RealDisk, run: Run) -> Reference:
        """The recorded ops once more, on the disk, each between its marks."""
        enact(disk, self._reference.trace, seed=self._asked.seed * 1000 + run.seed, held=run.held)
        return self._reference

    def _recorded(self, disk: RealDisk, host: Host, run: Run) -> Reference | None:
        """The workload once more, on the disk. None where this run is another one than the first."""
        (disk.path / BYSTANDER).touch()
        disk.begin()
        disk.register(pages_of(self._reference.trace))
        disk.hold(on=run.held)
        marks = {"path": str(disk.path), "marks": str(disk.control_socket), "seed": self._asked.seed * 1000 + run.seed}
        limit_s = float(host.description["timeout_s"]) * RECORDED_RUN_FACTOR
        recording = host.record(disk=marks, timeout_s=limit_s)
        kernel.sync_file_system(disk.path)
        disk.hold(on=False)
        base = recording.base.without(BYSTANDER)
        trace = t.Trace(root=recording.root, base=base, ops=recording.ops, threads=recording.threads)
        wanted = [op.KIND for op in self._reference.trace.ops]
        if recording.how != self._ended or [op.KIND for op in trace.ops] != wanted:
            text = (
                f"on the {self._kind} disk the run ended by {recording.how} after {len(trace.ops)} ops, not as before."
            )
            self._doubt("runs-differ", text, "Look at what the program does otherwise there: crashlab doctor.")
            return None
        return replace(self._reference, trace=trace)

    @property
    def _ended(self) -> str:
        return "returned" if self._reference.ended else "signal"

    def _imaged(self, disk: RealDisk, reference: Reference, run: Run, seen: set[str]) -> Images:
        """The distinct trees of the images of this run, each with the smallest moment that shows it."""
        source, log = Images(reference.trace), disk.log()
        cuts = cuts_of(reference.trace, parse_profile(self._kind), rebuilt=reference.rebuilt)
        places, checked = list(moments(log)), set[tuple[Moment, str]]()
        limit = max(1, self._asked.budget.images // len(RUNS))
        each = max(IMAGES_PER_PLACE, limit // len(places))
        for position, moment in places[:: max(1, -(-len(places) * each // limit))]:
            for image in images(log, position, seed=run.seed, count=each):
                tree = without_rebuilt(_own(visible(disk.tree(image))), reference.rebuilt)
                source.looked_at += 1
                name = f"disk@{moment.done}-{len(seen) + 1}"
                state = CrashState(id=name, fault="power", trace=reference.trace, tree=tree, done=moment.done)
                if (moment, tree.digest) not in checked and not within(cuts, moment, tree):
                    source.outside.append(self._told(state, moment))
                checked.add((moment, tree.digest))
                if state.digest not in seen:
                    seen.add(state.digest)
                    source.found.append(state)
        source.moments = len({moment.done for _, moment in places})
        return source

    def _told(self, state: CrashState, moment: Moment) -> str:
        computed = next(iter(Losses(state.trace, [parse_profile(self._kind)]).states())).tree
        lines = "; ".join(computed.difference(state.tree)[:_DIFFERENCES])
        return f"after {moment.done} ops an image shows what the model does not allow (running / image): {lines}"

    def _doubt(self, code: str, detail: str, advice: str) -> None:
        self.unmeasured.append(UnmeasuredReason(code=code, detail=detail, next=advice))

    def count(self) -> FaultCount:
        """The figures of all runs together."""
        counts = [tried.count() for tried in self.rounds]
        names = ("judged", "consistent", "refused", "violation", "unmeasured", "seconds")
        totals = {name: sum(getattr(each, name) for each in counts) for name in names}
        return FaultCount(
            fault=f"{self._kind} disk",
            points=self.points,
            states=self.images,
            reached=self.images,
            distinct=self.distinct,
            **totals,
        )

    @property
    def control(self) -> Control:
        """Whether every image was one that the model allows."""
        wrong = [reason for reason in self.unmeasured if reason.code == "real-disk-disagrees"]
        detail = f"{self.images:,} images of a real {self._kind} disk, {self.distinct:,} states"
        return Control(control="real-disk", passed=bool(self.images) and not wrong, detail=detail)


def _own(tree: Tree) -> Tree:
    """The tree without the strangers' files, which the subject never meets."""
    for path in [path for path, _, _ in tree.walk() if path.rpartition("/")[2] == BYSTANDER]:
        tree = tree.without(path)
    return tree


def _named(losses: Losses, state: CrashState) -> CrashState:
    """The state as the model has it: at its moment, or, where an op was under way, at the one after that."""
    for done in (state.done, state.done + 1):
        if done <= len(state.trace.ops) and losses.outside(done) == losses.outside(state.done):
            found = losses.found(state.tree, done)
            if found is not None:
                return found
    return state
