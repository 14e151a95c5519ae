"""A bug report for the authors of what was tested: Markdown made of facts alone, that stands on its own.

The reader needs neither this lab nor the run folder: a plain Python script rebuilds the files that the
crash left, to the byte, and says where recovery is to be run on them. Advice is left out: what mends it
is theirs to decide. What cannot be known here, the version of what was tested, is left to fill in.
"""

from __future__ import annotations

import base64
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from crashlab import directory
from crashlab.errors import LabError, UsageError
from crashlab.report.finding import effects_told, note_of, observed_words
from crashlab.report.legal import legal_words
from crashlab.report.markdown import block, code, words
from crashlab.report.page import count, printable
from crashlab.report.sentences import kind_words
from crashlab.subject import PROGRAMS
from crashlab.tree import ROOT_INODE, Directory, File, Symlink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab.report.folder import RunFolder
    from crashlab.report.model import Finding, Report

ISSUE_CHARACTERS = 60_000
"""An issue on GitHub has at most 65,536 characters (cited: the error that its interface gives)."""
PLACES = ("dir", "home", "tmp")
_OPS_AT_MOST, _OUTPUT_LINES, _DISK_AT_MOST = 40, 20, 40
_PLAIN_BYTES, _LINE, _BLOCK_CHARACTERS, _NAME_CHARACTERS = 256, 88, 8_000, 120
_SCRIPT = '''\
#!/usr/bin/env python3
"""Rebuilds the files that a crash left: {id}.

Usage: python3 rebuild.py [DIRECTORY]    a new or empty one; without it, a new temporary directory
"""
import base64, os, sys, tempfile, zlib

STATE = [  # what it is, path, mode, modification time in ns, bytes or target
{entries}]

if len(sys.argv) > 1:
    root = os.path.abspath(sys.argv[1])
    os.makedirs(root, exist_ok=True)
    if os.listdir(root):
        sys.exit(root + " is not empty; name a new directory")
else:
    root = tempfile.mkdtemp(prefix="crash-")
for kind, path, mode, mtime, data in STATE:
    path = os.path.join(root, path)
    if kind == "directory":
        os.mkdir(path, 0o700)
    elif kind == "symlink":
        os.symlink(data, path)
    elif kind == "link":
        os.link(os.path.join(root, data), path, follow_symlinks=False)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, 0o140600)
    elif kind == "attribute":
        name, _, value = data.partition("=")
        os.setxattr(path, name, base64.b64decode(value))
    else:
        data = base64.b64decode(data)
        with open(path, "xb") as file:
            file.write(zlib.decompress(data) if kind == "packed" else data)
for kind, path, mode, mtime, data in reversed(STATE):
    path = os.path.join(root, path)
    if kind not in ("symlink", "link", "attribute"):
        os.chmod(path, mode)
        os.utime(path, ns=(mtime, mtime))
    elif kind == "symlink":
        os.utime(path, ns=(mtime, mtime), follow_symlinks=False)
print("rebuilt in " + root)
print({where} % {{"root": root}})
'''


def render_issue(run: RunFolder, report: Report, finding: Finding) -> str:
    """The bug report for one finding of a stored run.

    Raises UsageError where the files of its crash state are not in the run folder any more, and where the lab does not
    stand by the finding.
    """
    accepted = any(each.finding == finding for each in report.accepted)  # lived with here, and wrong all the same
    if report.verdict != "violation" and not accepted:
        why = f", {report.unmeasured[0].code}" if report.unmeasured else ""
        text = f"{finding.id} is no violation: the run is {report.verdict}{why}"
        raise UsageError(text)
    script = rebuild_script(run, report, finding)
    parts = list(_parts(report, finding))
    whole = "\n".join([*parts, *_script_part(script)])
    if len(whole) <= ISSUE_CHARACTERS:
        return whole
    return "\n".join([*parts, *_attached_part(_folder_of(run, finding), len(script))])


def rebuild_script(run: RunFolder, report: Report, finding: Finding) -> str:
    """A Python program, pure ASCII, that needs nothing but Python 3 and rebuilds the files of the crash state."""
    entries = "".join(_entries(_folder_of(run, finding)))
    shown_id = _ascii(finding.id).replace("\\", "/").replace('"', "'")  # it stands in a docstring
    return _SCRIPT.format(id=shown_id, entries=entries, where=ascii(_where(report)))


def _folder_of(run: RunFolder, finding: Finding) -> Path:
    folder = run.path / Path(finding.directory).name
    if not finding.directory or not all((folder / place).is_dir() for place in PLACES[:1]):
        text = (
            f"the files of {finding.id} are not in {os.fspath(run.path)!r} any more; check again, "
            "then: crashlab show ID --issue"
        )
        raise UsageError(text)
    return folder


def _where(report: Report) -> str:
    name = _ascii(report.subject.name).replace("%", "%%")
    verb = "resume" if report.subject.kind in PROGRAMS else "load"
    return f"now {verb} {name} on %(root)s/dir, with HOME=%(root)s/home and TMPDIR=%(root)s/tmp"


def _ascii(text: str) -> str:
    return printable(text[:_NAME_CHARACTERS], ascii_only=True)


# --- the text --------------------------------------------------------------------------------------


