"""``crashlab doctor``: what works on this machine, what each thing is needed for, and what to install.

What can be tried is tried: a real check runs from end to end, strace watches a real program. Whether a
real disk can be made is told from its parts, without making one.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashlab import __version__, context
from crashlab.disk.available import KINDS, missing
from crashlab.errors import CrashlabError, ToolMissing
from crashlab.record.strace import tool
from crashlab.subject import Budget, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from crashlab.report.model import Report
    from crashlab.settings import Options

SCHEMA = "crashlab.doctor/1"
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at. ``core``: without it nothing works; ``next`` is what to do where it is missing."""

    name: str
    works: bool
    needed_for: str
    detail: str = ""
    next: str = ""
    core: bool = False


def examine() -> list[Finding]:
    """Look at everything; takes a second or two. Leaves nothing behind."""
    return [_python(), *_check(), *_strace(), *_disk_parts(), *_disks(), *_packages()]


def works(findings: Iterable[Finding]) -> bool:
    """Whether the core works: kills and power losses of Python code can be judged."""
    return all(each.works for each in findings if each.core)


def to_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {
        "schema": SCHEMA,
        "works": works(findings),
        "version": __version__,
        "findings": [asdict(each) for each in findings],
    }


# --- the core ------------------------------------------------------------------------------------


def _python() -> Finding:
    fits = sys.version_info >= OLDEST_PYTHON and os.name == "posix"
    return Finding(
        name="Python",
        works=fits,
        core=True,
        needed_for="everything",
        detail=f"{platform.python_version()} on {sys.platform}",
        next="" if fits else "Python 3.11 or newer on Linux or macOS; on Windows use WSL",
    )


def _save(folder: Path, value: int) -> None:
    with open(folder / "probe.tmp", "w", encoding="utf-8") as file:
        file.write(str(value))
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "probe.tmp", folder / "probe")
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def _load(folder: Path) -> int | None:
    path = folder / "probe"
    return int(path.read_text(encoding="utf-8")) if path.exists() else None


PROBE = Store(_save, _load, values=[1, 2], name="doctor")
"""A store that does it right: what does not pass here is the machine."""


def _check(explore: Callable[..., Report] | None = None) -> list[Finding]:
    """A real check, and whether recoveries can run side by side; ``explore`` is the lab's own unless a test says so."""
    if explore is None:
        explore = importlib.import_module("crashlab.pipeline").explore  # no stage of the lab before it is needed
    name, needed_for = "a check from end to end", "kills and power losses of Python code"
    # What a project or the environment asks of its own checks says nothing of this machine.
    alone = context.surrounded(context.Context(project=Path(os.devnull)))
    with tempfile.TemporaryDirectory(prefix="crashlab-doctor-") as out, alone:
        try:
            report = explore(PROBE, **_ASKED, out=out)
        except CrashlabError as error:
            text = str(error).splitlines()[0]
            return [Finding(name=name, works=False, core=True, needed_for=needed_for, detail=text, next=_REPORT_IT)]
    judged = sum(each.judged for each in report.faults)
    passed = report.verdict == "consistent"
    reasons = "; ".join(f"{each.code}: {each.detail}" for each in report.unmeasured) or report.verdict
    detail = f"{judged:,} crash states in {report.seconds:.1f} s" if passed else reasons
    whole = Finding(
        name=name, works=passed, core=True, needed_for=needed_for, detail=detail, next="" if passed else _REPORT_IT
    )
    return [whole, _namespace(report)]


_ASKED: Options = {
    "faults": "kill,power",
    "profile": "ext4,xfs,btrfs",
    "policy": {},
    "budget": Budget(states=500, subset=2, sample=0, real_kills=2),
    "seed": 0,
    "jobs": 2,
    "recorder": "auto",
}
"""All of it, so that nothing else has a say."""

_REPORT_IT = "run this again; if it stays so, report it with the output of crashlab doctor --json"


def _namespace(report: Report) -> Finding:
    """A mount namespace is what the check itself used, or did without."""
    control = next((each for each in report.controls if each.control == "pinned-path"), None)
    detail = control.detail if control is not None else ""
    fits = control is not None and control.passed and "one at a time" not in detail
    return Finding(
        name="mount namespace",
        works=fits,
        needed_for="several recoveries at a time at the recorded path; without it one at a time",
        detail=detail,
        next="" if fits else "in a container: allow unshare (seccomp) or --cap-add=SYS_ADMIN; macOS has none",
    )


# --- programs of the system ------------------------------------------------------------------------


def _strace() -> list[Finding]:
    needed_for = "programs in any language, C libraries (sqlite3), children of a program"
    try:
        found = tool.available()
    except ToolMissing as error:
        return [Finding(name="strace", works=False, needed_for=needed_for, detail=error.text, next=error.next)]
    notices = importlib.import_module("crashlab.record.strace.notices")  # it reaches for what only Linux has
    refused = notices.available()
    version = ".".join(map(str, found.version))
    return [
        Finding(name="strace", works=True, needed_for=needed_for, detail=f"{version}, may watch processes"),
        Finding(
            name="notices of calls",
            works=not refused,
            needed_for="I/O errors in programs that strace watches (--faults error)",
            detail=refused or "seccomp",
            next="Linux 5.6 or newer on x86_64 or aarch64, where a container allows seccomp" if refused else "",
        ),
    ]


def _disk_parts() -> list[Finding]:
    """What a real disk is made of."""
    use = "losing power on a real file system (--disk)"
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    parts = [
        Finding(
            name="root",
            works=root,
            needed_for=use,
            next="" if root else "run as root; a container: docker --privileged",
        )
    ]
    for name, path, module in (("FUSE", "/dev/fuse", "fuse"), ("loop devices", "/dev/loop-control", "loop")):
        there = os.access(path, os.R_OK | os.W_OK)
        text = f"modprobe {module}; a container needs the device {path}"
        parts.append(Finding(name=name, works=there, needed_for=use, detail=path, next="" if there else text))
    in_memory = Path("/proc/filesystems")
    tmpfs = in_memory.exists() and "\ttmpfs\n" in in_memory.read_text(encoding="ascii")
    text = "" if tmpfs else "a Linux with tmpfs; elsewhere states are written to the disk"
    needed_for = "writing crash states in memory"
    return [*parts, Finding(name="tmpfs", works=tmpfs, needed_for=needed_for, next=text)]


def _disks() -> list[Finding]:
    found = []
    for kind in (each for each in KINDS if "[" not in each):  # options are those of the same tools
        path = shutil.which(f"mkfs.{kind}", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
        refused = missing(kind)
        text, _, follows = refused.partition("; ")
        found.append(
            Finding(
                name=f"a real {kind}",
                works=not refused,
                needed_for=f"--disk {kind}",
                detail=text or (path or ""),
                next=follows,
            )
        )
    return found


_PACKAGES = {
    "pytest": "checks in a test suite",
    "xdist": "test suites on several cores",
    "hypothesis": "histories of saves and crashes (crashlab.strategies)",
    "jinja2": "reports as a page",
}
_DISTRIBUTIONS = {"xdist": "pytest-xdist"}


def _packages() -> list[Finding]:
    found = []
    for module, needed_for in _PACKAGES.items():
        name = _DISTRIBUTIONS.get(module, module)
        there = importlib.util.find_spec(module) is not None
        found.append(
            Finding(
                name=name,
                works=there,
                needed_for=needed_for,
                detail=_version(name) if there else "",
                next="" if there else f"pip install {name}",
            )
        )
    return found


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # it lies on the path without having been installed
        return ""
