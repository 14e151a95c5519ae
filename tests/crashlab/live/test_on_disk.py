"""Marks in the log of a real disk: one before each op, one after it, and nothing of the subject's is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.live import on_disk

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Control:
    """Keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def ask(self, word: str, body: bytes) -> None:
        self.asked.append((word, int.from_bytes(body, "little")))

    def close(self) -> None:
        self.asked.append(("close", 0))


def gate(root: Path, monkeypatch: pytest.MonkeyPatch, *, seed: int = 0) -> tuple[on_disk.DiskGate, Control, list[Any]]:
    """A gate on a control that only listens."""
    control, told = Control(), list[Any]()
    monkeypatch.setattr("crashlab.live.on_disk.Control.to", lambda _: control)
    return on_disk.DiskGate("nowhere", seed, str(root), told.append), control, told


def test_each_op_stands_between_two_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """2n - 1 before op n, 2n after it; the op is passed on before it counts as done."""
    made, control, told = gate(tmp_path, monkeypatch)
    op = t.Ack(n=3)
    made.before(3)
    assert made.cut_bytes(3, 10) is None
    made.told(op)
    made.end()
    assert (told, control.asked) == ([op], [("mark", 5), ("mark", 6), ("close", 0)])


def test_nudges_change_no_byte_and_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every action is drawn; the only file whose time moves is the stranger's."""
    (tmp_path / on_disk.BYSTANDER).touch()
    mine = tmp_path / "mine"
    mine.write_bytes(b"x" * 9000)
    before, bystander = mine.stat(), (tmp_path / on_disk.BYSTANDER).stat().st_mtime_ns
    actions: list[str] = []
    made, _, _ = gate(tmp_path, monkeypatch, seed=1)
    nudge = made._nudge

    def watched(action: str) -> None:
        actions.append(action)
        nudge(action)

    monkeypatch.setattr(made, "_nudge", watched)
    with mine.open("rb"):
        for n in range(1, 41):
            made.told(t.Ack(n=n))
    assert set(actions) == set(on_disk.ACTIONS)
    assert (mine.stat().st_mtime_ns, mine.read_bytes()) == (before.st_mtime_ns, b"x" * 9000)
    assert (tmp_path / on_disk.BYSTANDER).stat().st_mtime_ns != bystander
    assert sorted(path.name for path in tmp_path.iterdir()) == [on_disk.BYSTANDER, "mine"]


def test_the_same_seed_nudges_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on a disk can be repeated as far as it is ours to repeat."""
    drawn = []
    for seed in (5, 5, 6):
        made, _, _ = gate(tmp_path, monkeypatch, seed=seed)
        actions: list[str] = []
        monkeypatch.setattr(made, "_nudge", actions.append)
        for n in range(1, 30):
            made.told(t.Ack(n=n))
        drawn.append(actions)
    assert drawn[0] == drawn[1] != drawn[2]
