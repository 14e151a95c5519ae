"""The workload while calls fail: what a subject does with an error, in one process of its own.

A ``Store`` or ``Log`` saves until the error has struck. A call that raised is made once more with the same
value, the error gone; one that returned stands by what it said. Then the run ends. A ``Subject`` runs to
its end, or to what it raises. What was true on disk when a call raised is read off the recorded ops.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.subject import Store, Subject
from crashlab.workload import Calls, checked, close_handle, end_form, open_handle, value_form, values_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.lab import Lab, Sink
    from crashlab.live.errors import ErrorGate
    from crashlab.live.far import FarGate
    from crashlab.subject import Log


def acking(sink: Sink, acked: list[Any]) -> Sink:
    """A sink that also keeps what was acked, for the subject's ``check`` at the end of this very run."""

    def keeping(event_type: type[t.Op], **fields: Any) -> None:
        sink(event_type, **fields)
        if event_type is t.Ack:
            acked.append(fields["value"])

    return keeping


def record(
    subject: Store | Log | Subject, lab: Lab, sink: Sink, gate: ErrorGate | FarGate, *, count: Callable[[], int]
) -> dict[str, Any]:
    """The workload under ``gate``; ``count()`` is the number of ops so far.

    Returns ``{"end": form}`` of a Subject, which may raise instead. Of a Store or Log: ``what`` was called when
    it struck, ``raised`` and ``raised_at`` (text, and number of ops then; None where the call returned),
    ``again`` (None, or what the same call raised once the error had gone).
    """
    with Calls() as call:
        if isinstance(subject, Subject):
            end = call(subject.run, lab)
            gate.active = False
            form = end_form(subject, lab, end)
            return {"end": form, **checked(call, subject, lab, end)}
        return _Erring(call, subject, gate, count).run(lab, sink)


class _Erring:
    """One run of a Store or Log."""

    def __init__(self, call: Calls, subject: Store | Log, gate: ErrorGate | FarGate, count: Callable[[], int]) -> None:
        self._call, self._subject, self._gate, self._count = call, subject, gate, count
        self._told: dict[str, Any] = {"end": None, "what": "", "raised": None, "raised_at": None, "again": None}

    def run(self, lab: Lab, sink: Sink) -> dict[str, Any]:
        """Open, save until it has struck, close."""
        done, handle = self._tried("open", lambda: open_handle(self._call, self._subject, lab))
        if not done:
            return self._told
        name = "save" if isinstance(self._subject, Store) else "append"
        for value in values_of(self._subject):
            if self._gate.struck and self._told["what"] != "open":
                break
            form = value_form(self._subject, value)
            sink(t.Call, name=name, value=form)
            done, _ = self._tried(name, partial(self._write, handle, value))
            if not done:
                return self._told
            sink(t.Ack, value=form)
            if self._told["what"] == "open":  # one value more: what was opened again must also work
                break
        self._tried("close", lambda: close_handle(self._call, self._subject, handle))
        return self._told

    def _write(self, handle: Any, value: Any) -> None:
        subject = self._subject
        self._call(subject.save if isinstance(subject, Store) else subject.append, handle, value)

    def _tried(self, what: str, act: Callable[[], Any]) -> tuple[bool, Any]:
        """Whether it was done, be it the second time, and what it returned."""
        result, raised = self._once(act)
        if self._gate.struck and not self._told["what"]:
            self._gate.active = self._gate.mode == "for-ever"
            self._told |= {"what": what, "raised": raised, "raised_at": self._at if raised is not None else None}
            if raised is not None and not self._gate.active:
                result, again = self._once(act)
                self._told["again"] = again
                return again is None, result
        elif raised is not None and not self._told["again"]:
            self._told["again"] = f"{what}: {raised}"
        return raised is None, result

    def _once(self, act: Callable[[], Any]) -> tuple[Any, str | None]:
        try:
            return act(), None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is its answer, and is judged
            self._at = self._count()
            return None, f"{type(error).__name__}: {error}"
