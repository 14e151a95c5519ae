"""What other tools read: field by field, for results of every status, and never a text of the private twin."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from crashcourse.adapters import FORMATS, table
from crashcourse.grading.batch import Graded
from crashcourse.grading.roster import Submission
from tests.crashcourse import results

SCHEMA = json.loads((Path(__file__).parents[3] / "lab/crashcourse/result.schema.json").read_text())


def rendered(name: str, status: str) -> str:
    result = results.of_status(status)
    return FORMATS[name].rendered(result.to_json(), result.public().to_json())


@pytest.mark.parametrize("status", results.STATUSES)
def test_results_keep_to_the_schema(status: str) -> None:
    """The whole one and the public one; one with a field too many does not."""
    result = results.of_status(status)
    assert result.status == status
    for form in (result.to_json(), result.public().to_json()):
        jsonschema.validate(form, SCHEMA)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**form, "grade": 1}, SCHEMA)


@pytest.mark.parametrize("status", results.STATUSES)
@pytest.mark.parametrize("name", FORMATS)
def test_no_private_text_leaks(name: str, status: str) -> None:
    """Neither into a form that others read, nor into the public result; the whole result holds it."""
    result = results.of_status(status)
    assert results.PRIVATE_TEXT not in json.dumps(result.public().to_json())
    assert "private_sha256" not in json.dumps(result.public().to_json())
    assert results.PRIVATE_TEXT not in rendered(name, status)
    assert (results.PRIVATE_TEXT in json.dumps(result.to_json())) == (status != "pass")


def test_exercism() -> None:
    """Version 3: the order of the cases, the replay as test_code, and no word of the twin."""
    form = json.loads(rendered("exercism", "fail"))
    assert (form["version"], form["status"]) == (3, "fail")
    assert [test["name"] for test in form["tests"]] == [case.id for case in results.EXERCISE.cases]
    kill, power = form["tests"][1], form["tests"][2]
    assert (kill["status"], power["status"]) == ("fail", "pass")
    assert kill["test_code"] == f"crashlab replay {results.PUBLIC_TEXT}"
    assert kill["message"].startswith("violation in 1 of ")
    assert kill["task_id"] == 2
    assert all(len(test["output"]) <= 500 for test in form["tests"])
    assert json.loads(rendered("exercism", "pass"))["status"] == "pass"
    assert json.loads(rendered("exercism", "incomplete"))["status"] == "fail"


def test_exercism_says_error_only_where_nothing_ran() -> None:
    """With the reason, and no tests."""
    form = json.loads(rendered("exercism", "judge-error"))
    assert (form["status"], form["tests"]) == ("error", [])
    assert form["message"] == "the judge failed; who grades knows more"


def test_a_long_output_is_cut_for_exercism() -> None:
    """At 500 characters, and it says so."""
    from crashcourse.adapters import exercism  # noqa: PLC0415 - a part that no other test here needs

    assert exercism._short("x" * 501).endswith("x... (cut)")
    assert len(exercism._short("x" * 501)) == 500


def test_gradescope() -> None:
    """Visible cases bear the points, hidden twins none; the sum is the score."""
    form = json.loads(rendered("gradescope", "fail"))
    assert form["score"] == 46 == sum(test["score"] for test in form["tests"])
    assert sum(test["max_score"] for test in form["tests"]) == 100
    hidden = [test for test in form["tests"] if test["visibility"] == "hidden"]
    assert len(hidden) == 7
    assert {test["max_score"] for test in hidden} == {0}
    power = next(test for test in form["tests"] if test["name"] == "power")
    assert (power["score"], power["status"]) == (0, "passed")  # lost under the private seed alone
    assert [test["status"] for test in hidden if test["name"].startswith("power")] == ["failed"]
    assert form["extra_data"]["status"] == "fail"


def test_junit() -> None:
    """A violation is a failure, what could not be judged is an error, and nothing is skipped."""
    suite = ElementTree.fromstring(rendered("junit", "fail"))[0]  # noqa: S314 - made here
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "14", "failures": "3", "errors": "1", "skipped": "0"}
    assert (len(suite.findall("*/failure")), len(suite.findall("*/error"))) == (3, 1)
    assert not suite.findall("*/skipped")
    broken = ElementTree.fromstring(rendered("junit", "judge-error"))[0]  # noqa: S314 - made here
    assert broken.find("testcase[@name='judge']/error") is not None
    assert broken.get("errors") == "8"


def test_junit_stays_xml_whatever_was_said() -> None:
    """Control characters that XML does not have, and markup."""
    result = results.of_status("fail").to_json()
    result["cases"][1]["finding"]["found"] = "\x00\x1b[31m<b>&\ud800"
    root = ElementTree.fromstring(FORMATS["junit"].rendered(result, result))  # noqa: S314 - made here
    text = root.find(".//failure").text  # type: ignore[union-attr]  # it is there: see above
    assert "\\x00\\x1b[31m<b>&\\ud800" in str(text)


def test_markdown() -> None:
    """Points with the twins, verdicts without; what a submission says stays inside its block."""
    result = results.of_status("fail")
    form = result.public().to_json()
    form["cases"][1]["finding"]["found"] = "# heading\n<script>"
    text = FORMATS["markdown"].rendered(result.to_json(), form)
    assert text.startswith("# unbreakable-save: 46 of 100 points\n")
    assert "With the seed that you know it is 80." in text
    assert all(line.startswith("    ") for line in text.splitlines() if "heading" in line or "script" in line)


def test_csv() -> None:
    """One line per submission, one column per case; no cell is a formula."""

    def graded(student: str, status: str) -> Any:
        result = results.of_status(status)
        submission = Submission(student=student, exercise=results.EXERCISE, data=b"x")
        return Graded(submission=submission, whole=result.to_json(), public=result.public().to_json())

    rows = list(csv.reader(io.StringIO(table.rendered([graded("=ann", "fail"), graded("bob", "pass")]))))
    cases = [case.id for case in results.EXERCISE.cases]
    assert rows[0] == ["student", "status", "points", "covered", "max", *cases, "sha256"]
    assert rows[1][:8] == ["'=ann", "fail", "46", "90", "100", "6", "0", "0"]
    assert rows[2][:5] == ["bob", "pass", "100", "100", "100"]
