"""The pipeline: record once, enumerate crash states, recover each, judge, report.

The only module that knows all stages. States stream: of a judged one only its digest and verdict
stay, and per distinct fault the smallest state.
"""

from __future__ import annotations

import dataclasses
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from crashlab import context, controls
from crashlab.crash.damages import Damages
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.places import Places
from crashlab.crash.sources import Kills
from crashlab.damage_twins import twins_of
from crashlab.errors import Unmeasured, UsageError, Violation
from crashlab.findings import Findings
from crashlab.honesty import Honesty
from crashlab.matrix import matrix
from crashlab.outcome import Outcome
from crashlab.recover import travel
from crashlab.recover.host import Host
from crashlab.reference import RECORDED_RUN_FACTOR, Recorded, learn_nothing, record_twice
from crashlab.report import model
from crashlab.report.folder import RunFolder
from crashlab.rounds import Round
from crashlab.settings import Asked, Options, resolve
from crashlab.subject import Crash, Log, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crashlab.barriers import Advice
    from crashlab.crash.profiles import Profile
    from crashlab.crash.sources import Source
    from crashlab.damage_twins import Twins
    from crashlab.demands import Reference
    from crashlab.error_trial import ErrorTrial
    from crashlab.faults import FaultRequest
    from crashlab.observation import Step
    from crashlab.subject import AnySubject


def explore(
    subject: AnySubject | str,
    *,
    progress: Callable[[str, int, int], None] | None = None,
    **options: Unpack[Options],
) -> model.Report:
    """Try every crash state of ``subject`` and report.

    ``subject`` is a Store, Log, Subject or Commands, or the path ``"module:object"`` of one. The options, by keyword:

    * ``faults``: a list such as ``"kill,power"``, which is the default; ``"all"``.
    * ``profile``: the file systems of a power loss, ``"ext4,xfs,btrfs"`` unless said otherwise.
    * ``policy``: per fault what it demands. ``budget``: ``"quick"``, ``"full"``, ``"brief"`` or a Budget.
    * ``seed`` chooses the samples, ``jobs`` is how many recoveries run at a time, ``recorder`` how the run is watched.
    * ``only`` judges one state by its id.
    * ``disk`` (``"ext4"``, ``"xfs"``, ``"btrfs"``; Linux, root) loses power on a real file system too.
    * ``redundant`` tells which of the subject's barriers change nothing.
    * ``out`` is the folder for runs, ``.crashlab`` unless said otherwise.
    * ``baseline`` is the file of accepted findings; ``accept``, a reason, adds those of this check.

    What is not given is asked of the test's marker, of pytest's command line, of the environment and of
    ``crashlab.toml``, in this order (:mod:`crashlab.context`).

    ``progress(phase, done, total)`` is called as work goes on. Raises UsageError only; a violation or an
    unmeasured result is in the report.
    """
    asked = resolve(**options)
    if isinstance(subject, (Store, Log)) and any(isinstance(each, Crash) for each in subject.values or ()):
        from crashlab.path_check import explore_path  # noqa: PLC0415 - few checks follow one path

        report = explore_path(subject, asked, subject.name or context.running_test() or subject.kind.lower())
        return _told(report, asked) if report.run else report  # of hundreds of examples only what is kept is told
    with Host(travel.pack(subject), jobs=asked.jobs) as host:
        name = _name(subject, host)
        if asked.budget.lost is not None:
            host.in_flight = 1  # what is left out must not depend on which of two answers is read first
        if asked.baseline is not None:
            asked = dataclasses.replace(asked, budget=asked.baseline.budget(asked.budget, name))
        return _told(_explored(host, asked, name, progress or (lambda *_: None)), asked)


def _explored(host: Host, asked: Asked, name: str, progress: Callable[[str, int, int], None]) -> model.Report:
    if host.description["path"]:
        from crashlab.path_check import explore_named  # noqa: PLC0415 - few checks follow one path

        return explore_named(host, asked, name)
    return _Exploration(host, asked, name, progress).run()


def _told(report: model.Report, asked: Asked) -> model.Report:
    """The report, kept where findings are to be accepted, and told to the test that runs."""
    if asked.baseline is not None and asked.baseline.accept:
        asked.baseline.keep(report)
    context.told(report)
    return report


