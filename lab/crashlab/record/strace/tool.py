"""The strace of this system: where it is, which version, and whether it may watch processes here.

Needed is 5.3 or newer: ``--seccomp-bpf``, which stops a program only at the calls that are asked for,
came with it (strace NEWS). Containers and hardened kernels may forbid ptrace altogether, so it is tried.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

from crashlab.errors import ToolMissing

OLDEST = (5, 3)
KILLS_ON_EXIT = (6, 3)
_LIMIT_S = 20.0
_INSTALL = "apt install strace (or dnf, apk, pacman: the package is called strace everywhere)"
_ALLOW = "in a container: --cap-add=SYS_PTRACE; elsewhere: sysctl kernel.yama.ptrace_scope=0 or 1"


@dataclass(frozen=True)
class Tool:
    """A strace that works here."""

    path: str
    version: tuple[int, int]

    @property
    def kills_on_exit(self) -> bool:
        """Whether it can take its processes with it when it is killed: ``--kill-on-exit``, since 6.3."""
        return self.version >= KILLS_ON_EXIT


def available() -> Tool:
    """Find strace and try it once. Raises ToolMissing, whose ``next`` says what to do."""
    if sys.platform != "linux":
        text = f"strace watches programs on Linux only; this is {sys.platform}"
        raise ToolMissing(text, next_step="use recorder='python', or run on Linux")
    path = shutil.which("strace")
    if path is None:
        text = "strace 5.3 or newer is not installed"
        raise ToolMissing(text, next_step=_INSTALL)
    said = _output([path, "-V"])
    found = re.search(r"version (\d+)\.(\d+)", said)
    if found is None:
        text = f"{path} does not tell its version, but says {said[:200]!r}"
        raise ToolMissing(text, next_step=_INSTALL)
    version = int(found[1]), int(found[2])
    if version < OLDEST:
        text = f"{path} is version {version[0]}.{version[1]}; 5.3 or newer is needed"
        raise ToolMissing(text, next_step=_INSTALL)
    said = _output([path, "-f", "--seccomp-bpf", "-q", "-o", "/dev/null", "-e", "trace=openat", "--", "/bin/true"])
    if said:
        text = f"{path} cannot watch a process here: {said.strip()[:300]}"
        raise ToolMissing(text, next_step=_ALLOW)
    return Tool(path, version)


def _output(argv: list[str]) -> str:
    """What it printed on either stream; for a failure without a word, its exit code."""
    try:
        done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = (done.stdout + done.stderr).decode(errors="replace")
    return said or (f"exit code {done.returncode}" if done.returncode else "")
