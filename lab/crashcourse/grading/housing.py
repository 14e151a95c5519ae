"""Where submissions run: as another user where that is possible, and the base folder that each one gets.

The user is one that nobody else uses at that moment, of the range that systemd keeps for passing users: limits on
processes are counted by user, and a submission that kills all it may kill reaches its own.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crashcourse.material import FOLDERS, root
from crashlab.errors import LabError
from crashlab.recover import guest
from crashlab.recover.guest import Guest
from crashlab.recover.wire import BOOTSTRAP

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST_USER, LAST_USER = 61_184, 65_519
"""Users that no account has: systemd's range for dynamic users (systemd.io, UIDS-GIDS)."""
NEEDED = ("crashlab.recover.keeper", "crashlab.recover.host", "cloudpickle")


@dataclass(frozen=True, kw_only=True)
class Base:
    """The folder of one submission: the copy in it is readable, ``tmp`` the guest's, the rest the judge's alone."""

    folder: Path
    guest: Guest | None

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def base(folder: Path, kind: str, hidden: Iterable[str] = ()) -> Base:
    """Make the base folder, for an isolation as :func:`find` names it. Raises OSError."""
    folder.mkdir()
    folder.chmod(0o711)
    (folder / "runs").mkdir(0o700)
    (folder / "tmp").mkdir(0o700)
    if kind == "same-user":
        return Base(folder=folder, guest=None)
    user = free_user()
    os.chown(folder / "tmp", user, user)
    own = Guest(user=user, temporary=str(folder / "tmp"), hidden=tuple(hidden), namespaces=kind.endswith("namespaces"))
    return Base(folder=folder, guest=own)


def hidden(*more: Path) -> tuple[str, ...]:
    """What no guest may find: the course with its solutions, what others handed in, the results."""
    course = root()
    return tuple(str(path.resolve()) for path in (*(course / name for name in FOLDERS), course / "tests", *more))


def free_user() -> int:
    """A user of the range that has no process now."""
    taken = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                taken.add(os.stat(f"/proc/{name}").st_uid)
            except FileNotFoundError:
                continue
    chance = random.SystemRandom()
    while (user := chance.randint(FIRST_USER, LAST_USER)) in taken:
        pass
    return user


def find() -> tuple[str, str]:
    """The best isolation that works here, as a report calls it, and why it is no better. It is tried, not guessed."""
    if sys.platform != "linux":
        return "same-user", f"another user and namespaces are had on Linux, not on {sys.platform}"
    if os.geteuid() != 0:
        return "same-user", "only root can run submissions as another user"
    why = ""
    for kind in ("user+namespaces", "user"):
        refused = _try(kind)
        if not refused:
            return kind, why
        why = why or refused
    return "same-user", refused


def _try(kind: str) -> str:
    """Why a guest of that kind cannot work here; nothing where it can."""
    tried = base(Path(tempfile.gettempdir(), f"crashcourse-{os.urandom(8).hex()}"), kind)
    assert tried.guest is not None
    try:
        form = json.dumps(tried.guest.form())
        command = [sys.executable, "-I", "-c", BOOTSTRAP, json.dumps(sys.path), __name__, form]
        told = subprocess.run(command, capture_output=True, text=True, check=False, env={}, stdin=subprocess.DEVNULL)
    finally:
        tried.remove()
    if told.stdout == "works":
        return ""
    return told.stdout or "another user cannot read Python, the lab, or the temporary folder"


def main() -> None:
    """The trial, in a process of its own: move over, load the lab in a new interpreter, write the folder."""
    form = json.loads(sys.argv[3])
    code = f"import {', '.join(NEEDED)}; open({form['temporary'] + '/probe'!r}, 'x').close()"
    try:
        guest.enter(form)
    except (OSError, LabError) as error:
        sys.stdout.write(str(error))
        return
    done = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"], check=False)
    sys.stdout.write("" if done.returncode else "works")
