"""Calling the subject: its recorded run, and one step of its recovery, in the process that is ours to lose.

Both return JSON objects, so that nothing but JSON leaves a subject's process. Values are compared in
the tagged form of :mod:`crashlab.values`, after the subject's own ``view``.

The recorded run of a ``Store`` or ``Log`` is open, one call per value, close; each call is an event
before it and an ack after it. The recovery has steps, each in a fresh process on what the step
before left: ``first`` (recover), ``second`` (recover again: the same result; then take one more
value) and ``third`` (that value must be there).
"""

from __future__ import annotations

import inspect
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

from crashlab import directory
from crashlab import trace as t
from crashlab.errors import UsageError, Violation
from crashlab.kinds import KINDS
from crashlab.subject import DEFAULT_BATCHES, DEFAULT_VALUES, AnySubject, Commands, Log, Store, Subject
from crashlab.tree import describe as describe_node
from crashlab.values import canonical, encode

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import TracebackType

    from crashlab.lab import Lab, Sink


class Calls:
    """Calls callables, plain or ``async``; all coroutines of one run share one event loop."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        if self._runner is not None:
            self._runner.close()

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call it, and await what it gave where that can be awaited."""
        result = function(*arguments)
        if not inspect.isawaitable(result):
            return result
        if self._runner is None:
            import asyncio  # noqa: PLC0415 - 3 MB that every fork of a plain subject would carry

            self._runner = asyncio.Runner()
        return self._runner.run(_finish(result))


async def _finish(awaitable: Any) -> Any:
    return await awaitable


def describe(subject: AnySubject) -> dict[str, Any]:
    """What the judge needs to know of a subject without importing it."""
    return {
        "kind": subject.kind,
        "name": subject.name,
        "source": _source(subject),
        "env": dict(subject.env),
        "timeout_s": subject.timeout_s,
        "rebuilt": list(subject.rebuilt),
        "outside": list(subject.outside),
        "stop_after_acks": subject.stop_after_acks,
        "atomic": isinstance(subject, Log) and subject.atomic,
        "keyed": isinstance(subject, Log) and subject.key is not None,
        "opens": isinstance(subject, (Store, Log)) and subject.open is not None,
        "has_check": isinstance(subject, (Subject, Commands)) and subject.check is not None,
    }


def _source(subject: AnySubject) -> str:
    """Where it is written: the line of its first callable, or the command that starts it."""
    if isinstance(subject, Commands):
        from crashlab.program import filled, shown  # noqa: PLC0415 - loads subprocess, before any fork

        filled(subject.start, "/")  # one that is none is told at once
        return shown(subject.start)
    first = subject.run if isinstance(subject, Subject) else subject.load
    code = getattr(first, "__code__", None)
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else ""


def record(subject: Store | Log | Subject, lab: Lab, sink: Sink) -> dict[str, Any]:
    """The uncrashed workload. Returns ``{"end": form}``; what the subject raises passes through."""
    with Calls() as call:
        if isinstance(subject, Subject):
            end = call(subject.run, lab)
            form = end_form(subject, lab, end)
            return {"end": form, **checked(call, subject, lab, end, expected=form)}
        handle = open_handle(call, subject, lab)
        for value in values_of(subject):
            write, name = (subject.save, "save") if isinstance(subject, Store) else (subject.append, "append")
            form = value_form(subject, value)
            sink(t.Call, name=name, value=form)
            call(write, handle, value)
            sink(t.Ack, value=form)
        close_handle(call, subject, handle)
        return {"end": None}


