"""A subject whose module starts a thread while it is imported."""

from __future__ import annotations

import threading

from crashlab import Subject
from tests.crashlab.recover.one_step import write_one

threading.Thread(target=threading.Event().wait, daemon=True).start()
SUBJECT = Subject(write_one)
