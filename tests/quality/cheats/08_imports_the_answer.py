"""Imports the answer, by every name that it may have."""

import importlib

for name in ("correct", "solution", "longrun.checkpoint.correct", "crashcourse.material", "exercises"):
    try:
        answer = importlib.import_module(name)
        save, load = answer.save, answer.load
        break
    except (ImportError, AttributeError):
        continue
else:
    # + starter
    pass
