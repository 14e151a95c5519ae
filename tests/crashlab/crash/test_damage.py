"""Damage at rest as data: exact lists, ids that lead back, and states that are what their id says."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab import trace as t
from crashlab.crash import formats
from crashlab.crash.damage import IN_BYTES, KINDS, OF_AGE, Damage, apply, damaged, decoded, encoded, file_at
from crashlab.crash.damages import Damages, moments_of, spans_of, truncations
from crashlab.crash.ids import state_of
from crashlab.crash.states import prefixes_of
from crashlab.errors import UsageError
from crashlab.explain_damage import damage_words
from tests.crashlab.traces import ack, call, create, effect, save_point, trace_of, write

if TYPE_CHECKING:
    from crashlab.crash.states import CrashState

FORM = json.dumps({"version": 2, "name": "é", "on": True}, ensure_ascii=False).encode()
STORE = trace_of(
    call(1),
    create("v.json", 11),
    write("v.json", 11, b"{}"),
    ack(1),
    call(2),
    create("log", 12),
    write("log", 12, b"one\ntwo\n"),
    write("v.json", 11, FORM),
    ack(2),
)
"""Two files, the first with an older version of two bytes; nine ops."""

SINGLE = trace_of(create("only", 11), write("only", 11, b"ab"), ack(1))


def states(trace: t.Trace, *variants: str, kind: str = "Store") -> dict[str, CrashState]:
    """All states of these variants by id, small files whole."""
    return {state.id: state for state in Damages(trace, kind=kind, variants=variants, sample=0).states()}


def contents(state: CrashState) -> dict[str, bytes]:
    """The files of a state."""
    found = {path: file_at(state.tree, path) for path, _, _ in state.tree.walk()}
    return {path.removeprefix("dir/"): file.content.read() for path, file in found.items() if file is not None}


# --- ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("dir/checkpoint.json", "checkpoint.json"),
        ("dir/a/b c", "a%2Fb%20c"),
        ("dir/57-x", "57%2Dx"),
        ("dir/5-7-x", "5%2D7-x"),
        ("dir/a-57", "a-57"),
        ("dir/~home/x", "%7Ehome%2Fx"),
        ("home/x", "~home%2Fx"),
        ("home/~x", "~home%2F~x"),
        ("dir/a:b@c", "a%3Ab%40c"),
        ("dir/\udcff", "%FF"),
    ],
)
def test_a_path_in_an_id(path: str, text: str) -> None:
    """Percent-encoded, relative to the directory, never to be taken for a moment or for a crash in the recovery."""
    assert encoded(path) == text
    assert decoded(text) == path


@given(
    st.sampled_from(["dir", "home"]),
    st.lists(st.text(st.characters(exclude_characters="\0/"), min_size=1), min_size=1, max_size=3),
    st.integers(0, 9),
)
def test_every_path_comes_back_from_its_id(place: str, names: list[str], at: int) -> None:
    """Whatever characters a file name holds, the id has no other reading."""
    path = "/".join((place, *names))
    try:
        path.encode()
    except UnicodeEncodeError:
        return  # no such name comes out of a file system
    text = Damage(path, "bit", "3", at).id(end=9)
    head, kind, argument = text.removeprefix("damage@").split(":")
    moment, _, rest = head.partition("-")
    assert (kind, argument) == ("bit", "3")
    assert decoded(rest if at != 9 else head) == path
    assert at == 9 or moment == str(at)
    assert "/" not in text


def test_an_id_means_the_end_or_the_moment_that_it_names() -> None:
    """Without a number the last directory, with one that after so many ops."""
    assert contents(state_of(STORE, "damage@v.json:bit:0"))["v.json"] == bytes([FORM[0] ^ 1]) + FORM[1:]
    early = state_of(STORE, "damage@4-v.json:bit:9")
    assert (early.done, early.effects, contents(early)) == (4, (), {"v.json": b"{\x7f"})
    assert [op.n for op in early.acks] == [4]


@pytest.mark.parametrize(
    ("state_id", "words"),
    [
        ("damage@v.json", "no damage that this version knows"),
        ("damage@v.json:burn:1", "no damage that this version knows; it knows bit"),
        ("damage@10-v.json:empty", "no op 10 in this recording"),
        ("damage@x:empty", "there is no such file or place in it"),
        ("damage@v.json:bit:99999", "there is no such file or place in it"),
        ("damage@v.json:bit:", "no such file or place"),
        ("damage@v.json:bit:-1", "no such file or place"),
        ("damage@v.json:bit:01", "no such file or place"),
        ("damage@v.json:truncate:999", "no such file or place"),
        ("damage@v.json:zeros:4-4", "no such file or place"),
        ("damage@v.json:empty:1", "no such file or place"),
        ("damage@9-v.json:empty", "no such file or place"),
        ("damage@v.json:stale:9", "no such file or place"),
        ("damage@v.json:swap:v.json", "nothing would change"),
        ("damage@v.json:misdirect:1:log", "no such file or place"),
        ("damage@v.json:foreign:cobol", "no such file or place"),
        ("damage@log:version:3", "no such file or place"),
        ("damage@v.json:duplicate-key:9", "no such file or place"),
        ("damage@v.json:nested:100001", "no such file or place"),
    ],
)
def test_what_is_no_damage_of_this_trace_is_refused(state_id: str, words: str) -> None:
    """Also an id in another spelling than the lab's own: each state has one name."""
    with pytest.raises(UsageError, match=words):
        damaged(STORE, state_id)


