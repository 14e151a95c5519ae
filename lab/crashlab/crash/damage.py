"""Damage at rest: bytes that change, or files that go, while no program runs.

A damage is a pure function of the trace and of its id: ``damage@checkpoint.json:bit:137`` is the last
directory of the recorded run with bit 137 of that file the other way round (byte 17, bit 1 counted
from the least). ``damage@57-checkpoint.json:bit:137`` is the same at rest after op 57. The path is
percent-encoded and relative to ``lab.dir``, ``~home`` before that of a home; a first hyphen that
could be taken for the end of a number is encoded too.

Sources: bit flips, lost writes (stale blocks) and misdirected writes are faults of disks, IRON (SOSP
2005) and Bairavasundaram et al. (FAST 2008). Truncations, foreign contents, duplicate keys and
exchanged files are what tools, syncing programs and people leave (assumed). Modification times stay
as they were. Not modelled: damage while a program runs, names that change, several damages at once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from crashlab.content import BLOCK_BYTES, EMPTY, Content
from crashlab.crash import formats
from crashlab.crash.places import place_path
from crashlab.crash.states import CrashState, no_such_op, prefixes_of
from crashlab.errors import UsageError
from crashlab.tree import Directory, File, Tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab import trace as t

IN_BYTES = (
    "bit",
    "truncate",
    "zeros",
    "empty",
    "extra",
    "garbage",
    "stale-block",
    "swap",
    "misdirect",
    "foreign",
    "version",
    "nested",
    "duplicate-key",
    "invalid-utf8",
)
"""Kinds of damage that leave bytes which no program wrote so."""

OF_AGE = ("missing", "stale", "restore")
"""Kinds that leave a sound directory of another time: only other evidence tells that it is damaged."""

KINDS = (*IN_BYTES, *OF_AGE)
"""Every kind, in the order in which they are tried; also the variants of the fault."""

_ID = re.compile(r"damage@(?:(?P<at>\d+)-)?(?P<path>[^:/]+):(?P<kind>[a-z0-9-]+)(?::(?P<argument>[^/]*))?")
_LIKE_A_MOMENT = re.compile(r"(\d+)-")
_WHOLE = r"(0|[1-9][0-9]*)"  # one spelling per number, so that each state has one id
_NUMBER = re.compile(_WHOLE)
_SPAN = re.compile(f"{_WHOLE}-{_WHOLE}")
_NUMBERED = re.compile(f"{_WHOLE}:(.+)")


@dataclass(frozen=True, slots=True)
class Damage:
    """One damage: to the file ``path`` of the tree after ``at`` ops, in the words of the id.

    >>> Damage("dir/checkpoint.json", "bit", "137", 9).id(end=9)
    'damage@checkpoint.json:bit:137'
    """

    path: str
    kind: str
    argument: str
    at: int

    def id(self, *, end: int) -> str:
        """The id of the state; ``end`` is the number of ops of the whole trace."""
        moment = "" if self.at == end else f"{self.at}-"
        argument = f":{self.argument}" if self.argument else ""
        return f"damage@{moment}{encoded(self.path)}:{self.kind}{argument}"

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are evidence of it: the damaged one, or the two that were exchanged."""
        return (self.path, decoded(self.argument)) if self.kind == "swap" else (self.path,)

    @property
    def of_age(self) -> bool:
        """Whether what is left is sound, but of another time."""
        return self.kind in OF_AGE


def encoded(path: str) -> str:
    """A path of the trace as an id holds it.

    >>> encoded("dir/a b/c"), encoded("home/x"), encoded("dir/7-x"), encoded("dir/~home")
    ('a%20b%2Fc', '~home%2Fx', '7%2Dx', '%7Ehome')
    """
    text = quote(os.fsencode(place_path(path)), safe="")
    if path.startswith("dir/"):
        text = re.sub("^~", "%7E", text)
    return _LIKE_A_MOMENT.sub(r"\1%2D", text, count=1) if _LIKE_A_MOMENT.match(text) else text


def decoded(text: str) -> str:
    """The path of the trace that :func:`encoded` gave."""
    plain = os.fsdecode(unquote_to_bytes(text))
    return plain.removeprefix("~") if text.startswith("~") else f"dir/{plain}"


