"""The bug report: facts, and a script that rebuilds the crash state to the byte without this lab."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crashlab import directory
from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.report.folder import RunFolder
from crashlab.report.issue import ISSUE_CHARACTERS, rebuild_script, render_issue
from crashlab.report.load import load
from crashlab.report.model import Acceptance
from tests.crashlab.report.hostile import TEXTS, poisoned
from tests.crashlab.report.samples import DUPLICATE, STATE, VIOLATION, finished, tree_of
from tests.crashlab.report.test_markdown import read, shape

if TYPE_CHECKING:
    from crashlab.report.model import Finding, Report
    from crashlab.tree import Tree

HOST_BYTES = bytes(range(256)) * 40


def stored(out: Path, state: Tree, finding: Finding = DUPLICATE) -> tuple[RunFolder, Report, Finding]:
    """A run with one finding at this state."""
    run = RunFolder.create(out, "agent")
    where = run.save_finding(finding, state, stdout="", stderr="")
    placed = dataclasses.replace(finding, directory=where)
    report = dataclasses.replace(VIOLATION, findings=(placed,), run=str(run.path))
    return run, report, placed


def script_of(text: str) -> str:
    """The script in a bug report."""
    found = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, text
    return found[1]


def rebuilt(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script alone: no environment, no site packages, no crashlab."""
    path = folder / "rebuild.py"
    path.write_text(script, encoding="ascii")
    return subprocess.run(
        [sys.executable, "-I", "-S", str(path), *arguments], capture_output=True, text=True, check=False, cwd=folder
    )


def odd_state() -> Tree:
    """Everything that a tree can hold: names that are no text, links, a FIFO, modes, times, an attribute, all bytes."""
    return tree_of(
        t.Create(n=4, path="dir/a\udcffb", inode=9, mode=0o600),
        t.Write(n=5, path="dir/a\udcffb", inode=9, offset=0, data=HOST_BYTES),
        t.Link(n=6, path="dir/two\nlines '''\"\"\" \\", inode=9),
        t.MakeSymlink(n=7, path="home/link", inode=10, target="../dir/\u202egone"),
        t.MakeSpecial(n=8, path="tmp/fifo", inode=11, type="fifo", mode=0o640),
        t.MakeDirectory(n=9, path="dir/locked", inode=12, mode=0o500),
        t.Create(n=10, path="dir/small", inode=13, mode=0o444),
        t.Write(n=11, path="dir/small", inode=13, offset=0, data=b"{}"),
    )


