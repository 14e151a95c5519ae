"""One stored crash state, recovered and judged again at its recorded path.

The trace and the reference come from the run folder, so that the state is the same to the byte even
where the program writes other bytes each time. The subject is imported afresh: mended code is met by
the old state.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crashlab import directory
from crashlab.asking import request
from crashlab.crash.ids import state_of
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.nested import first_of
from crashlab.crash.places import Places
from crashlab.crash.profiles import DEFAULT, parse_profiles
from crashlab.crash.states import prefixes_of
from crashlab.damage_twins import Twins, twins_of
from crashlab.demands import Reference
from crashlab.errors import UsageError
from crashlab.faults import FaultRequest
from crashlab.findings import Findings
from crashlab.honesty import Honesty
from crashlab.judge import Judge
from crashlab.nested_honesty import NestedHonesty
from crashlab.observation import readable
from crashlab.outcome import versions
from crashlab.paths import InDoubt, on_path
from crashlab.recover.host import Host
from crashlab.recoveries import Recoveries
from crashlab.report import model
from crashlab.settings import resolve
from crashlab.stored import stored_reference
from crashlab.subject import Policy

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import trace as t
    from crashlab.crash.states import CrashState
    from crashlab.report.folder import RunFolder


def replay(run: RunFolder, state_id: str, *, into: Path | None = None) -> model.Report:
    """Recover the state ``state_id`` of a stored run again, and judge it.

    ``into`` names an empty or new directory that gets the state's files to look at. Raises UsageError
    where the run or the state is not there.
    """
    try:
        return _replay(run, state_id, into)
    except UsageError as error:
        what, hint, _ = str(error).partition(" Use the stored run:")
        if not hint:
            raise
        text = f"{what} crashlab show --run {run.path} says what that run found; or name another one with --run DIR"
        raise UsageError(text) from error


def _replay(run: RunFolder, state_id: str, into: Path | None) -> model.Report:
    started = time.monotonic()
    trace, stored, earlier = run.trace(), stored_reference(run), run.report()
    profile = ",".join(earlier.get("settings", {}).get("profile") or [DEFAULT])
    rebuilt = tuple(stored.get("rebuilt", ()))
    if "error@" in state_id or state_id.startswith("race@"):
        return _live_again(run, state_id, into, started)
    first, _, later = state_id.partition("/")
    state = state_of(trace, first, profile=profile, rebuilt=rebuilt)
    if into is not None:
        _make_room(into)
    with Host(stored["subject"], jobs=1, root=trace.root) as host:
        host.traced = stored.get("traced")
        reference = _reference(host, trace, stored, rebuilt)
        host.prepare(trace, modules=stored["modules"], expected=reference.end)
        if later:
            recoveries = run.extra("recoveries.json") if run.has("recoveries.json") else {}
            state = Recoveries(host, reference, profiles=profile, stored=recoveries).follow(state_id)
        if into is not None:
            directory.write(state.tree, into)
        asked = request(state, reference, timeout_s=float(host.description["timeout_s"]))
        judged, on_a_path = state, run.has("path.json")
        if on_a_path:  # the values were not the subject's own
            asked["steps"] = [{**step, **run.extra("path.json")} for step in asked["steps"]]
            judged, reference = on_path(state, reference)
        twins = _twins(host, reference, state)
        answer = readable(next(iter(host.recover(iter([asked])))), trace.root)
    lossy = "power" in state_id
    losses = Losses(trace, parse_profiles(profile), rebuilt=rebuilt) if lossy else None
    honesty = InDoubt() if on_a_path else (NestedHonesty if later else Honesty)(trace, kill_states(trace), losses)
    said = twins.said if twins else None
    judgement = Judge(reference, _policy(earlier, state), honesty, said=said).judge(judged, answer)
    findings = Findings(Places(trace), losses)
    findings.add(replace(judgement, state=state), answer)
    return _report(earlier, judgement.verdict, state, [each for each, _ in findings.finish(reference)], started)


def _live_again(run: RunFolder, state_id: str, into: Path | None, started: float) -> model.Report:
    """An error or a race happens live, so it is run again: the op numbers are those of the stored run."""
    from crashlab.error_trial import ErrorTrial  # noqa: PLC0415 - few replays ask for it
    from crashlab.race_trial import RaceTrial  # noqa: PLC0415 - as above

    fault = "error" if "error@" in state_id else "race"
    trace, stored, earlier = run.trace(), stored_reference(run), run.report()
    profile = ",".join(earlier.get("settings", {}).get("profile") or [DEFAULT])
    asked = resolve(faults=fault, profile=profile, only=state_id, jobs=1)
    policy = Policy(**earlier.get("settings", {}).get("policy", {}).get(fault, {})).over(Policy.default(fault))
    asked = replace(asked, policy={fault: policy})
    if into is not None:
        _make_room(into)
    findings = Findings(Places(trace))
    with Host(stored["subject"], jobs=1, root=trace.root) as host:
        if earlier.get("settings", {}).get("recorder") == "strace":
            host.traced = stored.get("traced") or {}  # of a program with mapped files: how long each call is held
        reference = _reference(host, trace, stored, tuple(stored.get("rebuilt", ())))
        host.prepare(trace, modules=stored["modules"], expected=reference.end)
        trial = (
            ErrorTrial(host, asked, reference, FaultRequest(fault))
            if fault == "error"
            else RaceTrial(host, asked, reference)
        )
        met = list(trial.judge(lambda *_: None))
    for judgement, answer in met:
        findings.add(judgement, answer)
    if into is not None and met:
        directory.write(met[-1][0].state.tree, into)
    order = ("violation", "unmeasured", "refused", "consistent")
    verdicts = {judgement.verdict for judgement, _ in met} or {"unmeasured"}
    verdict: model.Verdict = "unmeasured" if trial.unmeasured else next(each for each in order if each in verdicts)
    state = met[-1][0].state if met else prefixes_of(trace).killed(0)
    report = _report(earlier, verdict, state, [each for each, _ in findings.finish(reference)], started)
    return replace(report, unmeasured=tuple(trial.unmeasured))


def _policy(earlier: dict[str, Any], state: CrashState) -> Policy:
    """What was demanded; of a crash during recovery, what the fault of its first crash demands."""
    policies = earlier.get("settings", {}).get("policy", {})
    first = first_of(state).fault
    return Policy(**policies.get(first, policies.get(state.fault, {}))).over(Policy.default(first))


def _twins(host: Host, reference: Reference, state: CrashState) -> Twins | None:
    """For damage: what recovery does on the same files without it."""
    if state.damage is None:
        return None
    return twins_of(host, reference, (state.done,), timeout_s=float(host.description["timeout_s"]))


def _reference(host: Host, trace: t.Trace, stored: dict[str, Any], rebuilt: tuple[str, ...]) -> Reference:
    return Reference(
        kind=host.description["kind"],
        trace=trace,
        end=stored["end"],
        ended=stored["ended"],
        has_check=host.description["has_check"],
        atomic=host.description["atomic"],
        nothing=stored["nothing"],
        rebuilt=rebuilt,
    )


def _make_room(into: Path) -> None:
    try:
        into.mkdir(parents=True, exist_ok=True)
        full = any(into.iterdir())
    except OSError as error:
        text = f"cannot write the crash state to {into}: {error}; name a new or an empty directory for --into"
        raise UsageError(text) from error
    if full:
        text = f"{into} is not empty; name a new or an empty directory for --into"
        raise UsageError(text)


def _report(
    earlier: dict[str, Any], verdict: model.Verdict, state: CrashState, findings: list[model.Finding], started: float
) -> model.Report:
    subject = earlier.get("subject", {})
    notes = [f"replayed {state.id} of {earlier.get('run', 'a stored run')}"]
    known = {each.get("id"): each.get("digest") for each in earlier.get("findings", [])}
    if known.get(state.id, state.digest) != state.digest:
        notes.append(f"{state.id} has other bytes than in that run (digest {state.digest}, was {known[state.id]}).")
    seconds = round(time.monotonic() - started, 3)
    counts = {verdict: 1} if verdict in ("consistent", "refused", "violation", "unmeasured") else {}
    return model.Report(
        verdict="consistent" if verdict == "refused" else verdict,
        subject=model.SubjectInfo(**{key: subject.get(key, "") for key in ("name", "kind", "source")}),
        settings=resolve(faults=state.fault, profile=state.profile or None, only=None).shown(
            recovery="isolated", recorder=earlier.get("settings", {}).get("recorder", "python")
        ),
        versions=versions(),
        faults=(model.FaultCount(fault=state.fault, points=1, states=1, distinct=1, judged=1, **counts),),
        findings=tuple(findings),
        notes=tuple(notes),
        seconds=seconds,
        run=str(earlier.get("run", "")),
    )
