"""The lab's late modules, kept compiled: the keeper's processes write no bytecode, since they import the subject.

What only these processes import (the recorder, the live faults) would be compiled anew in each of them: measured on a
fresh checkout, that is a third of what a host costs to start. An installed lab was compiled when it was installed.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys

PACKAGES = ("record", "record/strace", "live", "recover")


@functools.cache
def keep_compiled() -> None:
    """Compile what is not compiled yet, once in a process; nothing where that is not wanted or cannot be written."""
    lab = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in (os.path.join(lab, name) for name in PACKAGES):
        if sys.dont_write_bytecode or not os.access(folder, os.W_OK) or all(map(_is_compiled, _sources(folder))):
            continue
        import compileall  # noqa: PLC0415 - once after a change of the lab

        compileall.compile_dir(folder, maxlevels=0, quiet=2)


def _sources(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".py")]


def _is_compiled(source: str) -> bool:
    try:
        return os.stat(importlib.util.cache_from_source(source)).st_mtime >= os.stat(source).st_mtime
    except (OSError, NotImplementedError):  # not there, or Python has no name for it
        return False
