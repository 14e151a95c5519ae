"""Every rule of power loss can turn a test red: sabotaged alone, it changes what is possible.

For each rule there is a program, a state that only the true rule allows or forbids, and a twin of the
profile with that one rule broken. The true profile must say what was measured; the twin must not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from crashlab import trace as t
from crashlab.crash import rules, variants
from crashlab.crash.profiles import BTRFS, EXT4, POSIX, XFS, Profile, parse_profile
from tests.crashlab.crash.power_traces import Program, data

Fact = Callable[[Profile], bool]

WRITTEN = Program().create("a").write("a", 9_000)
RENAMED = Program(ck=5_000).create("tmp").write("tmp", 5_000).rename("tmp", "ck")
RENAMED_ACKED = Program(ck=10).create("tmp").fsync("tmp").rename("tmp", "ck").ack()
REWRITTEN = Program(ck=5_000).truncate("ck", 0).write("ck", 5_000)
SYNCED = Program(a=100).write("a", 12_000, 100).write("a", 100, 5_000, "data").ack()
SWEPT = Program(a=9_000).write("a", 100).add(t.Sync).ack()
GAP = Program(a=1_000).write("a", 4_096, 4_096)
SHRUNK = Program(ck=4_000).truncate("ck", 1_000).write("ck", 5_000, 4_096)
OLD = data(5_000, 1)


def j1(profile: Profile) -> bool:
    """The second of two new files is never there alone."""
    program = Program().create("a").create("b")
    loss = program.loss(profile)
    trees = [loss.tree(recipe) for recipe in loss.states()]
    return not any(tree.node("dir/b") and not tree.node("dir/a") for tree in trees) and len(trees) == 3


def j2(profile: Profile) -> bool:
    """A log that grew after a file was made never shows its length without the file."""
    program = Program(log=10).create("a").write("log", 10, 10)
    loss = program.loss(profile)
    trees = [loss.tree(recipe) for recipe in loss.states()]
    return not any(tree.node("dir/log").content.size == 20 and not tree.node("dir/a") for tree in trees)


def j3(profile: Profile) -> bool:
    """A write of 9,000 bytes may show 4,096 or 8,192 of them."""
    return {0, 4_096, 8_192, 9_000} == {len(c) for c in WRITTEN.contents(profile, "a") if c is not None}


def j4_fsync(profile: Profile) -> bool:
    """Fsync of a renamed file makes its name durable, and a file made earlier; not one made later."""
    program = Program(a=10).create("x").rename("a", "b").create("late").fsync("b").ack()
    found = [program.contents(profile, name, done=5) for name in ("x", "b", "late")]
    return [None in contents for contents in found] == [False, False, True]


def j4_growth(profile: Profile) -> bool:
    """Fsync of a file that grew makes durable what was done before its last growth."""
    program = Program(log=10).create("x").write("log", 10, 10).fsync("log").ack()
    return program.contents(profile, "x", done=4) == {b""}


def j4_fdatasync(profile: Profile) -> bool:
    """Fdatasync does not make a rename durable, but keeps a new file with its bytes."""
    program = Program(a=10).create("n").write("n", 10).rename("a", "b").fsync("b", data_only=True)
    program.fsync("n", data_only=True).ack()
    return None in program.contents(profile, "b", done=6) and program.contents(profile, "n", done=6) == {data(10, 2)}


def j5(profile: Profile) -> bool:
    """Fsync of the directory makes a rename in it durable."""
    program = Program(a=10).rename("a", "b").fsync().ack()
    return program.contents(profile, "b", done=3) == {data(10, 1)}


def j9(profile: Profile) -> bool:
    """Fdatasync of the directory keeps a new name, a rename and a removal, though the file itself has moved."""
    program = Program(a=10, x=10).create("n").rename("a", "b").unlink("x").fsync(data_only=True).ack()
    found = [program.contents(profile, name, done=5) for name in ("n", "b", "x")]
    return found == [{b""}, {data(10, 1)}, {None}]


def posix_directory(profile: Profile) -> bool:
    """Fdatasync of a directory promises no name in it; fsync does."""
    names = [Program().create("n").fsync(data_only=only).ack().contents(profile, "n", done=3) for only in (True, False)]
    return [None in contents for contents in names] == [True, False]


def j6(profile: Profile) -> bool:
    """A rename that has returned may be lost."""
    return data(10, 1) in RENAMED_ACKED.contents(profile, "ck", done=4)


def j7(profile: Profile) -> bool:
    """A write of 100 bytes through O_DSYNC: its page is there, and a size up to it; other pages may not be."""
    found = {c for c in SYNCED.contents(profile, "a", done=3) if c is not None}
    page = SYNCED.tree.node("dir/a").content.blocks[1]
    whole = {c[4_096:8_192] for c in found} == {page}
    return whole and {len(c) for c in found} == {8_192, 12_100} and any(c[100:4_096] == bytes(3_996) for c in found)


def j7_growth(profile: Profile) -> bool:
    """Of the chain it forces what came before a growth that it keeps, in part even; not before a later one."""
    program = Program(a=100).create("x").write("a", 5_000, 100).create("y").write("a", 9_000, 5_100)
    program.write("a", 100, 1_000, "data").ack()
    return [None in program.contents(profile, name, done=6) for name in ("x", "y")] == [False, True]


def b7(profile: Profile) -> bool:
    """On btrfs it is as an fsync of the file."""
    return SYNCED.contents(profile, "a", done=3) == {SYNCED.tree.node("dir/a").content.read()}


def j8(profile: Profile) -> bool:
    """Behind sync there is one content."""
    return SWEPT.contents(profile, "a", done=3) == {SWEPT.tree.node("dir/a").content.read()}


def f5(profile: Profile) -> bool:
    """Behind sync what was overwritten may be old, block by block; what made the file grow is there."""
    program = Program(a=9_000).write("a", 5_000).write("a", 12_000, 6_000).add(t.Sync).ack()
    whole = program.tree.node("dir/a").content.read()
    found = [content or b"" for content in program.contents(profile, "a", done=4)]
    old = {tuple(c[at : at + 4_096] == whole[at : at + 4_096] for at in (0, 4_096, 8_192)) for c in found}
    return len(old) == 8 and all(content[12_288:] == whole[12_288:] for content in found)


def f5_size(profile: Profile) -> bool:
    """The size that sync forces comes with its last block, and keeps that when the file grows on."""
    program = Program(a=5_000).write("a", 100, 5_000).add(t.Sync).write("a", 9_000, 5_100)
    whole = program.tree.node("dir/a").content.read()
    return all(
        content and content[4_096:5_100] == whole[4_096:5_100] for content in program.contents(profile, "a", done=3)
    )


def f5_flushed(profile: Profile) -> bool:
    """Fsync of any file, or sync once more after a name was made, ends that; sync alone or fsync of a directory not."""
    ends = {"nothing": SWEPT, "sync": Program(a=9_000).write("a", 100).add(t.Sync).add(t.Sync).ack()}
    ends["directory"] = Program(a=9_000).write("a", 100).add(t.Sync).fsync().ack()
    ends["file"] = Program(a=9_000, b=10).write("a", 100).add(t.Sync).fsync("b").ack()
    ends["name"] = Program(a=9_000).write("a", 100).add(t.Sync).create("n").add(t.Sync).ack()
    found = {name: len(program.contents(profile, "a", done=len(program.ops))) for name, program in ends.items()}
    return found == {"nothing": 2, "sync": 2, "directory": 2, "file": 1, "name": 1}


def x1(profile: Profile) -> bool:
    """Full size with zeros."""
    return bytes(5_000) in RENAMED.contents(profile, "ck")


def x1_lock(profile: Profile) -> bool:
    """Under dioread_lock no zeros in new blocks."""
    return bytes(5_000) not in RENAMED.contents(profile, "ck")


def x2(profile: Profile) -> bool:
    """Never size 0 after a rename over another file."""
    return b"" not in RENAMED.contents(profile, "ck")


def x3(profile: Profile) -> bool:
    """Size 0 after truncating and writing again, closed or not."""
    return b"" in REWRITTEN.contents(profile, "ck")


def x4(profile: Profile) -> bool:
    """Bytes beyond a truncation that shows are zero."""
    found = [content for content in SHRUNK.contents(profile, "ck") if content and len(content) > 4_096]
    return all(content[1_000:4_096] == bytes(3_096) for content in found)


def f1(profile: Profile) -> bool:
    """The last block of a size is there, blocks in front may be missing."""
    found = WRITTEN.contents(profile, "a")
    return bytes(9_000) not in found and bytes(8_192) + data(9_000, 2)[8_192:] in found


def f2(profile: Profile) -> bool:
    """Size 0 after a rename."""
    return b"" in RENAMED.contents(profile, "ck")


def f3(profile: Profile) -> bool:
    """Old bytes beyond a truncation after growing again."""
    return any(c[1_000:4_000] == data(4_000, 1)[1_000:] for c in SHRUNK.contents(profile, "ck") if c and c[4_096:])


def f4(profile: Profile) -> bool:
    """A write behind the old last block may show the end of that block as the size, with its bytes and zeros."""
    sizes = {len(content) for content in GAP.contents(profile, "a")}
    filled = data(1_000, 1) + bytes(3_096) in GAP.contents(profile, "a")
    aligned = {len(c) for c in Program(a=4_096).write("a", 4_096, 8_192).contents(profile, "a")}
    return filled and (sizes, aligned) == ({1_000, 4_096, 8_192}, {4_096, 12_288})


def b1(profile: Profile) -> bool:
    """An fsync of the directory ends the past of its entries; without it old names come back."""
    program = Program(a=10).rename("a", "b").rename("b", "c")
    synced = Program(a=10).rename("a", "b").rename("b", "c").fsync().ack()
    return data(10, 1) in program.contents(profile, "b") and synced.contents(profile, "b", done=4) == {None}


def b2(profile: Profile) -> bool:
    """On btrfs fsync of a new file keeps its name, and takes the one that it left."""
    program = Program(a=10).create("x").rename("a", "b").fsync("b").fsync("x").ack()
    return None not in program.contents(profile, "x", done=5) and program.contents(profile, "a", done=5) == {None}


def b3(profile: Profile) -> bool:
    """A name replaced by a file that was not synced may vanish; one replaced by a synced file may not."""
    synced = Program(ck=10).create("tmp").fsync("tmp").rename("tmp", "ck")
    return None in RENAMED.contents(profile, "ck") and None not in synced.contents(profile, "ck")


def linked(name: str, **files: int) -> Program:
    """A durable link, a directory, and whatever files."""
    program = Program(**files)
    return program.new(t.MakeDirectory, "s").new(t.MakeSymlink, name, target="a").add(t.Sync)


def swapped(profile: Profile, program: Program, name: str = "ck", tmp: str = "tmp") -> bool:
    """Whether a name may vanish that a new link takes over by a rename."""
    program.new(t.MakeSymlink, tmp, target="b").rename(tmp, name)
    loss = program.loss(profile)
    trees = [loss.tree(recipe) for recipe in loss.states() if recipe.done == len(program.ops)]
    return any(tree.lookup(f"dir/{name}") is None for tree in trees)


def swap_vanishes(profile: Profile) -> bool:
    """The name of a link that is swapped within its directory may vanish."""
    return swapped(profile, linked("ck"))


def b3_link(profile: Profile) -> bool:
    """It may not; but it may where one of the two comes from elsewhere, is a file, or left its name to a file."""
    stays = [linked("ck"), linked("x").rename("x", "ck")]
    stays.append(linked("x").rename("x", "ck").new(t.MakeSymlink, "x", target="c"))
    goes = [Program(ck=10), linked("s/x").rename("s/x", "ck"), linked("x").rename("x", "ck").create("x")]
    goes.append(linked("x").link("x", "s/x").rename("x", "ck"))
    found = [swapped(profile, program.fsync()) for program in (*stays, *goes)]
    return found == [False] * 3 + [True] * 4 and swapped(profile, linked("ck"), tmp="s/tmp")


def b4(profile: Profile) -> bool:
    """A durable file that is renamed has one of its names, or both."""
    loss = Program(a=10).rename("a", "b").loss(profile)
    names = [tuple(path for path, _, _ in loss.tree(recipe).walk("dir")) for recipe in loss.states()]
    return sorted(names) == [("dir/a",), ("dir/a", "dir/b"), ("dir/b",)]


def b5(profile: Profile) -> bool:
    """Size and blocks are on their own: the old size with zeros, and old content cut to the new size."""
    found = REWRITTEN.contents(profile, "ck")
    shorter = Program(ck=5_000).truncate("ck", 0).write("ck", 3_000).contents(profile, "ck")
    return bytes(5_000) in found and data(5_000, 1)[:3_000] in shorter


def b6(profile: Profile) -> bool:
    """Fdatasync keeps the name of a new file, but not of one that was renamed."""
    program = Program(a=10).create("n").fsync("n", data_only=True).rename("a", "b").fsync("b", data_only=True).ack()
    return None not in program.contents(profile, "n", done=5) and None in program.contents(profile, "b", done=5)


def posix_names(profile: Profile) -> bool:
    """Fsync of a file promises no name."""
    return None in Program().create("n").fsync("n").ack().contents(profile, "n", done=3)


def tears(profile: Profile) -> bool:
    """An overwrite of an allocated block may stop between two sectors."""
    return len(Program(ck=4_096).write("ck", 4_096).contents(profile, "ck")) == 9


LOCKED, TORN = parse_profile("ext4[dioread_lock]"), parse_profile("xfs[sector_bytes=512]")
NOAUTO = parse_profile("ext4[noauto_da_alloc]")

RULES: dict[str, tuple[Fact, Profile, Profile]] = {
    "J1": (j1, EXT4, replace(EXT4, prefixes=lambda _floor, issued: range(issued, issued + 1))),
    "J1 xfs": (j1, XFS, replace(XFS, prefixes=range)),
    "J1 entries": (j1, EXT4, BTRFS),
    "J2": (j2, EXT4, replace(EXT4, growth_shows=lambda _before, _cut: True)),
    "J2 xfs": (j2, XFS, replace(XFS, growth_shows=lambda _before, _cut: True)),
    "J3": (j3, EXT4, replace(EXT4, sizes=lambda _old, end: [end])),
    "J3 btrfs": (j3, BTRFS, replace(BTRFS, sizes=lambda _old, end: [end])),
    "J4 fsync": (j4_fsync, EXT4, replace(EXT4, fsync=lambda seen, inode: seen.grown.get(inode, 0))),
    "J4 everything": (j4_fsync, XFS, replace(XFS, fsync=lambda seen, _inode: max(seen.touched.values()))),
    "J4 growth": (j4_growth, XFS, replace(XFS, fsync=lambda seen, inode: seen.touched.get(inode, 0))),
    "J4 fdatasync": (j4_fdatasync, EXT4, replace(EXT4, fdatasync=rules.j4_fsync)),
    "J4 fdatasync nothing": (j4_fdatasync, EXT4, replace(EXT4, fdatasync=lambda _seen, _inode: 0)),
    "J5": (j5, EXT4, replace(EXT4, fsync_directory=rules.j4_fsync)),
    **{
        f"J9 {each}": (j9, each, replace(each, directory_forced=rules.posix_data_only))
        for each in (EXT4, XFS, BTRFS, parse_profile("ext4[data=journal]"))
    },
    "J9 posix": (posix_directory, POSIX, replace(POSIX, directory_forced=rules.j9_as_fsync)),
    "J6": (j6, EXT4, replace(EXT4, rename_forces=lambda position: position)),
    "J6 xfs": (j6, XFS, replace(XFS, rename_forces=lambda position: position)),
    "J7": (j7, EXT4, replace(EXT4, synced_write=rules.b7_whole_file)),
    "J7 xfs": (j7, XFS, replace(XFS, synced_write=rules.b7_whole_file)),
    "J7 posix": (j7, POSIX, replace(POSIX, synced_write=rules.b7_whole_file)),
    "J7 growth": (j7_growth, EXT4, replace(EXT4, synced_write=rules.b7_whole_file)),
    "J7 no size": (j7, EXT4, replace(EXT4, synced_write=lambda blocks, _size: (blocks, 0))),
    "J7 no pages": (j7, EXT4, replace(EXT4, synced_write=lambda _blocks, size: (range(0), min(size, 8_192)))),
    "J8": (j8, EXT4, replace(EXT4, sync_forces=rules.f5_new_only)),
    "J8 btrfs": (j8, BTRFS, replace(BTRFS, sync_forces=rules.f5_new_only)),
    "F5": (f5, XFS, replace(XFS, sync_forces=rules.j8_all)),
    "F5 nothing": (f5, XFS, replace(XFS, sync_forces=lambda *_: False)),
    "F5 posix": (f5, POSIX, replace(POSIX, sync_forces=rules.j8_all)),
    "F5 flushed": (f5_flushed, XFS, replace(XFS, sync_forces=rules.j8_all)),
    "B7": (b7, BTRFS, replace(BTRFS, synced_write=rules.j7_pages)),
    "X1": (x1, EXT4, replace(EXT4, shown=rules.f1_last_block)),
    "X1 dioread_lock": (x1_lock, LOCKED, replace(LOCKED, shown=rules.x1_shown)),
    "X2": (x2, EXT4, replace(EXT4, drops_size_zero=rules.f2_drops_nothing)),
    "X2 noauto_da_alloc": (f2, NOAUTO, replace(NOAUTO, drops_size_zero=rules.x2_drops_size_zero)),
    "X3": (x3, EXT4, replace(EXT4, drops_size_zero=lambda _kind: True)),
    "X4": (x4, EXT4, replace(EXT4, cut=rules.f3_cut)),
    "F1": (f1, XFS, replace(XFS, shown=rules.x1_shown)),
    "F1 all blocks": (f1, XFS, replace(XFS, shown=rules.x1_shown_with_lock)),
    "F2": (f2, XFS, replace(XFS, drops_size_zero=rules.x2_drops_size_zero)),
    "F3": (f3, XFS, replace(XFS, cut=rules.x4_cut)),
    "F4": (f4, XFS, replace(XFS, filled=rules.fills_nothing)),
    "F4 always": (f4, XFS, replace(XFS, filled=lambda old, _first: old // 4_096)),
    "B1": (b1, BTRFS, replace(BTRFS, first_version=lambda _covered: 0, names_forced=rules.posix_names_forced)),
    "B1 posix": (b1, POSIX, replace(POSIX, first_version=lambda _covered: 0)),
    "B2": (b2, BTRFS, replace(BTRFS, names_forced=rules.posix_names_forced)),
    "B3": (b3, BTRFS, replace(BTRFS, may_vanish=lambda **_: False)),
    "B3 always": (b3, BTRFS, replace(BTRFS, may_vanish=lambda **_: True)),
    "B3 link": (b3_link, BTRFS, replace(BTRFS, may_vanish=rules.posix_may_vanish)),
    "B3 link posix": (swap_vanishes, POSIX, replace(POSIX, may_vanish=rules.b3_may_vanish)),
    "B3 posix": (b3, POSIX, replace(POSIX, may_vanish=lambda **_: False)),
    "B4": (b4, BTRFS, replace(BTRFS, is_kept=lambda _required, _named: True)),
    "B5 zeros": (b5, BTRFS, replace(BTRFS, freed=lambda _absent, versions: versions)),
    "B5 old": (b5, BTRFS, replace(BTRFS, freed=lambda absent, _versions: [absent])),
    "B6": (b6, BTRFS, replace(BTRFS, names_forced=lambda **_: True)),
    "B6 never": (b6, BTRFS, replace(BTRFS, names_forced=lambda *, data_only, **_: not data_only)),
    "posix": (posix_names, POSIX, BTRFS),
    "sectors": (tears, TORN, XFS),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_holds_and_its_sabotage_is_seen(rule: str) -> None:
    """What was measured is so under the profile, and is not under its twin with the one rule broken."""
    fact, true, sabotaged = RULES[rule]
    assert (fact(true), fact(sabotaged)) == (True, False)


def test_the_last_block_of_a_size_that_sync_forced_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Part of F5, and of the twin without it too."""
    assert f5_size(XFS)
    monkeypatch.setattr(variants, "_sweep", lambda *_: None)
    assert not f5_size(XFS)


