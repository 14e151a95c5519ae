"""Exercise 2.3: ``run(desk)``, a loop that saves R, A and B; the agent of lesson 3 goes on from what it saved.

What is right is what the agent itself does on the same inbox: it is run here, beforehand. The run without a crash
and the cut streams are judged by the lab's record of their effects. The processes in which the agent resumes
and is checked never load the submission (:mod:`crashcourse.inside_desk`).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.desk import inbox_seed
from crashcourse.folders import temporary
from crashcourse.inside import Later
from crashcourse.inside_desk import WHOLE, CutStreams, SavePoints, cuts, is_request, reference
from crashcourse.judging import failed, guarded, outcomes, timed
from crashcourse.result import Outcome, Shown
from crashlab import Subject
from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.lab import Lab
from crashlab.values import canonical
from longrun.subjects import view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashcourse.judging import Bench
    from crashlab.observation import RawRecording

KINDS = {
    "duplicate-effect": "once",
    "missing-effect": "once",
    "needless-unknown": "once",
    "invalid-transcript": "pair",
    "guard-bypassed": "count",
}
Acts = Counter[tuple[str, str]]


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    seed = inbox_seed(bench.seed)
    run = Later(str(bench.file), "run")
    names = tuple(cuts(seed)) if bench.wants("stream") else (WHOLE,)
    try:
        recording = bench.recorded(Subject(CutStreams(run, seed, names), name=f"{bench.exercise.slug}, cut streams"))
    except UsageError as error:
        return failed(bench.exercise, "end", str(error))
    right, acts = _right(seed)
    if message := _whole(recording, right, acts):
        return failed(bench.exercise, "end", message)
    found = [Outcome(case="end", family="end", verdicts={"consistent": 1})]
    if bench.wants("stream"):
        found.append(timed(lambda: _streams(recording, right, acts)))
    faults = bench.faults({"kill": "kill"}, kinds=KINDS.values())
    if not faults:
        return found
    points = SavePoints(run, seed)
    subject = Subject(points.run, points.resume, check=points.check, view=view, name=bench.exercise.slug)
    try:
        report = bench.explore(subject, ",".join(faults))
    except UsageError as error:
        return failed(bench.exercise, "end", str(error))
    return guarded(bench.exercise, report, [*found, *map(_explained, outcomes(report, faults, kinds=KINDS))])


def _explained(outcome: Outcome) -> Outcome:
    """What the lab cannot know: why a counter matters."""
    if outcome.case != "count" or outcome.finding is None:
        return outcome
    why = "a cap on turns, tokens or requests is reached too late, and in a loop of crashes never"
    return dataclasses.replace(outcome, finding=dataclasses.replace(outcome.finding, why=why, advice=""))


def _right(seed: int) -> tuple[dict[str, Any], Acts]:
    """The end of the agent's own run on the inbox of ``seed``, and what it did to the world."""
    acts: Acts = Counter()

    def note(event_type: type[t.Op], **fields: Any) -> None:
        if event_type is t.Effect and not is_request(fields["name"]):
            acts[fields["name"], canonical(fields["detail"])] += 1

    with temporary() as folder:
        end = reference(seed).run(Lab(Path(folder), note))
    return end, acts


def _acts(recording: RawRecording) -> dict[str, Acts]:
    """What each run of a recording did to its world, by the lab's record."""
    found: dict[str, Acts] = {}
    for op in recording.ops:
        name, colon, act = op.name.partition(":") if isinstance(op, t.Effect) else ("", "", "")
        if isinstance(op, t.Effect) and colon and op.counted and not is_request(act):
            found.setdefault(name, Counter())[act, canonical(op.detail)] += 1
    return found


def _whole(recording: RawRecording, right: Mapping[str, Any], acts: Acts) -> str:
    """What is wrong about the run without any crash or cut; nothing where it is right."""
    assert recording.value is not None
    end = recording.value["end"][WHOLE]
    if end["error"]:
        return f"run(desk) raised {end['error']}"
    if told := _difference(_acts(recording).get(WHOLE, Counter()), acts):
        return told
    if end["status"] != "done":
        return f"after run(desk) the saved status is {end['status']!r}; expected 'done'"
    if end["transcript"] != right["transcript"]:
        return "the saved messages are not the whole conversation: each answer, and its results in one user message"
    return ""


def _difference(found: Acts, right: Acts) -> str:
    """How what was done differs from what should have been done, in words."""
    for sign, more in (("more", found - right), ("less", right - found)):
        for (name, detail), times in more.items():
            return f"{name} {detail:.120} was done {times} times {sign} than it should have been"
    return ""


def _streams(recording: RawRecording, right: Mapping[str, Any], acts: Acts) -> Outcome:
    assert recording.value is not None
    wrong: dict[str, str] = {}
    done = _acts(recording)
    ends = {name: end for name, end in recording.value["end"].items() if name != WHOLE}
    for name, end in ends.items():
        if text := _cut(end, right) or _difference(done.get(name, Counter()), acts):
            wrong[name] = text
    verdicts = {"consistent": len(ends) - len(wrong), "violation": len(wrong)}
    if not wrong:
        return Outcome(case="stream", family="error", verdicts=verdicts)
    name, text = next(iter(wrong.items()))
    shown = Shown(
        kind="diverged",
        crash_point=name,
        call="run(desk), its answer cut, and then the agent's resume",
        expected="the same acts and the same conversation as without the cut",
        found=text + (f"; run raised {ends[name]['error']}" if ends[name]["error"] else ""),
        why="an answer counts only when it came whole: the stop reason is there",
    )
    return Outcome(case="stream", family="error", verdicts=verdicts, finding=shown)


def _cut(end: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    """What is wrong about the end after a cut answer; nothing where it is right."""
    if end["refusals"]:
        return f"the server answered 400: {end['refusals'][0]}"
    if end["requests_not_counted"]:
        return f"the server counts {end['requests_not_counted']} requests more than requests_started says"
    if end["status"] != "done":
        return f"status is {end['status']!r}, expected 'done'"
    if end["transcript"] != right["transcript"]:
        return "half an answer is in the saved messages"
    return ""
