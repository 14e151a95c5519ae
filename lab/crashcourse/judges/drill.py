"""Drills, the small exercises beside the graded pair of a lesson: pure functions on every state, and a learner's test.

A case of states is lost to one state that comes out otherwise. The case ``tests`` is lost to an example that the
correct functions do not hold, and to a naive variant that all examples let pass.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from crashcourse.drills import DRILLS
from crashcourse.drills.drill import TESTS, Drill, State, apart, examples, passes, short, wrong_example
from crashcourse.explain import judged
from crashcourse.inside_drill import Calls
from crashcourse.judging import failed
from crashcourse.result import Outcome, Shown
from crashlab import Subject
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crashcourse.judging import Bench

CASE = "tests"
RUN_S = 60.0
"""How long all calls may take, seconds: they take less than one. It only bounds a submission that never ends."""


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    drill = DRILLS[bench.exercise.slug]
    wanted = {case: list(states) for case, states in drill.states(bench.seed).items() if bench.wants(case)}
    every = [(state.function, state.given) for states in wanted.values() for state in states]
    calls = Calls(str(bench.file), every, TESTS if bench.wants(CASE) else "")
    try:
        end = bench.ended(Subject(calls, name=bench.exercise.slug, timeout_s=RUN_S))
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    answers = iter(end["calls"])
    found = [_states(bench, drill, case, [(each, next(answers)) for each in wanted[case]]) for case in wanted]
    if bench.wants(CASE):
        found.append(_tests(drill, end["tests"]))
    return found


def _states(bench: Bench, drill: Drill, case: str, answered: Sequence[tuple[State, Mapping[str, str]]]) -> Outcome:
    right, first = 0, None
    for state, answer in answered:
        expected = drill.gives(state.function, state.given)
        if answer.get("value") == expected:
            right += 1
        elif first is None:
            first = _shown(bench, state, expected, answer)
    verdicts = {"consistent": right, "violation": len(answered) - right}
    return Outcome(case=case, family=case, verdicts={name: n for name, n in verdicts.items() if n}, finding=first)


def _shown(bench: Bench, state: State, expected: str, answer: Mapping[str, str]) -> Shown:
    expected, found = apart(expected, answer.get("value") or answer["error"])
    return Shown(
        kind="wrong-answer",
        state=state.place,
        call=f"{state.function}({', '.join(short(json.dumps(each)) for each in json.loads(state.given))})",
        expected=expected,
        found=found,
        replay=f"python -m crashcourse.drills {bench.exercise.slug} {state.place}",
    )


def _tests(drill: Drill, answer: Mapping[str, Any]) -> Outcome:
    parts = {"correct": partial(_cleared, drill, answer)}
    parts |= {variant: partial(_found, drill, answer, variant) for variant in drill.naive}
    return judged(CASE, parts)


def _cleared(drill: Drill, answer: Mapping[str, Any]) -> Shown | None:
    wrong = wrong_example(drill, examples(drill, answer))
    if wrong is None:
        return None
    example, gives = wrong
    return Shown(
        kind="false-alarm",
        crash_point=example.place,
        call=short(f"{example.function}, given {example.given}"),
        expected=f"what a correct {example.function} gives: {short(gives)}",
        found=f"expect is {short(example.expect)}",
    )


def _found(drill: Drill, answer: Mapping[str, Any], variant: str) -> Shown | None:
    if not passes(drill, variant, examples(drill, answer)):
        return None
    text = f"an example of {TESTS}() that {variant} fails"
    return Shown(kind="missed-bug", crash_point=variant, expected=text, found=f"{variant} passes them all")