@pytest.mark.parametrize("state", [STATE, odd_state()], ids=["sample", "odd"])
def test_the_script_rebuilds_the_state_to_the_byte(tmp_path: Path, state: Tree) -> None:
    """Names, bytes, links, modes and times, without crashlab."""
    run, report, finding = stored(tmp_path / "out", state)
    script = script_of(render_issue(run, report, finding))
    assert "crashlab" not in script.split("STATE = [")[1]
    done = rebuilt(script, tmp_path, str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    for place in ("dir", "home", "tmp"):
        again = directory.read(tmp_path / "again" / place)
        assert again.digest == directory.read(Path(finding.directory, place)).digest
    assert f"now resume agent on {tmp_path / 'again'}/dir, with HOME={tmp_path / 'again'}/home" in done.stdout


def test_a_script_with_other_bytes_is_noticed(tmp_path: Path) -> None:
    """Sabotage: one changed letter of the data, and the test above compares other trees."""
    run, report, finding = stored(tmp_path / "out", STATE)
    script = rebuild_script(run, report, finding)
    assert "e30=" in script, "the two bytes of the file a.json"
    assert rebuilt(script.replace("e30=", "e3s="), tmp_path, str(tmp_path / "again")).returncode == 0
    again = directory.read(tmp_path / "again" / "dir")
    assert again.digest != directory.read(Path(finding.directory, "dir")).digest


def test_attributes_of_files_are_rebuilt(tmp_path: Path) -> None:
    """Where the file system of the tests has them; the script names them in any case."""
    run, report, finding = stored(tmp_path / "out", STATE)
    target = Path(finding.directory, "dir", "a.json")
    target.chmod(0o600)
    try:
        os.setxattr(target, "user.mark", b"\x00=x")
    except OSError as error:
        pytest.skip(f"no attributes on {tmp_path}: {error}; use a TMPDIR on ext4, xfs, btrfs or a newer tmpfs")
    script = rebuild_script(run, report, finding)
    assert rebuilt(script, tmp_path, str(tmp_path / "again")).returncode == 0
    assert os.getxattr(tmp_path / "again" / "dir" / "a.json", "user.mark") == b"\x00=x"


def test_without_a_directory_the_script_makes_one(tmp_path: Path) -> None:
    """And says where."""
    run, report, finding = stored(tmp_path / "out", STATE)
    done = rebuilt(rebuild_script(run, report, finding), tmp_path)
    where = re.search(r"^rebuilt in (.*)$", done.stdout, re.MULTILINE)
    assert where
    assert (Path(where[1]) / "dir" / "a.json").read_bytes() == b"{}"
    directory.clear(where[1])
    Path(where[1]).rmdir()


def test_the_script_overwrites_nothing(tmp_path: Path) -> None:
    """A directory with something in it is refused."""
    run, report, finding = stored(tmp_path / "out", STATE)
    done = rebuilt(rebuild_script(run, report, finding), tmp_path, str(tmp_path))
    assert done.returncode == 1
    assert "is not empty; name a new directory" in done.stderr


def test_the_report_tells_facts(tmp_path: Path) -> None:
    """Versions, ops, files, what recovery did, why it is possible; no advice."""
    run, report, finding = stored(tmp_path / "out", STATE)
    words = read(render_issue(run, report, finding)).words
    for fact in (
        "python: 3.11",
        "7 effect mail to=ada <-- done; nothing on disk knows",
        "---------- killed ----------",
        "checkpoint.json 182 bytes as at op 6",
        "resume returned",
        "mail to=ada: 2 times, uncrashed once (before the crash, recovery)",
        "Written bytes belong to the kernel",
        "name its version here",
    ):
        assert fact in words, fact
    assert DUPLICATE.advice[0] not in words


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_nothing_that_a_program_says_becomes_markup(tmp_path: Path, text: str) -> None:
    """The elements are those of a report of plain words, and the script still runs."""
    shapes: list[list[str]] = []
    for each in (text, "plain"):
        run, report, finding = stored(tmp_path / str(len(shapes)), STATE)
        hostile = dataclasses.replace(poisoned(finding, each), id="kill@7", directory=finding.directory)
        whole = poisoned(report, each)
        shapes.append(shape(render_issue(run, whole, hostile)))
        compile(rebuild_script(run, whole, dataclasses.replace(hostile, id=each)), "rebuild.py", "exec")
    assert shapes[0] == shapes[1]


def test_a_large_state_is_attached(tmp_path: Path) -> None:
    """GitHub takes no more than 65,536 characters, so the report says what to attach and how."""
    large = tree_of(
        t.Create(n=4, path="dir/large", inode=9),
        t.Write(n=5, path="dir/large", inode=9, offset=0, data=os.urandom(60_000)),
    )
    run, report, finding = stored(tmp_path, large)
    text = render_issue(run, report, finding)
    assert len(text) <= ISSUE_CHARACTERS
    assert "```python" not in text
    assert f"tar czf state.tar.gz -C {finding.directory} dir home tmp" in read(text).words


def test_a_finding_whose_files_have_gone_is_refused(tmp_path: Path) -> None:
    """With what to do."""
    run = finished(tmp_path / "out")
    report = load(run.report())
    directory.clear(report.findings[0].directory)
    with pytest.raises(UsageError, match=r"not in .* any more; check again"):
        render_issue(run, report, report.findings[0])


def test_an_accepted_finding_can_be_reported(tmp_path: Path) -> None:
    """Most of all that one: it waits for its authors. What the lab does not stand by stays refused."""
    run, report, finding = stored(tmp_path / "out", STATE)
    accepted = (Acceptance(finding=finding, reason="not ours"),)
    kept = dataclasses.replace(report, verdict="consistent", findings=(), accepted=accepted)
    assert render_issue(run, kept, finding) == render_issue(run, report, finding)
    with pytest.raises(UsageError, match="is no violation: the run is consistent"):
        render_issue(run, dataclasses.replace(kept, accepted=()), finding)
