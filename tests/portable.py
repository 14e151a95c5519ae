"""Which tests need neither Linux nor root nor strace: those of the model, of the reports and of the pages.

They carry the marker ``portable``; ``make test-portable`` runs them alone. As a plugin of pytest, with
``-p tests.portable`` and ``PRETEND_PLATFORM=darwin``, this module takes away what only Linux has, so that a test which
needs it fails here rather than on somebody's desk.
"""

from __future__ import annotations

import fnmatch
import os
import sys
import urllib.request  # it imports another module on macOS, so before this one pretends  # noqa: F401 - for that alone

PATTERNS = (
    "tests/crashlab/crash/*",
    "tests/crashlab/report/test_[!b]*",  # a browser is not everywhere
    "tests/crashlab/test_content.py",
    "tests/crashlab/test_damage_demands.py",
    "tests/crashlab/test_events.py",
    "tests/crashlab/test_explain_loss.py",
    "tests/crashlab/test_faults.py",
    "tests/crashlab/test_honesty.py",
    "tests/crashlab/test_lab.py",
    "tests/crashlab/test_package.py",
    "tests/crashlab/test_progress.py",
    "tests/crashlab/test_settings.py",
    "tests/crashlab/test_trace.py",
    "tests/crashlab/test_tree.py",
    "tests/crashlab/test_values.py",
    "tests/packaging/test_contents.py",
    "tests/test_tidy.py",
    "tests/versions/*",
)
NOT_PORTABLE = {"test_attributes_of_files_are_rebuilt"}
"""Single tests of those files: extended attributes by functions that only Linux has in ``os``."""

ONLY_LINUX_HAS = ("unshare", "setns", "memfd_create", "copy_file_range", "splice", "sched_getaffinity")
"""Functions of ``os`` that macOS lacks and that somebody might reach for."""


def is_portable(path: str, name: str = "") -> bool:
    """Whether the test ``name`` in the file at ``path``, relative to the root and with ``/``, is one of them."""
    return name not in NOT_PORTABLE and any(fnmatch.fnmatch(path, pattern) for pattern in PATTERNS)


def pytest_configure() -> None:
    """Be another platform, as far as Python can tell; strace and real disks are refused then by that name."""
    pretend = os.environ.get("PRETEND_PLATFORM")
    if pretend:
        sys.platform = pretend
        for name in ONLY_LINUX_HAS:
            if hasattr(os, name):
                delattr(os, name)
