"""Advice after a power loss: which barriers mend the classic ways to save, and that these really do.

The judges here are as small as can be: what a reader makes of one file, and what was acked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab import barrier_search
from crashlab import trace as t
from crashlab.advice import WHOLE_SEARCH, advise, redundant
from crashlab.barrier_search import Limits
from crashlab.barriers import Advice, Barrier, candidates, with_barriers
from crashlab.crash.power import PowerLoss, Recipe
from crashlab.crash.profiles import parse_profile, parse_profiles
from crashlab.tree import File, Tree
from tests.crashlab.crash.power_traces import PROGRAMS, Program, data

EVERY = ("ext4", "xfs", "btrfs", "posix")
RECORD = 100
Fails = Callable[[Tree, int], bool]
"""Whether recovery from a tree breaks a promise, given how many acks there were."""


@dataclass(frozen=True)
class Pattern:
    """A way to save, and what its reader demands."""

    program: Program
    fails: Fails


def content(tree: Tree, name: str) -> bytes | None:
    node = tree.node(f"dir/{name}")
    return node.content.read() if isinstance(node, File) else None


def old_or_new(size: int = 5_000) -> Fails:
    def fails(tree: Tree, acks: int) -> bool:
        found = content(tree, "ck")
        return found != data(size, 2) and (acks > 0 or found != data(size, 1))

    return fails


def marked(tree: Tree, acks: int) -> bool:
    if content(tree, "marker") is None:
        return acks > 0
    return content(tree, "data") != data(5_000, 2)


def valid_records(found: bytes) -> int:
    """How many records are whole, from the first on."""
    whole = (found[i * RECORD : (i + 1) * RECORD] == data(RECORD, i + 1) for i in range(len(found) // RECORD))
    return sum(1 for _ in itertools.takewhile(bool, whole))


def bad_tail_ignored(tree: Tree, acks: int) -> bool:
    return valid_records(content(tree, "log") or b"") < acks + 1


def zeros_rejected(tree: Tree, acks: int) -> bool:
    found = content(tree, "log") or b""
    return bad_tail_ignored(tree, acks) or b"\0" in found[valid_records(found) * RECORD :]


def appended(turns: int = 3) -> Program:
    program = Program(log=RECORD)
    for turn in range(1, turns + 1):
        program.write("log", RECORD, turn * RECORD).ack()
    return program


REPLACED = Pattern(Program(ck=5_000).create("tmp").write("tmp", 5_000).rename("tmp", "ck").ack(), old_or_new())
MARKED = Pattern(Program().create("data").write("data", 5_000).create("marker").write("marker", 10).ack(), marked)
LOG = Pattern(appended(), bad_tail_ignored)
STRICT_LOG = Pattern(appended(), zeros_rejected)
IN_PLACE = Pattern(Program(ck=5_000).truncate("ck", 0).write("ck", 5_000).ack(), old_or_new())


def failing(
    trace: t.Trace, profile: str, fails: Fails, *, states: int | None = None, **options: Any
) -> dict[int, bool]:
    """The states of a trace, the first ``states`` or all, with their verdicts: found by looking at their trees."""
    loss = PowerLoss(trace, parse_profile(profile), **options)
    acks = [sum(1 for _ in trace.before(done, t.Ack)) for done in range(len(trace.ops) + 1)]
    return {
        recipe.digest: fails(loss.tree(recipe), acks[recipe.done]) for recipe in itertools.islice(loss.states(), states)
    }


def advice_for(pattern: Pattern, profiles: str, **options: Any) -> Advice:
    verdicts: dict[int, bool] = {}
    for profile in parse_profiles(profiles):
        verdicts |= failing(pattern.program.trace, str(profile), pattern.fails)
    return advise(pattern.program.trace, parse_profiles(profiles), verdicts.get, limits=Limits(**options))


def is_mended(pattern: Pattern, profiles: str, barriers: tuple[Barrier, ...], **options: Any) -> bool:
    """Whether no state fails once the barriers are there: enumerated and judged anew, by tree."""
    longer = with_barriers(pattern.program.trace, barriers)
    return not any(any(failing(longer, name, pattern.fails, **options).values()) for name in profiles.split(","))


def told(advice: Advice) -> set[tuple[tuple[str, tuple[int, ...]], ...]]:
    """The sets, as ``(what, after)`` per barrier; ``.`` is the directory."""
    return {
        tuple(("." if barrier.directory else barrier.path.removeprefix("dir/"), barrier.after) for barrier in barriers)
        for barriers in advice.sets
    }


FILE_AND_NAME = {(("tmp", (2,)), (".", (3,)))}
EACH_APPEND = {(("log", (1, 3, 5)),)}
BEFORE_AND_AFTER = {(("data", (2,)), (".", (3,))), (("data", (2,)), ("marker", (4,)))}
TABLE: list[tuple[Pattern, str, set[Any]]] = [
    *((REPLACED, profile, FILE_AND_NAME) for profile in EVERY),
    *((MARKED, profile, BEFORE_AND_AFTER) for profile in EVERY[:3]),
    (MARKED, "posix", {((".", (1,)), ("data", (2,)), (".", (3,)))}),
    *((LOG, profile, EACH_APPEND) for profile in EVERY),
    (STRICT_LOG, "xfs", EACH_APPEND),
    *((STRICT_LOG, profile, set()) for profile in ("ext4", "btrfs", "posix")),
    *((IN_PLACE, profile, set()) for profile in EVERY),
]


@pytest.mark.parametrize(("pattern", "profile", "expected"), TABLE)
def test_the_table_of_the_fault_model(pattern: Pattern, profile: str, expected: set[Any]) -> None:
    """Each pattern needs the barriers that real disks needed; looked at anew, they leave no failing state."""
    advice = advice_for(pattern, profile)
    assert advice.failing > 0
    assert (told(advice), advice.mended) == (expected, bool(expected))
    assert all(is_mended(pattern, profile, barriers) for barriers in advice.sets)
    assert advice.tried <= 40
    assert advice.complete
    assert not advice.sampled


def test_several_profiles_need_what_the_weakest_needs() -> None:
    """One set has to do for all; that of posix does."""
    assert told(advice_for(MARKED, "ext4,xfs,btrfs,posix")) == told(advice_for(MARKED, "posix"))


def test_a_barrier_in_the_wrong_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that puts its barriers one op late advises one op early; enumerating anew shows that this is no help."""

    def late(trace: t.Trace, barriers: Any) -> t.Trace:
        return with_barriers(trace, [replace(each, after=tuple(n + 1 for n in each.after)) for each in barriers])

    good = advice_for(REPLACED, "ext4").sets[0]
    monkeypatch.setattr(barrier_search, "with_barriers", late)
    (wrong,) = advice_for(REPLACED, "ext4").sets
    assert wrong != good
    assert is_mended(REPLACED, "ext4", good)
    assert not is_mended(REPLACED, "ext4", wrong)


