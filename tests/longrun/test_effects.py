"""What a ledger is for: damaged right after a page, it is refused, or a person is asked about a page that has rung."""

from __future__ import annotations

from typing import Any

import pytest

from longrun.effects import correct, naive_blank_on_damage
from longrun.errors import Damaged
from longrun.ledger import LEDGER_NAME

PAGED = "turn5.tool2.ledger"


class Stopped(Exception):  # noqa: N818 - it is a stop, and no error
    """The process ends here."""


def stop(place: str, _value: dict[str, int]) -> None:
    if place == PAGED:
        raise Stopped


@pytest.fixture
def damaged(desk: Any) -> Any:
    """A run that ended right after its page was recorded; since then the ledger has lost all of its bytes."""
    with pytest.raises(Stopped):
        desk.agent(harness=correct.HARNESS, persona="hasty", told=stop).start()
    path = desk.agent_directory / LEDGER_NAME
    assert b"page_oncall" in path.read_bytes()
    path.write_bytes(b"")
    return desk


def test_the_correct_agent_refuses_it(damaged: Any) -> None:
    """And leaves everything as it is."""
    before = damaged.files()
    with pytest.raises(Damaged, match="the checkpoint has counted"):
        damaged.agent(harness=correct.HARNESS, persona="hasty").resume()
    assert {**damaged.files(), "lease.lock": b""} == {**before, "lease.lock": b""}


def test_read_as_a_blank_one_it_forgets_the_page(damaged: Any) -> None:
    """It rang once; the run ends with a question about it."""
    agent = damaged.agent(harness=naive_blank_on_damage.HARNESS, persona="hasty")
    last = agent.resume()
    assert (last.status, [name for name, _ in agent.unknown()]) == ("waiting", ["page_oncall"])
    assert damaged.world.view()["pages"] == ["T-101"]
