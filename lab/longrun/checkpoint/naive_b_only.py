"""The one fault: only finished turns are saved (point B), not the open calls (A) and not the start of
an act (S). A process killed right after a reply was sent wakes up before the turn, and sends it again.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

HARNESS = replace(correct.HARNESS, save_points=frozenset({"R", "B", "E"}))

subject = describe(HARNESS, name="checkpoint/naive_b_only", body_bytes=SHORT_BODY_BYTES)
