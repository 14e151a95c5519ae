"""What a run folder keeps for a replay, and which of these a later version reads.

``reference.json`` says what was demanded of the states beside it. It carries :data:`SCHEMA` since 0.1; a folder
without that field, or with fields that this version does not know, is read as well. One of a later form, or
with less than a replay needs, is refused with what to do: a replay that guesses would judge by another measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab import __version__
from crashlab.errors import UsageError
from crashlab.report.model import SCHEMA as REPORT_SCHEMA

if TYPE_CHECKING:
    from crashlab.report.folder import RunFolder

SCHEMA = "crashlab.reference/1"
"""The form of ``reference.json``. A new field keeps it; one that is removed or means something else makes ``/2``."""

NEEDED = ("subject", "modules", "end", "ended", "nothing")
"""Fields without which nothing can be judged again."""


def stored_reference(run: RunFolder) -> dict[str, Any]:
    """``reference.json`` of a run whose report this version can read too. Raises UsageError where it cannot."""
    report, reference = run.report(), run.extra("reference.json")
    _demand(report.get("schema"), REPORT_SCHEMA, "report.json", report)
    _demand(reference.get("schema", SCHEMA), SCHEMA, "reference.json", report)
    missing = [name for name in NEEDED if name not in reference]
    if missing:
        text = (
            f"reference.json of that run has no {missing[0]!r}, without which crashlab {__version__} cannot judge it "
            f"again{_made_by(report)}; check again, or name another run with --run DIR"
        )
        raise UsageError(text)
    return reference


def _demand(found: object, known: str, name: str, report: dict[str, Any]) -> None:
    if found != known:
        text = (
            f"{name} of that run has the form {found!r}, and crashlab {__version__} reads {known!r}{_made_by(report)}; "
            f"replay it with the version that made it, or check again"
        )
        raise UsageError(text)


def _made_by(report: dict[str, Any]) -> str:
    versions = report.get("versions")
    version = versions.get("crashlab") if isinstance(versions, dict) else None
    return f" (it was made by crashlab {version})" if isinstance(version, str) else ""
