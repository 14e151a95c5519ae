"""The trace: its JSON form, its digest, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.tree import Tree

texts = st.text(st.characters(codec=None), max_size=6)
json_values = st.recursive(st.none() | st.booleans() | st.integers() | texts, lambda below: st.lists(below, max_size=3))
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "data": st.binary(max_size=20),
    "detail": st.dictionaries(texts, json_values, max_size=3),
    "key": st.none() | texts,
}
BY_TYPE: dict[str, st.SearchStrategy[Any]] = {"str": texts, "int": st.integers(0, 2**62), "bool": st.booleans()}


def fields_of(op_type: type[t.Op]) -> dict[str, st.SearchStrategy[Any]]:
    """A strategy for every field of one kind of op."""
    found = {}
    for field in dataclasses.fields(op_type):
        if field.name == "value":
            found["value"] = st.none() | st.binary(max_size=5) if op_type is t.SetAttribute else json_values
        elif field.name != "n":
            found[field.name] = BY_NAME[field.name] if field.name in BY_NAME else BY_TYPE[str(field.type)]
    return found


ops = st.sampled_from(sorted(t.OP_TYPES)).flatmap(
    lambda kind: st.builds(t.OP_TYPES[kind], n=st.just(1), **fields_of(t.OP_TYPES[kind]))
)
traces = st.lists(ops, max_size=8).map(
    lambda each: t.Trace(
        root="/r\udcff",
        base=Tree.empty(),
        ops=tuple(dataclasses.replace(op, n=n) for n, op in enumerate(each, start=1)),
        threads=2,
    )
)


@given(ops)
def test_an_op_survives_json(op: t.Op) -> None:
    """Every kind of op with any values, as text, comes back equal and of the same type."""
    back = t.op_from_json(json.loads(json.dumps(t.op_to_json(op))))
    assert back == op
    assert type(back) is type(op)


@given(traces)
def test_a_trace_survives_json(trace: t.Trace) -> None:
    """The whole trace, as text, comes back equal, with the same digest."""
    back = t.Trace.from_json(json.loads(json.dumps(trace.to_json())))
    assert back == trace
    assert back.digest == trace.digest


@pytest.mark.parametrize("kind", sorted(t.OP_TYPES))
def test_every_kind_is_known_by_its_name(kind: str) -> None:
    """The table of kinds holds each type of op under its own name."""
    assert kind == t.OP_TYPES[kind].KIND


def test_no_kind_of_op_is_forgotten() -> None:
    """Every op type of the module with a kind of its own is in the table, so that it can be read back."""
    defined = {each for each in vars(t).values() if isinstance(each, type) and issubclass(each, t.Op) and each.KIND}
    assert defined == set(t.OP_TYPES.values())


def test_true_and_one_are_two_values() -> None:
    """A default is left out only where the value is of the same type: ``True`` is not ``1``."""
    form = t.op_to_json(t.Effect(n=1, name="x", counted=1))  # type: ignore[arg-type]  # on purpose
    assert form["counted"] == 1


WRITE = t.Write(n=1, path="a", inode=1, offset=0, data=b"x", time_ns=5)
TRACE = t.Trace(root="/r", base=Tree.empty(), ops=(t.Create(n=1, path="a", inode=1), dataclasses.replace(WRITE, n=2)))


def test_the_digest_leaves_out_times_and_nothing_else() -> None:
    """Two runs of one deterministic program have one digest; any other byte, thread or line is another."""

    def digest(**changes: Any) -> str:
        changed = dataclasses.replace(TRACE.ops[1], **changes)
        return dataclasses.replace(TRACE, ops=(TRACE.ops[0], changed)).digest

    assert digest(time_ns=99) == TRACE.digest
    others = [
        digest(data=b"y"),
        digest(offset=1),
        digest(path="b"),
        digest(inode=2),
        digest(sync="all"),
        digest(at="f:1"),
    ]
    assert len({TRACE.digest, *others}) == 7


def test_ops_are_found_by_number() -> None:
    """From 1 to the last; anything else is an error that says how many there are."""
    assert TRACE.op(2).KIND == "write"
    for n in (0, 3, -1):
        with pytest.raises(UsageError, match=rf"no op {n} in this recording \(2 ops\)"):
            TRACE.op(n)


def test_ops_before_a_moment() -> None:
    """The ops of some kinds among the first few."""
    assert [op.n for op in TRACE.before(2, t.Write)] == [2]
    assert [op.n for op in TRACE.before(1, t.Write)] == []
    assert [op.n for op in TRACE.before(2, t.Write, t.Create)] == [1, 2]


@pytest.mark.parametrize("numbers", [(2,), (0,), (1, 3), (1, 1)])
def test_a_gap_in_the_numbers_is_refused(numbers: tuple[int, ...]) -> None:
    """Ops count from 1; a lost one is noticed at once."""
    with pytest.raises(UsageError, match="without a gap"):
        t.Trace(root="/r", base=Tree.empty(), ops=tuple(t.Ack(n=n) for n in numbers))


GOOD = TRACE.to_json()


@pytest.mark.parametrize(
    "form",
    [
        {**GOOD, "schema": "crashlab.trace/2"},
        {},
        [],
        None,
        "text",
    ],
    ids=repr,
)
def test_another_schema_is_refused(form: Any) -> None:
    """A trace of another version, or something else, is refused with what was expected and found."""
    with pytest.raises(UsageError, match=r"expected schema 'crashlab\.trace/1', found"):
        t.Trace.from_json(form)


@pytest.mark.parametrize(
    "form",
    [
        {key: value for key, value in GOOD.items() if key != "ops"},
        {**GOOD, "ops": None},
        {**GOOD, "ops": [3]},
        {**GOOD, "ops": [{"op": "fly", "n": 1}]},
        {**GOOD, "ops": [{"op": "write", "n": 1}]},
        {**GOOD, "ops": [{"op": "ack", "n": 1, "who": "me"}]},
        {**GOOD, "ops": [{"op": "write", "n": 1, "path": "a", "inode": 1, "offset": 0, "data": "text"}]},
        {**GOOD, "ops": [{"op": "write", "n": 1, "path": "a", "inode": 1, "offset": 0, "data": {"base64": "!"}}]},
        {**GOOD, "base": {"0": {"type": "door", "mtime_ns": 0}}},
        {**GOOD, "base": []},
        {**GOOD, "base": {}},
    ],
    ids=lambda form: str({key: value for key, value in form.items() if value != GOOD[key]} or "no ops"),
)
def test_a_damaged_trace_is_refused(form: dict[str, Any]) -> None:
    """Anything that cannot be read says that the trace is damaged and what to do."""
    with pytest.raises(UsageError, match=r"damaged trace: .*record again"):
        t.Trace.from_json(form)
