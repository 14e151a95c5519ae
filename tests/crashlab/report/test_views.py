"""Stored reports are found, drawn and written; what is none is refused with what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crashlab.errors import UsageError
from crashlab.report import views
from crashlab.report.load import dump
from tests.crashlab.report.samples import PASS, UNMEASURED, VIOLATION, finished

ROOT = Path(views.__file__).parents[2]


def test_a_run_is_found_by_its_folder_by_the_folder_of_all_and_as_the_latest(tmp_path: Path) -> None:
    """The same report each time."""
    run = finished(tmp_path / "out")
    for path, out in ((run.path, tmp_path), (tmp_path / "out", tmp_path), (None, tmp_path / "out")):
        reports, found = views.stored(path, out)
        assert [each.verdict for each in reports] == ["violation"]
        assert found is not None
        assert found.path.resolve() == run.path.resolve()


def test_reports_are_read_from_what_json_printed(tmp_path: Path) -> None:
    """Several of one command, or the one of a run folder."""
    several, one = tmp_path / "several.json", tmp_path / "one.json"
    several.write_text(dump([PASS, UNMEASURED]))
    one.write_text(json.dumps(VIOLATION.to_json()))
    assert views.stored(several, tmp_path) == ([PASS, UNMEASURED], None)
    assert views.stored(one, tmp_path) == ([VIOLATION], None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON .*; name a run folder"),
        ("[" * 100_000, "is no JSON"),
        ("\udcff", "is no JSON"),
        ("[]", "not a report that this crashlab can read"),
        ('{"schema": "crashlab.report/2"}', "expected schema 'crashlab.report/1', found 'crashlab.report/2'"),
        ('{"schema": "crashlab.reports/1", "reports": []}', "holds no report"),
        ('{"schema": "crashlab.reports/1", "reports": [1]}', "not a report"),
        ('{"schema": "crashlab.report/1", "verdict": "passed"}', "damaged report"),
    ],
    ids=["cut", "deep", "no text", "list", "newer", "empty", "number", "verdict"],
)
def test_what_is_no_report_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """In a file, and as the report of a run folder."""
    path = tmp_path / "report.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=message):
        views.stored(path, tmp_path)
    if "schema" in content and "reports" not in content:
        with pytest.raises(UsageError, match=message):
            views.stored(tmp_path, tmp_path)


def test_a_folder_without_a_report_is_refused(tmp_path: Path) -> None:
    """Missing, empty, or a run that did not end; the advice is one that this command takes."""
    for path in (tmp_path / "missing", tmp_path, None):
        with pytest.raises(UsageError) as refused:
            views.stored(path, tmp_path / "none")
        assert "--run" not in str(refused.value)


@pytest.mark.parametrize("form", views.FORMATS)
def test_every_format_is_drawn(form: str) -> None:
    """And each tells the verdict."""
    text = views.draw([VIOLATION], form, **({"color": False} if form == "text" else {}))
    assert "violation" in text.lower()


def test_a_text_is_written_whole_over_an_old_one_and_through_a_link(tmp_path: Path) -> None:
    """The link stays, nothing else is left behind."""
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    views.write("a\ud800b", tmp_path / "link")
    assert (tmp_path / "real").read_text() == "a\\ud800b"
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """``--output /dev/stdout`` is one, too."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        views.write("text", pipe)
        assert reader.communicate()[0] == b"text"
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["", "missing/file", "file/below"])
def test_what_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    """A directory, a directory that is not there, a file in the place of one; nothing is left behind."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*; name another file with --output FILE"):
        views.write("text", tmp_path / name)
    assert os.listdir(tmp_path) == ["file"]


def test_a_page_is_kept_in_its_run_folder(tmp_path: Path) -> None:
    """Where there is one."""
    run = finished(tmp_path / "out")
    (report,), _ = views.stored(run.path, tmp_path)
    assert views.keep_page(report) == run.path / "report.html"
    assert "<!DOCTYPE html>" in (run.path / "report.html").read_text()
    assert views.keep_page(UNMEASURED) is None


def test_a_check_as_a_function_loads_no_templates() -> None:
    """They take longer to import than a small check takes; only the commands draw a page."""
    program = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT.parent)!r}]\n"
        "import tempfile, pathlib, crashlab.pipeline, crashlab.report.views\n"
        "from tests.crashlab.report.samples import finished\n"
        "with tempfile.TemporaryDirectory() as folder: finished(pathlib.Path(folder))\n"
        "print('jinja2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