def recover(subject: AnySubject, lab: Lab, step: dict[str, Any]) -> dict[str, Any]:
    """One step of the recovery.

    ``step`` is ``{"step": "first" | "second" | "third", "nothing": exception type name or None}``.
    Returns ``dir``, the path at which it was; ``end`` (Subject) or ``value`` (Store, Log);
    ``nothing: True`` where ``load`` raised what it raises on an empty directory; ``keys`` (Log);
    ``more`` (second step); ``check`` (Subject with ``check``). What the subject raises passes through.

    ``"again": True`` (Subject) resumes a second time in this process, to save a process; what came of
    that is ``again``, and may be ``{"error": text}``.
    """
    place = {"dir": os.fspath(lab.dir)}
    if isinstance(subject, Commands):
        from crashlab import program  # noqa: PLC0415 - only these subjects need it

        return program.resume(subject, lab, step) | place
    with Calls() as call:
        if isinstance(subject, Subject):
            resumed = _resume(call, subject, lab)
            return resumed | place | ({"again": _resume_again(call, subject, lab)} if step.get("again") else {})
        handle = open_handle(call, subject, lab)
        result = load_form(call, subject, handle, step.get("nothing"))
        if step["step"] == "second":
            result["more"] = _one_more(call, subject, handle, result)
        close_handle(call, subject, handle)
        return result | place


def _resume(call: Calls, subject: Subject, lab: Lab) -> dict[str, Any]:
    end = call(subject.resume or subject.run, lab)
    return {"end": end_form(subject, lab, end), **checked(call, subject, lab, end)}


def _resume_again(call: Calls, subject: Subject, lab: Lab) -> dict[str, Any]:
    try:
        return _resume(call, subject, lab)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - tried again in a process of its own before it counts
        return {"error": f"{type(error).__name__}: {error}"}


def stop_after(sink: Sink, acks: int) -> Sink:
    """A sink that kills this process for real right after its ``acks``-th ack is recorded."""
    seen = 0

    def stopping(event_type: type[t.Op], **fields: Any) -> None:
        nonlocal seen
        sink(event_type, **fields)
        seen += event_type is t.Ack
        if seen >= acks:
            os.kill(os.getpid(), signal.SIGKILL)

    return stopping


def open_handle(call: Calls, subject: Store | Log, lab: Lab) -> Any:
    """What ``open`` returned, or the directory."""
    return lab.dir if subject.open is None else call(subject.open, lab)


def close_handle(call: Calls, subject: Store | Log, handle: Any) -> None:
    """Give the handle back, where the subject says how."""
    if subject.close is not None:
        call(subject.close, handle)


def values_of(subject: Store | Log) -> list[Any]:
    """What the workload saves or appends, one after the other."""
    if subject.values is not None:
        return list(subject.values)
    return list(DEFAULT_VALUES if isinstance(subject, Store) else DEFAULT_BATCHES)


def _view(subject: Store | Log | Subject, value: Any) -> Any:
    return value if subject.view is None else subject.view(value)


def value_form(subject: Store | Log, value: Any) -> Any:
    """What counts in a value, in tagged JSON form."""
    if isinstance(subject, Log):
        return [encode(_view(subject, event)) for event in value]
    return encode(_view(subject, value))


def load_form(call: Calls, subject: Store | Log, handle: Any, nothing: str | None) -> dict[str, Any]:
    """What ``load`` gives, as :func:`recover` returns it; what it raises passes through."""
    try:
        value = call(subject.load, handle)
        if isinstance(subject, Log):
            value = [] if value is None else list(value)  # a generator can be read only once
            keys = [None if subject.key is None else encode(subject.key(event)) for event in value]
            return {"value": value_form(subject, value), "keys": keys}
        return {"value": encode(None if value is None else _view(subject, value))}
    except (Exception, SystemExit) as error:
        # The lab learned from an empty directory that this exception is how the subject says "nothing there".
        if nothing is None or type(error).__name__ != nothing:
            raise
        return {"value": None, "nothing": True, "raised": f"{type(error).__name__}: {error}"}


def _one_more(call: Calls, subject: Store | Log, handle: Any, loaded: dict[str, Any]) -> dict[str, Any] | None:
    """Take one more value, as the resumed program would: finds glued tails and leftover locks."""
    values = values_of(subject)
    try:
        if isinstance(subject, Store):
            now = canonical(loaded["value"])
            value = next((each for each in values if canonical(value_form(subject, each)) != now), values[0])
            call(subject.save, handle, value)
            return {"saved": value_form(subject, value)}
        return _one_more_batch(call, subject, handle, values, loaded)
    except Exception as error:  # noqa: BLE001 - any exception here is the subject's answer, and is judged
        return {"error": f"{type(error).__name__}: {error}"}


