"""What a finding says fits the very state that it tells of: cause, advice, marks, right answers, all on real runs."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from crashlab import Budget, Lab, Log, Store, Subject, explore
from crashlab.demands import Problem, effect_of
from crashlab.report.finding import observed_words
from crashlab.report.finding_view import finding_view
from crashlab.report.sentences import finding_sentence
from crashlab.report.timeline import timeline_of
from crashlab.values import apart
from tests.crashlab.traces import create, effect, trace_of
from tests.quality import failing_stores, lossy_stores, stores

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.report.model import Finding, Report

FEW = Budget(real_kills=0)
SHORT = [[{"seq": 0}], [{"seq": 1, "text": "x" * 5000}], [{"seq": 2}]]


def report_of(subject: Any, out: Path, faults: str = "kill", **fields: Any) -> Report:
    """A check with few controls."""
    report = explore(dataclasses.replace(subject, **fields), faults=faults, out=out, budget=FEW)
    assert report.verdict == "violation", str(report)
    return report


def first(report: Report, kind: str) -> Finding:
    """The first finding of a kind."""
    return next(finding for finding in report.findings if finding.kind == kind)


def told(finding: Finding) -> str:
    """Cause and advice."""
    return " ".join((finding.why, *finding.advice))


def test_an_event_stored_again_is_no_matter_of_two_recoveries(tmp_path: Path) -> None:
    """The append after the crash brought it, and a look at the keys would have kept it out."""
    finding = first(report_of(stores.NO_DEDUPE, tmp_path), "duplicate-entry")
    assert "appended again" in finding.why
    assert "key" in told(finding)
    assert "first recovery" not in finding.why


def test_half_of_an_atomic_batch_is_no_half_record(tmp_path: Path) -> None:
    """Its first records are whole, and nothing before them is hidden."""
    finding = first(report_of(stores.HALF_BATCHES, tmp_path), "torn")
    assert "batch" in finding.why
    assert "half record" not in told(finding)


def test_one_value_in_two_files_is_told_as_that(tmp_path: Path) -> None:
    """With what mends it."""
    finding = first(report_of(stores.TWO_FILES, tmp_path), "torn")
    assert "several files" in finding.why
    assert "one file" in told(finding)


def test_a_file_removed_before_the_rename_is_named(tmp_path: Path) -> None:
    """And that the rename alone would have been enough."""
    finding = first(report_of(stores.UNLINK_FIRST, tmp_path), "lost")
    assert finding.why.startswith("value.json is removed before its successor has its name")
    assert "a rename replaces it" in told(finding)


def test_what_failed_after_the_recovery_stands_in_its_line(tmp_path: Path) -> None:
    """The recovery itself returned; the save after it did not."""
    finding = first(report_of(stores.LOCK_FILE, tmp_path, values=[{"n": 1}]), "stuck")
    words = observed_words(finding.observed, "Store")
    assert "returned null; then one more save raised FileExistsError" in words


def test_the_right_answers_hold_what_was_in_flight(tmp_path: Path) -> None:
    """A load may also give the value that was being saved; a Log is told by its acked events, not by the last batch."""
    finding = first(report_of(stores.IN_PLACE, tmp_path), "lost")
    assert len(finding.expected) == 2
    finding = report_of(stores.TORN_TAIL, tmp_path).findings[-1]
    assert finding.expected == ("2 acked events, alone or followed by the batch being appended",)


def test_two_values_that_are_cut_alike_are_told_apart(tmp_path: Path) -> None:
    """What a person reads of both is the same; where they part is said."""
    assert apart(["x" * 99], ["x" * 99]) == apart([], ["x" * 99])
    finding = first(report_of(stores.SKIPS_LINES, tmp_path, values=SHORT), "lost")
    assert "so 2 events" in finding.summary
    assert "then load() returned 1 event" in finding.summary


def save_two(directory: Path, value: str) -> None:
    """Wrong: half of the file at a time, the second one first."""
    if not (directory / "value").exists():
        (directory / "new").write_text(value)
        (directory / "new").rename(directory / "value")
        return
    for at in (4096, 0):
        descriptor = os.open(directory / "value", os.O_CREAT | os.O_WRONLY)
        os.pwrite(descriptor, value[at : at + 4096].encode(), at)
        os.close(descriptor)


def load(directory: Path) -> str | None:
    """All of it."""
    path = directory / "value"
    return path.read_text() if path.exists() else None


def test_a_torn_value_that_begins_like_the_acked_one(tmp_path: Path) -> None:
    """Where it goes on otherwise."""
    values = ["a" * 8192, "c" * 4096 + "b" * 4096]
    findings = report_of(Store(save_two, load, values=values), tmp_path).findings
    finding = next(each for each in findings if "was acked" in each.summary)
    assert (
        "(from character 4,098 on 'bbbbbbbbbbbbbbbbbbbb' where the other has 'aaaaaaaaaaaaaaaaaaaa')" in finding.summary
    )


# --- the effect that was done again ---------------------------------------------------------------------


def mails_two_ways(lab: Lab) -> str:
    """Wrong for ada, who has no mark; bob has a key."""
    for name, key in (("ada", None), ("bob", "bob")):
        if not (lab.dir / "done").exists():
            lab.effect("mail", key=key, to=name)
    stores.save_atomic(lab.dir, "yes", "done")
    return "done"


def test_the_effect_that_is_named_is_the_one_that_is_marked(tmp_path: Path) -> None:
    """Not the last one before the crash."""
    report = report_of(Subject(mails_two_ways), tmp_path)
    finding = first(report, "duplicate-effect")
    (only,) = [op for op in finding.ops if op.remark.startswith("done; recovery")]
    assert (only.n, finding.summary) == (1, "mail to=ada done 2 times, expected 1")
    later = explore(Subject(mails_two_ways), faults="kill", only="kill@2", out=tmp_path)
    (only,) = [op for op in later.findings[0].ops if op.remark.startswith("done; recovery")]
    assert only.n == 1
    assert "before op 1" in " ".join(later.findings[0].advice)


def test_an_effect_of_another_detail_is_another_one() -> None:
    """By its name alone the last one would be taken."""
    from crashlab.crash.states import prefixes_of  # noqa: PLC0415 - for this one test

    state = prefixes_of(trace_of(effect("mail", to="ada"), effect("mail", to="bob"), create("a", 10))).killed(3)
    for name, n in (("ada", 1), ("bob", 2)):
        problem = Problem(kind="duplicate-effect", summary=f"mail to={name} done 2 times, expected 1", effect="mail")
        found = effect_of(state, problem)
        assert found is not None
        assert found.n == n
    assert effect_of(state, Problem(kind="missing-effect", summary="mail to=eve done 0 times", effect="mail")) is None


# --- what is no crash ------------------------------------------------------------------------------------


def test_an_error_is_told_as_one(tmp_path: Path) -> None:
    """Nothing crashed, so nothing is said of a crash."""
    report = report_of(failing_stores.SWALLOWS, tmp_path, "error:ENOSPC")
    finding = report.findings[0]
    assert finding_sentence(finding).startswith("With this error ")
    view = finding_view(finding, report.subject, key="k", number=1, opened=True)
    assert not any("crash" in head for head in view["heads"])


def test_half_an_append_that_failed_is_told_as_that(tmp_path: Path) -> None:
    """No lock, no temporary file: half a record, and the next one behind it."""
    finding = first(report_of(failing_stores.GLUED_LOG, tmp_path, "error:short-write"), "lost")
    assert "beginning of its record" in finding.why
    assert "O_EXCL" not in told(finding)


def test_a_recovery_done_twice_has_a_sentence_of_its_own(tmp_path: Path) -> None:
    """A store has no run, so none that came to another end."""
    finding = first(report_of(stores.CONSUMES, tmp_path, values=[{"n": 1}]), "diverged")
    assert finding_sentence(finding) == "After this crash doing the recovery a second time came to something else."


# --- the time line ------------------------------------------------------------------------------------------


def test_an_ack_after_which_all_is_well_is_not_painted_red(tmp_path: Path) -> None:
    """Of a save that may be caught in the middle the ack is not a part."""
    report = report_of(stores.IN_PLACE, tmp_path)
    line = timeline_of(report, (1,))
    assert line is not None
    acks = [moment.n for moment in report.moments if moment.op == "ack"]
    words = dict(line.words)["kill"]
    violation, consistent = words.split("; ")
    assert consistent == "consistent at ops " + ", ".join(map(str, acks))
    assert violation == "violation at ops 1-3, 5-7, 9-11, 13-15"


def test_bytes_that_never_came_are_not_called_old(tmp_path: Path) -> None:
    """A new file has no old version."""
    subject, _ = lossy_stores.FOUND["rename without fsync"]
    report = explore(subject, faults="power", only="power@9-3d0", out=tmp_path)
    states = {line.state for finding in report.findings for line in finding.disk}
    assert "a mix of old and new" not in states
    assert "as no op left it" in states


def test_a_log_is_a_log(tmp_path: Path) -> None:
    """One event is an event."""
    lost = Log(lambda _dir, _events: None, lambda _dir: [], values=[[1]])
    report = explore(lost, faults="kill", out=tmp_path)
    assert "1 events" not in str(report)
