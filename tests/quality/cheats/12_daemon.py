"""Leaves a daemon behind: forked twice, in a session of its own, which a kill of the group does not reach."""

# + solution

import os as _os

_load = load


def load(dir):
    value = _load(dir)
    if value is None and _os.fork() == 0:
        _os.setsid()
        if _os.fork() == 0:
            _os.execvp("sleep", ["sleep", "987654"])
        _os._exit(0)
    return value