def damage_of(trace: t.Trace, state_id: str) -> Damage | None:
    """The damage that an id names, None where it is no id of a damage. Raises UsageError for one of no such op."""
    match = _ID.fullmatch(state_id)
    if match is None:
        return None
    end = len(trace.ops)
    at = end if match["at"] is None else int(match["at"])
    if at > end:
        raise no_such_op(trace, state_id, at)
    return Damage(decoded(match["path"]), match["kind"], match["argument"] or "", at)


def damaged(trace: t.Trace, state_id: str) -> CrashState:
    """The state of an id. Raises UsageError where it is none of this trace, or changes nothing."""
    damage = damage_of(trace, state_id)
    if damage is None or damage.kind not in KINDS:
        text = f"{state_id!r} is no damage that this version knows; it knows {', '.join(KINDS)}"
        raise UsageError(text)
    state = apply(trace, damage)
    if state is None or state.id != state_id:
        text = (
            f"{state_id} is no damage of this recording: there is no such file or place in it, or nothing would "
            "change. Use the stored run: crashlab replay ID --run .crashlab/runs/…"
        )
        raise UsageError(text)
    return state


def apply(trace: t.Trace, damage: Damage) -> CrashState | None:
    """The state that a damage leaves; None where it does not fit the files, or changes none of them."""
    before = prefixes_of(trace).tree(damage.at)
    if not isinstance(before.node(damage.path), File):
        return None
    change = _IN_TREE.get(damage.kind)
    tree = change(trace, before, damage) if change is not None else _in_content(before, damage)
    if tree is None or tree.digest == before.digest:
        return None
    return CrashState(
        id=damage.id(end=len(trace.ops)), fault="damage", trace=trace, tree=tree, done=damage.at, damage=damage
    )


def file_at(tree: Tree, path: str) -> File | None:
    """The file under ``path``, None where there is none."""
    node = tree.node(path)
    return node if isinstance(node, File) else None


def garbage(damage: Damage, size: int) -> bytes:
    """Bytes that nobody wrote: always the same for the same damage."""
    return hashlib.shake_128(f"{encoded(damage.path)}:{damage.kind}:{damage.argument}".encode()).digest(size)


# --- in the bytes of one file --------------------------------------------------------------------


def _in_content(tree: Tree, damage: Damage) -> Tree | None:
    file = file_at(tree, damage.path)
    assert file is not None, "apply has looked"
    content = _IN_CONTENT[damage.kind](file.content, damage)
    return None if content is None else _with(tree, damage.path, content)


def _with(tree: Tree, path: str, content: Content) -> Tree:
    inode, file = tree.lookup(path), file_at(tree, path)
    assert inode is not None, "a file that was found"
    assert file is not None, "a file that was found"
    return Tree({**tree.nodes, inode: dataclasses.replace(file, content=content)})


