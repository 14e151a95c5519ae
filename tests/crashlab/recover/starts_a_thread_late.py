"""A subject that imports a module with a thread in the middle of its run."""

from __future__ import annotations

import importlib
from typing import Any

from crashlab import Subject
from tests.crashlab.recover.one_step import write_one


def run(lab: Any) -> str:
    """Import late, then write."""
    importlib.import_module("tests.crashlab.recover.starts_a_thread")
    return write_one(lab)


SUBJECT = Subject(run)