@pytest.mark.parametrize("profile", ["ext4", "ext4[data=journal]", "xfs", "btrfs", "posix"])
@pytest.mark.parametrize("sync", ["data", "all"])
def test_a_log_of_synchronous_appends_is_durable_after_each(profile: str, sync: str) -> None:
    """J7 takes nothing from a log whose every write is synchronous, pages shared or begun anew: no false alarm."""
    program = Program(log=100)
    for size in (50, 4_096, 10_000, 3, 8_192, 1):
        program.write("log", size, program.tree.node("dir/log").content.size, sync).ack()
        assert program.contents(profile, "log", done=len(program.ops)) == {program.tree.node("dir/log").content.read()}


@pytest.mark.parametrize("profile", ["ext4", "xfs", "posix"])
def test_synchronous_writes_add_up(profile: str) -> None:
    """Two that cover all pages of an earlier write leave nothing of it open; a truncation before is forced."""
    program = Program(a=10_000).truncate("a", 0).write("a", 8_192)
    program.write("a", 10, 0, "data").write("a", 10, 4_096, "data").ack()
    assert program.contents(profile, "a", done=5) == {program.tree.node("dir/a").content.read()}


def test_data_journal_is_one_chain() -> None:
    """With data=journal a later overwrite never shows without an earlier one; in ordered mode it may."""
    program = Program(a=10, b=10).write("a", 10).write("b", 10)
    whole, ordered = program.loss("ext4[data=journal]"), program.loss("ext4")
    mixes = [
        any(
            (loss.tree(r).node("dir/b").content.read(), loss.tree(r).node("dir/a").content.read())
            == (data(10, 3), data(10, 1))
            for r in loss.states()
        )
        for loss in (whole, ordered)
    ]
    assert mixes == [False, True]