def check(
    subject: AnySubject | str,
    *,
    progress: Callable[[str, int, int], None] | None = None,
    **options: Unpack[Options],
) -> model.Report:
    """Like :func:`explore`, but raise Violation or Unmeasured unless all is consistent.

    The message of the error holds the gravest finding of each fault, its first line complete by itself; the whole
    report is on the error, and in the folder that its last line names.
    """
    __tracebackhide__ = True  # pytest shows the finding, not this function
    try:
        report = explore(subject, progress=progress, **options)
    except UsageError as error:  # it says all there is to say: where in the lab it was noticed helps nobody
        raise error.with_traceback(None) from None
    if report.verdict == "violation":
        if report.findings[0].program:
            from crashlab.path_check import violation_of  # noqa: PLC0415 - few checks follow one path

            raise violation_of(report)
        from crashlab.report.message import message  # noqa: PLC0415 - rich is imported only when something is drawn

        raise Violation(message(report), kind=report.findings[0].kind, report=report)
    if report.verdict == "unmeasured":
        raise Unmeasured(str(report), report=report)
    return report


def _name(subject: AnySubject | str, host: Host) -> str:
    if host.description["name"]:
        return str(host.description["name"])
    if context.current.subject:
        return context.current.subject
    if isinstance(subject, str):
        module, _, attribute = subject.partition(":")
        return module.rpartition(".")[2] if attribute == "subject" else attribute
    return context.running_test() or subject.kind.lower()


