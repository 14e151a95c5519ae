"""A learner who knows nothing but the commands of the course, and goes through it to the end.

Per exercise: start it, check what is not begun (it fails, for a reason that it states), take the three hints and the
model answer, put what was printed into the file that ``start`` named, check again. Nothing is read but what a command
printed, and nothing is written but that. By hand, in an empty folder, with the package installed:

    python tests/exercises/programs/learner.py                             all exercises; some minutes
    python tests/exercises/programs/learner.py --only unbreakable-save
    python tests/exercises/programs/learner.py --command .venv/bin/crashcourse
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LISTED = re.compile(r"^   \d\.\d (?P<slug>\S+) +(?:code|explain) .*?(?P<points>[\d]+)?(?:/100.*|-)$")
HINTS = 3
LIMIT_S = 1_800
"""For one command, far beyond what any takes: a hang ends the script, and nothing else depends on it."""


class Lost(Exception):  # noqa: N818 - it says of the learner how it went
    """The course did not lead on. The message says where, and what was printed."""


@dataclass(frozen=True)
class Learner:
    """Somebody in ``folder`` who types ``command`` and what comes behind it; ``environment``: None for our own."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str] | None = None

    def types(self, *words: str, code: int) -> str:
        """What the command prints. Raises Lost where it leaves with another ``code``."""
        done = subprocess.run(
            [*self.command, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        if done.returncode != code:
            text = f"{' '.join(words)} left with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}"
            raise Lost(text)
        return done.stdout

    def listed(self) -> dict[str, int]:
        """The exercises, and the best points so far."""
        rows = (LISTED.match(line) for line in self.types("list", code=0).splitlines())
        return {row["slug"]: int(row["points"] or 0) for row in rows if row}

    def learns(self, slug: str) -> str:
        """One exercise from its start to its end; returns the case that was lost at first. Raises Lost."""
        created = re.search(r"^created  (\S+)", self.types("start", slug, code=0), re.MULTILINE)
        if created is None:
            text = f"start {slug} names no file"
            raise Lost(text)
        lost = re.search(r"^  (\S+) +violation ", self.types("check", slug, code=1), re.MULTILINE)
        if lost is None:
            text = f"check {slug} fails, and names no case"
            raise Lost(text)
        for number in range(1, HINTS + 1):
            if not self.types("hint", slug, code=0).startswith(f"hint {number} of {HINTS} ("):
                text = f"hint {slug} does not give hint {number}"
                raise Lost(text)
        (self.folder / created[1]).write_text(self.types("hint", slug, "--model", code=0), encoding="utf-8")
        self.types("check", slug, code=0)
        return lost[1]


def play(learner: Learner, only: Sequence[str] = (), say: Callable[[str], None] = print) -> float:
    """Go through the wanted exercises, or all; returns how much of them is done, in per cent. Raises Lost."""
    wanted = [slug for slug in learner.listed() if not only or slug in only]
    if not wanted or len(wanted) < len(only):
        text = f"crashcourse list does not show {', '.join(only) or 'any exercise'}"
        raise Lost(text)
    for slug in wanted:
        say(f"{slug}: lost {learner.learns(slug)} at first, has all points now")
    listed = learner.listed()
    return sum(listed[slug] for slug in wanted) / len(wanted)


def main() -> int:
    """Play in the current folder; 0 where all is done in the end, 1 where the course did not lead there."""
    parser = argparse.ArgumentParser(description="Play a learner through the exercises, in an empty folder.")
    parser.add_argument("--command", default="crashcourse", help="how the course is called (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=(), metavar="SLUG", help="these exercises alone")
    options = parser.parse_args()
    try:
        share = play(
            Learner(shlex.split(options.command), Path.cwd()), options.only, lambda line: print(line, flush=True)
        )
    except Lost as lost:
        print(f"LOST  {lost}", file=sys.stderr)
        return 1
    print(f"DONE  {share:.0f} % of the course")
    return 0 if share == 100 else 1


if __name__ == "__main__":
    sys.exit(main())
