"""The terminal view of reports: verdict first, then where it broke, then each distinct fault once.

rich does the colours and measures the columns, and is imported only by this package's view modules;
nothing else needs it. The text is the same with and without colours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.faults import BUILT, DESIGNED
from crashlab.kinds import gravity
from crashlab.report.accepted import draw_accepted, with_accepted
from crashlab.report.finding import draw_finding
from crashlab.report.page import Page, count, duration
from crashlab.report.tables import WORDS, comparison, crash_matrix, fault_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashlab.report.model import Control, Finding, Report, SubjectInfo, UnmeasuredReason

_CONTROL_WORDS = {"runs-agree": "two runs agree", "real-kill": "real kills agree"}
_DETAIL_SAYS_ALL = ("real-kill", "real-disk")
_SHORT_DETAIL = 24
_HEADLINE_KINDS, _HEADLINE_IDS = 4, 3


def render(report: Report, *, color: bool, width: int = 100, ascii_only: bool = False) -> str:
    """The whole report, as text that ends with a newline: at most ``width`` columns wide, but for what one copies."""
    page = Page(color=color, width=width, ascii_only=ascii_only)
    _draw(page, report)
    return page.text()


def render_many(reports: Sequence[Report], *, color: bool, width: int = 100, ascii_only: bool = False) -> str:
    """Several reports: one table to compare them, each in full, and the table again. One report is just itself.

    The table stands at both ends, since a terminal shows the last lines and a file the first ones.
    """
    page = Page(color=color, width=width, ascii_only=ascii_only)
    if len(reports) == 1:
        _draw(page, reports[0])
        return page.text()
    comparison(page, reports)
    for report in reports:
        page.blank()
        page.line(("-" * width, "dim"))
        _draw(page, report)
    page.blank()
    page.line(("-" * width, "dim"))
    comparison(page, reports)
    return page.text()


def render_finding(
    finding: Finding, subject: SubjectInfo, *, color: bool, width: int = 100, ascii_only: bool = False
) -> str:
    """One finding by itself; its first line says everything needed in a summary."""
    page = Page(color=color, width=width, ascii_only=ascii_only)
    draw_finding(page, finding, subject)
    return page.text()


def _draw(page: Page, report: Report) -> None:
    if report.verdict == "violation":
        _draw_violation(page, report)
    elif report.verdict == "unmeasured":
        _draw_unmeasured(page, report)
    else:
        _draw_pass(page, report)


# --- the three verdicts ----------------------------------------------------------------------------


def _draw_pass(page: Page, report: Report) -> None:
    claim = "consistent within the stated bound"
    if report.settings.path:
        claim = "consistent on the one path that was followed"
    elif is_one_state(report):
        claim = "consistent in the one state that was tried"
    if report.accepted:
        claim = f"otherwise {claim}"
    text = f"{report.subject.name}: {claim}"
    page.paragraph(text, first=((WORDS["consistent"] + with_accepted(report), "pass"), "  "), role="strong")
    draw_accepted(page, report)
    _draw_tried(page, report)
    if report.accepted:
        return  # it did forget something
    damaged, shared = (sum(each.judged for each in report.faults if each.fault == name) for name in ("damage", "race"))
    died = judged(report) - damaged - shared
    words = [f"It died {_times(died)} and forgot nothing."] if died or not (damaged or shared) else []
    words += [f"It met damage {_times(damaged)} and took none of it for good."] if damaged else []
    words += [f"Two owners met {_times(shared)} and spoiled nothing."] if shared else []
    page.line((" ".join(words), "pass"))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _draw_violation(page: Page, report: Report) -> None:
    violations = sum(each.violation for each in report.faults)
    total = judged(report)
    kinds = sorted({finding.kind for finding in report.findings}, key=lambda kind: (gravity(kind), kind))
    names = ", ".join(kinds[:_HEADLINE_KINDS]) + (" and more" if len(kinds) > _HEADLINE_KINDS else "")
    ids = ", ".join(finding.id for finding in report.findings[:_HEADLINE_IDS])
    text = f"{report.subject.name}: {names} in {violations:,} of {count(total, 'crash state')} [{ids}]"
    page.paragraph(text, first=((WORDS["violation"], "violation"), "  "), role="strong")
    page.blank()
    crash_matrix(page, report.matrix)
    for finding in report.findings:
        page.blank()
        draw_finding(page, finding, report.subject)
    page.blank()
    draw_accepted(page, report)
    _draw_reasons(page, report)
    _draw_tried(page, report, matrix=False)


def judged(report: Report) -> int:
    """How many states were recovered: one that two faults leave counts once."""
    return sum(each.judged - each.known for each in report.faults)


def _draw_unmeasured(page: Page, report: Report) -> None:
    lead = ((WORDS["unmeasured"], "unmeasured"), "  ")
    if not report.unmeasured:
        page.paragraph(f"{report.subject.name}: no reason was given.", first=lead)
    for position, (reason, follows) in enumerate(_with_last_advice(report.unmeasured)):
        named = "" if position else f"{report.subject.name}: "
        page.paragraph(f"{named}{reason.code}. {reason.detail}", first=() if position else lead)
        if follows:
            page.paragraph(reason.next, indent=9, first=("  ", ("next   ", "label")))
    draw_accepted(page, report)
    if any(each.judged for each in report.faults):
        _draw_tried(page, report)
    elif report.controls or report.notes or report.run:
        _draw_controls(page, report)
        _draw_end(page, report)
    page.line(("This is not a pass.", "unmeasured"))


def _draw_reasons(page: Page, report: Report) -> None:
    """What could not be judged, in a report that has violations too."""
    for reason, follows in _with_last_advice(report.unmeasured):
        page.paragraph(f"{reason.code}. {reason.detail}", indent=13, first=("  ", ("unmeasured", "unmeasured"), " "))
        if follows:
            page.labelled("next", reason.next)


def _with_last_advice(reasons: Sequence[UnmeasuredReason]) -> Iterator[tuple[UnmeasuredReason, bool]]:
    """Each reason, and whether its advice stands below it: the same advice in a row is given once, at the end."""
    for reason, after in zip(reasons, [*reasons[1:], None], strict=False):
        yield reason, bool(reason.next) and (after is None or after.next != reason.next)


# --- what was tried --------------------------------------------------------------------------------


def _draw_tried(page: Page, report: Report, *, matrix: bool = True) -> None:
    if report.faults:
        fault_table(page, report.faults)
    if matrix and report.matrix and not is_one_state(report):
        page.blank()
        crash_matrix(page, report.matrix)
        page.blank()
    page.labelled("bound", bound_words(report))
    _draw_controls(page, report)
    page.labelled("not asked", not_asked(report))
    _draw_end(page, report)


def _draw_controls(page: Page, report: Report) -> None:
    if not report.controls:
        return
    passed = [control for control in report.controls if control.passed]
    words = ", ".join(control_words(control) for control in passed)
    page.labelled("controls", f"{len(passed)} of {len(report.controls)}: {words}")
    for control in report.controls:
        if not control.passed:
            page.labelled("", f"failed: {control_words(control)}", role="violation")


def control_words(control: Control) -> str:
    """One control in words, with its detail where that is short or says what is wrong."""
    if control.control in _DETAIL_SAYS_ALL and control.detail:
        return control.detail
    words = _CONTROL_WORDS.get(control.control, control.control.replace("-", " "))
    short = control.detail and (not control.passed or len(control.detail) <= _SHORT_DETAIL)
    return f"{words} ({control.detail})" if short else words


def _draw_end(page: Page, report: Report) -> None:
    for position, note in enumerate(report.notes):
        page.labelled("" if position else "note", note)
    page.line("  ", (duration(report.seconds).ljust(10), "label"), " ", (report.run, "dim"))


def bound_words(report: Report) -> str:
    """The stated bound in words: what was tried whole, and how much was sampled beyond it."""
    if report.settings.path:
        return f"one path, {' then '.join(report.settings.path)}; nothing is claimed of other states"
    if is_one_state(report):
        return "one state; nothing is claimed of the others"
    budget = report.settings.budget
    crashes = any(not fault.startswith("damage") for fault in report.settings.faults)
    parts = ["every prefix"] if any(each.fault in ("kill", "power") for each in report.faults) and crashes else []
    for fault in report.settings.faults:
        if fault.startswith("kill"):
            parts.append("writes cut at every byte" if "cut=byte" in fault else "writes cut at page ends")
        elif fault.startswith("error"):
            whole = report.settings.recorder == "python" or budget.get("errors") == "ops"
            parts.append("each error at each op" if whole else "each error at the first op of each site")
        elif fault.startswith("power"):
            whole = 2 ** budget.get("subset", 0)
            parts.append(f"power losses at each barrier: cuts of the metadata with {whole} variants, larger ones' core")
        elif fault.startswith("recovery"):
            recoveries = sum(each.points for each in report.faults if each.fault == "recovery")
            parts.append(f"crashes of {count(recoveries, 'recovery', 'recoveries')}")
        elif fault.startswith("race"):
            parts.append("a second owner after each op")
        elif fault.startswith("damage"):
            parts.append("damage at rest to each file: flips at its edges, records and sectors, every other kind whole")
    sampled = sum(each.sampled for each in report.faults)
    return f"{', '.join(parts)}; {sampled:,} sampled beyond"


def is_one_state(report: Report) -> bool:
    """Whether this is a replay, or a check of one state: a whole check has at least one state per op."""
    return sum(each.states for each in report.faults) == 1


def not_asked(report: Report) -> str:
    """The faults that were not tried, in words."""
    asked = {fault.partition("[")[0].partition(":")[0] for fault in report.settings.faults}
    left = [fault for fault in BUILT if fault not in asked]
    unbuilt = [fault for fault in DESIGNED if fault not in BUILT and fault not in asked]
    words = [f"{', '.join(left)} (--faults all)"] if left else []
    words += [f"{', '.join(unbuilt)} (not built yet)"] if unbuilt else []
    return "; ".join(words) or "nothing: every fault was asked for"
