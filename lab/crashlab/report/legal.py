"""Why a crash may leave such files: the rule behind a finding, and how sure it is.

The rules are those of ``lab/FAULT_MODEL.md``, named as there; each sentence ends in where it comes from.
A reader who thinks "my file system would never do that" finds here why it may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crashlab.report.model import Finding

_KILL = (
    "Written bytes belong to the kernel, which outlives the program: everything that a finished call wrote is there, "
    "synced or not, and nothing else is. (Measured.)"
)
_CUT = (
    "A write in flight may be cut at a page of the file, a multiple of 4,096 of its offset. "
    "(Measured in some 27,000 kills; kill[cut=byte] also tries every other byte, which a write from a mapped file may "
    "come to.)"
)
_PROFILES: dict[str, str] = {
    "ext4": (
        "ext4: names keep the order of one journal (J1), but a size may be on disk without its bytes (X1), and a "
        "rename is not durable when it returns (J6); only fsync promises more. (Measured; cited for the cause.)"
    ),
    "xfs": (
        "xfs: names keep the order of one journal (J1), but neither a rename nor a truncation says anything about "
        "bytes: size 0 behind a rename is common (F2); only fsync promises more. (Measured.)"
    ),
    "btrfs": (
        "btrfs: each name falls back by itself, to anything that it meant since its directory was last synced (B1), "
        "and each block of a file to any version since the last barrier, or to zeros (B5). (Measured.)"
    ),
    "posix": (
        "posix: fsync(2) promises the bytes of that file and no name; everything else may be there or not, in any "
        "mix. (Cited.)"
    ),
}
_OVERWRITE = "Bytes that are overwritten in place are ordered with nothing until an fsync. (Measured.)"
_BY_FAULT: dict[str, str] = {
    "error": (
        "Any call may fail: a disk fills up (ENOSPC), a medium fails (EIO), a write takes only a part. A failed fsync "
        "has lost what it was to force, and a second one that succeeds does not bring it back. (Cited; measured.)"
    ),
    "damage": (
        "Bytes at rest change: media decay, firmware misplaces a write, a backup restores an older file, a person "
        "edits one. ext4 and xfs keep no checksum of data and would hand it out as good. (Cited.)"
    ),
    "connection": "A network may lose a request, or the reply to one that was carried out. (Cited.)",
    "server": "A server is a process: it may die at any request, and its memory dies with it. (Cited.)",
    "race": "Nothing but a lock or a fence keeps a second owner from starting while the first one lives. (Cited.)",
}
_AGAIN = "A recovery is a program too, and dies like one: often the cause of the first crash is still there. (Assumed.)"


def legal_words(finding: Finding) -> tuple[str, ...]:
    """The rules that allow the crash state of ``finding``, one paragraph each."""
    told: list[str] = []
    last = finding.id.rpartition("/")[2]
    for fault, text in _BY_FAULT.items():
        if finding.fault == fault or f"{fault}@" in finding.id:
            told.append(text)
    if finding.fault == "recovery":
        told.append(_AGAIN)
    if "kill@" in finding.id:
        told.append(_KILL)
    if any(op.note == "cut" for op in finding.ops) and "+" in last:
        told.append(_CUT)
    if "power@" in finding.id:
        if "in place" in finding.why:
            told.append(_OVERWRITE)
        told += _of_profiles(finding.profiles)
    return tuple(told)


def _of_profiles(profiles: tuple[str, ...]) -> list[str]:
    """One sentence per file system; options such as ``ext4[data=journal]`` are told with their base."""
    names = list(dict.fromkeys(each.partition("[")[0] for each in profiles))
    return [_PROFILES[name] for name in names if name in _PROFILES]
