"""What this machine has, and the marks that skip a test, with what to install, where it is missing."""

from __future__ import annotations

import shutil

import pytest

from crashlab.errors import ToolMissing
from crashlab.record.strace.notices import available as available_notices
from crashlab.record.strace.tool import available

PACKAGES = {"node": "nodejs", "git": "git", "cc": "gcc"}


def _no_strace() -> str:
    try:
        available()
    except ToolMissing as error:
        return str(error)
    return ""


needs_strace = pytest.mark.skipif(bool(_no_strace()), reason=_no_strace() or "strace works here")
needs_notices = pytest.mark.skipif(bool(available_notices()), reason=available_notices() or "calls can be refused here")


def needs(program: str) -> pytest.MarkDecorator:
    """Skips with what to install."""
    missing = shutil.which(program) is None
    return pytest.mark.skipif(missing, reason=f"{program} is not here: apt install {PACKAGES[program]}")