def test_what_is_told() -> None:
    """The words of a finding: two barriers in one sentence, and how many states they mend."""
    advice = advice_for(REPLACED, "ext4,xfs,btrfs")
    assert advice.lines() == (
        "fsync tmp between ops 2 and 3, and its directory between ops 3 and 4.",
        f"With both, all {advice.failing} failing states are consistent.",
    )
    assert advice_for(MARKED, "ext4").lines()[0] == "fsync data between ops 2 and 3, and marker between ops 4 and 5."
    assert advice_for(MARKED, "ext4").lines()[2] == (
        "Or fsync data between ops 2 and 3, and its directory between ops 3 and 4."
    )
    assert advice_for(LOG, "xfs").lines()[0] == "fsync log between ops 1 and 2 (and at 2 later places)."


def test_where_no_barrier_helps_the_protocol_is_named() -> None:
    """In place: write a new file and rename. A log: a checksum, and a reader that ignores a bad tail."""
    in_place, log = advice_for(IN_PLACE, "ext4"), advice_for(STRICT_LOG, "ext4")
    assert in_place.lines()[0].startswith(
        f"No barrier mends it: with an fsync after every change, {in_place.remaining} of"
    )
    assert 0 < in_place.remaining <= in_place.failing
    assert "rename it over ck, fsync the directory" in in_place.pattern
    assert "Give each record of log its length and a checksum" in log.pattern


def test_nothing_fails_and_nothing_is_advised() -> None:
    """The safe way to save: no state fails, no barrier is told."""
    safe = Program(ck=5_000).create("tmp").write("tmp", 5_000).fsync("tmp").rename("tmp", "ck").fsync().ack()
    advice = advice_for(Pattern(safe, old_or_new()), "ext4,posix")
    assert (advice.failing, advice.sets, advice.mended, advice.lines()) == (0, (), True, ())


