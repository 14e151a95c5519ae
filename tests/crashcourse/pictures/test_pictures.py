"""Tests of crashcourse.pictures: well-formed, escaped, the same each time, and a twin that says the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from crashcourse.pictures import (
    Cell,
    Mark,
    Picture,
    Point,
    Rung,
    bars,
    ladder,
    matrix,
    matrix_of,
    point_tree,
    timeline,
    timeline_of,
    tree,
    tree_of,
)
from crashcourse.pictures.svg import TINTS, plain
from crashlab import Finding, Report
from crashlab.report.model import (
    DiskLine,
    FaultCount,
    FileChange,
    Observed,
    OpLine,
    Settings,
    SubjectInfo,
    UnmeasuredReason,
)

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = "</text><script>alert('\"&x')</script>\x00\x1b[31m\u202e\n name"
NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(name: str) -> dict[str, Picture]:
    """One picture of each kind, with this name wherever a caller may put one."""
    return {
        "matrix": matrix(name, ["kill", name], {name: {"kill": Cell("violation", name), name: Cell("refused")}}),
        "timeline": timeline(
            name,
            [Mark(1, name, name), Mark(2, "acts", name, lost=True)],
            crash=1,
            crash_text=name,
            left=[name],
            gone=[name],
        ),
        "tree": tree(name, {name: name, "a/b": "1"}, {name: "x", "new": name}, heads=(name, name), notes=[name]),
        "ladder": ladder(name, [Rung(name, name, name, name, dies=True), Rung("after")], heads=(name, name, name)),
        "bars": bars(name, {name: 3, "none": 0}, unit=name, bad=[name]),
        "points": point_tree(name, [Point(1, 0, name, name), Point(2, 1, "other", name)], heads=[2], wrong=1),
    }


def words(svg: str) -> str:
    """All text that stands in a picture; parsing fails where it is not well-formed."""
    return " ".join(element.text or "" for element in ElementTree.fromstring(svg).iter())  # noqa: S314 - our own text


@pytest.mark.parametrize("kind", drawn("x"))
def test_hostile_names_are_text(kind: str) -> None:
    """Whatever a subject calls itself, the picture has no element more, and no character that XML forbids."""
    harmless, hostile = (drawn(name)[kind].svg for name in ("n" * len(plain(HOSTILE)), HOSTILE))
    counted = [
        [element.tag for element in ElementTree.fromstring(svg).iter()]  # noqa: S314 - our own text
        for svg in (harmless, hostile)
    ]
    assert counted[0] == counted[1]
    assert f"{NAMESPACE}script" not in counted[1]
    assert re.search(r"[\x00-\x08\x0b-\x1f]", hostile) is None
    assert hostile.isascii()


@pytest.mark.parametrize("kind", drawn("x"))
def test_the_twin_is_plain_and_what_a_screen_reader_gets(kind: str) -> None:
    """ASCII without control characters; title and description hold it."""
    picture = drawn(HOSTILE)[kind]
    assert picture.text.isascii()
    assert re.search(r"[^\n -~]", picture.text) is None
    root = ElementTree.fromstring(picture.svg)  # noqa: S314 - our own text
    title, description = root.find(f"{NAMESPACE}title"), root.find(f"{NAMESPACE}desc")
    assert title is not None
    assert description is not None
    assert picture.text == f"{title.text}\n\n{description.text}\n"
    assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], description.attrib["id"]]


@pytest.mark.parametrize("kind", drawn("x"))
def test_the_same_data_give_the_same_bytes(kind: str) -> None:
    """And a notebook gets both forms."""
    first, second = drawn("a name")[kind], drawn("a name")[kind]
    assert first.svg == second.svg
    assert (first._repr_svg_(), repr(first)) == (first.svg, first.text)
    assert "viewBox" in first.svg
    assert "<path" not in first.svg


@pytest.mark.parametrize("kind", drawn("x"))
def test_nothing_stands_outside_of_the_panel(kind: str) -> None:
    """Marks and the beginnings of texts are within the view, with long names too."""
    root = ElementTree.fromstring(drawn("a rather long name " * 12)[kind].svg)  # noqa: S314 - our own text
    wide, high = (float(each) for each in root.attrib["viewBox"].split()[2:])
    for element in root.iter():
        for name, limit in (("x", wide), ("cx", wide), ("x2", wide), ("y", high), ("cy", high), ("y2", high)):
            assert 0 <= float(element.attrib.get(name, 0)) <= limit, ElementTree.tostring(element)


def luminance(color: str) -> float:
    """The relative luminance of a colour (WCAG 2.1)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("color", TINTS)
