"""``python -m crashlab``: the same as the command ``crashlab``."""

from __future__ import annotations

import sys

from crashlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
