"""The one fault: nothing is saved before a request that follows an opening; the first save is that of its answer.

A process killed while the model thinks has asked, and paid, and nobody knows: the next one counts from
the beginning again. A crash loop there pays for ever without ever coming near a cap.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

HARNESS = replace(correct.HARNESS, save_points=correct.HARNESS.save_points - {"R"})

subject = describe(HARNESS, name="checkpoint/naive_late_first_save", body_bytes=SHORT_BODY_BYTES)
