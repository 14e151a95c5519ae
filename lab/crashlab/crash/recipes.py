"""Ids of power states, and the way back: ``power@9-3,5d2``.

``power@9`` is the moment after op 9 with nothing lost, ``power@9-all`` with all lost that nothing
forced. Otherwise what was lost stands behind the dash, between commas, ``3..5`` for several ops:

=========== ======================================================================================
``3``       op 3 is lost whole: a name, a mode, a write with its size
``3..``     op 3 and every later change of names, set sizes and modes (profiles with a journal)
``3+4096..``all from byte 4096 of the write 3 on (``data=journal``, as ``kill@3+4096``)
``3d2``     the bytes that op 3 wrote to block 2
``3s``      the size that op 3 made, while its bytes may be there; ``3s2``: only up to block 2
``3n1``     of rename 3, that the source went (``n1``) or that the target came (``n2``)
``3v``      the target of rename 3 has vanished (rule B3)
``3o2c7``   block 2 as op 3 left it, cut by op 7; ``3o2t4x6``: under the first 4 sectors of op 6
=========== ======================================================================================

What is newer than what is lost is there. The text is the same on every machine, and one state has
one text per order that profiles keep; the profile must be known to follow it, as it says which ops
were forced. The digests of the bytes do not enter, so that a program with a random salt keeps its ids.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crashlab.content import BLOCK_BYTES
from crashlab.crash import shapes
from crashlab.crash.entries import EntryCuts
from crashlab.crash.orders import JournalCuts, WholeCuts
from crashlab.crash.power import PowerLoss, Recipe
from crashlab.crash.states import no_such_op
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from crashlab import trace as t
    from crashlab.crash.cuts import Cut, Slot
    from crashlab.crash.micro import Key
    from crashlab.crash.moments import Choice, Moment
    from crashlab.crash.variants import Sized

_ID = re.compile(r"power@(?P<done>\d+)(?:-(?P<lost>[\w.,+]+))?")
_ITEM = re.compile(
    r"(?P<first>\d+)(?:\+(?P<byte>\d+))?"
    r"(?:(?P<open>\.\.)|\.\.(?P<last>\d+)|d(?P<d>\d+)|s(?P<s>\d*)|n(?P<n>[12])|(?P<v>v)|o(?P<o>\d+)(?P<mark>[\dctx]+))?"
)


@dataclass
class Lost:
    """The parts of an id. ``whole`` ops; parts as ``(op, part)``, such as ``(3, "d2")``."""

    whole: set[int] = field(default_factory=set)
    parts: set[tuple[int, str]] = field(default_factory=set)
    chain: int | None = None
    byte: int | None = None
    kept: set[int] = field(default_factory=set)

    def text(self) -> str:
        """The items between commas, in order of the ops."""
        items = [(number, number, str(number)) for number in sorted(self.whole)]
        runs: list[tuple[int, int, str]] = []
        for first, last, text in items:
            if runs and not any(runs[-1][1] < each < first for each in self.kept):
                runs[-1] = runs[-1][0], last, f"{runs[-1][0]}..{last}"
            else:
                runs.append((first, last, text))
        texts = [(first, text) for first, _, text in runs]
        texts += [(op, f"{op}{part}") for op, part in self.parts]
        if self.chain is not None:
            byte = "" if self.byte is None else f"+{self.byte}"
            texts.append((self.chain, f"{self.chain}{byte}.."))
        return ",".join(text for _, text in sorted(texts))

    def drops(self, op: int, part: str) -> bool:
        """Whether this part of an op is lost, alone or with the whole op."""
        return op in self.whole or (op, part) in self.parts


def id_of(loss: PowerLoss, recipe: Recipe, *, spelled: bool = False) -> str:
    """The id of a state; with ``spelled``, what "all" stands for is spelled out."""
    moment = loss.moment(recipe.done)
    if not recipe.cut and not any(recipe.variants):
        return f"power@{recipe.done}"
    if not spelled and recipe.cut == loss.cuts.oldest(moment):
        (cut,) = loss.cuts.at(moment, [recipe.cut])
        if recipe.variants == tuple(slot.count - 1 for slot in cut.varied):
            return f"power@{recipe.done}-all"
    return f"power@{recipe.done}-{lost_of(loss, recipe).text()}"


def lost_of(loss: PowerLoss, recipe: Recipe) -> Lost:
    """What a state lost: whole ops, and parts of ops."""
    moment = loss.moment(recipe.done)
    (cut,) = loss.cuts.at(moment, [recipe.cut])
    lost = Lost()
    _lose_names(loss, moment, recipe.cut, lost)
    for slot, number in zip(cut.varied, recipe.variants, strict=True):
        _lose_ways(loss, moment, slot, number, lost)
    return lost


def recipe_of(loss: PowerLoss, state_id: str) -> Recipe:
    """Follow an id. Raises UsageError where it is none, or not one of this trace and profile."""
    match = _ID.fullmatch(state_id)
    if match is None:
        text = f"{state_id!r} is no id of a power state; expected for example power@9-3,5d2"
        raise UsageError(text)
    done = int(match["done"])
    if done > len(loss.trace.ops):
        raise no_such_op(loss.trace, state_id, done)
    moment = loss.moment(done)
    if match["lost"] == "all":
        number = loss.cuts.oldest(moment)
        lost = None
    else:
        lost = _read(loss.trace, state_id, match["lost"] or "")
        number = _cut_number(loss, moment, lost)
    cuts = list(loss.cuts.at(moment, [number])) if 0 <= number < loss.cuts.count(moment) else []
    if not cuts:
        text = f"{state_id} is no state of this recording under {loss.profile}: something that it loses was forced"
        raise UsageError(text)
    cut = cuts[0]
    variants = tuple(slot.count - 1 if lost is None else _way(loss, moment, slot, lost) for slot in cut.varied)
    recipe = recipe_at(loss, done, cut, variants)
    if state_id not in (id_of(loss, recipe), id_of(loss, recipe, spelled=True)):
        text = f"{state_id} is no state of this recording under {loss.profile}; the nearest is {id_of(loss, recipe)}"
        raise UsageError(text)
    return recipe


def recipe_at(loss: PowerLoss, done: int, cut: Cut, ways: tuple[int, ...]) -> Recipe:
    """The recipe of a cut in which each varied file comes out in its way."""
    total = sum(slot.term(way) for slot, way in zip(cut.varied, ways, strict=True))
    return Recipe(done, cut.number, ways, (cut.fixed + loss.outside(done) + total) & shapes.MASK)


def _read(trace: t.Trace, state_id: str, text: str) -> Lost:
    lost = Lost()
    for item in text.split(",") if text else ():
        match = _ITEM.fullmatch(item)
        if match is None:
            message = f"cannot read {item!r} in {state_id!r}; expected for example power@9-3,5d2"
            raise UsageError(message)
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if max(first, last) > len(trace.ops):
            raise no_such_op(trace, state_id, max(first, last))
        if match["open"]:
            lost.chain, lost.byte = first, int(match["byte"]) if match["byte"] else None
        elif match["last"] or item.isdigit():
            lost.whole |= set(range(first, last + 1))
        else:
            lost.parts.add((first, item[len(match["first"]) :]))
    return lost


# --- names ----------------------------------------------------------------------------------------


def _lose_names(loss: PowerLoss, moment: Moment, number: int, lost: Lost) -> None:
    cuts = loss.cuts
    if isinstance(cuts, JournalCuts):
        prefix = cuts.prefixes(moment)[number]
        if prefix < cuts.history.issued[moment.started]:
            lost.chain = cuts.history.chain[prefix].op
    elif isinstance(cuts, WholeCuts):
        if number:
            done, lost.byte = cuts.point(moment, number)
            after, cut_bytes = cuts.point(moment, number - 1)  # the first thing that is lost
            lost.chain = done + 1 if lost.byte is not None else after + (cut_bytes is not None)
    elif isinstance(cuts, EntryCuts):
        _lose_entries(cuts, moment, cuts.pick(moment, number), lost)


def _lose_entries(cuts: EntryCuts, moment: Moment, picked: Mapping[Key, Choice], lost: Lost) -> None:
    for key, choice in picked.items():
        choices = cuts.choices(moment)[key]
        for newer in itertools.takewhile(choice.__ne__, choices):
            if newer.op != choice.op:  # of a name that vanished, that says it all
                _lose_entry(cuts, key, newer, lost)
        if choice.vanished:
            lost.parts.add((choice.op, "v"))
        lost.kept |= {each.op for each in choices}
    _join_renames(lost)


def _part_of(cuts: EntryCuts, key: Key, op: int) -> str:
    """``n1`` and ``n2`` for the source and the target of a rename; "" where an op changes one name."""
    names = next(link.names for link in cuts.history.chain if link.op == op)
    if len(names) == 1:
        return ""
    return "n2" if names[0].key == key else "n1"


def _lose_entry(cuts: EntryCuts, key: Key, choice: Choice, lost: Lost) -> None:
    part = _part_of(cuts, key, choice.op) if choice.op else ""
    if choice.vanished:
        return
    if part:
        lost.parts.add((choice.op, part))
    else:
        lost.whole.add(choice.op)


def _join_renames(lost: Lost) -> None:
    """A rename of which both names are lost is lost whole."""
    for op in {op for op, part in lost.parts if part == "n1"} & {op for op, part in lost.parts if part == "n2"}:
        lost.parts -= {(op, "n1"), (op, "n2")}
        lost.whole.add(op)
    lost.kept -= lost.whole


def _cut_number(loss: PowerLoss, moment: Moment, lost: Lost) -> int:
    cuts = loss.cuts
    if isinstance(cuts, JournalCuts):
        if lost.chain is None:
            return 0
        kept = sum(link.op < lost.chain for link in cuts.history.chain)
        prefixes = list(cuts.prefixes(moment))
        return prefixes.index(kept) if kept in prefixes else -1
    if isinstance(cuts, WholeCuts):
        return 0 if lost.chain is None else cuts.number(moment, lost.chain, lost.byte)
    assert isinstance(cuts, EntryCuts)
    picked = {key: _entry(cuts, key, choices, lost) for key, choices in cuts.choices(moment).items()}
    return cuts.number(moment, picked)


def _entry(cuts: EntryCuts, key: Key, choices: tuple[Choice, ...], lost: Lost) -> Choice:
    for choice in choices:
        if choice.vanished and (choice.op, "v") in lost.parts:
            return choice
    for choice in choices:
        part = _part_of(cuts, key, choice.op) if choice.op else ""
        if not choice.vanished and not lost.drops(choice.op, part):
            return choice
    return choices[-1]


# --- files ----------------------------------------------------------------------------------------


def _lose_ways(loss: PowerLoss, moment: Moment, slot: Slot, number: int, lost: Lost) -> None:
    """The parts that way ``number`` of a slot loses."""
    inside = number
    if len(slot.heads) > 1:
        assert isinstance(loss.cuts, EntryCuts)
        ways = 1 if slot.variants is None else slot.variants.count
        head, inside = divmod(number, ways)
        ops = loss.cuts.attribute_ops(moment, slot.inode)
        lost.whole |= set(ops[:head])
        lost.kept |= set(ops[head:])
    if slot.variants is None:
        return
    sized, combination = slot.variants.at(inside)
    gone_sizes = _newer_sizes(slot.variants.sizes, sized)
    gone: dict[int, set[str]] = {op: {"s"} for op in gone_sizes}
    there = {each.op for each in slot.variants.sizes} - gone_sizes
    for block, (versions, chosen) in enumerate(zip(sized.blocks, sized.choice(combination), strict=True)):
        if chosen.mark:
            lost.parts.add((chosen.op, f"o{block}{chosen.mark}"))
            there |= {version.op for version in versions}
            continue
        at = versions.index(chosen)
        for version in versions[:at]:
            if not version.mark:
                gone.setdefault(version.op, set()).add(f"d{block}")
        there |= {version.op for version in versions[at:]}
    largest = max(each.size for each in slot.variants.sizes if each.op == sized.op)
    if sized.size != largest:
        lost.parts.add((sized.op, f"s{sized.size // BLOCK_BYTES}"))
    for op, parts in gone.items():
        if op in there or op in {link.op for link in loss.cuts.history.chain if isinstance(loss.cuts, JournalCuts)}:
            lost.parts |= {(op, part) for part in parts}
        else:
            lost.whole.add(op)
    lost.kept |= there


def _newer_sizes(sizes: Iterable[Sized], chosen: Sized) -> set[int]:
    newer: set[int] = set()
    for sized in sizes:
        if sized.op == chosen.op:
            break
        newer.add(sized.op)
    return newer


def _way(loss: PowerLoss, moment: Moment, slot: Slot, lost: Lost) -> int:
    """The way of a slot that loses exactly this."""
    head, ways = 0, 1 if slot.variants is None else slot.variants.count
    if len(slot.heads) > 1:
        assert isinstance(loss.cuts, EntryCuts)
        head = sum(op in lost.whole for op in loss.cuts.attribute_ops(moment, slot.inode))
    if slot.variants is None:
        return head
    start = 0
    wanted = _size(slot.variants.sizes, lost)
    for sized in slot.variants.sizes:
        if sized is wanted:
            break
        start += sized.count
    indices = [_version(sized, block, lost) for block in range(len(sized.blocks))]
    return head * ways + start + sized.number(indices)


def _size(sizes: tuple[Sized, ...], lost: Lost) -> Sized:
    for sized in sizes:
        if (sized.op, f"s{sized.size // BLOCK_BYTES}") in lost.parts and sized.size % BLOCK_BYTES == 0:
            return sized
    kept = [sized for sized in sizes if not lost.drops(sized.op, "s")] or [sizes[-1]]
    return max((sized for sized in kept if sized.op == kept[0].op), key=lambda sized: sized.size)


def _version(sized: Sized, block: int, lost: Lost) -> int:
    versions = sized.blocks[block]
    for index, version in enumerate(versions):
        if version.mark and (version.op, f"o{block}{version.mark}") in lost.parts:
            return index
    for index, version in enumerate(versions):
        if not version.mark and not lost.drops(version.op, f"d{block}"):
            return index
    return len(versions) - 1
