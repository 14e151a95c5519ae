"""The list of faults as a user writes it."""

from __future__ import annotations

import re

import pytest

from crashlab.errors import UsageError
from crashlab.faults import BUILT, DESIGNED, VARIANTS, FaultRequest, parse_faults

KNOWN = ", ".join(BUILT)
DAMAGES = " ".join(f":{kind}" for kind in VARIANTS["damage"])
KILL, POWER = FaultRequest("kill"), FaultRequest("power")


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        (None, (KILL, POWER)),
        ("kill", (KILL,)),
        (" kill ", (KILL,)),
        ("kill,kill", (KILL,)),
        ("power", (POWER,)),
        ("power,kill", (POWER, KILL)),
        ("kill[]", (KILL,)),
        ("kill[cut=byte]", (FaultRequest("kill", {"cut": "byte"}),)),
        ("kill[ cut = byte ]", (FaultRequest("kill", {"cut": "byte"}),)),
        ("kill[cut=page]", (FaultRequest("kill", {"cut": "page"}),)),
        ("damage", (FaultRequest("damage"),)),
        ("damage:bit", (FaultRequest("damage", variants=("bit",)),)),
        ("damage:bit,kill,damage:zeros,damage:bit", (FaultRequest("damage", variants=("bit", "zeros")), KILL)),
        ("all", tuple(FaultRequest(name) for name in BUILT)),
    ],
)
def test_a_list_of_faults_is_read(text: str | None, requests: tuple[FaultRequest, ...]) -> None:
    """Names, options, blanks, repetitions, and the words for the default and for everything."""
    assert parse_faults(text) == requests


@pytest.mark.parametrize("text", ["kill", "kill[cut=byte]", "damage", "damage:stale-block"])
def test_a_request_reads_as_it_was_written(text: str) -> None:
    """The report shows the request in the form that can be typed again."""
    assert [str(each) for each in parse_faults(text)] == [text]


def test_variants_of_one_fault_read_as_one_request_that_can_be_typed_again() -> None:
    """They stand between commas, as they were written."""
    text = "damage:bit,damage:zeros"
    assert [str(each) for each in parse_faults(text)] == [text]
    assert parse_faults(str(parse_faults(text)[0])) == parse_faults(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("powerloss", f"unknown fault 'powerloss'; did you mean 'power'? Known: {KNOWN}"),
        ("kil", f"unknown fault 'kil'; did you mean 'kill'? Known: {KNOWN}"),
        ("damages", f"unknown fault 'damages'; did you mean 'damage'? Known: {KNOWN}"),
        ("xyzzy", f"unknown fault 'xyzzy'; Known: {KNOWN}"),
        ("kill,server", f"fault 'server' is not built yet; this version knows {KNOWN}"),
        ("servers", f"unknown fault 'servers'; did you mean 'server' (which is not built yet)? Known: {KNOWN}"),
        (
            "damage:bits",
            f"fault 'damage' has no variant ':bits'; did you mean ':bit'? Write damage, or one of {DAMAGES}",
        ),
        ("damage,damage:bit", "fault 'damage' is asked for twice, as damage and as damage:bit; keep one"),
        ("power:ext4", "fault 'power' has no variant ':ext4'; write power"),
        ("kill:now", "fault 'kill' has no variant ':now'; write kill"),
        ("kill[cut=bit]", "fault 'kill' has no option 'cut=bit'; it has cut=page|byte"),
        ("kill[bytes]", "fault 'kill' has no option 'bytes'; it has cut=page|byte"),
        (
            "all,kill",
            f"'all' stands for every fault and must stand alone; else name them: {KNOWN}",
        ),
        ("error[cut=byte]", "fault 'error' has no option 'cut=byte'; it has none"),
        ("recovery[depth=9]", "fault 'recovery' has no option 'depth=9'; it has depth=1|2|3; cut=page|byte"),
        ("kill,kill[cut=byte]", "fault 'kill' is asked for twice, as kill and as kill[cut=byte]; keep one"),
    ],
)
def test_a_mistake_is_answered_with_what_to_write(text: str, message: str) -> None:
    """The whole message, as the user sees it."""
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        parse_faults(text)


@pytest.mark.parametrize("text", ["", ",", "kill,", "kill[cut=byte", "kill]", "[cut=byte]"])
def test_what_is_no_list_is_refused(text: str) -> None:
    """Nothing empty or unbalanced is taken for the default."""
    with pytest.raises(UsageError, match="cannot read the fault"):
        parse_faults(text)


@pytest.mark.parametrize("name", sorted(set(DESIGNED) - set(BUILT)))
def test_a_fault_of_the_design_is_not_called_unknown(name: str) -> None:
    """Asking for what is planned is answered with the truth."""
    with pytest.raises(UsageError, match=f"fault '{name}' is not built yet"):
        parse_faults(name)
