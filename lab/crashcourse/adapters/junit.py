"""JUnit's XML, as the tools around continuous integration read it: one test case per case and seed.

A violation is a failure; what could not be judged is an error, and never skipped: a skipped test looks like a
pass to most readers. The texts of a private twin are left out: these files are shown to whoever sees the build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from crashcourse.adapters.words import details, headline, is_private

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = {"violation": "failure", "unmeasured": "error"}
JUDGE_FAILED = "the judge failed; result.json says how"


def rendered(whole: Mapping[str, Any], _public: Mapping[str, Any]) -> str:
    """The text of the file."""
    cases = whole["cases"]
    suite = ElementTree.Element(
        "testsuite",
        name=_clean(whole["exercise"]),
        tests=str(len(cases) + bool(whole["error"])),
        failures=str(sum(case["verdict"] == "violation" for case in cases)),
        errors=str(sum(case["verdict"] == "unmeasured" for case in cases) + bool(whole["error"])),
        skipped="0",
        time=f"{sum(case['ms'] for case in cases) / 1000:.3f}",
    )
    for case in cases:
        _case(suite, whole["exercise"], case)
    if whole["error"]:
        judge = ElementTree.SubElement(suite, "testcase", classname=_clean(whole["exercise"]), name="judge", time="0")
        ElementTree.SubElement(judge, "error", message=JUDGE_FAILED, type="judge-error")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, exercise: str, case: Mapping[str, Any]) -> None:
    element = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_clean(f"{exercise}.{case['visibility']}"),
        name=_clean(case["id"]),
        time=f"{case['ms'] / 1000:.3f}",
    )
    if case["verdict"] in _NAMES:
        found = None if is_private(case) else case["finding"]
        kind = found["kind"] if found else case["verdict"]
        name = _NAMES[case["verdict"]]
        told = ElementTree.SubElement(element, name, message=_clean(headline(case)), type=_clean(kind))
        told.text = _clean(details(case))


def _clean(text: str) -> str:
    """The text without what XML 1.0 cannot hold; what is left out is shown as an escape."""
    return "".join(each if each in "\t\n" or each.isprintable() else ascii(each)[1:-1] for each in text)