def more_of(subject: Store | Log, loaded: dict[str, Any], *, avoid: str) -> Any:
    """What a second owner saves or appends: not what it loaded, and if it can not the value ``avoid`` either.

    Of several the one that takes most room, so that what is left of it under a shorter one shows. A log gets again
    what is not there yet, as from a program that does not know how far another one has come.
    """
    values = values_of(subject)
    if isinstance(subject, Log):
        return _first_missing(subject, values, Counter(map(canonical, loaded["value"] or []))) or values[0]
    forms = {number: canonical(value_form(subject, value)) for number, value in enumerate(values)}
    other = [number for number, form in forms.items() if form != canonical(loaded["value"])] or list(forms)
    chosen = [number for number in other if forms[number] != avoid] or other
    return values[max(chosen, key=lambda number: len(forms[number]))]


def _one_more_batch(
    call: Calls, subject: Log, handle: Any, values: list[list[Any]], loaded: dict[str, Any]
) -> dict[str, Any] | None:
    """What is not there yet of the first batch that is not whole; the first batch again where all is there.

    A log may rightly refuse what it has already; then nothing is learned.
    """
    there = Counter(canonical(form) for form in loaded["value"] or [])
    fresh = _first_missing(subject, values, there)
    batch = fresh or values[0]
    try:
        call(subject.append, handle, batch)
    except Exception:
        if fresh:
            raise
        return None
    known = {canonical(key) for key in loaded.get("keys", ()) if key is not None}
    kept = [event for event in batch if not _known(subject, event, known)]
    return {"saved": (loaded["value"] or []) + value_form(subject, kept)}


def _first_missing(subject: Log, values: list[list[Any]], there: Counter[str]) -> list[Any]:
    left = Counter(there)
    for batch in values:
        missing = []
        for event, form in zip(batch, value_form(subject, batch), strict=True):
            if left[canonical(form)]:
                left[canonical(form)] -= 1
            else:
                missing.append(event)
        if missing:
            return missing
    return []


def _known(subject: Log, event: Any, known: set[str]) -> bool:
    key = None if subject.key is None else subject.key(event)
    return key is not None and canonical(encode(key)) in known


def end_form(subject: Subject, lab: Lab, end: Any) -> Any:
    """What counts in an end, in tagged JSON form; the files, where it is None."""
    if end is None and subject.view is None:
        tree = directory.read(lab.dir)
        return {"$files": {path: describe_node(node) for path, _, node in tree.walk()}}
    return encode(_view(subject, end))


def checked(call: Calls, subject: Subject, lab: Lab, end: Any, *, expected: Any = None) -> dict[str, Any]:
    """What ``check`` says. An error of its own is no verdict on the subject: the state is unmeasured then."""
    if subject.check is None:
        return {}
    try:
        with lab.checking(expected=expected):
            answer = call(subject.check, lab, end)
    except Violation as error:
        if error.kind not in KINDS:
            import difflib  # noqa: PLC0415 - every process of the subject would carry it

            near = difflib.get_close_matches(error.kind, KINDS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            text = f"check raised Violation with the unknown kind {error.kind!r}; {hint}Known: {', '.join(KINDS)}"
            raise UsageError(text) from error
        return {"check": {"kind": error.kind, "text": str(error)}}
    except AssertionError as error:
        return {"check": {"kind": "diverged", "text": str(error) or "an assertion in check failed"}}
    except Exception as error:  # noqa: BLE001 - told as what it is: a check that could not judge
        return {"check": None, "check_error": f"{type(error).__name__}: {error}"}
    if answer is False:
        return {"check": {"kind": "diverged", "text": "check returned False"}}
    if answer is not None and answer is not True:
        text = f"check must raise, or return None or True; it returned {answer!r}"
        raise UsageError(text)
    return {"check": None}
