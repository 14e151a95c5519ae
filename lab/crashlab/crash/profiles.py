"""Profiles: which rules a file system keeps when the power fails, and the text form of a list of them.

``ext4`` and ``xfs`` keep the order of one journal for names, ``ext4[data=journal]`` for bytes too;
``btrfs`` and ``posix`` let each entry fall back on its own. ``posix`` is the weakest: what it allows
holds every state of the others. A list reads ``ext4,xfs[sector_bytes=512]``, as lists of faults do.

Not modelled: foreign bytes in unwritten blocks (never seen in 382,113 crash images), drives that
ignore a flush, mounts with ``nobarrier``, other block sizes than 4 KiB.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from crashlab.crash import rules
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.crash.rules import BlockVersion, Seen


class Shown(Protocol):
    """X1 and F1."""

    def __call__(self, versions: list[BlockVersion], maker: int | None, *, last: bool) -> list[BlockVersion]:
        """The rule."""


class NamesForced(Protocol):
    """B2 and B6."""

    def __call__(self, *, data_only: bool, moved: bool) -> bool:
        """The rule."""


class MayVanish(Protocol):
    """B3."""

    def __call__(self, *, source_synced: bool, link_swapped: bool) -> bool:
        """The rule."""


class DirectoryForced(Protocol):
    """J9."""

    def __call__(self, *, data_only: bool) -> bool:
        """The rule."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One file system with its options. ``order`` says what forms a chain; each rule is a field.

    The options come with their defaults; ``str`` gives the text that :func:`parse_profile` reads.
    """

    name: str
    order: Literal["journal", "whole", "entries"]
    options: tuple[str, ...] = ()
    tears_sectors: bool = False

    prefixes: Callable[[int, int], range] = rules.j1_prefixes
    growth_shows: Callable[[int, int], bool] = rules.j2_growth_shows
    sizes: Callable[[int, int], list[int]] = rules.j3_sizes
    fsync: Callable[[Seen, int], int] = rules.j4_fsync
    fdatasync: Callable[[Seen, int], int] = rules.j4_fdatasync
    fsync_directory: Callable[[Seen, int], int] = rules.j5_fsync_directory
    directory_forced: DirectoryForced = rules.j9_as_fsync
    rename_forces: Callable[[int], int] = rules.j6_rename_forces
    synced_write: Callable[[range, int], tuple[range, int]] = rules.j7_pages
    sync_forces: Callable[[int, int], bool] = rules.j8_all

    shown: Shown = rules.x1_shown
    drops_size_zero: Callable[[str], bool] = rules.f2_drops_nothing
    cut: Callable[[list[BlockVersion], BlockVersion, int], list[BlockVersion]] = rules.x4_cut
    filled: Callable[[int, int], int | None] = rules.fills_nothing
    stays_unwritten: Callable[[int, int], bool] = rules.x5_stays_unwritten

    first_version: Callable[[int], int] = rules.b1_first_version
    names_forced: NamesForced = rules.posix_names_forced
    may_vanish: MayVanish = rules.posix_may_vanish
    is_kept: Callable[[frozenset[int], frozenset[int]], bool] = rules.b4_is_kept
    freed: Callable[[BlockVersion, list[BlockVersion]], list[BlockVersion]] = rules.b5_zeros

    def __str__(self) -> str:
        return f"{self.name}[{','.join(self.options)}]" if self.options else self.name


EXT4 = Profile(name="ext4", order="journal", drops_size_zero=rules.x2_drops_size_zero)
XFS = Profile(
    name="xfs",
    order="journal",
    shown=rules.f1_last_block,
    cut=rules.f3_cut,
    filled=rules.f4_filled,
    sync_forces=rules.f5_new_only,
    stays_unwritten=rules.rewriting_mends,
)
BTRFS = Profile(
    name="btrfs",
    order="entries",
    cut=rules.f3_cut,
    names_forced=rules.b2_names_forced,
    may_vanish=rules.b3_may_vanish,
    synced_write=rules.b7_whole_file,
    stays_unwritten=rules.rewriting_mends,
)
POSIX = Profile(
    name="posix",
    order="entries",
    cut=rules.f3_cut,
    sync_forces=rules.f5_new_only,
    directory_forced=rules.posix_data_only,
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in (EXT4, XFS, BTRFS, POSIX)}

Change = dict[str, object]
OPTIONS: dict[str, dict[str, Change]] = {
    "ext4": {
        "noauto_da_alloc": {"drops_size_zero": rules.f2_drops_nothing},
        "dioread_lock": {"shown": rules.x1_shown_with_lock, "stays_unwritten": rules.rewriting_mends},
        "data=journal": {"order": "whole"},
        "sector_bytes=512": {"tears_sectors": True},
    },
    "xfs": {"sector_bytes=512": {"tears_sectors": True}},
    "btrfs": {},
    "posix": {"sector_bytes=512": {"tears_sectors": True}},
}
"""Per profile its options, and what each changes."""

DEFAULT = "ext4,xfs,btrfs"

_ITEM = re.compile(r"(?P<name>[^\[\],]*)(?:\[(?P<options>[^\[\]]*)\])?")
_COMMA_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")


def parse_profiles(text: str | None) -> tuple[Profile, ...]:
    """The profiles that ``text`` asks for; None means ext4, xfs and btrfs.

    Raises UsageError for a profile or an option that this version does not know.

    >>> [str(profile) for profile in parse_profiles("ext4[noauto_da_alloc],posix")]
    ['ext4[noauto_da_alloc]', 'posix']
    """
    found: dict[str, Profile] = {}
    for item in _COMMA_OUTSIDE_BRACKETS.split(DEFAULT if text is None else text):
        profile = parse_profile(item.strip())
        found.setdefault(str(profile), profile)
    return tuple(found.values())


def parse_profile(text: str) -> Profile:
    """One profile. Raises UsageError for a name or an option that this version does not know.

    >>> parse_profile("xsf")
    Traceback (most recent call last):
    ...
    crashlab.errors.UsageError: unknown profile 'xsf'; did you mean 'xfs'? Known: ext4, xfs, btrfs, posix
    """
    match = _ITEM.fullmatch(text)
    if match is None or not match["name"].strip():
        message = f"cannot read the profile {text!r}; write for example ext4[noauto_da_alloc]. {_known()}"
        raise UsageError(message)
    name = match["name"].strip()
    if name not in PROFILES:
        message = f"unknown profile {name!r}; {_near(name, list(PROFILES))}{_known()}"
        raise UsageError(message)
    wanted = {item.strip() for item in match["options"].split(",")} if match["options"] else set()
    for item in sorted(wanted - OPTIONS[name].keys()):
        have = ", ".join(OPTIONS[name]) or "none"
        message = f"profile {name!r} has no option {item!r}; {_near(item, list(OPTIONS[name]))}it has {have}"
        raise UsageError(message)
    chosen = tuple(option for option in OPTIONS[name] if option in wanted)
    changes = {key: value for option in chosen for key, value in OPTIONS[name][option].items()}
    return replace(PROFILES[name], options=chosen, **changes)  # type: ignore[arg-type]  # each key is a field


def _near(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}? " if near else ""


def _known() -> str:
    return f"Known: {', '.join(PROFILES)}"
