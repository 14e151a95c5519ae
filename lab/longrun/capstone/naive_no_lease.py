"""The one fault: nobody holds the directory, so a second process goes on while the first one still works.

Both find the same open calls and carry them out. No crash shows it: it takes two owners. The run is kept in one file,
where the later save wins. Beside points a missing lease does less harm (measured): a number that is taken is refused,
and an act is asked for under the lock of the ledger, so that the two hinder each other and both give up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path


class Unowned:
    """What stands where the lease should: it keeps nobody out and notices nobody."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __enter__(self) -> Self:
        """Nothing is taken."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is given back."""

    def require(self, epoch: int) -> None:
        """Nothing is looked at."""


HARNESS = replace(correct.HARNESS, lease=Unowned)

subject = describe(HARNESS, name="capstone/naive_no_lease", body_bytes=SHORT_BODY_BYTES)
