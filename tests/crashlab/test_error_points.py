"""Ids of errors: taken apart, and refused with what to write where there is no such error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab import Store, UsageError, explore
from crashlab.error_points import parse

if TYPE_CHECKING:
    from pathlib import Path


def save(directory: Path, value: object) -> None:
    """One file, in place: what it is worth does not matter here."""
    (directory / "value").write_text(str(value))


def load(directory: Path) -> str | None:
    """One opening and the reads of it."""
    path = directory / "value"
    return path.read_text() if path.exists() else None


SUBJECT = Store(save, load, values=["a"])


def test_an_id_is_taken_apart() -> None:
    """The moment of the recovery whose read fails, and the power loss after a failed barrier."""
    assert (parse("kill@40/error@r2:EIO-read").base, parse("error@r2:EIO-read").base) == (40, None)
    assert parse("error@7:failed-fsync/power@9-3").loss == "power@9-3"


@pytest.mark.parametrize("text", ["error@7", "error@3:EIO-read", "error@r2:EIO", "kill@4+100/error@r1:EIO-read"])
def test_what_is_no_id_is_refused(text: str) -> None:
    """Reads fail at whole ops only: a cut that was ignored would judge another state than was asked for."""
    with pytest.raises(UsageError, match="is no id of an error; expected"):
        parse(text)


@pytest.mark.parametrize(
    ("state_id", "message"),
    [
        ("error@99:EIO", "no op 99 in this recording"),
        ("error@1:ENOSPC", "cannot give ENOSPC"),
        ("kill@999/error@r1:EIO-read", "no op 999 in this recording"),
        ("error@r0:EIO-read", r"no read 0 in this recovery \(\d reads, from 1 on\)"),
        ("error@r99:EIO-read", r"no read 99 in this recovery \(\d reads, from 1 on\)"),
    ],
)
def test_an_error_that_cannot_be_is_misuse_and_no_verdict(state_id: str, message: str, tmp_path: Path) -> None:
    """Nothing is counted, least of all as consistent."""
    with pytest.raises(UsageError, match=message):
        explore(SUBJECT, faults="error", only=state_id, out=tmp_path)
