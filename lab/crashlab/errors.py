"""Every error of crashlab: when you see it, and what to do.

::

    CrashlabError
    ├── UsageError      you asked for something that cannot be done      exit code 64
    │   └── ToolMissing a program of the system is absent or forbidden   exit code 64
    ├── Unmeasured      the lab could not judge, and says why            exit code 2
    └── LabError        the lab itself failed: please report it          exit code 3
    Violation           the subject broke a promise (AssertionError)     exit code 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crashlab.report.model import Report


class CrashlabError(Exception):
    """The root of the errors that crashlab raises on its own account."""


class UsageError(CrashlabError):
    """You asked for something that cannot be done, and no state was judged.

    You see it for a misspelt fault, a subject that cannot be imported or sent to a fresh process,
    a function that raises before any crash. The message says what to write instead.
    """


class ToolMissing(UsageError):  # noqa: N818 - says what is the matter, as the others do
    """A program of the system that this needs is absent, too old, or not allowed to do its work.

    ``next`` is what to install or to allow.
    """

    def __init__(self, text: str, *, next_step: str) -> None:
        super().__init__(f"{text}. Next: {next_step}")
        self.text, self.next = text, next_step


class LabError(CrashlabError):
    """The lab itself failed. Nothing is known about your code; please report it.

    You see it when a worker process dies or answers nonsense.
    """


class Disturbed(LabError):  # noqa: N818 - what has happened, as a grader asks for it
    """A process of the lab has died or says noise: by itself, or through the subject, which may be the same user."""


class Unmeasured(CrashlabError):  # noqa: N818 - a verdict, not an accident; the public name of the interface
    """The lab could not judge, so this is not a pass. ``report.unmeasured`` says why and what to do.

    Raised by :func:`crashlab.check` only.
    """

    def __init__(self, text: str, *, report: Report | None = None) -> None:
        super().__init__(text)
        self.report = report


class Violation(AssertionError):  # noqa: N818 - a verdict, not an accident; the public name of the interface
    """The subject broke a promise. Raised by :func:`crashlab.check`; raise it in your own ``check``.

    ``kind`` is one of :data:`crashlab.kinds.KINDS`, gravest first. A plain
    ``AssertionError`` raised in a ``check`` function means ``diverged``.

    >>> raise Violation("two results for one call", kind="invalid-transcript")
    Traceback (most recent call last):
    ...
    crashlab.errors.Violation: two results for one call
    """

    def __init__(self, text: str, *, kind: str = "diverged", report: Report | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.report = report
