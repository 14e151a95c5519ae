"""Names of profiles and their options, and what a misspelt one is answered with."""

from __future__ import annotations

import re

import pytest

from crashlab.crash import rules
from crashlab.crash.profiles import OPTIONS, PROFILES, parse_profile, parse_profiles
from crashlab.errors import UsageError


def test_the_default_is_the_three_file_systems() -> None:
    """Without a wish: ext4, xfs and btrfs, each once."""
    assert [str(each) for each in parse_profiles(None)] == ["ext4", "xfs", "btrfs"]
    assert [str(each) for each in parse_profiles("xfs, xfs")] == ["xfs"]


@pytest.mark.parametrize("name", [f"{name}[{option}]" for name, have in OPTIONS.items() for option in have])
def test_every_option_is_read_and_written_alike(name: str) -> None:
    """The text of a profile is the text that gave it, and it differs from the profile without the option."""
    profile = parse_profile(name)
    assert str(profile) == name
    assert profile != parse_profile(name.partition("[")[0])


def test_several_options_have_one_order() -> None:
    """However they are written, equal profiles have equal texts."""
    assert str(parse_profile("ext4[ dioread_lock, noauto_da_alloc ]")) == "ext4[noauto_da_alloc,dioread_lock]"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("ext5", "unknown profile 'ext5'; did you mean 'ext4'? Known: ext4, xfs, btrfs, posix"),
        ("zfs", "did you mean 'xfs'?"),
        ("whatever", "unknown profile 'whatever'; Known:"),
        ("ext4[noauto_alloc]", "profile 'ext4' has no option 'noauto_alloc'; did you mean 'noauto_da_alloc'?"),
        ("btrfs[sector_bytes=512]", "it has none"),
        ("xfs[sector_bytes=4096]", "has no option 'sector_bytes=4096'"),
        ("ext4[", "cannot read the profile"),
        ("", "cannot read the profile"),
    ],
)
def test_what_is_not_known_is_refused_with_the_nearest(text: str, answer: str) -> None:
    """An error says what was asked for, the nearest name, and all that there are."""
    with pytest.raises(UsageError, match=re.escape(answer)):
        parse_profiles(text)


def test_every_rule_names_its_source() -> None:
    """Each rule's docstring says that it was measured, is cited, or is assumed."""
    named = {name: getattr(rules, name) for name in vars(rules) if re.match(r"[jxfb]\d_|posix_|torn", name)}
    assert len(named) > 15
    assert not [name for name, rule in named.items() if not re.search(r"(?i)measured|cited|assumed", rule.__doc__)]


def test_every_profile_is_known_by_its_name() -> None:
    """The table of profiles holds what it says."""
    assert all(str(profile) == name for name, profile in PROFILES.items())
