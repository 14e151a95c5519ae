"""What a user writes: a subject, and what is demanded of it.

A subject says how to run the code under test and how that code recovers. Four kinds:

* :class:`Store` keeps one value: ``save`` and ``load``.
* :class:`Log` keeps a growing list: ``append`` and ``load``.
* :class:`Subject` is a whole program: ``run`` and ``resume``.
* :class:`Commands` is a whole program in any language: the commands that start and resume it.

All are frozen dataclasses; nothing is subclassed. Any callable may be ``async def``. Callables run
in fresh processes, so they travel by import path where they have one, else by cloudpickle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from crashlab.errors import UsageError

View = Callable[[Any], Any]
_LARGE_TEXT = "".join(f"line {number:04d} of a value that spans several pages\n" for number in range(400))

REBUILT = ("*-shm", "lock.mdb")
"""Of SQLite and of LMDB: who opens first makes them anew. Cited: sqlite.org/wal.html; lmdb.h on its lock file."""

DEFAULT_VALUES: tuple[Any, ...] = ({"n": 1}, {"n": 2, "text": _LARGE_TEXT}, {"n": 3}, {})
"""What a Store saves unless told otherwise: small, large (20 KB, several pages), small, empty."""

DEFAULT_BATCHES: tuple[list[Any], ...] = (
    [{"seq": 0}],
    [{"seq": 1, "text": _LARGE_TEXT}],
    [{"seq": 2}, {"seq": 3, "text": _LARGE_TEXT[:3000]}, {"seq": 4}],
    [{"seq": 5}],
)
"""What a Log appends unless told otherwise: one small event, a large one, three at once, one."""


_CRASH = re.compile(r"kill|power|(.+/)?(kill@\d+(\+\d+)?|power@\d+(-[^/]+)?)")


@dataclass(frozen=True, repr=False)
class Crash:
    """A crash between two values of a ``Store`` or ``Log``; what follows goes on from what it left.

    ``at`` is ``"kill"`` or ``"power"``: of the states that this fault may leave so far, ``pick`` chooses one,
    modulo their number. 0 is the latest; of a power loss the latest that lost something, and the least there.
    Or ``at`` is the id of a state, which is repeated exactly. Raises UsageError for anything else.

    >>> Crash("power"), Crash("power@5-3")
    (Crash('power', 0), Crash('power@5-3'))
    """

    at: str
    pick: int = 0

    def __post_init__(self) -> None:
        if _CRASH.fullmatch(str(self.at)) is None:
            text = f"Crash({self.at!r}): expected 'kill', 'power', or the id of a state such as 'power@5-3'"
            raise UsageError(text)
        if type(self.pick) is not int or self.pick < 0:
            text = f"Crash({self.at!r}, {self.pick!r}): pick is a whole number from 0 on"
            raise UsageError(text)

    def __repr__(self) -> str:
        return f"Crash({self.at!r})" if "@" in self.at else f"Crash({self.at!r}, {self.pick})"


@dataclass(frozen=True, kw_only=True)
class _Common:
    """Fields that every kind of subject has."""

    name: str = ""
    view: View | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0
    rebuilt: Sequence[str] = REBUILT
    outside: Sequence[str] = ()
    stop_after_acks: int | None = None


@dataclass(frozen=True)
class Store(_Common):
    """One value that is saved and loaded whole. ``save`` returning is the ack.

    ``save(handle, value)`` and ``load(handle)`` get what ``open(lab)`` returned, or ``lab.dir``, a
    :class:`pathlib.Path`, without ``open``. What ``load`` gives on an empty directory counts as
    "nothing there". ``values`` default to :data:`DEFAULT_VALUES`; with a :class:`Crash` among them one path is
    followed, through just these crashes.

    >>> import json
    >>> Store(
    ...     save=lambda dir, value: (dir / "value.json").write_text(json.dumps(value)),
    ...     load=lambda dir: json.loads((dir / "value.json").read_text()),
    ... ).kind
    'Store'
    """

    save: Callable[[Any, Any], Any]
    load: Callable[[Any], Any]
    open: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    close: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    values: Sequence[Any | Crash] | None = field(default=None, kw_only=True)

    kind = "Store"


@dataclass(frozen=True)
class Log(_Common):
    """A list that only grows. ``append`` returning is the ack of the whole batch.

    ``append(handle, events)`` and ``load(handle)`` get a handle as for :class:`Store`. ``key`` gives
    an event's idempotency key, or None where it has none; ``atomic`` demands that a batch is stored
    whole or not at all. ``values`` are batches and default to :data:`DEFAULT_BATCHES`; a :class:`Crash` may stand
    among them.
    """

    append: Callable[[Any, list[Any]], Any]
    load: Callable[[Any], list[Any]]
    open: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    close: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    values: Sequence[list[Any] | Crash] | None = field(default=None, kw_only=True)
    key: Callable[[Any], Hashable] | None = field(default=None, kw_only=True)
    atomic: bool = field(default=False, kw_only=True)

    kind = "Log"


@dataclass(frozen=True)
class Subject(_Common):
    """A program with a beginning and an end. ``resume`` defaults to running it again.

    ``run(lab)`` and ``resume(lab)`` return the *end*. Without ``check`` the end after a crash must
    equal the uncrashed end; an end of None means that the files in ``lab.dir`` are the end.
    ``check(lab, end)`` raises, or returns None or True where all is well.
    """

    run: Callable[[Any], Any]
    resume: Callable[[Any], Any] | None = None
    check: Callable[[Any, Any], bool | None] | None = field(default=None, kw_only=True)

    kind = "Subject"


Command = str | Sequence[str]


@dataclass(frozen=True)
class Commands(_Common):
    """A program in any language, described by its commands. ``resume`` defaults to ``start``.

    A string goes to ``sh -c``; a list is executed as it is. ``{dir}``, ``{tmp}`` and ``{home}`` are filled in,
    quoted in a string. The current directory is that of the check. ``resume`` has resumed where it exits
    with 0; another exit with text on standard error is a refusal, silence or a signal is not.

    ``view`` is a command whose output is the end of the program; without it the files in ``{dir}`` are.
    ``check`` is a command that exits with 0 where all is right and with 1 where it is not.

    The program tells the lab what it does by lines in the file ``$CRASHLAB_EVENTS``, each appended in one
    write: ``effect mail key=order-7 to=ada``, ``ack 3``, ``save-point A``, ``unknown mail key=order-7``.
    Recording needs strace, so Linux.

    >>> Commands("node agent.js {dir}", "node agent.js {dir} --resume", view="cat {dir}/answer.json").kind
    'Commands'
    """

    start: Command
    resume: Command | None = None
    check: Command | None = field(default=None, kw_only=True)
    view: Command | None = field(default=None, kw_only=True)  # type: ignore[assignment]  # a command in the place of a callable

    kind = "Commands"


AnySubject = Store | Log | Subject | Commands

PROGRAMS = ("Subject", "Commands")
"""Kinds of subjects with an end."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What one fault demands; None means the default of that fault.

    * ``refuse``: True allows a loud refusal. Of a race it also says that a Store or Log has owners: a save that an
      older owner begins after a newer one has saved must be refused.
    * ``acked``: ``"keep"`` the last acked value, or ``"prefix"``: any earlier saved value will do.
    * ``effects``: ``"once"``, ``"at-least-once"`` or ``"at-most-once"``.
    * ``evidence``: ``"keep"``: a refusal must leave the files as it found them; or ``"any"``.
    """

    refuse: bool | None = None
    acked: Literal["keep", "prefix"] | None = None
    effects: Literal["once", "at-least-once", "at-most-once"] | None = None
    evidence: Literal["keep", "any"] | None = None

    @staticmethod
    def default(fault: str) -> Policy:
        """What ``fault`` demands where nothing else is said: damage may be refused, loudly."""
        return replace(DEFAULT_POLICY, refuse=True) if fault == "damage" else DEFAULT_POLICY

    def over(self, default: Policy) -> Policy:
        """This policy, with the unset fields taken from ``default``."""
        return Policy(
            refuse=default.refuse if self.refuse is None else self.refuse,
            acked=self.acked or default.acked,
            effects=self.effects or default.effects,
            evidence=self.evidence or default.evidence,
        )


DEFAULT_POLICY = Policy(refuse=False, acked="keep", effects="once", evidence="keep")
"""What ``kill`` demands: resume, keep the last ack, effects once, the same end."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much is tried. The first six fields are limits, ``time_s`` is in seconds.

    ``states`` or ``time_s`` reached before the stated bound is whole makes the result unmeasured.
    ``violations``: after so many failing states at one moment of a power loss its others are left out, since
    they would tell no more; where that happens at many moments, fewer are enough at the rest.
    ``real_kills`` is the size of the seeded sample that is also killed for real; ``images`` how many crash
    images of a real disk are looked at, where one was asked for; ``anew`` how many further states are recovered to
    prove a piece of advice. ``errors``: of what is watched from outside, ``"sites"`` has each I/O error at the first op
    of each site in the stated bound (:mod:`crashlab.error_choice`), ``"ops"`` each at each op; what is watched from
    inside Python has it at each op in any case. ``lost``: after so many violations under a fault its other states are
    left out, for who asks only whether it passes; None tries them all. ``every``: of damage, errors and races one in so
    many of those that are alike, chosen by the seed, for who has tried them all with other values.
    """

    states: int = 5_000
    subset: int = 6
    cuts: Literal["edges", "blocks"] = "edges"
    sample: int = 200
    nested: int = 25
    time_s: float = 60.0
    violations: int = 12
    real_kills: int = 8
    images: int = 800
    anew: int = 50
    errors: Literal["sites", "ops"] = "sites"
    lost: int | None = None
    every: int = 1

    @staticmethod
    def of(budget: str | Budget | None) -> Budget:
        """``"quick"``, ``"full"``, ``"brief"`` or a Budget. Raises UsageError for another name."""
        if isinstance(budget, Budget):
            return budget
        if budget is None:
            return QUICK
        if budget in BUDGETS:
            return BUDGETS[budget]
        text = f"unknown budget {budget!r}: pass 'quick', 'full', 'brief' or a Budget"
        raise UsageError(text)


QUICK = Budget()
FULL = Budget(
    states=500_000,
    subset=12,
    cuts="blocks",
    sample=20_000,
    nested=1_000_000,
    time_s=3_600.0,
    violations=500_000,
    real_kills=200,
    images=8_000,
    errors="ops",
)
BRIEF = Budget(states=2_000, subset=2, sample=0, violations=2, real_kills=4, images=100, anew=8)
BUDGETS = {"quick": QUICK, "full": FULL, "brief": BRIEF}
"""By name; ``brief`` is a first look, as the demonstration takes it."""
