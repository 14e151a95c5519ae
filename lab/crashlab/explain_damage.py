"""Damage at rest in words: what is wrong with the file, why the recovery fell for it, what mends that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.crash.damage import decoded, file_at
from crashlab.crash.places import place_path
from crashlab.crash.states import prefixes_of

if TYPE_CHECKING:
    from crashlab.crash.damage import Damage
    from crashlab.crash.states import CrashState
    from crashlab.tree import Tree

_CHECKSUM = (
    "Store a checksum of the whole content, with its version and whose it is, and compare it before any of it is used."
)
_REFUSE = "Refuse what does not fit with an error that names the file; leave the file as it is."
_MARK = "Keep elsewhere a mark of what was promised (a count, the number of the last save), and hold the file to it."
_ABSENT = "Only a file that is not there is absent; one that cannot be read is damaged, and must never count as none."
_VERSION = "Read the version first, and refuse by name every other one than yours."
_STRICT = "Read strictly: no key twice, no bytes behind the end, no type but the one that was written."

_WHY: dict[str, str] = {
    "accepted-damage": "Nothing that is read tells that these bytes are not those that were written.",
    "silent-reset": "What cannot be read is taken for nothing there, so all that was saved is forgotten in silence.",
    "lost": "Damaged bytes are passed over in silence, and an acked value with them.",
    "hole": "A damaged record is left out in silence, so the rest is told as if it were whole.",
    "duplicate-entry": "The same record stands there twice, and nothing in it tells its place.",
    "evidence-destroyed": "The refusal changed the damaged file, and nobody can find out any more what it held.",
    "duplicate-effect": "The files are older than the world: what they do not know of was done all the same.",
    "hang": "The recovery does not end on damaged bytes.",
    "stuck": "The recovery died of the damaged bytes instead of saying what is wrong with them.",
    "left-process": "The recovery started a process, and left it when it met the damage.",
}
_ADVICE: dict[str, tuple[str, ...]] = {
    "accepted-damage": (_CHECKSUM, _REFUSE),
    "silent-reset": (_ABSENT, _REFUSE),
    "lost": (_REFUSE, _MARK),
    "hole": ("Give each record a checksum and its number; tell which are missing, or refuse.", _MARK),
    "duplicate-entry": ("Give each record its number, and refuse one that is out of order.",),
    "evidence-destroyed": ("Refuse before anything is written, removed or renamed.", "Look at it with a copy."),
    "duplicate-effect": (
        "Give the effect a key, or look it up outside before it is done: no file can tell of what it has lost.",
        _MARK,
    ),
    "hang": ("Limit what is read from a length or a count in the file before it is trusted.",),
    "stuck": ("Catch what the parser raises, with RecursionError, and turn it into one error that names the file.",),
    "left-process": ("End children before an error goes out.",),
}
_SOUND: dict[str, str] = {
    "swap": "Each of the two files is sound by itself, and nothing in it says that it belongs under the other name.",
    "restore": "The other files are of an earlier time, sound by themselves, and the one that is new is not asked.",
    "stale": "The file is of an earlier time and sound by itself; what the other files know is not held against it.",
    "missing": "That the file is gone is taken for a moment at which it was not yet there.",
}
"""Why an older value is believed where no byte is damaged."""

_GONE_ON = ("silent-reset", "lost", "torn", "hole")
"""Kinds that only a recovery after a refusal that moved a file aside has as its second step."""

_BY_DAMAGE: dict[str, tuple[str, ...]] = {
    "version": (_VERSION,),
    "duplicate-key": (_STRICT,),
    "extra": (_STRICT,),
    "stale-block": ("The checksum must cover the whole file: each block of it is sound by itself.",),
    "swap": ("The checksum must cover whose content it is: each file is sound by itself.",),
    "misdirect": ("The checksum must cover whose content it is: the block is sound by itself.",),
}


def why_damaged(kind: str, damage: Damage, step: str) -> tuple[str, tuple[str, ...]]:
    """Cause and advice for a violation of this kind under this damage."""
    if step == "second" and kind in _GONE_ON:
        why = "The refusal moved the damaged file out of the way, so the next recovery does without it, in silence."
        advice = "Leave the file where it is; or refuse as long as the one that was moved aside lies there."
        return why, (advice, _ABSENT)
    if step in ("second", "third"):
        why = "The damage is overlooked at first, and spoils what comes after: the next recovery, or the next save."
        return why, ("Look at all that lies there before adding to it; cut off a bad end, and say so.", _REFUSE)
    if kind == "lost" and damage.kind in _SOUND:
        return _SOUND[damage.kind], (*_BY_DAMAGE.get(damage.kind, ()), _MARK)
    more = _BY_DAMAGE.get(damage.kind, ())
    why = _WHY.get(kind, "With these files the recovered run goes another way than the uncrashed one.")
    return why, (*_ADVICE.get(kind, (_CHECKSUM, _REFUSE)), *(more if kind == "accepted-damage" else ()))


def headline(damage: Damage) -> str:
    """What happened, in a few words: it stands between the last op and the recovery."""
    name = place_path(damage.path)
    match damage.kind:
        case "missing":
            return f"{name} is gone"
        case "restore":
            return f"all but {name} is back as at op {damage.argument}"
        case "swap":
            return f"{name} and {place_path(decoded(damage.argument))} exchanged"
    return f"{name} damaged ({damage.kind})"


def damage_words(state: CrashState, inode: int) -> str:
    """What was done to the file ``inode`` of a damaged state; "" where nothing was."""
    damage = state.damage
    assert damage is not None, "only damaged states come here"
    before = prefixes_of(state.trace).tree(damage.at)
    if damage.kind == "restore":
        return "kept new; all else is of an earlier moment" if state.tree.lookup(damage.path) == inode else ""
    if damage.kind == "swap" and inode == state.tree.lookup(decoded(damage.argument)):
        return f"holds what {place_path(damage.path)} held"
    return _in_words(damage, before, state.tree) if state.tree.lookup(damage.path) == inode else ""


def _in_words(damage: Damage, before: Tree, after: Tree) -> str:
    argument, old = damage.argument, file_at(before, damage.path)
    if damage.kind == "bit":
        return _flip_in_words(int(argument), damage.path, before, after)
    if damage.kind == "truncate":
        return f"cut to {int(argument):,} of {old.content.size if old else 0:,} bytes"
    if damage.kind in ("zeros", "garbage"):
        start, _, end = argument.partition("-")
        return f"bytes {start} to {int(end) - 1} are {damage.kind}"
    if damage.kind in ("stale-block", "misdirect"):
        block, _, source = argument.partition(":")
        return _BLOCK[damage.kind].format(block=block, op=source, file=place_path(decoded(source)))
    if damage.kind == "extra":
        return "a second copy of itself behind it" if argument == "copy" else f"{argument} bytes of garbage behind it"
    if damage.kind == "swap":
        return f"holds what {place_path(decoded(argument))} held"
    return _PLAIN[damage.kind].format(argument)


_BLOCK = {
    "stale-block": "block {block} as at op {op}: a later write of it was lost",
    "misdirect": "block {block} is that of {file}",
}
_PLAIN = {
    "empty": "emptied",
    "foreign": "holds something else: {}",
    "version": "its version says {}",
    "nested": "brackets, {} deep",
    "duplicate-key": "a key stands twice, with two values",
    "invalid-utf8": "byte {} is 0xff, which is no UTF-8",
    "stale": "as at op {}: a later write was lost",
}


def _flip_in_words(number: int, path: str, before: Tree, after: Tree) -> str:
    place, bit = divmod(number, 8)
    files = (file_at(before, path), file_at(after, path))
    old, new = (file.content.read()[place] if file is not None else 0 for file in files)
    return f"byte {place}, bit {bit} flipped: {_byte(old)} -> {_byte(new)}"


def _byte(value: int) -> str:
    return f"'{chr(value)}'" if chr(value).isprintable() and chr(value).isascii() else f"0x{value:02x}"
