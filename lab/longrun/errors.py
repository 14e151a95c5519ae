"""Every error of longrun: when you see it, and what to do.

::

    LongrunError
    ├── UsageError           you asked for something that cannot be done        exit code 64
    ├── HistoryExists        a plain start over a directory with a run in it
    ├── Damaged              a file of the run is not what was written: look at it, delete nothing
    ├── UnsupportedVersion   a sound file, but of another protocol version
    ├── LeaseHeld            another process works in this directory: wait for it, or take another one
    ├── LostLease            another process took the directory over: this one stopped, resume nothing
    ├── IncompleteResponse   the stream ended before the whole answer came: nothing was saved, resume
    ├── InvalidTranscript    a list of messages that the Messages API refuses
    ├── ApiError             the server answered with an error; ``status`` says which
    ├── OutcomeUnknown       an act was begun, and no answer came: it may or may not have been done
    └── InvalidInput         a tool was called with an input that does not fit
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class LongrunError(Exception):
    """The root of the errors that longrun raises on its own account."""


class UsageError(LongrunError):
    """You asked for something that cannot be done. The message says what to write instead."""


class HistoryExists(LongrunError):  # noqa: N818 - it names the fact; nothing failed
    """A plain start was asked for where a run is stored already. Resume it, or take another directory."""


class Damaged(LongrunError):  # noqa: N818 - the name of the protocol for this refusal
    """A file of the run is not what was written.

    Nothing was changed: the file is the evidence. ``path`` names it, ``reason`` says what is wrong.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}. Nothing was changed; keep the file and restore the run from a copy.")
        self.path = path
        self.reason = reason


class UnsupportedVersion(LongrunError):  # noqa: N818 - the name of the protocol for this refusal
    """A checkpoint of another protocol version: sound, perhaps, but not for this program."""

    def __init__(self, path: Path, version: int) -> None:
        super().__init__(
            f"{path}: protocol version {version}; this program reads versions 1 and 2. Nothing was changed."
        )
        self.path = path
        self.version = version


class LeaseHeld(LongrunError):  # noqa: N818 - it names the fact; nothing failed
    """Another process holds the lease of the directory, and lives. Nothing was read, nothing was changed."""


class LostLease(LongrunError):  # noqa: N818 - the name of the protocol for this refusal
    """Another process took the directory over in the meantime. This one has not written since, and must not."""


class IncompleteResponse(LongrunError):  # noqa: N818 - it names what came
    """The model's answer did not come whole, so none of it may be used or saved. Resume asks again."""


class InvalidTranscript(LongrunError):  # noqa: N818 - it names the list, as the API does
    """A list of messages that the Messages API refuses. The text is the API's."""


class OutcomeUnknown(LongrunError):  # noqa: N818 - it names what is left; a tool raises it
    """An act was begun and its answer never came. The loop records that, and a person must look."""


class InvalidInput(LongrunError):  # noqa: N818 - it names the input
    """A tool was called with an input that does not fit; nothing was done."""


class ApiError(LongrunError):
    """The server answered with an error. ``body`` is its JSON, as the Messages API shapes it."""

    def __init__(self, status: int, kind: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(f"{status} {kind}: {message}")
        self.status = status
        error = {"type": kind, "message": message, **({"details": details} if details else {})}
        self.body: dict[str, Any] = {"type": "error", "error": error}
