"""The run folder: what a check leaves on disk, written the way the lab tells others to write.

::

    .crashlab/latest -> runs/20260930T081502.123456Z-checkpoint-4711
    .crashlab/runs/<utc>-<name>-<pid>/
        report.json  report.txt  report.html  trace.json  reference.json
        kill@7/      dir/ home/ tmp/  finding.txt  recovery.out  recovery.err  run.sh

``report.html`` comes with the commands ``check``, ``run`` and ``report``, not with the functions.
Each file is complete or absent: written under another name, flushed, renamed. A finding's folder is
filled under another name too, but not flushed: it can be made again from the trace. The newest
20 runs stay; a run that is still being written is never removed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashlab import context, directory
from crashlab.errors import LabError, UsageError
from crashlab.report import prune
from crashlab.trace import Trace

if TYPE_CHECKING:
    from crashlab.report.model import Finding, Report
    from crashlab.tree import Tree

NAME_BYTES = 120
"""Names in the folder are cut to this length, well below the 255 bytes that file systems take."""

_OUR_DEFAULT = ".crashlab"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def safe_name(text: str) -> str:
    """``text`` as the name of a file: everything but letters, digits and ``@+.,-`` becomes ``_``.

    A name that was cut ends with a hash of the whole, so that two long ones stay two.

    >>> safe_name("power@9-3/kill@2"), safe_name("..")
    ('power@9-3_kill@2', '__')
    """
    name = re.sub(r"[^A-Za-z0-9@+.,-]", "_", text)
    if not name.strip("."):
        name = "_" * max(len(name), 1)
    if len(name) > NAME_BYTES:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        name = f"{name[: NAME_BYTES - 13]}-{digest}"
    return name


class RunFolder:
    """One run on disk. Make one with :meth:`create` or :meth:`open`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # --- writing -------------------------------------------------------------------------------

    @staticmethod
    def create(out: Path, name: str) -> RunFolder:
        """A new, empty folder below ``out`` for a run of the subject ``name``.

        Raises UsageError where it may not be made there, LabError where the disk is full.
        """
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        path = out / "runs" / f"{now}-{safe_name(name.replace(', ', '-'))}-{os.getpid()}"
        try:
            ours = out.name == _OUR_DEFAULT and not out.exists()
            path.mkdir(parents=True)  # a process cannot begin two runs of one name in one microsecond
            if ours:  # a project that just tried the lab should not find its runs in its commits
                _write(out / ".gitignore", b"*\n", f"-{os.getpid()}")  # as another worker of the tests may
        except OSError as error:
            raise _refused(path, error) from error
        except ValueError as error:  # a zero byte, which no path holds
            text = f"{os.fspath(out)!r} is no path ({error}); pass a folder that can be written: --out DIR"
            raise UsageError(text) from error
        return RunFolder(path)

    def discard(self) -> None:
        """Remove the folder of a run that came to nothing."""
        shutil.rmtree(self.path, ignore_errors=True)

    def save_trace(self, trace: Trace) -> None:
        """Write ``trace.json``."""
        self.save_extra("trace.json", trace.to_json())

    def save_extra(self, name: str, form: dict[str, Any]) -> None:
        """Write a JSON object under this name, for example ``reference.json``."""
        self._write(self.path / safe_name(name), json.dumps(form).encode())

    def save_text(self, name: str, text: str) -> Path:
        """Write a text under this name, for example ``report.html``; returns its path."""
        path = self.path / safe_name(name)
        self._write(path, _to_bytes(text))
        return path

    def save_finding(self, finding: Finding, state_tree: Tree, *, stdout: str, stderr: str) -> str:
        """Write a finding with the crash state that shows it; returns the folder's path.

        ``stdout`` and ``stderr`` are what the recovery printed. Its ``finding.txt`` comes with
        :meth:`finish`, which knows the subject.
        """
        target = self._free(safe_name(finding.id))
        partial = target.with_name(f"~{target.name}")
        files = {
            "recovery.out": _to_bytes(stdout),
            "recovery.err": _to_bytes(stderr),
            "run.sh": _run_script(finding.id),
        }
        try:
            partial.mkdir()
            directory.write(state_tree, partial)
            partial.chmod(0o755)  # the modes below are the subject's, this folder is the reader's
            for name, data in files.items():
                _write(partial / name, data)
            (partial / "run.sh").chmod(0o755)
            partial.rename(target)
        except OSError as error:
            raise _refused(target, error) from error
        return str(target)

    def finish(self, report: Report) -> None:
        """Write ``report.json`` and ``report.txt``, point ``latest`` here, remove the oldest runs."""
        from crashlab.report.text import render, render_finding  # noqa: PLC0415 - rich only when something is drawn

        for finding in (*report.findings, *(each.finding for each in report.accepted)):
            folder = self.path / Path(finding.directory).name
            if finding.directory and folder.is_dir():
                text = render_finding(finding, report.subject, color=False)
                self._write(folder / "finding.txt", _to_bytes(text))
        self._write(self.path / "report.txt", _to_bytes(render(report, color=False)))
        self._write(self.path / "report.json", json.dumps(report.to_json()).encode())
        out = self.path.parent.parent
        try:
            _point(out / "latest", self.path.name)
            prune.prune(self.path.parent, keep=self.path.name)
        except OSError as error:
            raise _refused(out / "latest", error) from error

    def _write(self, path: Path, data: bytes) -> None:
        try:
            _write(path, data)
        except OSError as error:
            raise _refused(path, error) from error

    def _free(self, name: str) -> Path:
        """A path in this folder that is not taken; ``~`` is in no escaped id, so nothing else has it."""
        path, number = self.path / name, 1
        while os.path.lexists(path):
            number += 1
            path = self.path / f"{name}~{number}"
        return path

    # --- reading -------------------------------------------------------------------------------

    @staticmethod
    def open(path: Path | None, out: Path) -> RunFolder:
        """The run at ``path``, or the latest one below ``out``.

        Raises UsageError where there is none.
        """
        found = path if path is not None else _latest(out)
        if found is None or not os.path.isdir(found):
            where = f"no run in {os.fspath(out)!r}" if path is None else f"{os.fspath(path)!r} is no run folder"
            text = f"{where}; make one with: crashlab check MODULE:OBJECT, or name one with --run DIR"
            raise UsageError(text)
        # Resolved now: ``latest`` may point to another run before the next file is read.
        return RunFolder(found.resolve() if found.is_symlink() else found)

    def report(self) -> dict[str, Any]:
        """The stored report. Raises UsageError where the run did not get that far, or was damaged."""
        return self.extra("report.json")

    def trace(self) -> Trace:
        """The stored trace. Raises UsageError like :meth:`report`."""
        return Trace.from_json(self.extra("trace.json"))

    def has(self, name: str) -> bool:
        """Whether :meth:`save_extra` wrote this; some runs have nothing to say there."""
        return (self.path / safe_name(name)).is_file()

    def extra(self, name: str) -> dict[str, Any]:
        """What :meth:`save_extra` wrote. Raises UsageError like :meth:`report`."""
        path = self.path / safe_name(name)
        try:
            form = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            text = f"{os.fspath(path)!r} is not there: that run did not end; name another one with --run DIR"
            raise UsageError(text) from error
        except OSError as error:
            text = f"cannot read {os.fspath(path)!r}: {error.strerror}"
            raise UsageError(text) from error
        except (ValueError, RecursionError) as error:
            text = f"{os.fspath(path)!r} is damaged ({error}); check again, or name another run with --run DIR"
            raise UsageError(text) from error
        if not isinstance(form, dict):
            text = f"{os.fspath(path)!r} holds no JSON object; check again, or name another run with --run DIR"
            raise UsageError(text)
        return form


