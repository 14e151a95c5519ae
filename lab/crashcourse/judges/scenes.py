"""Exercise 5.1: eight scenes and which tool each wants, and two programs in which the second-best tool fails.

Nothing is typed into a key: each scene is played with each tool (:mod:`crashcourse.four_scenes`), and so is each
program. A program is a list of steps and a list of demands; it runs no code of the learner's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from crashcourse.explain import Table, answers, judged
from crashcourse.four_scenes import DEMANDS, SCENES, TOOLS, Scene, best, fails
from crashcourse.judging import failed
from crashcourse.result import Shown
from crashlab.errors import UsageError
from crashlab.toml_file import wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from crashcourse.judging import Bench
    from crashcourse.result import Outcome

PROGRAMS = ("program1", "program2")
MOST = 12
"""So many steps and demands a program may have."""


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    try:
        form = answers(bench.file, [*SCENES, *PROGRAMS])
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    parts: dict[str, Mapping[str, Callable[[], Shown | str | None]]] = {
        "scenes": {name: partial(_scene, form, name, bench.seed) for name in SCENES},
        "program.1": {"program1": partial(_program, form, "program1", bench.seed)},
        "program.2": {"program2": partial(_second, form, bench.seed)},
    }
    return [judged(case, work) for case, work in parts.items() if bench.wants(case)]


def _scene(form: Mapping[str, Any], name: str, seed: int) -> Shown | None:
    said = Table.of(form, name, ("tool",)).text("tool", TOOLS)
    if broken := fails(SCENES[name], said, seed):
        return Shown(
            kind="wrong-answer",
            crash_point=name,
            call=f"the scene, played with {said}",
            expected=", ".join(SCENES[name].demands),
            found=f"not so: {', '.join(broken)}",
        )
    return None


def _program(form: Mapping[str, Any], name: str, seed: int) -> Shown | None:
    """What is wrong about a program; None where the scene's tool does all that it demands, and the second-best not."""
    table = Table.of(form, name, ("scene", "second", "turn", "steps", "demands"))
    scene, second = table.text("scene", list(SCENES)), table.text("second", TOOLS)
    right = best(SCENES[scene], seed)
    broken = {tool: len(fails(SCENES[scene], tool, seed)) for tool in TOOLS if tool != right}
    if broken.get(second) != min(broken.values()):
        least = [tool for tool, number in broken.items() if number == min(broken.values())]
        text = f"{second} is not the second-best tool of {scene}: fewer wishes are broken by {' and '.join(least)}"
        raise UsageError(text)
    steps, demands = _texts(table, "steps"), _texts(table, "demands", DEMANDS)
    if steps.count("tool") != 1:
        wrong(f"{name}.steps", steps, "one step that is 'tool'")
    program = Scene(steps, demands, table.number("turn", 1, 5))
    if missed := fails(program, right, seed):
        return _told(name, f"with {right} all that is demanded is so", f"not so: {', '.join(missed)}")
    if not fails(program, second, seed):
        return _told(name, f"with {second} something that is demanded is not so", "all of it is so")
    return None


def _second(form: Mapping[str, Any], seed: int) -> Shown | None:
    """The second program is about another tool than the first one."""
    scenes = [Table.of(form, name, ("scene", "second", "turn", "steps", "demands")).text("scene") for name in PROGRAMS]
    tools = [best(SCENES[scene], seed) for scene in scenes if scene in SCENES]
    if len(tools) != len(set(tools)):
        text = f"both programs are about scenes for {tools[0]}; take another tool's scene for program2"
        raise UsageError(text)
    return _program(form, "program2", seed)


def _texts(table: Table, key: str, among: Sequence[str] = ()) -> list[str]:
    """A list of a few texts."""
    value = table.form.get(key)
    short = isinstance(value, list) and 0 < len(value) <= MOST
    if not short or any(not isinstance(each, str) or (among and each not in among) for each in value or ()):
        wanted = " or ".join(map(repr, among)) or "texts"
        wrong(f"{table.name}.{key}", f"{value!r:.200}", f"a list of 1 to {MOST}: {wanted}")
    return list(value or ())


def _told(name: str, expected: str, found: str) -> Shown:
    return Shown(kind="wrong-answer", crash_point=name, expected=expected, found=found)
