"""The undamaged twin: the same files without the damage must be recovered, and rightly.

A program that refuses everything would pass every damage; its twin shows it. Where the twin does not
come out right, nothing that was found about damage says anything, and the result is unmeasured.
What the twin says on stdout and stderr is the measure for what recovery says of damage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crashlab.asking import request
from crashlab.crash.kill import kill_states
from crashlab.crash.states import prefixes_of
from crashlab.damage_demands import lines_of
from crashlab.honesty import Honesty
from crashlab.judge import Judge
from crashlab.observation import readable
from crashlab.report.model import Control, UnmeasuredReason
from crashlab.subject import DEFAULT_POLICY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crashlab.damage_demands import Said
    from crashlab.demands import Reference
    from crashlab.recover.host import Host


@dataclass(frozen=True, kw_only=True)
class Twins:
    """What came of the undamaged files: per moment what recovery said; the control; reasons against a pass."""

    said: Mapping[int, Said] = field(default_factory=dict)
    control: Control = field(default_factory=lambda: Control(control="undamaged-twin", passed=False))
    unmeasured: tuple[UnmeasuredReason, ...] = ()


def twins_of(host: Host, reference: Reference, moments: Sequence[int], *, timeout_s: float) -> Twins:
    """Recover and judge the files as they lay after each of ``moments`` ops, as after a kill there."""
    trace = reference.trace
    judge = Judge(reference, DEFAULT_POLICY, Honesty(trace, kill_states(trace)))
    states = {state.id: state for state in (prefixes_of(trace).killed(at) for at in moments)}
    said, wrong = dict[int, "Said"](), list[str]()
    for raw in host.recover(request(state, reference, timeout_s=timeout_s) for state in states.values()):
        answer, state = readable(raw, trace.root), states[raw.state]
        judgement = judge.judge(state, answer)
        said[state.done] = lines_of(answer.steps[0]) if answer.steps else frozenset()
        if judgement.verdict != "consistent":
            what = judgement.problems[0].summary if judgement.problems else "it could not be judged"
            wrong.append(f"{state.id}: {what}")
    control = Control(
        control="undamaged-twin", passed=not wrong, detail=f"{len(states) - len(wrong)} of {len(states)} recovered"
    )
    reasons = tuple(
        UnmeasuredReason(
            code="never-recovered",
            detail=f"damage: the same files without the damage are not recovered either ({text}).",
            next="Mend the recovery without damage first: who refuses everything has refused no damage.",
        )
        for text in wrong[:1]
    )
    return Twins(said=said, control=control, unmeasured=reasons)
