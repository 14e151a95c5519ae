"""A path as a program that a person could type, with what came of each line behind it.

::

    save({})
    crash("power@5-3")      # checkpoint.json 0 bytes
    load()                  # raised JSONDecodeError; {} was acked

Each crash has its exact id, so that the program means the same on every machine, and only the calls
that had begun before the crash are there: what came later was never called.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.crash.places import place_path
from crashlab.tree import File
from crashlab.values import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashlab.crash.states import CrashState
    from crashlab.demands import Reference
    from crashlab.judge import Judgement
    from crashlab.observation import Answer, Step
    from crashlab.paths import Leg

COMMENT_COLUMN = 24
_VALUE_CHARACTERS = 300
_AGAIN_CHARACTERS = 20_000
_FILES_SHOWN = 3
_REPEATED = 20
"""A text of at least so many equal characters is told as ``"x" * 4096``."""

Line = tuple[str, str]
"""What to type, and what came of it."""


def program(
    legs: Sequence[Leg], judgement: Judgement, answer: Answer, reference: Reference, *, given: bool
) -> tuple[str, ...]:
    """The lines of a path that ended in a violation, and at last the values that repeat it.

    ``given``: the legs know the values as the user gave them. Else their forms are told, which ``view`` may have
    made smaller.
    """
    lines: list[Line] = []
    values: list[str] = []
    for leg in legs:
        assert leg.state is not None, "a run that is told came to a state"
        calls, done = _calls(leg), leg.state.done - (leg.within.start if leg.within is not None else 0)
        saved = list(leg.values[: len(calls)]) if given else [rebuilt(op.value) for op in calls]
        told = [written(each) for each in saved]
        lines += [(f"{op.name}({shortened(text)})", _fate(leg, op, done)) for op, text in zip(calls, told, strict=True)]
        values += told
        if judgement.problems[0].step == "live" and leg is legs[-1]:
            lines[-1] = lines[-1][0], _short(answer.steps[0])
            break
        crash = leg.state.id.rpartition("/")[2]
        lines.append((f'crash("{crash}")', _on_disk(leg.state)))
        values.append(f"Crash({crash!r})")
        if leg is not legs[-1] and leg.answer is not None:
            lines.append(("load()", _short(leg.answer.steps[0])))
    if judgement.problems[0].step != "live":
        lines += _end(judgement, answer, reference)
    width = max([COMMENT_COLUMN - 2, *(len(code) for code, _ in lines if len(code) <= 2 * COMMENT_COLUMN)])
    shown_lines = [f"{code:<{width}}  # {comment}" if comment else code for code, comment in lines]
    return (*shown_lines, "", _again(values))


def _again(values: Sequence[str]) -> str:
    """The line to copy: whole, or none, for half of a value is another one."""
    text = f"again: values=[{', '.join(values)}]"
    return text if len(text) <= _AGAIN_CHARACTERS else "again: these values are too long to be typed; replay the state"


def typed(form: Any) -> str:
    r"""A tagged form as one would type it, cut where it is long.

    >>> typed({"a": [None, True], "b": "x" * 4096})
    '{"a": [None, True], "b": "x" * 4096}'
    >>> typed({"$dict": [["$", {"$tuple": [1, {"$bytes": "eA=="}]}]]})
    '{"$": (1, b\'x\')}'
    """
    return shortened(written(rebuilt(form)))


def shortened(text: str) -> str:
    """A line for people: its beginning, where it is too long to be read."""
    return text if len(text) <= _VALUE_CHARACTERS else f"{text[: _VALUE_CHARACTERS - 1]}…"


@dataclass(frozen=True)
class _Spoken:
    """What a form names and cannot be built here: an enum, a date, a class of the user's."""

    text: str

    def __repr__(self) -> str:
        return self.text


def rebuilt(form: Any) -> Any:
    """The value of a tagged form, with what only the subject could build as a name."""
    if isinstance(form, list):
        return [rebuilt(each) for each in form]
    if not isinstance(form, dict):
        return form
    match form:
        case {"$dict": list(pairs)}:
            return {rebuilt(key): rebuilt(value) for key, value in pairs}
        case {"$tuple": list(items)}:
            return tuple(rebuilt(each) for each in items)
        case {"$set": list(items)}:
            return {rebuilt(each) for each in items}
        case {"$bytes": str(text)}:
            return base64.b64decode(text)
        case {"$float": str(text)}:
            return float(text)
        case {"$enum": str(text)}:
            return _Spoken(text)
    if len(form) == 1 and (tag := next(iter(form))).startswith("$"):
        inner = rebuilt(form[tag])
        fields = isinstance(inner, dict) and all(isinstance(name, str) and name.isidentifier() for name in inner)
        told = ", ".join(f"{name}={written(each)}" for name, each in inner.items()) if fields else written(inner)
        return _Spoken(f"{tag[1:]}({told})")
    return {key: rebuilt(value) for key, value in form.items()}