def _parts(report: Report, finding: Finding) -> Iterator[str]:
    yield f"# {words(finding.kind)}: {words(finding.summary, at_most=200)}\n"
    yield "<!-- Look through it before you post it: it holds the bytes of the files, and paths of your machine. -->\n"
    yield f"After a crash {words(kind_words(finding.kind))}. The crash was computed from one recorded run: the ops up"
    yield "to it, and files that it may leave. Recovery is the program's own, in a fresh process.\n"
    yield "## Versions\n"
    yield "- what was tested: (name its version here)"
    for name, version in report.versions.items():
        yield f"- {words(name)}: {words(version)}"
    yield f"- subject: {code(report.subject.name)}, {words(report.subject.kind)}; crash state {code(finding.id)}"
    if finding.profiles:
        yield f"- possible on: {words(', '.join(finding.profiles))}"
    yield "\n## What ran, up to the crash\n"
    yield block("\n".join(_ops(finding)), at_most=_BLOCK_CHARACTERS)
    yield "\n## The files after it\n"
    yield block("\n".join(_disk(finding)) or "none", at_most=_BLOCK_CHARACTERS)
    yield "\n## What recovery did\n"
    yield block("\n".join(_recovery(report, finding)), at_most=_BLOCK_CHARACTERS)
    legal = legal_words(finding)
    if legal:
        yield "\n## Why a crash may leave this\n"
        yield "\n\n".join(words(each) for each in legal)


def _ops(finding: Finding) -> Iterator[str]:
    run = 0
    hidden = len(finding.ops) - _OPS_AT_MOST
    if hidden > 0:
        yield f"  ... {count(hidden, 'op')} before"
    for op in finding.ops[-_OPS_AT_MOST:]:
        if op.run != run:
            yield from (f"      ---------- {line} ----------" for line in finding.crashes[run : op.run])
            run = op.run
        note = note_of(finding, op)[1]
        yield f"{op.n:>5}  {op.op:<10}  {op.text}" + (f"   <-- {note}" if note else "")
    yield from (f"      ---------- {line} ----------" for line in finding.crashes[run:])
    yield f"      ---------- {finding.fault_line or finding.fault} ----------"


def _disk(finding: Finding) -> Iterator[str]:
    for line in finding.disk[:_DISK_AT_MOST]:
        size = count(line.bytes, "byte") if line.type == "file" else line.type
        yield "  ".join(each for each in (line.path, size, line.state) if each)
    if hidden := len(finding.disk[_DISK_AT_MOST:]):
        yield f"... {hidden} more"


def _recovery(report: Report, finding: Finding) -> Iterator[str]:
    yield observed_words(finding.observed, report.subject.kind)
    for name, text in (("stdout", finding.observed.stdout), ("stderr", finding.observed.stderr)):
        yield from (f"{name}  {line}" for line in text.rstrip().splitlines()[-_OUTPUT_LINES:])
    yield from (f"expected  {line}" for line in finding.expected)
    told = effects_told(finding)
    if isinstance(told, str):
        yield from ([f"effects  {told}"] if told else [])
    else:
        yield from (f"effect  {name}: {how}" for name, role, how in told if role != "dim")


# --- the state -------------------------------------------------------------------------------------


def _script_part(script: str) -> Iterator[str]:
    yield "\n## The files themselves\n"
    yield "This script rebuilds them in a temporary directory and says where to run the recovery.\n"
    yield block(script, "python")
    yield ""


def _attached_part(folder: Path, characters: int) -> Iterator[str]:
    places = " ".join(place for place in PLACES if (folder / place).is_dir())
    yield "\n## The files themselves\n"
    made = code(f"tar czf state.tar.gz -C {folder} {places}", at_most=4_096)
    yield f"They are too large to stand here: a script that rebuilds them has {characters:,} characters. They are"
    yield f"attached as `state.tar.gz`, made with {made}; unpack it into an empty directory and run the recovery on its"
    yield "`dir`, with its `home` and `tmp` as HOME and TMPDIR.\n"


def _entries(folder: Path) -> Iterator[str]:
    for place in PLACES:
        if not (folder / place).is_dir():
            continue
        try:
            tree = directory.read(folder / place)
        except LabError as error:
            text = f"{error}; it has the modes that the crash left: read it as their owner, or as root"
            raise UsageError(text) from error
        top = tree.nodes[ROOT_INODE]
        assert isinstance(top, Directory)
        yield _entry("directory", place, top.mode, top.mtime_ns, "")
        first: dict[int, str] = {}
        for below, inode, node in tree.walk():
            path = f"{place}/{below}"
            if inode in first and not isinstance(node, Directory):
                yield _entry("link", path, 0, 0, first[inode])
                continue
            first[inode] = path
            yield from _node_entries(path, node)


def _node_entries(path: str, node: object) -> Iterator[str]:
    if isinstance(node, Symlink):
        yield _entry("symlink", path, 0o777, node.mtime_ns, node.target)
        return
    kind, data = getattr(node, "type", "directory"), ""
    if isinstance(node, File):
        content = node.content.read()
        packed = zlib.compress(content, 9)
        kind = "packed" if len(content) > _PLAIN_BYTES and len(packed) < len(content) else "file"
        data = base64.b64encode(packed if kind == "packed" else content).decode()
    yield _entry(kind, path, getattr(node, "mode", 0o644), getattr(node, "mtime_ns", 0), data)
    for name, value in getattr(node, "attributes", ()):
        yield _entry("attribute", path, 0, 0, f"{name}={base64.b64encode(value).decode()}")


def _entry(kind: str, path: str, mode: int, mtime_ns: int, data: str) -> str:
    """One line of the table, in several where the data is long; names that are no text survive as escapes."""
    head = f"    ({kind!r}, {path!a}, {mode:#o}, {mtime_ns}, "
    if len(data) <= _LINE:
        return f"{head}{data!a}),\n"
    pieces = (data[at : at + _LINE] for at in range(0, len(data), _LINE))
    return head + "".join(f"\n        {piece!a}" for piece in pieces) + "),\n"
