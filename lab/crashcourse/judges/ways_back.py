"""Exercise 3.1: nine directories, and of each the way back. The lab takes the way that is named, and judges it.

Crashes that leave the same files leave one directory: a way is right if it is right after all of them, since no
resume can tell them apart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.desk import inbox_seed
from crashcourse.explain import Table, answers, judged, stage
from crashcourse.folders import temporary
from crashcourse.forced import BRANCHES, FILES, OF_A_CALL, Forced, signature
from crashcourse.judging import failed
from crashcourse.result import Shown
from crashlab import Policy, Subject
from crashlab.asking import request
from crashlab.crash.damage import Damage, apply
from crashlab.crash.kill import kill_states
from crashlab.errors import UsageError
from crashlab.honesty import Honesty
from crashlab.judge import Judge
from crashlab.kinds import KINDS
from crashlab.observation import readable
from crashlab.tree import File
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.protocol import CHECKPOINT_NAME
from longrun.resume import correct
from longrun.subjects import Description, view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from crashcourse.explain import Stage
    from crashcourse.judging import Bench
    from crashcourse.result import Outcome
    from crashlab.crash.states import CrashState
    from crashlab.judge import Judgement

MOST_CALLS = 9


@dataclass(frozen=True)
class Place:
    """A directory: that of a crash point, its checkpoint cut behind so many bytes where it is damaged.

    ``call`` is the number of the open call that is asked about, 0 where none is open.
    """

    point: str
    call: int = 0
    cut: int = 0


PLACES: Mapping[str, Place] = {
    "d1": Place("turn4.B.ack+"),
    "d2": Place("turn2.A.ack+", 2),
    "d3": Place("turn3.tool2.effect-", 2),
    "d4": Place("turn5.A.ack+", 2),
    "d5": Place("turn5.tool1.effect-", 1),
    "d6": Place("turn5.tool2.effect-", 2),
    "d7": Place("turn5.tool2.ledger.ack+", 2),
    "d8": Place("turn4.B.ack+", cut=1000),
    "d9": Place("E.ack+"),
}


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    try:
        form = answers(bench.file, [*PLACES, "witness"])
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    seed = inbox_seed(bench.seed, same=True)
    inbox = make_inbox(seed, body_bytes=SHORT_BODY_BYTES)
    with temporary() as folder:
        plan = Path(folder, "plan.json")
        plan.write_text("{}")
        Path(folder).chmod(0o711)  # the plan is read where submissions run, which another user does in a grading
        plan.chmod(0o644)
        forced = Forced(Description(correct.HARNESS, "careful", seed, inbox), str(plan))
        subject = Subject(forced.run, forced.resume, check=forced.check, view=view, name=bench.exercise.slug)
        with stage(subject) as scene:
            parts: dict[str, Mapping[str, Callable[[], Shown | str | None]]] = {
                f"branch.{name[1:]}": {name: partial(_branch, form, scene, plan, name)} for name in PLACES
            }
            parts["witness"] = {"witness": partial(_witness, form, scene, plan)}
            return [judged(case, work) for case, work in parts.items() if bench.wants(case)]


def _branch(form: Mapping[str, Any], scene: Stage, plan: Path, name: str) -> Shown | None:
    """What comes of the way that is named for one directory."""
    branch, place = Table.of(form, name, ("branch",)).text("branch", BRANCHES), PLACES[name]
    if branch in OF_A_CALL and not place.call:
        return Shown(kind="wrong-answer", crash_point=name, expected="a way for no open call", found=branch)
    for judgement in _taken(scene, plan, states_of(scene, place), branch, place.call):
        if judgement.verdict not in ("consistent", "refused"):
            return Shown(
                kind=judgement.kind,
                state=judgement.state.id,
                crash_point=place.point,
                expected="the end of the run without a crash, and each act once or honestly unknown",
                found=f"{branch}: {judgement.problems[0].summary}",
            )
    return None


def _witness(form: Mapping[str, Any], scene: Stage, plan: Path) -> Shown | None:
    """Whether the wrong way that is named comes to the stated kind, and the right one is clean there."""
    table = Table.of(form, "witness", ("point", "call", "branch", "kind"))
    state, branch, kind = scene.at(table), table.text("branch", BRANCHES), table.text("kind", KINDS)
    (wrong,) = _taken(scene, plan, [state], branch, table.number("call", 1, MOST_CALLS))
    if wrong.kind != kind:
        found = f"{wrong.verdict} {wrong.kind}".strip()
        return Shown(kind="wrong-answer", state=state.id, crash_point="witness", expected=kind, found=found)
    (right,) = _taken(scene, plan, [state])
    if right.verdict != "consistent":
        text = "the right way comes to the same"
        return Shown(kind="wrong-answer", state=state.id, crash_point="witness", expected="consistent", found=text)
    return None


def states_of(scene: Stage, place: Place) -> list[CrashState]:
    """The crash states that leave this directory, one for each history of the world that they have behind them."""
    (state,) = scene.places[place.point]
    if place.cut:
        cut = apply(scene.trace, Damage(f"dir/{CHECKPOINT_NAME}", "truncate", str(place.cut), state.done))
        assert cut is not None, "a checkpoint is longer than that"
        return [cut]
    alike = [each for each in kill_states(scene.trace) if each.tree.digest == state.tree.digest]
    return list({sum(op.counted for op in each.effects): each for each in alike}.values())


def _taken(
    scene: Stage, plan: Path, states: Sequence[CrashState], branch: str = "", call: int = 0
) -> Iterator[Judgement]:
    """What comes of it where the way ``branch`` is taken with that call; the right way without one."""
    plan.write_text(json.dumps({_signature(state): (branch, call) for state in states} if branch else {}))
    reference = scene.recorded.reference
    timeout_s = float(scene.host.description["timeout_s"])
    honesty = Honesty(scene.trace, kill_states(scene.trace))
    by_id = {state.id: state for state in states}
    for raw in scene.host.recover(request(state, reference, timeout_s=timeout_s) for state in states):
        state = by_id[raw.state]
        yield Judge(reference, Policy.default(state.fault), honesty).judge(state, readable(raw, scene.trace.root))


def _signature(state: CrashState) -> str:
    nodes = (state.tree.node(f"dir/{name}") for name in FILES)
    return signature(node.content.read() if isinstance(node, File) else b"" for node in nodes)