# --- files ---------------------------------------------------------------------------------------


def _write(path: Path, data: bytes, own: str = "") -> None:
    """Put ``data`` at ``path``: there is the old file, then the new one, and never anything else.

    ``own`` keeps two processes apart that write the same file.
    """
    partial = path.with_name(f"~{path.name}{own}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o644)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)  # before the rename: the name must never reach the disk without the bytes
    finally:
        os.close(descriptor)
    os.replace(partial, path)
    _flush_directory(path.parent)


def _flush_directory(path: Path) -> None:
    if sys.platform == "win32":  # a directory cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _point(link: Path, name: str) -> None:
    """Let ``latest`` name this run, in one step. It is a text file where links are not allowed."""
    partial = link.with_name(f"~latest-{os.getpid()}")
    partial.unlink(missing_ok=True)
    try:
        partial.symlink_to(Path("runs") / name, target_is_directory=True)
    except (NotImplementedError, PermissionError):
        _write(link, _to_bytes(f"runs/{name}\n"))
        return
    os.replace(partial, link)


def _latest(out: Path) -> Path | None:
    link = out / "latest"
    if os.path.isfile(link):
        return out / link.read_text(encoding="utf-8").strip()
    return link if os.path.isdir(link) else None


def _refused(path: Path, error: OSError) -> UsageError | LabError:
    """The error to raise: a folder that may not be written is the caller's choice, a full disk is not."""
    what = f"cannot write {os.fspath(path)!r}: {error.strerror or error}"
    if error.errno in _NO_ROOM:
        return LabError(f"{what}; the result is not kept. Free some space, or pass another place: --out DIR")
    return UsageError(f"{what}; pass a folder that can be written: --out DIR")


def _to_bytes(text: str) -> bytes:
    """UTF-8; bytes that were no text come back as they were, other surrogates as an escape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def _run_script(state_id: str) -> bytes:
    """A script that recovers the state again, from where and with what the check was run."""
    path = os.environ.get("PYTHONPATH")
    lines = [
        "#!/bin/sh",
        "# Recovers this crash state again: exit 1 while the violation is there, 0 when it is gone.",
        'run=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd) || exit 64',
        f"cd -- {shlex.quote(os.path.abspath(context.placed()))} || exit 64",
        *([f"PYTHONPATH=${{PYTHONPATH-{shlex.quote(path)}}}", "export PYTHONPATH"] if path else []),
        f'exec {shlex.quote(sys.executable or "python3")} -m crashlab replay {shlex.quote(state_id)} --run "$run" "$@"',
        "",
    ]
    return _to_bytes("\n".join(lines))
