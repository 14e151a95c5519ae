"""The results folder: one folder per submission, put there whole or not at all, and sealed.

``<student>/<exercise>`` holds ``public.json`` for the student, ``result.json`` for who grades, and ``seal``, which
only a holder of the secret can make: a result that a submission planted is none. All is written into a new folder
of a random name first and then renamed, so that a grading that was killed has left whole results or none.
"""

from __future__ import annotations

import hmac
import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashcourse.grading.secret import seal
from crashlab import __version__
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from crashcourse.grading.roster import Submission

WHOLE, PUBLIC, SEAL = "result.json", "public.json", "seal"
_TEMPORARY = ".being-written-"

Results = "tuple[dict[str, Any], dict[str, Any]]"


@dataclass(frozen=True, slots=True)
class Shelf:
    """The folder of results, and the secret that seals them."""

    folder: Path
    secret: bytes

    def prepare(self) -> None:
        """Make the folder, closed to others, and remove what a killed grading had half written."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for each in self.folder.glob(f"*/{_TEMPORARY}*"):
                shutil.rmtree(each)
        except OSError as error:
            text = f"--out {self.folder}: {error.strerror}; name a folder that can be written"
            raise UsageError(text) from error

    def place(self, submission: Submission) -> Path:
        """Where the results of a submission lie."""
        return self.folder / submission.student / submission.exercise.slug

    def known(self, submission: Submission, seed_sha256: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The whole and the public result that are there, if they are of this file, seed and version; else None."""
        place = self.place(submission)
        try:
            data, public = (place / WHOLE).read_bytes(), (place / PUBLIC).read_bytes()
            sealed = (place / SEAL).read_text("ascii").strip()
        except (OSError, ValueError):
            return None
        if not hmac.compare_digest(sealed, self._seal(submission, data, public)):
            return None
        whole, shown = json.loads(data), json.loads(public)
        same = (
            whole["submission_sha256"] == submission.sha256
            and whole["seeds"].get("private_sha256") == seed_sha256
            and whole["kit_version"] == __version__
            and whole["status"] != "judge-error"
        )
        return (whole, shown) if same else None

    def put(self, submission: Submission, whole: Mapping[str, Any], public: Mapping[str, Any]) -> None:
        """Keep both results, in the place of what was there before. Raises OSError."""
        data, shown = _bytes(whole), _bytes(public)
        place = self.place(submission)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        new = place.parent / f"{_TEMPORARY}{os.urandom(8).hex()}"
        new.mkdir(mode=0o700)
        for name, part in ((WHOLE, data), (PUBLIC, shown), (SEAL, self._seal(submission, data, shown).encode())):
            _create(new / name, part)
        _sync(new)
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.exists():
            shutil.rmtree(place)
        new.rename(place)
        _sync(place.parent)

    def view(self, submission: Submission, name: str, text: str) -> None:
        """Put a further form of a result beside it."""
        replace(self.place(submission) / name, text.encode())

    def _seal(self, submission: Submission, whole: bytes, public: bytes) -> str:
        return seal(self.secret, submission.owner, len(whole).to_bytes(8) + whole + public)


def replace(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all. Raises OSError."""
    new = path.parent / f"{_TEMPORARY}{os.urandom(8).hex()}"
    try:
        _create(new, data)
        new.rename(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _bytes(form: Mapping[str, Any]) -> bytes:
    return (json.dumps(form, indent=1) + "\n").encode()


def _create(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