# --- what each kind does -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state_id", "files", "words"),
    [
        ("damage@log:bit:6", {"log": b"/ne\ntwo\n"}, "byte 0, bit 6 flipped: 'o' -> '/'"),
        ("damage@log:bit:24", {"log": b"one\x0btwo\n"}, "byte 3, bit 0 flipped: 0x0a -> 0x0b"),
        ("damage@log:truncate:5", {"log": b"one\nt"}, "cut to 5 of 8 bytes"),
        ("damage@log:zeros:4-8", {"log": b"one\n\0\0\0\0"}, "bytes 4 to 7 are zeros"),
        ("damage@log:empty", {"log": b""}, "emptied"),
        ("damage@log:extra:copy", {"log": b"one\ntwo\none\ntwo\n"}, "a second copy of itself behind it"),
        ("damage@log:foreign:list", {"log": b"[]"}, "holds something else: list"),
        ("damage@log:nested:2", {"log": b"[[]]"}, "brackets, 2 deep"),
        ("damage@log:invalid-utf8:4", {"log": b"one\n\xffwo\n"}, "byte 4 is 0xff, which is no UTF-8"),
        ("damage@v.json:version:3", {"v.json": FORM.replace(b"2", b"3")}, "its version says 3"),
        (
            "damage@v.json:duplicate-key:2",
            {"v.json": FORM[:-1] + b',"on":false}'},
            "a key stands twice, with two values",
        ),
        (
            "damage@v.json:duplicate-key:1",
            {"v.json": FORM[:-1] + b',"name":"\\u00c3\\u00a9x"}'},
            "a key stands twice, with two values",
        ),
        ("damage@v.json:stale:4", {"v.json": b"{}"}, "as at op 4: a later write was lost"),
        ("damage@v.json:stale-block:0:4", {"v.json": b"{}" + bytes(len(FORM) - 2)}, "block 0 as at op 4"),
        ("damage@log:swap:v.json", {"log": FORM, "v.json": b"one\ntwo\n"}, "holds what v.json held"),
        ("damage@v.json:misdirect:0:log", {"v.json": b"one\ntwo\n" + bytes(len(FORM) - 8)}, "block 0 is that of log"),
        ("damage@log:missing", {"log": None}, ""),
        ("damage@log:restore:4", {"v.json": b"{}"}, "kept new; all else is of an earlier moment"),
    ],
)
def test_a_kind_changes_what_it_says(state_id: str, files: dict[str, bytes | None], words: str) -> None:
    """The named files hold exactly this, all others what they held; and the report says so in words."""
    state = state_of(STORE, state_id)
    wanted = {"v.json": FORM, "log": b"one\ntwo\n", **files}
    assert contents(state) == {name: data for name, data in wanted.items() if data is not None}
    assert state.damage is not None
    inode = state.tree.lookup(state.damage.path)
    assert words in (damage_words(state, inode) if inode is not None else "")


def test_garbage_is_the_same_on_every_machine() -> None:
    """Its bytes follow from the id, by SHAKE-128."""
    one, other = (contents(state_of(STORE, "damage@log:garbage:0-8"))["log"] for _ in range(2))
    assert one == other == hashlib.shake_128(b"log:garbage:0-8").digest(8)
    assert len(contents(state_of(STORE, "damage@log:extra:16"))["log"]) == 8 + 16


# --- which are tried ---------------------------------------------------------------------------------


def test_every_bit_of_a_small_file() -> None:
    """All 8n of them where that is no more than the bound, and none of another file."""
    assert list(states(SINGLE, "bit")) == [f"damage@only:bit:{number}" for number in range(16)]


