"""The one fault: a sync that failed is called again, and the 0 of the second call is believed.

The first call has given the pages up: they are clean in the cache, and nobody will write them again. The log can be
read until the power goes.
"""

from __future__ import annotations

import os
from dataclasses import replace

from longrun.eventlog.design import DESIGN as CORRECT
from longrun.eventlog.subjects import bare


def sync(descriptor: int) -> None:
    """Sync, trying once more."""
    try:
        os.fdatasync(descriptor)
    except OSError:
        os.fdatasync(descriptor)


DESIGN = replace(CORRECT, sync=sync)

subject = bare(DESIGN, name="eventlog/naive_retry_fsync")
