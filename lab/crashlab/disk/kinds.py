"""The kinds of file system that a disk can carry: how each is made and mounted.

A kind is written as a power-loss profile is: ``ext4[noauto_da_alloc]``. Made with the defaults of
its mkfs, but for what keeps a young file system from writing by itself (lazy initialisation).
"""

from __future__ import annotations

from dataclasses import dataclass

from crashlab.crash.profiles import parse_profile
from crashlab.errors import UsageError

KINDS = (
    "ext4",
    "ext4[noauto_da_alloc]",
    "ext4[dioread_lock]",
    "ext4[data=journal]",
    "xfs",
    "btrfs",
)
_MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind: ``name`` for mount(2), ``options`` of the live mount, further ones of an image's mount."""

    name: str
    size: int
    make: tuple[str, ...]
    options: str = ""
    image_options: str = ""


_PLAIN = {
    # 4 KiB blocks as on every larger disk; initialised whole, so that no thread of the kernel writes later.
    "ext4": Kind(
        name="ext4",
        size=16 * _MIB,
        make=("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
    ),
    "xfs": Kind(name="xfs", size=300 * _MIB, make=("mkfs.xfs", "-q", "-f", "-K"), image_options="nouuid"),
    "btrfs": Kind(name="btrfs", size=128 * _MIB, make=("mkfs.btrfs", "-q", "-f", "-K")),
}


def kind_of(text: str) -> Kind:
    """The kind that ``text`` names. Raises UsageError for one that no disk carries.

    >>> kind_of("ext4[dioread_lock]").options
    'dioread_lock'
    """
    profile = parse_profile(text)
    if str(profile) not in KINDS:
        message = f"no disk carries {text!r}; those that can be made are {', '.join(KINDS)}"
        raise UsageError(message)
    plain = _PLAIN[profile.name]
    options = ",".join(profile.options)
    image = ",".join(filter(None, (options, plain.image_options)))
    return Kind(name=plain.name, size=plain.size, make=plain.make, options=options, image_options=image)