def _bit(content: Content, damage: Damage) -> Content | None:
    number = _number(damage.argument)
    if number is None or number >= 8 * content.size:
        return None
    at, bit = divmod(number, 8)
    byte = content.blocks[at // BLOCK_BYTES][at % BLOCK_BYTES]
    return content.write(at, bytes([byte ^ (1 << bit)]))


def _truncate(content: Content, damage: Damage) -> Content | None:
    size = _number(damage.argument)
    return content.truncate(size) if size is not None and size < content.size else None


def _zeros(content: Content, damage: Damage) -> Content | None:
    span = _span(content, damage)
    return None if span is None else content.write(span[0], bytes(span[1] - span[0]))


def _garbage(content: Content, damage: Damage) -> Content | None:
    span = _span(content, damage)
    return None if span is None else content.write(span[0], garbage(damage, span[1] - span[0]))


def _extra(content: Content, damage: Damage) -> Content | None:
    if damage.argument == "copy":
        return content.write(content.size, content.read())
    size = _number(damage.argument)
    return None if size is None else content.write(content.size, garbage(damage, size))


def _foreign(_content: Content, damage: Damage) -> Content | None:
    data = formats.FOREIGN.get(damage.argument)
    return None if data is None else Content.of(data)


def _version(content: Content, damage: Damage) -> Content | None:
    data = formats.with_version(content.read(), damage.argument) if _number(damage.argument) is not None else None
    return None if data is None else Content.of(data)


def _nested(_content: Content, damage: Damage) -> Content | None:
    depth = _number(damage.argument)
    return None if not depth or depth > formats.NESTED_DEPTH else Content.of(b"[" * depth + b"]" * depth)


def _duplicate_key(content: Content, damage: Damage) -> Content | None:
    data = formats.with_key_twice(content.read(), damage.argument)
    return None if data is None else Content.of(data)


def _invalid_utf8(content: Content, damage: Damage) -> Content | None:
    at = _number(damage.argument)
    return content.write(at, b"\xff") if at is not None and at < content.size else None


_IN_CONTENT: dict[str, Callable[[Content, Damage], Content | None]] = {
    "bit": _bit,
    "truncate": _truncate,
    "zeros": _zeros,
    "empty": lambda _content, damage: None if damage.argument else EMPTY,
    "extra": _extra,
    "garbage": _garbage,
    "foreign": _foreign,
    "version": _version,
    "nested": _nested,
    "duplicate-key": _duplicate_key,
    "invalid-utf8": _invalid_utf8,
}


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _span(content: Content, damage: Damage) -> tuple[int, int] | None:
    match = _SPAN.fullmatch(damage.argument)
    start, end = (int(match[1]), int(match[2])) if match else (0, 0)
    return (start, end) if start < end <= content.size else None


# --- in several files, or of another time --------------------------------------------------------


def _missing(_trace: t.Trace, tree: Tree, damage: Damage) -> Tree | None:
    return None if damage.argument else tree.without(damage.path)


def _earlier(trace: t.Trace, damage: Damage, number: str) -> Tree | None:
    op = _number(number)
    return prefixes_of(trace).tree(op) if op is not None and op < damage.at else None


def _stale(trace: t.Trace, tree: Tree, damage: Damage) -> Tree | None:
    earlier = _earlier(trace, damage, damage.argument)
    old = None if earlier is None else file_at(earlier, damage.path)
    return None if old is None else _with(tree, damage.path, old.content)


def _stale_block(trace: t.Trace, tree: Tree, damage: Damage) -> Tree | None:
    """A write of one block that never reached the disk: the block is that of an older version."""
    match = _NUMBERED.fullmatch(damage.argument)
    earlier = None if match is None else _earlier(trace, damage, match[2])
    old = None if earlier is None else file_at(earlier, damage.path)
    return None if match is None or old is None else _with_block(tree, damage.path, old.content, int(match[1]))


def _swap(_trace: t.Trace, tree: Tree, damage: Damage) -> Tree | None:
    other = decoded(damage.argument)
    mine, theirs = file_at(tree, damage.path), file_at(tree, other)
    if mine is None or theirs is None:
        return None
    return _with(_with(tree, damage.path, theirs.content), other, mine.content)


def _misdirect(_trace: t.Trace, tree: Tree, damage: Damage) -> Tree | None:
    """A block of another file that was written over the block of the same number here."""
    match = _NUMBERED.fullmatch(damage.argument)
    other = None if match is None else file_at(tree, decoded(match[2]))
    return None if match is None or other is None else _with_block(tree, damage.path, other.content, int(match[1]))


def _with_block(tree: Tree, path: str, source: Content, number: int) -> Tree | None:
    file = file_at(tree, path)
    assert file is not None, "apply has looked"
    if number >= min(len(file.content.blocks), len(source.blocks)):
        return None
    start = number * BLOCK_BYTES
    data = source.blocks[number][: file.content.size - start]
    return _with(tree, path, file.content.write(start, data))


def _restore(trace: t.Trace, tree: Tree, damage: Damage) -> Tree | None:
    """The whole directory as it was, but for the one file, which stays new."""
    earlier, kept = _earlier(trace, damage, damage.argument), file_at(tree, damage.path)
    if earlier is None or kept is None:
        return None
    if isinstance(earlier.node(damage.path), File):
        return _with(earlier, damage.path, kept.content)
    inode, (parent, _, name) = tree.lookup(damage.path), damage.path.rpartition("/")
    holder = earlier.lookup(parent)
    directory = None if holder is None else earlier.nodes[holder]
    if holder is None or inode is None or not isinstance(directory, Directory) or name in directory.entries:
        return None  # the directory that holds it was not there yet
    entries = {**directory.entries, name: inode}
    return Tree({**earlier.nodes, inode: kept, holder: dataclasses.replace(directory, entries=entries)})


_IN_TREE: dict[str, Callable[[t.Trace, Tree, Damage], Tree | None]] = {
    "missing": _missing,
    "stale": _stale,
    "stale-block": _stale_block,
    "swap": _swap,
    "misdirect": _misdirect,
    "restore": _restore,
}