def written(value: Any) -> str:
    """A value as one would type it in Python; of what is no plain data, what it says of itself."""
    kind = type(value)
    if kind in (str, bytes):
        return _text_written(value)
    if kind is float and not math.isfinite(value):
        return f'float("{value}")'
    if kind is dict:
        return f"{{{', '.join(f'{written(key)}: {written(each)}' for key, each in value.items())}}}"
    if kind is list:
        return f"[{', '.join(map(written, value))}]"
    if kind is tuple:
        return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
    if kind in (set, frozenset) and value:
        inner = f"{{{', '.join(sorted(map(written, value)))}}}"
        return inner if kind is set else f"frozenset({inner})"
    return repr(value)


def _text_written(value: str | bytes) -> str:
    if len(value) >= _REPEATED and value == value[:1] * len(value):
        return f"{_text_written(value[:1])} * {len(value)}"
    if isinstance(value, bytes) or {"'", '"'} & set(value):
        return ascii(value)
    return f'"{ascii(value)[1:-1]}"'


def _calls(leg: Leg) -> list[t.Call]:
    """The calls of a run that had begun at its end, but for the one that loads."""
    assert leg.state is not None, "a run that is told came to a state"
    start = leg.within.start if leg.within is not None else 0
    began = leg.ran.ops[: leg.state.last_op - start]
    return [op for op in began if isinstance(op, t.Call) and op.name != t.LOAD]


def _fate(leg: Leg, call: t.Call, done: int) -> str:
    acked = any(isinstance(op, t.Ack) for op in leg.ran.ops[call.n : done])
    return "" if acked else "had not returned"


def _on_disk(state: CrashState) -> str:
    """The files that are there, with their sizes."""
    files = [
        f"{place_path(path)} {node.content.size:,} bytes"
        for path, _, node in state.tree.walk()
        if isinstance(node, File)
    ]
    more = f", and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
    return ", ".join(files[:_FILES_SHOWN]) + more if files else "no file"


def _short(step: Step) -> str:
    """What came of a step, in a few words."""
    value = step.value or {}
    if step.how == "returned" and "raised" not in value:
        return f"returned {shown(value.get('value'))}"
    error = str(value.get("raised", step.error)).partition(":")[0]
    return {"raised": f"raised {error}", "returned": f"raised {error}", "hang": "did not end"}.get(step.how, step.how)


def _end(judgement: Judgement, answer: Answer, reference: Reference) -> Iterator[Line]:
    """The recoveries after the last crash, up to the one that was wrong."""
    problem = judgement.problems[0]
    steps = {step.step: step for step in answer.steps}
    if problem.step == "first" or "second" not in steps:
        yield "load()", f"{_short(steps['first'])}; {_promise(judgement.state, reference)}"
        return
    yield "load()", _short(steps["first"])
    more = (steps["second"].value or {}).get("more") or {}
    if problem.step == "second" and "error" not in more:
        yield "load()", f"again: {_short(steps['second'])}"
        return
    name = "append" if reference.kind == "Log" else "save"
    saved = more.get("saved")
    before = (steps["second"].value or {}).get("value")
    new = saved[len(before or []) :] if reference.kind == "Log" and isinstance(saved, list) else saved
    if "error" in more:
        yield f"{name}(…)", f"one more: raised {str(more['error']).partition(':')[0]}"
        return
    yield f"{name}({typed(new)})", "one more"
    yield "load()", _short(steps["third"]) if "third" in steps else ""


def _promise(state: CrashState, reference: Reference) -> str:
    """What was acked when it crashed."""
    calls, acked = reference.calls(state.done), reference.acked(state.done)
    if not acked:
        return "nothing was acked"
    if reference.kind == "Log":
        count = sum(map(len, calls[:acked]))
        return f"{count} {'event was' if count == 1 else 'events were'} acked"
    return f"{shown(calls[acked - 1])} was acked"