class _Exploration:
    """One check of one subject, stage by stage."""

    def __init__(self, host: Host, asked: Asked, name: str, progress: Callable[[str, int, int], None]) -> None:
        self._host, self._asked, self._progress = host, asked, progress
        self._subject = model.SubjectInfo(
            name=name, kind=host.description["kind"], source=host.description.get("source", "")
        )
        self._started = time.monotonic()
        self._timeout_s = float(host.description["timeout_s"])
        self._outcome = Outcome()

    def run(self) -> model.Report:
        """Do it all. The run folder comes first: that it cannot be made must not be found out at the end."""
        self._folder = RunFolder.create(self._asked.out, self._subject.name)
        try:
            return self._run()
        except BaseException:
            self._folder.discard()
            raise

    def _run(self) -> model.Report:
        self._progress("record", 0, 2)
        recorded = record_twice(self._host, self._asked.recorder)
        trace = recorded.reference.trace
        if recorded.usable:
            self._host.prepare(trace, modules=recorded.modules, expected=recorded.reference.end)
            recorded = self._learn(recorded)
        if recorded.usable:
            self._explore(recorded)
        return self._outcome.report(
            recorded, self._host, self._asked, self._subject, self._folder, seconds=time.monotonic() - self._started
        )

    @property
    def _site(self) -> Callable[[str], str] | None:
        """How findings are kept apart by call site, where some of them are accepted."""
        baseline = self._asked.baseline
        if baseline is None or not baseline.concerns(self._subject.name):
            return None
        from crashlab.baseline import site_of  # noqa: PLC0415 - few projects have one

        return site_of

    def _explore(self, recorded: Recorded) -> None:
        """Every fault that was asked for, the controls, and what follows from all of them."""
        reference, whole = recorded.reference, self._asked.only is None
        places = Places(reference.trace)
        losses = self._losses(reference, self._asked.profiles) if self._asked.loses_power else None
        shown = self._losses(reference, self._asked.named_profiles) if self._asked.disk else losses
        findings = Findings(places, shown, site=self._site)
        rounds = self._tried(reference, findings, losses)
        nested = self._in_recovery(reference, findings, losses, rounds)
        if whole:
            self._control(recorded)
        self._outcome.counts[:0] = [tried.count() for tried in rounds]
        errors = self._with_errors(recorded, findings)
        self._with_races(reference, findings)
        crashes = [(tried.judged, tried.spots) for tried in (*rounds, *nested) if tried.fault != "damage"]
        crashes += [(trial.judged, trial.spots) for trial in errors]
        self._outcome.matrix = matrix(crashes, places) if crashes else ()
        if whole and self._asked.disk is not None:
            self._on_disk(reference, self._asked.disk, findings)
        power = next((tried for tried in rounds if tried.fault == "power"), None)
        mends = self._on_barriers(reference, rounds) if whole else None
        self._outcome.found = findings.finish(reference, mends, judge=power.again if whole and power else None)

    def _on_barriers(self, reference: Reference, rounds: Sequence[Round]) -> Advice | None:
        """Notes on barriers that are too many, if asked for; and which ones would mend what power losses broke."""
        failed = any(any(tried.failing.values()) for tried in rounds)
        if not failed and not self._asked.redundant:
            return None
        from crashlab.barrier_trials import mending, superfluous  # noqa: PLC0415 - a clean check needs none of it

        self._progress("barriers", 0, 1)
        if self._asked.redundant:
            self._outcome.notes += superfluous(reference, self._asked, rounds)
        return mending(reference, self._asked, rounds)

    def _tried(self, reference: Reference, findings: Findings, losses: Losses | None) -> list[Round]:
        rounds: list[Round] = []
        for fault in faults_of(self._asked):
            if fault.name in ("recovery", "error", "race"):
                continue  # see _in_recovery, _with_errors and _with_races
            tried = self._round(reference, fault, rounds, losses)
            for judgement, answer in tried.judge(partial(self._progress, fault.name)):
                findings.add(judgement, answer)
            if tried.left_out and losses is not None and fault.name == "power" and self._asked.budget.lost is None:
                for shown in findings.earliest():
                    for judgement, answer in tried.smaller(shown.state, shown.kind, losses):
                        findings.add(judgement, answer)
            rounds.append(tried)
            self._outcome.unmeasured += tried.unmeasured
            self._outcome.notes += tried.notes
        return rounds

    def _in_recovery(
        self, reference: Reference, findings: Findings, losses: Losses | None, rounds: Sequence[Round]
    ) -> Sequence[Round]:
        """Crashes of the recoveries from what the other faults left; the rounds of these."""
        fault = next((each for each in faults_of(self._asked) if each.name == "recovery"), None)
        if fault is None:
            return ()
        from crashlab.nested_trial import NestedTrial  # noqa: PLC0415 - few checks crash a recovery

        earlier = {digest: verdict for tried in rounds for digest, (verdict, _) in tried.judged.items()}
        trial = NestedTrial(self._host, self._asked, reference, fault, losses=losses, earlier=earlier)
        for judgement, answer in trial.judge(self._progress):
            findings.add(judgement, answer)
        self._outcome.controls.extend(trial.controls)
        self._outcome.unmeasured.extend(trial.unmeasured)
        self._outcome.notes.extend(trial.notes)
        self._outcome.counts.append(trial.count())
        return trial.rounds

    def _with_errors(self, recorded: Recorded, findings: Findings) -> Sequence[ErrorTrial]:
        """The same subject in live runs whose calls fail."""
        fault = next((each for each in faults_of(self._asked) if each.name == "error"), None)
        if fault is None:
            return ()
        from crashlab.error_trial import ErrorTrial  # noqa: PLC0415 - few checks ask for it

        origins = () if recorded.raw is None else recorded.raw.origins
        trial = ErrorTrial(self._host, self._asked, recorded.reference, fault, origins=origins)
        for judgement, answer in trial.judge(partial(self._progress, "error")):
            findings.add(judgement, answer)
        self._outcome.unmeasured.extend(trial.unmeasured)
        self._outcome.notes.extend(trial.notes)
        self._outcome.counts.append(trial.count())
        return (trial,)

    def _with_races(self, reference: Reference, findings: Findings) -> None:
        """The same subject with a second live owner."""
        if not any(each.name == "race" for each in faults_of(self._asked)):
            return
        from crashlab.race_trial import RaceTrial  # noqa: PLC0415 - few checks ask for it

        trial = RaceTrial(self._host, self._asked, reference)
        for judgement, answer in trial.judge(partial(self._progress, "race")):
            findings.add(judgement, answer)
        self._outcome.unmeasured.extend(trial.unmeasured)
        self._outcome.notes.extend(trial.notes)
        if not self._host.watches_from_outside:
            self._outcome.counts.append(trial.count())

    def _on_disk(self, reference: Reference, kind: str, findings: Findings) -> None:
        """The same subject on a real disk."""
        from crashlab.real_disk import DiskTrial  # noqa: PLC0415 - few checks want a disk

        trial = DiskTrial(self._host, self._asked, reference, kind)
        for judgement, answer in trial.judge(self._progress):
            findings.add(judgement, answer, confirmed="real-disk")
        self._outcome.controls.append(trial.control)
        self._outcome.unmeasured.extend(trial.unmeasured)
        self._outcome.notes.extend(trial.notes)
        self._outcome.counts.append(trial.count())

    def _losses(self, reference: Reference, profiles: Sequence[Profile]) -> Losses:
        asked = self._asked
        return Losses(
            reference.trace,
            profiles,
            bound=asked.bound,
            seed=asked.seed,
            rebuilt=reference.rebuilt,
            sample=asked.sample,
            edges=asked.edges,
        )

    def _round(
        self, reference: Reference, fault: FaultRequest, earlier: Sequence[Round], losses: Losses | None
    ) -> Round:
        source: Source = Kills(reference.trace, "byte" if fault.options.get("cut") == "byte" else "page")
        honesty = Honesty(reference.trace, kill_states(reference.trace))
        if fault.name == "power":
            assert losses is not None, "made where power is asked for"
            source, honesty = losses, Honesty(reference.trace, kill_states(reference.trace), losses)
        twins: Twins | None = None
        if fault.name == "damage":
            source, twins = self._damages(reference, fault)
        # Under a power loss an unknown is honest wherever it is under a kill: what passed there passes here.
        # What damage made undetectable passes as damage only.
        same = [
            tried
            for tried in earlier
            if "damage" not in (tried.fault, fault.name)
            and self._asked.policy_of(tried.fault) == self._asked.policy_of(fault.name)
        ]
        known = {digest for tried in same for digest, (verdict, _) in tried.judged.items() if verdict == "consistent"}
        asked = self._asked
        return Round(self._host, asked, reference, fault, source=source, honesty=honesty, consistent=known, twins=twins)

    def _damages(self, reference: Reference, fault: FaultRequest) -> tuple[Damages, Twins]:
        """The source of damage, and what recovery does on the same files without it."""
        asked = self._asked
        source = Damages(
            reference.trace,
            kind=reference.kind,
            variants=fault.variants,
            bound=asked.bits,
            sample=asked.sample,
            seed=asked.seed,
            edges=asked.edges,
            every=asked.every,
            rebuilt=reference.rebuilt,
        )
        moments = source.moments if asked.only is None else (source.one(asked.only).done,)
        twins = twins_of(self._host, reference, moments, timeout_s=self._timeout_s)
        self._outcome.controls.append(twins.control)
        self._outcome.unmeasured += twins.unmeasured
        return source, twins

    def _learn(self, recorded: Recorded) -> Recorded:
        if recorded.reference.program:
            return recorded
        last = len(recorded.reference.trace.ops)
        steps: dict[str, Step] = {}
        for answer in self._host.recover(self._first(f"kill@{n}") for n in (0, last)):
            steps[answer.state] = answer.steps[0]
        return learn_nothing(recorded, steps["kill@0"], steps[f"kill@{last}"])

    def _first(self, state_id: str, nothing: str | None = None) -> dict[str, Any]:
        """A request for one recovery of one state that a kill leaves."""
        steps = [{"step": "first", "nothing": nothing}]
        return {"state": state_id, "profile": None, "rebuilt": (), "steps": steps, "timeout_s": self._timeout_s}

    def _control(self, recorded: Recorded) -> None:
        """The lab's checks of itself on this subject."""
        trace, nothing = recorded.reference.trace, recorded.reference.nothing.get("error")
        budget = self._asked.budget
        found = [
            controls.real_kills(
                self._host,
                trace,
                count=budget.real_kills,
                seed=self._asked.seed,
                timeout_s=self._timeout_s * RECORDED_RUN_FACTOR,
                progress=lambda done, total: self._progress("real kills", done, total),
                traced=recorded.raw if recorded.recorder == "strace" else None,
            ),
        ]
        if self._asked.every == 1:  # else the first look has shown that forking changes nothing
            request = partial(self._first, nothing=nothing)
            found.append(controls.fresh_interpreters(self._host, trace, request))
        for each in found:
            self._outcome.controls.extend(each.controls)
            self._outcome.unmeasured.extend(each.unmeasured)
            self._outcome.notes.extend(each.notes)


def faults_of(asked: Asked) -> tuple[FaultRequest, ...]:
    """The faults to try: all that were asked for, or the one of the state that alone is asked for."""
    if asked.only is None:
        return asked.faults
    name = "error" if "error@" in asked.only else "recovery" if "/" in asked.only else asked.only.partition("@")[0]
    chosen = tuple(fault for fault in asked.faults if fault.name == name)
    if not chosen:
        text = f"{asked.only!r} belongs to none of the faults asked for ({', '.join(map(str, asked.faults))})"
        raise UsageError(text)
    return chosen