def test_a_file_in_pieces_is_synced_once_after_the_last() -> None:
    """Three writes before the rename need one fsync, after the last of them."""
    program = Program(ck=5_000).create("tmp").write("tmp", 1_000)
    program.write("tmp", 1_000, 1_000).write("tmp", 1_000, 2_000).rename("tmp", "ck").ack()
    new = b"".join(data(1_000, seed) for seed in (2, 3, 4))

    def fails(tree: Tree, acks: int) -> bool:
        found = content(tree, "ck")
        return found != new and (acks > 0 or found != data(5_000, 1))

    assert told(advice_for(Pattern(program, fails), "ext4,xfs")) == {(("tmp", (4,)), (".", (5,)))}


def test_two_records_of_one_log_may_need_a_barrier_between_them() -> None:
    """A commit record right after its data: only an fsync between the two keeps the order."""
    program = Program(log=RECORD).write("log", 8192, 4096).write("log", RECORD, 12_288)

    def fails(tree: Tree, _acks: int) -> bool:
        found = content(tree, "log") or b""
        return data(RECORD, 3) == found[12_288:] and data(8192, 2) != found[4096:12_288]

    assert told(advice_for(Pattern(program, fails), "ext4")) == {(("log", (1,)),)}


def test_only_the_step_that_needs_it_is_told() -> None:
    """Intent and done go to one log; what is lost is the intent before the effect, so that alone needs an fsync."""
    program = Program(log=RECORD)
    for turn in range(3):
        program.write("log", RECORD, (2 * turn + 1) * RECORD)
        program.add(t.Effect, name="mail")
        program.ack()
        program.write("log", RECORD, (2 * turn + 2) * RECORD)
        program.add(t.SavePoint, name="done")

    def fails(tree: Tree, acks: int) -> bool:
        return acks > 0 and valid_records(content(tree, "log") or b"") < 2 * acks

    assert told(advice_for(Pattern(program, fails), "ext4")) == {(("log", (1, 6, 11)),)}


def several(names: str, needed: str) -> Pattern:
    """Durable files overwritten one after another; the reader wants some of them as they were acked."""
    program = Program(**dict.fromkeys(names, 100))
    for name in names:
        program.write(name, 100)
    wanted = {name: data(100, names.index(name) + 2) for name in needed}
    return Pattern(
        program.ack(), lambda tree, acks: acks > 0 and any(content(tree, each) != wanted[each] for each in wanted)
    )


def test_more_than_three_barriers_are_found_by_taking_away() -> None:
    """Five files, four of which matter: four barriers, told as one set."""
    advice = advice_for(several("abcde", "abde"), "ext4")
    assert told(advice) == {tuple((name, (n,)) for n, name in ((1, "a"), (2, "b"), (4, "d"), (5, "e")))}
    assert advice.lines()[1] == f"With all 4, all {advice.failing} failing states are consistent."


def test_of_many_candidates_those_are_taken_that_failing_states_show_otherwise() -> None:
    """Thirteen files changed and made durable have candidates too; the two that failing states lose are tried first."""
    others = "cdefghijklmno"
    program = Program(**dict.fromkeys(f"ab{others}", 100))
    for name in others:
        program.on(t.Chmod, name, mode=0o600)
    program.add(t.SavePoint, name="A").add(t.Sync).write("a", 100).write("b", 100).ack()
    wanted = data(100, 2), data(100, 3)
    pattern = Pattern(program, lambda tree, acks: acks > 0 and (content(tree, "a"), content(tree, "b")) != wanted)
    assert len(candidates(program.trace, len(program.ops))) > WHOLE_SEARCH
    advice = advice_for(pattern, "ext4")
    assert told(advice) == {(("a", (16,)), ("b", (17,)))}
    assert advice.tried <= 5


# --- large traces, bounds -------------------------------------------------------------------------


