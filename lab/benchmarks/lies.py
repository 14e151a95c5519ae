"""Promises that no file system keeps, each as a profile with one rule made stronger: real images must refute it.

A model that allows everything is never contradicted. So the images that the true rules hold are judged once
more under each false promise that people, books or documents make; at least one image must lie outside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from crashlab.crash import rules
from crashlab.crash.membership import within
from crashlab.crash.orders import cuts_of
from crashlab.crash.profiles import BTRFS, EXT4, XFS, Profile

if TYPE_CHECKING:
    from benchmarks.real_runs import Run
    from crashlab.crash.rules import BlockVersion, Seen


def size_implies_data(versions: list[BlockVersion], maker: int | None, *, last: bool) -> list[BlockVersion]:  # noqa: ARG001 - every block, not the last alone
    """What ordered mode is documented to do: a size that a write made shows only with the bytes of that write."""
    if maker is None or not any(0 <= version.event <= maker and not version.absent for version in versions):
        return versions
    made_it = any(version.event == maker for version in versions)
    return [version for version in versions if (version.event >= maker if made_it else not version.absent)]


def no_zeros(versions: list[BlockVersion], maker: int | None, *, last: bool) -> list[BlockVersion]:
    """A block that some write had filled before the size was made never reads as zeros."""
    return rules.x1_shown_with_lock(rules.f1_last_block(versions, maker, last=last), maker, last=last)


def commits_everything(seen: Seen, inode: int) -> int:  # noqa: ARG001 - that is the lie
    """Fsync of any file commits all metadata issued before."""
    everything = (seen.touched, seen.resized, seen.grown, seen.entries)
    return max((place for places in everything for place in places.values()), default=0)


@dataclass(frozen=True)
class Lie:
    """A false promise about ``kind``; ``rules`` are the true ones that it denies."""

    name: str
    kind: str
    rules: str
    profile: Profile

    def outside(self, run: Run) -> int:
        """How many pairs of moment and tree of a run contradict it."""
        cuts = cuts_of(run.trace, self.profile)
        trees = run.verdict.trees
        return sum(not within(cuts, moment, trees[digest]) for moment, digest in run.verdict.judged)


def _durable_rename(position: int) -> int:
    return position


LIES = (
    Lie("ordered mode as documented: no size without its data", "ext4", "X1", replace(EXT4, shown=size_implies_data)),
    Lie("the rules of xfs", "ext4", "X1, X2", XFS),
    Lie("close after truncating to 0 flushes", "ext4", "X3", replace(EXT4, drops_size_zero=lambda _kind: True)),
    Lie("fsync of any file commits everything", "ext4", "J4", replace(EXT4, fsync=commits_everything)),
    Lie("fdatasync keeps a rename", "ext4", "J4", replace(EXT4, fdatasync=rules.j4_fsync)),
    Lie("rename is durable when it returns", "ext4", "J6", replace(EXT4, rename_forces=_durable_rename)),
    Lie("auto_da_alloc, where it is off", "ext4[noauto_da_alloc]", "X2", EXT4),
    Lie("no zeros below the size", "xfs", "F1", replace(XFS, shown=no_zeros)),
    Lie("never size 0 after a rename over a file", "xfs", "F2", replace(XFS, drops_size_zero=rules.x2_drops_size_zero)),
    Lie("a truncation that shows has zeroed its tail", "xfs", "F3", replace(XFS, cut=rules.x4_cut)),
    Lie("fsync of any file commits everything", "xfs", "J4", replace(XFS, fsync=commits_everything)),
    Lie("rename is durable when it returns", "xfs", "J6", replace(XFS, rename_forces=_durable_rename)),
    Lie("sync flushes the disk", "xfs", "F5", replace(XFS, sync_forces=rules.j8_all)),
    Lie("no zeros below the size", "btrfs", "B5", replace(BTRFS, shown=no_zeros)),
    Lie("names in the order of one journal", "btrfs", "B1", replace(BTRFS, order="journal")),
)