def test_data_journal_forces_the_chain_up_to_the_file() -> None:
    """Fsync of one file makes durable all that was done before its last change, bytes of others included."""
    program = Program(a=10, b=10).write("a", 10).write("b", 10).write("a", 5).fsync("b").ack()
    assert program.contents("ext4[data=journal]", "a", done=5) == {data(10, 2), data(5, 4) + data(10, 2)[5:]}
    assert program.add(t.Sync).contents("ext4[data=journal]", "a", done=6) == {data(5, 4) + data(10, 2)[5:]}


@pytest.mark.parametrize("profile", ["btrfs", "posix"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_name_made_durable_by_its_directory_is_kept(profile: str, nested: bool) -> None:
    """B4 holds for what fsync of a directory named once, also where the directory's own name came later."""
    program, prefix = Program(), "d/" if nested else ""
    if nested:
        program.new(t.MakeDirectory, "d")
    program.create(f"{prefix}a")
    if nested:
        program.fsync("d")
    program.fsync().rename(f"{prefix}a", f"{prefix}b").ack()
    loss = program.loss(profile)
    last = [loss.tree(recipe) for recipe in loss.states() if recipe.done == len(program.ops)]
    assert len(last) == 3
    assert all(tree.node(f"dir/{prefix}a") or tree.node(f"dir/{prefix}b") for tree in last)
