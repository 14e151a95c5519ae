"""Whether a program still has what it acked: ``not_forgotten.py COMMAND...``, which prints the number it has.

Exits with 0 where that is the last number acked, or the one after it, with 1 where it is not, and with 2 where the
command fails: then it is no judge.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys


def main() -> int:
    with open(os.environ["CRASHLAB_EVENTS"], encoding="utf-8") as events:
        acked = [json.loads(line).get("ack", 0) for line in events if line.startswith("{")]
    loaded = subprocess.run(sys.argv[1:], capture_output=True, text=True, check=False)
    if loaded.returncode:
        print(loaded.stderr.strip() or "it could not be loaded")
        return 2
    last, found = max(acked, default=0), int(loaded.stdout)
    if found in (last, last + 1):
        return 0
    print(f"{last} was acked, and {found} is there")
    return 1


if __name__ == "__main__":
    sys.exit(main())
