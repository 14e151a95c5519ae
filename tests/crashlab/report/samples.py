"""Reports made by hand, one of each verdict, for the tests of the views."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.report.folder import RunFolder
from crashlab.report.model import (
    Control,
    DiskLine,
    Effects,
    FaultCount,
    Finding,
    MatrixRow,
    Observed,
    OpLine,
    Report,
    Settings,
    SubjectInfo,
    TraceInfo,
    UnmeasuredReason,
)
from crashlab.report.text import render, render_finding
from crashlab.tree import Tree

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "a\x1b[31mred\x07\r\nb\ttab \udc80 \u202e [bold]x[/bold] \x9b2J"
"""A name that clears screens, rings bells, turns text round and is half no text at all."""

DUPLICATE = Finding(
    id="kill@7",
    verdict="violation",
    kind="duplicate-effect",
    fault="kill",
    summary="mail to=ada done 2 times, expected 1",
    place="turn5.tool2.effect+",
    contract="EO",
    profiles=("ext4", "xfs"),
    ops=(
        OpLine(n=5, op="fsync", text=".", path="."),
        OpLine(n=6, op="save point", text="B"),
        OpLine(n=7, op="effect", text="mail to=ada", remark="done; nothing on disk knows", at="agent.py:31"),
    ),
    fault_line="killed",
    disk=(
        DiskLine(path="checkpoint.json", type="file", bytes=182, digest="91ab33cd77ee", state="as at op 6"),
        DiskLine(path="notes", type="directory"),
    ),
    observed=Observed(how="returned", value={"n": 3}, stdout="resumed at turn 5\n", stderr="warning: no journal\n"),
    expected=('once; or lab.unknown("mail")',),
    effects=Effects(
        expected=("mail to=ada", "search q=x"),
        observed=("before the crash: mail to=ada", "recovery: mail to=ada", "recovery: search q=x"),
    ),
    why="No save point says that the call was about to run, so resume runs it again.",
    advice=("Make the pending call durable before op 7 (save point A).", "Or give it a key."),
    same_count=22,
    same=("kill@8", "kill@9"),
    digest="00ff00ff00ff",
    confirmed="real-kill",
    replay="crashlab replay kill@7",
    directory=".crashlab/latest/kill@7",
)
CUT = Finding(
    id="kill@6+4085",
    verdict="violation",
    kind="lost",
    fault="kill",
    summary="1 acked event unreadable; load() raised JSONDecodeError",
    contract="CV",
    ops=(
        OpLine(n=5, op="call", text="append(1 event)", thread=0),
        OpLine(n=6, op="write", text="events.jsonl  20,031 bytes at 11", bytes=20031, note="cut", thread=1),
    ),
    fault_line="killed inside op 6",
    disk=(DiskLine(path="events.jsonl", type="file", bytes=4096, state="line 2 has no end"),),
    observed=Observed(how="raised", error="JSONDecodeError: Unterminated string"),
    expected=('[{"seq": 0}]',),
)
REASON = UnmeasuredReason(
    code="unseen-writer",
    detail="checkpoint.db changed, but no op explains it.\nsqlite3 writes from C; strace sees that.",
    next="install strace 5.3 or newer",
)


def rows(number: int, **fields: Any) -> tuple[MatrixRow, ...]:
    """So many rows of the matrix, consistent everywhere unless ``fields`` say otherwise."""
    calm: dict[str, Any] = {"before": "consistent", "inside": "consistent", "after": "consistent", "states": 3}
    return tuple(
        MatrixRow(place=f"turn{n}.A", first_op=2 * n, last_op=2 * n + 1, **{**calm, **fields})
        for n in range(1, number + 1)
    )


def count(**fields: Any) -> FaultCount:
    """What ``kill`` came to: 31 consistent states unless ``fields`` say otherwise."""
    calm: dict[str, Any] = {"points": 42, "states": 47, "distinct": 31, "inside": 5, "judged": 31, "consistent": 31}
    return FaultCount(**{"fault": "kill", **calm, **fields})


def report(**fields: Any) -> Report:
    """A consistent report unless ``fields`` say otherwise."""
    calm: dict[str, Any] = {
        "verdict": "consistent",
        "subject": SubjectInfo(name="agent", kind="Subject", source="tests/test_agent.py::test_agent"),
        "settings": Settings(faults=("kill",), budget={"subset": 6, "cuts": "edges"}),
        "versions": {"crashlab": "0.1.0", "python": "3.11"},
        "trace": TraceInfo(ops=41, effects=3, acks=4, save_points=5, digest="ab12"),
        "faults": (count(),),
        "controls": (
            Control(control="replay-proof", passed=True),
            Control(control="real-kill", passed=True, detail="8 of 8 real kills agree"),
            Control(control="pinned-path", passed=True, detail="namespace"),
        ),
        "matrix": rows(3),
        "created": "2026-09-30T08:15:02+00:00",
        "seconds": 1.13,
        "run": ".crashlab/runs/20260930T081502.123456Z-agent-4711",
    }
    return Report(**{**calm, **fields})


PASS = report()
VIOLATION = report(
    verdict="violation",
    findings=(CUT, DUPLICATE),
    faults=(count(consistent=22, violation=9),),
    matrix=(
        *rows(8),
        MatrixRow(
            place="turn5.tool2.effect",
            first_op=50,
            last_op=50,
            before="consistent",
            after="violation",
            states=2,
            kinds=("duplicate-effect",),
        ),
        MatrixRow(place="end", first_op=51, last_op=52, before="refused", inside="unmeasured", states=4),
    ),
    notes=("This test uses monkeypatch.",),
)
UNMEASURED = report(
    verdict="unmeasured",
    subject=SubjectInfo(name="store", kind="Store"),
    faults=(),
    controls=(),
    matrix=(),
    unmeasured=(REASON,),
    run="",
)
ALL = (PASS, VIOLATION, UNMEASURED)


def text_of(each: Report) -> str:
    """The report without colours."""
    return render(each, color=False)


def finding_text(finding: Finding, kind: str = "Subject") -> str:
    """The finding by itself, without colours."""
    return render_finding(finding, SubjectInfo(name="agent", kind=kind), color=False)


def tree_of(*ops: t.Op) -> Tree:
    """A root with its three places, changed by ``ops``."""
    tree = Tree.empty()
    for n, name in enumerate(("dir", "home", "tmp"), start=1):
        tree = tree.apply(t.MakeDirectory(n=n, path=name, inode=n))
    for op in ops:
        tree = tree.apply(op)
    return tree


STATE = tree_of(
    t.Create(n=4, path="dir/a.json", inode=9, mode=0o400),
    t.Write(n=5, path="dir/a.json", inode=9, offset=0, data=b"{}"),
    t.MakeDirectory(n=6, path="dir/locked", inode=10, mode=0),
)


def finished(out: Path, name: str = "agent") -> RunFolder:
    """A whole run with one finding."""
    run = RunFolder.create(out, name)
    run.save_trace(t.Trace(root="/r", base=STATE, ops=()))
    where = run.save_finding(DUPLICATE, STATE, stdout="out\n", stderr="err\n")
    placed = dataclasses.replace(DUPLICATE, directory=where)
    run.finish(dataclasses.replace(VIOLATION, findings=(placed,), run=str(run.path)))
    return run