def test_truncations_and_ranges_are_those_of_the_list() -> None:
    """Edges, quarters, sectors, blocks and records; each below the size."""
    assert truncations(10, (0, 5)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    large = truncations(10_000, (0, 700))
    wanted = {0, 1, 2, 7, 8, 15, 16, 2500, 5000, 7500, 9998, 9999, 511, 512, 513, 9727, 9728, 9729, 4096, 8192}
    assert large == sorted(wanted | {699, 700, 701})
    assert spans_of(0, ()) == []
    assert spans_of(8, (0, 4)) == [(0, 8), (4, 8)]
    assert {(0, 10_000), (0, 4096), (4608, 5120), (700, 10_000), (8192, 10_000), (512, 10_000)} <= set(
        spans_of(10_000, (0, 700))
    )


def test_a_large_file_is_sampled_beyond_its_edges_and_the_sample_counts_apart() -> None:
    """The first and last 64 bytes whole, a bit per sector; the rest by a seed."""
    trace = trace_of(create("big", 11), write("big", 11, b"no line" * 366), ack(1))
    source = Damages(trace, kind="Store", variants=("bit",), bound=100, sample=7)
    tried = {int(state.id.rpartition(":")[2]) for state in source.states()}
    edges = {*range(8 * 64), *range(8 * (2562 - 64), 8 * 2562)}
    listed = edges | {8 * place for place in range(512, 2562 - 64, 512)}
    assert listed <= tried
    extent = source.extent()
    assert (len(tried), extent.sampled, extent.reached) == (len(listed) + 7, 7, len(listed) + 7)
    assert extent.skipped == 8 * 2562 - len(tried)
    again = Damages(trace, kind="Store", variants=("bit",), bound=100, sample=7)
    assert [state.id for state in again.states()] == [state.id for state in source.states()]
    other = Damages(trace, kind="Store", variants=("bit",), bound=100, sample=7, seed=1)
    assert {int(state.id.rpartition(":")[2]) for state in other.states()} != tried


def test_a_name_that_is_no_text_has_a_sample_too() -> None:
    """On Linux a name is bytes; what is not UTF-8 comes as surrogates."""
    trace = trace_of(create("\udcff", 11), write("\udcff", 11, bytes(300)), ack(1))
    source = Damages(trace, kind="Store", variants=("bit",), bound=8, sample=3)
    assert source.extent().sampled == 3
    assert all(state.id.startswith("damage@%FF:bit:") for state in source.states())


def test_a_sound_directory_of_another_time_is_tried_where_something_can_tell() -> None:
    """With several files, or for a program with a world outside; or when asked for by name."""
    assert {state.damage.kind for state in states(STORE).values() if state.damage} == set(KINDS)
    lone = {state.damage.kind for state in states(SINGLE).values() if state.damage}
    assert not lone & set(OF_AGE)
    assert list(states(SINGLE, "missing")) == ["damage@only:missing"]
    assert "damage@only:missing" in states(SINGLE, kind="Subject")


def test_older_versions_are_those_that_lay_at_rest() -> None:
    """Per older version one, at the last moment at which it lay there."""
    trace = trace_of(create("v", 11), *(step for n in range(3) for step in (write("v", 11, b"%d" % n), ack(n))))
    assert list(states(trace, "stale")) == ["damage@v:stale:5", "damage@v:stale:3"]
    assert list(states(trace, "restore")) == []  # with its one file kept new nothing is older


def test_a_file_that_never_changes_is_not_kept_new() -> None:
    """A lock file is the same at every moment: with the rest of an earlier one nothing would contradict it."""
    lock = (create("lock", 12), create("v", 11))
    trace = trace_of(*lock, *(step for n in range(3) for step in (write("v", 11, b"%d" % n), ack(n))))
    assert list(states(trace, "restore")) == []
    both = (step for n in range(3) for step in (write("v", 11, b"%d" % n), write("lock", 12, b"%d" % n), ack(n)))
    found = [each.split(":")[0] for each in states(trace_of(*lock, *both), "restore")]
    assert found == ["damage@lock"] * 2 + ["damage@v"] * 2


def test_a_directory_that_was_like_that_once_is_not_left_out() -> None:
    """Where each save is a file of its own, all but the newest put back is the directory of an earlier save."""
    saves = (step for n in (1, 2, 3) for step in (create(f"{n}", 10 + n), write(f"{n}", 10 + n, b"%d" % n), ack(n)))
    found = [state.id for state in states(trace_of(*saves), "restore").values()]
    #  1 create 1   2 write   3 ack   4 create 2   5 write   6 ack   7 create 3   8 write   9 ack
    assert "damage@3:restore:3" in found  # 1 and 3 are there, which never was
    assert "damage@2:restore:3" in found  # 1 and 2, as after the second save
    assert "damage@3:restore:6" not in found  # all three, as they are


def test_an_older_block_is_one_that_was_written_since() -> None:
    """Where few blocks are tried, none is spent on one that no write has touched: that would change nothing."""
    size, block = 10 * 4096, bytes(range(256)) * 16
    trace = trace_of(create("d", 11), write("d", 11, bytes(size)), ack(1), write("d", 11, block, 4096), ack(2))
    source = Damages(trace, kind="Store", variants=("stale-block",), sample=0, edges=True)
    assert [state.id for state in source.states()] == ["damage@d:stale-block:1:3"]


def test_the_moments_of_a_program_leave_it_work_to_do() -> None:
    """The last ack or save point before the last effect, and the end."""
    run = (create("v", 11), write("v", 11, b"a"), ack(1), effect("mail"), save_point("B"), effect("pay"), ack(2))
    assert moments_of(trace_of(*run), "Subject") == (5, 7)
    assert moments_of(trace_of(create("v", 11), effect("mail"), ack(1)), "Subject") == (1, 3)
    assert moments_of(trace_of(create("v", 11), ack(1), write("v", 11, b"a"), ack(2)), "Subject") == (2, 4)
    assert moments_of(trace_of(create("v", 11)), "Subject") == (1,)


def test_the_moments_of_a_store_are_its_fullest_ack_and_the_end() -> None:
    """The last value may be too small to show anything."""
    shrinks = trace_of(create("v", 11), write("v", 11, b"long"), ack(1), (t.Truncate, _truncate("v", 11)), ack(2))
    assert moments_of(shrinks, "Store") == (3, 5)
    assert moments_of(STORE, "Store") == (9,)


def _truncate(path: str, inode: int) -> dict[str, object]:
    return {"path": f"dir/{path}", "inode": inode, "size": 1}


def test_what_the_program_rebuilds_is_left_alone() -> None:
    """It is not state, and no evidence."""
    trace = trace_of(create("v", 11), write("v", 11, b"a"), create("x-shm", 12), write("x-shm", 12, b"b"), ack(1))
    source = Damages(trace, kind="Store", rebuilt=("*-shm",))
    assert source.files(5) == ["dir/v"]
    assert source.extent().points == 1


def test_counts_are_those_of_the_stream() -> None:
    """Distinct ones are counted by digest, up to the limit."""
    source = Damages(STORE, kind="Store", sample=0)
    found = list(source.states())
    assert source.count(10**6) == len({state.digest for state in found}) <= len(found) == source.extent().reached
    assert source.count(3) == 3
    assert source.extent().points == 2


# --- for any files -----------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
JSON_FILES = st.dictionaries(st.sampled_from(["version", "a", "é"]), JSON_VALUES, max_size=3).map(
    lambda form: json.dumps(form).encode()
)
FILES = st.binary(max_size=40) | JSON_FILES | st.lists(JSON_FILES, max_size=3).map(b"\n".join)


@given(st.lists(FILES, min_size=1, max_size=3), st.lists(FILES, min_size=1, max_size=3))
def test_every_state_is_damaged_and_follows_from_its_id(first: list[bytes], second: list[bytes]) -> None:
    """It differs from the undamaged one, comes back from its id to the byte, and changes only what it may."""
    steps = [step for n, data in enumerate(first) for step in (create(f"f{n}", 20 + n), write(f"f{n}", 20 + n, data))]
    more = [write(f"f{n}", 20 + n, data) for n, data in enumerate(second[: len(first)])]
    trace = trace_of(*steps, ack(1), *more, ack(2))
    before = prefixes_of(trace).tree(len(trace.ops))
    seen: dict[str, str] = {}
    for state in Damages(trace, kind="Store", bound=64, sample=5, variants=KINDS).states():
        assert state.tree.digest != prefixes_of(trace).tree(state.done).digest, state.id
        again = state_of(trace, state.id)
        assert contents(again) == contents(state), state.id
        assert again.digest == state.digest
        assert seen.setdefault(state.id, state.digest) == state.digest
        assert state.damage is not None
        if state.done == len(trace.ops) and state.damage.kind in IN_BYTES:
            changed = {line.partition(":")[0] for line in before.difference(state.tree)}
            assert changed <= set(state.damage.paths), state.id
        inode = state.tree.lookup(state.damage.path)
        assert inode is None or damage_words(state, inode), state.id


@given(FILES)
def test_places_in_json_are_places_in_the_file(data: bytes) -> None:
    """Whatever the bytes: an object is found only where there is one, and its values stand where it says."""
    for found in formats.objects(data):
        assert data[found.close : found.close + 1] == b"}"
        for member in found.members:
            assert json.loads(data[member.start : member.end]) == member.value or not data.isascii()
            assert data[: member.start].rstrip(b" \t\r\n")[-1:] == b":"


def test_apply_answers_none_where_a_damage_does_not_fit() -> None:
    """No error: the list asks for what may not be there."""
    assert apply(STORE, Damage("dir/none", "bit", "0", 9)) is None
    assert apply(STORE, Damage("dir", "bit", "0", 9)) is None
