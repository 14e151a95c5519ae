"""The names of the faults that can be asked for, and the text form of such a list.

A list reads ``kill,kill[cut=byte]``: names between commas, options of a fault in brackets. Faults of
the design that this version cannot inject are known by name, so that asking for one is answered
with the truth instead of "unknown".
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from crashlab.crash import damage
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

BUILT: tuple[str, ...] = ("kill", "power", "error", "damage", "recovery", "race")
"""Faults that this version injects."""

DEFAULT: tuple[str, ...] = ("kill", "power")
"""Faults that are tried where none is named."""

DESIGNED: tuple[str, ...] = ("kill", "power", "error", "damage", "recovery", "connection", "server", "race")
"""Every fault of the design, in the order in which reports name them."""

OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "kill": {"cut": ("page", "byte")},
    "recovery": {"depth": ("1", "2", "3"), "cut": ("page", "byte")},
}
"""Per fault: its options and what each may be; the first is the default.

``recovery[depth=2]`` crashes the recovery from a crash of a recovery too; a full budget does so unasked.
"""

VARIANTS: dict[str, tuple[str, ...]] = {
    "error": (
        *("ENOSPC", "EIO", "short-write", "failed-fsync", "EIO-read"),
        *("EDQUOT", "EROFS", "EMFILE", "EFBIG", "failed-journal"),
    ),
    "damage": damage.KINDS,
}
"""Per fault: the parts of it that can be asked for alone, as ``damage:bit``. Where none is named, the usual ones."""

_ITEM = re.compile(r"(?P<name>[^\[\],:]*)(?P<variant>:[^\[\],]*)?(?:\[(?P<options>[^\[\]]*)\])?")
_COMMA_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")


@dataclass(frozen=True)
class FaultRequest:
    """One fault that was asked for, with the options that were written down; ``variants`` empty means all.

    >>> str(FaultRequest("kill", {"cut": "byte"})), str(FaultRequest("damage", variants=("bit", "zeros")))
    ('kill[cut=byte]', 'damage:bit,damage:zeros')
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[str, ...] = ()

    def __str__(self) -> str:
        inside = ",".join(f"{option}={value}" for option, value in self.options.items())
        options = f"[{inside}]" if inside else ""
        names = [f"{self.name}:{variant}" for variant in self.variants] or [self.name]
        return ",".join(f"{name}{options}" for name in names)

    def joined(self, other: FaultRequest) -> FaultRequest | None:
        """One request for the variants of both; None where their options differ, or only one names variants."""
        if self == other:
            return self
        if self.options != other.options or not (self.variants and other.variants):
            return None
        return replace(self, variants=tuple(dict.fromkeys(self.variants + other.variants)))


def parse_faults(text: str | None) -> tuple[FaultRequest, ...]:
    """The faults that ``text`` asks for; None means ``kill,power``, ``"all"`` every fault that is built.

    Raises UsageError for a name, variant or option that this version does not know.

    >>> parse_faults("kill[cut=byte]")
    (FaultRequest(name='kill', options={'cut': 'byte'}, variants=()),)
    >>> [str(each) for each in parse_faults("error:ENOSPC,error:EIO")]
    ['error:ENOSPC,error:EIO']
    """
    if text is None:
        return tuple(FaultRequest(name) for name in DEFAULT)
    if text.strip() == "all":
        return tuple(FaultRequest(name) for name in BUILT)
    requests: dict[str, FaultRequest] = {}
    for item in _COMMA_OUTSIDE_BRACKETS.split(text):
        request = _parse_one(item.strip())
        earlier = requests.setdefault(request.name, request)
        both = earlier.joined(request)
        if both is None:
            message = f"fault {request.name!r} is asked for twice, as {earlier} and as {request}; keep one"
            raise UsageError(message)
        requests[request.name] = both
    return tuple(requests.values())


def _parse_one(item: str) -> FaultRequest:
    match = _ITEM.fullmatch(item)
    if match is None or not match["name"]:
        message = f"cannot read the fault {item!r}; write names between commas, for example kill[cut=byte]. {_known()}"
        raise UsageError(message)
    name = match["name"].strip()
    if name not in BUILT:
        raise UsageError(_refusal(name))
    variant = (match["variant"] or "").removeprefix(":").strip()
    known = VARIANTS.get(name, ())
    if match["variant"] and variant not in known:
        choices = f"{name}, or one of :{' :'.join(known)}" if known else name
        spelled = {each.lower(): each for each in known}
        near = difflib.get_close_matches(variant.lower(), spelled, n=1, cutoff=0.5)
        hint = f"did you mean ':{spelled[near[0]]}'? Write" if near else "write"
        message = f"fault {name!r} has no variant {match['variant']!r}; {hint} {choices}"
        raise UsageError(message)
    return FaultRequest(name, _parse_options(name, match["options"]), (variant,) if variant else ())


def _refusal(name: str) -> str:
    if name == "all":
        return f"'all' stands for every fault and must stand alone; else name them: {', '.join(BUILT)}"
    if name in DESIGNED:
        return f"fault {name!r} is not built yet; this version knows {', '.join(BUILT)}"
    near = difflib.get_close_matches(name, [*DESIGNED, "all"], n=1, cutoff=0.5)
    missing = " (which is not built yet)" if near and near[0] in DESIGNED and near[0] not in BUILT else ""
    hint = f"did you mean {near[0]!r}{missing}? " if near else ""
    return f"unknown fault {name!r}; {hint}{_known()}"


def _known() -> str:
    return f"Known: {', '.join(BUILT)}"


def _parse_options(name: str, text: str | None) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in (text or "").split(",") if text else ():
        option, _, value = (part.strip() for part in item.partition("="))
        allowed = OPTIONS.get(name, {}).get(option)
        if allowed is None or value not in allowed:
            choices = "; ".join(f"{each}={'|'.join(values)}" for each, values in OPTIONS.get(name, {}).items())
            message = f"fault {name!r} has no option {item.strip()!r}; it has {choices or 'none'}"
            raise UsageError(message)
        options[option] = value
    return options
