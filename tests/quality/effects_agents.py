"""The naive modules of lesson 4: what each must be found by; and the defects of the published agent that they are.

All are judged with the hasty model. Beside kills, the twin is tried with whatever finds them: ``test_planted_effects``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from longrun.effects import (
    correct,
    naive_blank_on_damage,
    naive_error_after_success,
    naive_id_key,
    naive_lazy_mark,
    naive_list_or_map,
    naive_miss_runs,
    naive_no_gate,
    naive_no_ledger,
    naive_no_started,
    naive_object_result,
    naive_record_at_b,
    naive_record_first,
    naive_time_key,
    naive_unsynced_ledger,
)
from longrun.resume import trusting
from tests.quality.naive_agents import Planted

if TYPE_CHECKING:
    from longrun.harness import Harness


@dataclass(frozen=True)
class PlantedEffect(Planted):
    """A naive module as in the other lessons.

    ``words`` must stand in the findings of ``kind``; ``beside`` are kinds that the one fault shows too;
    ``hidden_by_careful`` says that with the careful model nothing is found at all.
    """

    twin: Harness = correct.HARNESS
    words: str = ""
    beside: tuple[str, ...] = ()
    hidden_by_careful: bool = False


TWICE = "done 2 times, expected 1"
UNKNOWN = "page_oncall summary=Checkout is down ticket=T-101 reported unknown where the files tell"

EFFECTS: dict[str, PlantedEffect] = {
    "no ledger": PlantedEffect(naive_no_ledger, "duplicate-effect", ("ledger",), words=TWICE),
    "id key": PlantedEffect(naive_id_key, "duplicate-effect", ("key",), words=TWICE, hidden_by_careful=True),
    "time key": PlantedEffect(naive_time_key, "duplicate-effect", ("key",), words=TWICE, hidden_by_careful=True),
    "no gate": PlantedEffect(naive_no_gate, "duplicate-effect", ("decide",), words=TWICE, hidden_by_careful=True),
    "miss runs": PlantedEffect(naive_miss_runs, "duplicate-effect", ("decide",), words=TWICE),
    "record first": PlantedEffect(
        naive_record_first, "missing-effect", ("act",), words="done 0 times, expected 1", beside=("needless-unknown",)
    ),
    "record at B": PlantedEffect(naive_record_at_b, "needless-unknown", ("act", "close"), words=UNKNOWN),
    "no started": PlantedEffect(naive_no_started, "needless-unknown", ("save_points", "reopen"), words=UNKNOWN),
    "list or map": PlantedEffect(naive_list_or_map, "needless-unknown", ("ledger",), words=UNKNOWN),
    "object result": PlantedEffect(
        naive_object_result,
        "invalid-transcript",
        ("ledger",),
        twin=trusting.HARNESS,
        words="tool_result.content: Input should be a valid list",
    ),
    "lazy mark": PlantedEffect(
        naive_lazy_mark, "duplicate-effect", ("save",), faults="power", blind="kill", words=TWICE
    ),
    "unsynced ledger": PlantedEffect(
        naive_unsynced_ledger,
        "stuck",
        ("ledger",),
        faults="power",
        blind="kill",
        words="whole records, but the checkpoint has counted",
        beside=("needless-unknown",),
    ),
    "blank on damage": PlantedEffect(
        naive_blank_on_damage,
        "accepted-damage",
        ("ledger",),
        faults="damage:empty,damage:nested",
        blind="kill",
        words="resume took it for good: acked were save",
    ),
    "error after success": PlantedEffect(
        naive_error_after_success,
        "duplicate-effect",
        ("act",),
        faults="error:EFBIG",
        blind="kill,power",
        words=TWICE,
        beside=("diverged", "needless-unknown"),
    ),
}
"""By what is wrong. Where nothing else is said, a kill shows it; ``blind`` is tried too, and must find nothing."""


class Defect(NamedTuple):
    """A defect of the published agent: the row of :data:`EFFECTS` that is its naive module, and the test of it."""

    what: str
    row: str
    test: str = "test_the_fault_is_found_by_its_kind_and_family"


DEFECTS: dict[int, Defect] = {
    4: Defect("the ledger is a list here, a map there", "list or map"),
    5: Defect("an act that is not in the ledger is run here, refused there", "miss runs"),
    6: Defect("a damaged ledger is read as an empty one", "blank on damage"),
    14: Defect("a result that is an object goes to the server as it is", "object result"),
    15: Defect("the id of a call is the key of an act", "id key"),
}
"""By the number that the defect has on the page of longrun. Of 5, "refused" is the row "no started"."""