def test_words_stand_out_from_their_ground(color: str) -> None:
    """The contrast is 5 to 1 at least, on the tint as on the panel."""
    for ground in (TINTS[color], "#fcfcfa"):
        light, dark = sorted([luminance(color), luminance(ground)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 5


# --- from reports of crashlab --------------------------------------------------------------------


def finding(**changes: object) -> Finding:
    given = {
        "id": "power@3-2",
        "verdict": "violation",
        "kind": "stuck",
        "fault": "power",
        "summary": "it does not come up",
        "fault_line": "power loss",
        "ops": (
            OpLine(n=1, op="create", text="a.tmp", path="a.tmp"),
            OpLine(n=2, op="write", text="a.tmp  9 bytes at 0", path="a.tmp", note="lost"),
            OpLine(n=3, op="rename", text="a.tmp -> a.json", path="a.tmp"),
        ),
        "disk": (DiskLine(path="a.json", type="file", bytes=0), DiskLine(path="b.json", type="file", bytes=7)),
        "changes": (FileChange(path="a.json", change="changed", before=9, after=0),),
        "observed": Observed(how="raised", error="Damaged: 0 bytes"),
    }
    return Finding(**{**given, **changes})


def report(*counts: FaultCount, findings: tuple[Finding, ...] = (), unmeasured: bool = False) -> Report:
    bad = any(count.violation for count in counts)
    reasons = (UnmeasuredReason(code="time-limit", detail="too slow"),) if unmeasured else ()
    return Report(
        verdict="violation" if bad else "unmeasured" if unmeasured else "consistent",
        subject=SubjectInfo(name="a save", kind="Store"),
        settings=Settings(faults=tuple(count.fault for count in counts)),
        faults=counts,
        findings=findings,
        unmeasured=reasons,
    )


def count(fault: str, **verdicts: int) -> FaultCount:
    return FaultCount(fault=fault, judged=sum(verdicts.values()), **verdicts)


@pytest.mark.parametrize("kind", drawn("x"))
def test_a_picture_shrinks_with_its_page(kind: str) -> None:
    """Put into a page that is narrower than the picture, it is not cut off."""
    style = ElementTree.fromstring(drawn("x")[kind].svg).get("style") or ""  # noqa: S314 - our own text
    assert style.split(";") == ["max-width:100%", "height:auto"]


def test_a_long_time_line_says_that_it_tells_the_last_marks_only() -> None:
    """Else a list that begins with 4 looks as if something were missing."""
    marks = [Mark(at, "acts", f"mail {at}") for at in range(1, 11)]
    told = [line.strip() for line in timeline("t", marks, crash=10, crash_text="killed", left=["a"]).text.splitlines()]
    assert told[told.index("the last 7 of 10:") + 1] == "4 mail 4"
    few = timeline("t", marks[:7], crash=7, crash_text="killed", left=["a"]).text
    assert "the last" not in few


def test_a_finding_is_a_time_line_with_what_was_lost() -> None:
    """Its ops, the lost one marked, the crash, and what a recovery made of the rest."""
    text = str(timeline_of("A power loss", finding()))
    assert "2 write a.tmp  9 bytes at 0  LOST" in text
    assert "X power loss" in text
    assert "a.json  0 bytes" in text
    assert "recovery: Damaged: 0 bytes" in text


def test_a_finding_is_a_tree_before_and_after() -> None:
    """What changed, and what stands there unchanged."""
    text = str(tree_of("A power loss", finding()))
    assert re.search(r"a\.json +9 bytes +0 bytes +changed", text)
    assert re.search(r"b\.json +7 bytes +7 bytes +same", text)
    assert "that is: stuck" in text


@pytest.mark.parametrize("draw", [timeline_of, tree_of])
def test_names_that_are_drawn_at_random_are_left_out(draw: Callable[[str, Finding], Picture]) -> None:
    """Two runs of one program give one picture, whatever they call their temporary files."""
    pictures = []
    for name in ("a.json.0123456789abcdef.tmp", "a.json.fedcba9876543210.tmp"):
        bad = finding(
            ops=(OpLine(n=1, op="create", text=name, path=name),),
            disk=(DiskLine(path=name, type="file", bytes=9),),
            changes=(FileChange(path=name, change="changed", before=9, after=9),),
            observed=Observed(how="raised", error=f"Damaged: {name}"),
        )
        pictures.append(draw("A title", bad).svg)
    assert pictures[0] == pictures[1]
    assert "a.json.*.tmp" in pictures[0]


@pytest.mark.parametrize(
    ("counted", "word"),
    [
        (count("kill", consistent=3), "ok"),
        (count("kill", refused=3), "refused"),
        (count("kill", consistent=1, refused=2), "ok"),
        (count("kill", consistent=2, unmeasured=1), "?"),
        (count("kill"), "?"),
        (FaultCount(fault="kill", known=4, consistent=4), "ok"),
        (count("kill", consistent=2, violation=1), "V lost"),
    ],
    ids=["consistent", "refused", "some refused", "unmeasured", "nothing judged", "known", "violation"],
)
def test_a_cell_says_what_came_of_a_fault(counted: FaultCount, word: str) -> None:
    """The worst of it; where nothing was judged nothing is claimed."""
    findings = (finding(fault="kill", kind="lost"), finding(fault="power", kind="accepted-damage"))
    text = str(matrix_of("Saves", [report(counted, findings=findings if counted.violation else ())]))
    assert re.search(rf"a save +{re.escape(word)}$", text, re.MULTILINE), text


def test_an_unmeasured_report_has_no_green_cell() -> None:
    """A time limit is never a pass, whatever the counts say."""
    text = str(matrix_of("Saves", [report(count("kill", consistent=3), count("power", consistent=2), unmeasured=True)]))
    assert "ok" not in text
    assert text.count("?") == 2


def test_what_was_not_tried_says_so() -> None:
    """A design that was not held against a fault has no verdict there."""
    text = str(matrix_of("Saves", [report(count("kill", consistent=1)), report(count("power", consistent=1))]))
    assert text.count("not tried") == 1  # both have one name here, and the last of them stands


@pytest.mark.parametrize("draw", [timeline_of, tree_of])
def test_a_hostile_finding_is_drawn_safely(draw: Callable[[str, Finding], Picture]) -> None:
    """Paths and errors of a subject are its own words."""
    op = OpLine(n=1, op="write", text=HOSTILE, path=HOSTILE)
    bad = finding(
        ops=(op,),
        disk=(DiskLine(path=HOSTILE, type="file", state=HOSTILE),),
        changes=(FileChange(path=HOSTILE, change="gone", before=3),),
        observed=Observed(how="raised", error=HOSTILE),
        fault_line=HOSTILE,
    )
    assert "alert" in words(draw("A title", bad).svg)
