"""Reports as JSON: the schema that is promised, and the way back."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import crashlab.report
from crashlab.errors import UsageError
from crashlab.report import model
from crashlab.report.load import dump, load
from tests.crashlab.report.samples import ALL, HOSTILE, PASS, VIOLATION

SCHEMA = json.loads((Path(crashlab.report.__file__).parent / "schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
DEFINITIONS = {
    "report": model.Report,
    "subject": model.SubjectInfo,
    "settings": model.Settings,
    "trace": model.TraceInfo,
    "fault": model.FaultCount,
    "control": model.Control,
    "op": model.OpLine,
    "disk": model.DiskLine,
    "change": model.FileChange,
    "difference": model.Difference,
    "moment": model.Moment,
    "observed": model.Observed,
    "effects": model.Effects,
    "finding": model.Finding,
    "reason": model.UnmeasuredReason,
    "acceptance": model.Acceptance,
    "row": model.MatrixRow,
}
ADDED = {"report": {"moments"}, "finding": {"changes"}}
"""Fields that older reports do not have, and that a reader must not count on."""


def form_of(report: model.Report) -> Any:
    """The report as its reader gets it: arrays, not tuples."""
    return json.loads(json.dumps(report.to_json()))


def test_the_schema_is_a_schema() -> None:
    """It follows JSON Schema 2020-12."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("report", ALL, ids=lambda each: each.verdict)
def test_a_report_of_each_verdict_fits_the_schema(report: model.Report) -> None:
    """Alone, and in the wrapper that the commands print."""
    VALIDATOR.validate(form_of(report))
    VALIDATOR.validate(json.loads(dump([report, report])))


@pytest.mark.parametrize(("definition", "of"), DEFINITIONS.items(), ids=DEFINITIONS)
def test_the_schema_has_every_field_of_the_model_and_no_other(definition: str, of: type[Any]) -> None:
    """A field that is added to the model is added to the schema."""
    names = {each.name for each in dataclasses.fields(of)}
    assert set(SCHEMA["$defs"][definition]["properties"]) == names
    assert set(SCHEMA["$defs"][definition]["required"]) == names - ADDED.get(definition, set())


def test_every_definition_is_compared_with_the_model() -> None:
    """The list above leaves nothing out but the wrapper."""
    assert set(SCHEMA["$defs"]) - set(DEFINITIONS) == {"reports"}


@pytest.mark.parametrize(
    "spoil",
    [
        {"verdict": "passed"},
        {"schema": "crashlab.report/2"},
        {"findings": [{}]},
        {"seconds": -1},
        {"unmeasured": [{"code": "bad-luck", "detail": "", "next": ""}]},
        {"controls": [{"control": "real-kill", "passed": "yes", "detail": ""}]},
    ],
    ids=lambda each: next(iter(each)),
)
def test_the_schema_refuses_what_is_no_report(spoil: dict[str, Any]) -> None:
    """A schema that takes everything would prove nothing above."""
    assert not VALIDATOR.is_valid({**form_of(VIOLATION), **spoil})


def test_a_report_without_a_field_does_not_fit() -> None:
    """Each field is promised, unless reports of an earlier version do without."""
    for name in set(form_of(PASS)) - ADDED["report"]:
        assert not VALIDATOR.is_valid({key: value for key, value in form_of(PASS).items() if key != name}), name


@pytest.mark.parametrize("report", ALL, ids=lambda each: each.verdict)
def test_a_loaded_report_equals_the_one_that_was_written(report: model.Report) -> None:
    """Nothing is lost on the way to JSON and back."""
    assert load(form_of(report)) == report


def test_hostile_text_survives_the_way_and_the_json_is_ascii() -> None:
    """A file name that is no text comes back as it was, through any stream."""
    report = dataclasses.replace(PASS, notes=(HOSTILE,))
    assert dump([report]).isascii()
    assert load(json.loads(dump([report]))["reports"][0]) == report


def test_unknown_fields_are_passed_over() -> None:
    """A newer version may write more; this one reads what it knows."""
    form = form_of(VIOLATION)
    form["future"] = 1
    form["findings"][0]["future"] = {"a": 1}
    assert load(form) == VIOLATION


def test_missing_fields_with_a_default_are_filled_in() -> None:
    """An older version may have written less."""
    form = form_of(PASS)
    del form["matrix"]
    assert load(form) == dataclasses.replace(PASS, matrix=())


@pytest.mark.parametrize(
    "form", [None, [], "report", {}, {"schema": "crashlab.report/2"}, {"schema": "crashlab.trace/1"}]
)
def test_another_schema_is_refused(form: object) -> None:
    """The message says which was expected."""
    with pytest.raises(UsageError, match=r"expected schema 'crashlab\.report/1'"):
        load(form)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ({"verdict": "passed"}, r"report\.verdict is str 'passed'"),
        ({"seconds": "long"}, r"report\.seconds is str 'long'"),
        ({"seconds": True}, r"report\.seconds is bool True"),
        ({"subject": "agent"}, r"report\.subject is str 'agent', not an object"),
        ({"subject": {"name": "agent"}}, r"report\.subject: .*'kind'"),
        ({"findings": {}}, r"report\.findings is dict"),
        ({"notes": [1]}, r"report\.notes\[0\] is int 1"),
        ({"versions": {"python": 3}}, r"report\.versions\.python is int 3"),
    ],
)
def test_a_damaged_report_is_refused_with_the_place(spoil: dict[str, Any], words: str) -> None:
    """Nothing is drawn from a value that cannot be there."""
    with pytest.raises(UsageError, match=f"damaged report: {words}"):
        load({**form_of(PASS), **spoil})
