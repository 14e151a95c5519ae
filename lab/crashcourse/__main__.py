"""``python -m crashcourse``."""

import sys

from crashcourse.cli import main

sys.exit(main())