def loop(turns: int) -> Pattern:
    """Ten ops a turn: a log that nobody reads, and a temporary file in two pieces renamed over the last one."""
    program = Program(ck=200, log=0)
    versions = [data(200, 1)]
    for turn in range(turns):
        program.add(t.Call, name="save", value=turn)
        program.write("log", 10, 10 * turn)
        program.create(f"tmp{turn}").write(f"tmp{turn}", 100)
        program.write(f"tmp{turn}", 100, 100).on(t.Chmod, f"tmp{turn}", mode=0o600)
        versions.append(content(program.tree, f"tmp{turn}") or b"")
        program.rename(f"tmp{turn}", "ck").ack()
        program.add(t.SavePoint, name=f"turn{turn}.B").write("log", 5, 10 * turn + 5)
    return Pattern(program, lambda tree, acks: content(tree, "ck") not in versions[acks : acks + 2])


@pytest.mark.parametrize("profile", ["ext4", "btrfs"])
def test_a_long_loop_takes_few_enumerations(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """30 turns, 300 ops: the same two barriers in every turn are found with few looks, and said once."""
    pattern, made = loop(30), list[int]()
    assert len(pattern.program.ops) == 300
    verdicts = failing(pattern.program.trace, profile, pattern.fails, states=500, bound=4)

    def counted(*args: Any, **options: Any) -> PowerLoss:
        made.append(len(made))
        return PowerLoss(*args, **options)

    monkeypatch.setattr(barrier_search, "PowerLoss", counted)
    judge = judge_by(pattern.fails)
    advice = advise(pattern.program.trace, parse_profiles(profile), verdicts.get, judge=judge, limits=Limits(bound=4))
    (best,) = advice.sets
    assert [(barrier.directory, len(barrier.after)) for barrier in best] == [(False, 30), (True, 30)]
    assert advice.tried <= 50
    assert len(made) <= 2 * advice.tried
    assert advice.lines()[0] == (
        "fsync tmp0 between ops 6 and 7, and its directory between ops 7 and 8 (and in 29 later saves)."
    )


def test_a_set_that_leaves_what_nobody_judged_is_found_out() -> None:
    """Few states were judged, and a wrong set lets all these go; judging some of what it leaves shows that."""
    pattern = loop(8)
    trace, fails = pattern.program.trace, pattern.fails
    known = failing(trace, "btrfs", fails, states=50, bound=4)
    trusting, careful = (
        advise(trace, parse_profiles("btrfs"), known.get, judge=judge, limits=Limits(bound=4))
        for judge in (None, judge_by(fails))
    )
    assert trusting.unjudged > 0
    assert not all(is_mended(pattern, "btrfs", barriers, bound=16) for barriers in trusting.sets)
    assert all(is_mended(pattern, "btrfs", barriers, bound=16) for barriers in careful.sets)
    assert careful.mended


def test_a_bound_that_is_not_whole_is_said() -> None:
    """Where states were sampled, the claim is about those that were reached."""
    whole, sampled = advice_for(REPLACED, "posix"), advice_for(REPLACED, "posix", bound=2)
    assert told(sampled) == told(whole)
    assert "Not all states fit the bound: this holds for those that were reached." in sampled.lines()
    assert not any("bound" in line for line in whole.lines())


def test_a_failing_state_that_a_sample_misses_is_asked_for() -> None:
    """With a bound of two nothing that failed is met again: the set is refused all the same, by membership."""
    pattern = Pattern(Program(ck=60_000).write("ck", 60_000).ack(), old_or_new(60_000))
    verdicts: dict[int, bool] = failing(pattern.program.trace, "ext4", pattern.fails, bound=2)
    looks = iter(range(1_000))

    def bad(digest: int) -> bool | None:
        return verdicts.get(digest) if next(looks) < 60 else None  # as if later samples met other states only

    advice = advise(pattern.program.trace, parse_profiles("ext4"), bad, limits=Limits(bound=2))
    assert (advice.sets, advice.mended, advice.remaining) == ((), False, 1)


def test_states_that_were_never_judged_are_said() -> None:
    """None is no verdict: it stops nothing, and it is told."""
    verdicts = failing(REPLACED.program.trace, "ext4", REPLACED.fails)
    known = {digest: True for digest, fails in verdicts.items() if fails}
    advice = advise(REPLACED.program.trace, parse_profiles("ext4"), known.get)
    assert told(advice) == FILE_AND_NAME
    assert advice.lines()[-1] == (
        f"{advice.unjudged} of the states that may still come about were not judged: check again with it."
    )
    assert advice.unjudged > 0


def test_the_search_ends_at_its_limit() -> None:
    """With no looks left the best known set is told: all candidates, and that fewer may do."""
    advice = advice_for(REPLACED, "ext4", limit=2)
    assert not advice.complete
    assert advice.lines()[-1] == f"The search ended after {advice.tried} enumerations; fewer barriers may do."
    assert is_mended(REPLACED, "ext4", advice.sets[0])


# --- barriers that do nothing ---------------------------------------------------------------------

SAFE = Program(ck=5_000).create("tmp").write("tmp", 5_000).fsync("tmp").fsync().rename("tmp", "ck").fsync()
SAFE.fsync("ck").ack()


def judge_by(fails: Fails) -> Callable[[t.Trace, PowerLoss, Recipe], bool]:
    return lambda trace, loss, recipe: fails(loss.tree(recipe), sum(1 for _ in trace.before(recipe.done, t.Ack)))


@pytest.mark.parametrize(
    ("profile", "expected"), [("ext4", (4, 6)), ("xfs", (4, 6)), ("btrfs", (4, 6)), ("posix", (4, 7))]
)
def test_barriers_that_can_go(profile: str, expected: tuple[int, ...]) -> None:
    """The first fsync of the directory goes everywhere; then the second one, or on posix the last fsync."""
    assert redundant(SAFE.trace, parse_profiles(profile), judge_by(old_or_new())) == expected


def test_no_barrier_goes_that_is_needed() -> None:
    """Of the minimal safe way nothing is redundant, and each digest is judged once."""
    minimal = Program(ck=5_000).create("tmp").write("tmp", 5_000).fsync("tmp").rename("tmp", "ck").fsync().ack()
    judged: list[int] = []

    def judge(trace: t.Trace, loss: PowerLoss, recipe: Recipe) -> bool:
        judged.append(recipe.digest)
        return judge_by(old_or_new())(trace, loss, recipe)

    assert redundant(minimal.trace, parse_profiles("ext4,posix"), judge) == ()
    assert len(judged) == len(set(judged))


# --- laws -----------------------------------------------------------------------------------------


def durable_since_ack(program: Program) -> Fails:
    """Two files are as some op since the last ack left them: what an ack promises."""
    versions, now = [set[tuple[bytes | None, ...]]()], program.base
    for op in program.ops:
        now = now.apply(op)
        if isinstance(op, t.Ack):
            versions.append(set())
        versions[-1].add((content(now, "a"), content(now, "b")))
    return lambda tree, acks: acks > 0 and (content(tree, "a"), content(tree, "b")) not in versions[acks]


@given(program=PROGRAMS, profile=st.sampled_from(EVERY))
def test_a_set_mends_all_and_no_part_of_it_does(program: Program, profile: str) -> None:
    """On random programs: with each set no state fails; without any one of its barriers some state does."""
    program.ack()
    pattern = Pattern(program, durable_since_ack(program))
    if next(itertools.islice(program.loss(profile).states(), 2_000, None), None) is not None:
        return
    advice = advice_for(pattern, profile)
    assert bool(advice.failing) == (not is_mended(pattern, profile, ()))
    assert advice.mended == (bool(advice.sets) or not advice.failing)
    for barriers in advice.sets:
        assert is_mended(pattern, profile, barriers)
        for size in range(len(barriers)):
            for fewer in itertools.combinations(barriers, size):
                assert not is_mended(pattern, profile, fewer)


@given(program=PROGRAMS, profile=st.sampled_from(EVERY), at=st.integers(0, 20))
def test_a_digest_does_not_know_of_barriers(program: Program, profile: str, at: int) -> None:
    """With a barrier more, which shifts the numbers of later ops, a digest still means the same tree and acks."""
    after = min(at, len(program.ops) - 1) + 1
    longer = with_barriers(program.trace, [Barrier((after,), "dir/a", directory=True, inodes=(1,))])
    meanings: list[dict[int, tuple[str, int]]] = []
    for trace in (program.trace, longer):
        loss = PowerLoss(trace, parse_profile(profile))
        first = itertools.islice(loss.states(), 300)
        meanings.append(
            {each.digest: (loss.tree(each).digest, sum(1 for _ in trace.before(each.done, t.Ack))) for each in first}
        )
    assert all(meanings[1].get(digest, meaning) == meaning for digest, meaning in meanings[0].items())
