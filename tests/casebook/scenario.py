"""What a scenario of the casebook is: a naive program that the lab must flag, and a correct one that it must not.

A scenario retells what went wrong in public, as a small program with data of its own. One scenario stands for
every case of its kind; ``cases.toml`` says which. Each is proven both ways by ``test_scenarios.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashlab import Policy

    AnySubject = Any


@dataclass(frozen=True)
class Scenario:
    """``naive`` falls to ``faults`` with exactly these ``kinds``; ``correct`` stands all of them.

    ``policy`` says per fault what is demanded, where that is not the usual.
    """

    naive: AnySubject
    correct: AnySubject
    faults: str
    kinds: frozenset[str]
    policy: Mapping[str, Policy] = field(default_factory=dict)

    def is_mended_as(self, other: Scenario) -> bool:
        """Whether the correct form of both is one, and so is what it must stand: then one check is enough."""
        return self.correct is other.correct and (self.faults, self.policy) == (other.faults, other.policy)


def scenario(naive: AnySubject, correct: AnySubject, faults: str, *kinds: str, **policy: Policy) -> Scenario:
    """The same with the kinds one by one, and the policies by the name of their fault."""
    return Scenario(naive, correct, faults, frozenset(kinds), policy)
