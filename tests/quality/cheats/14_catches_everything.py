"""Catches every signal and every exception, and believes itself immortal."""

import signal

for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    try:
        signal.signal(each, signal.SIG_IGN)
    except OSError:
        continue

# + starter

_save, _load = save, load


def save(dir, state):
    try:
        _save(dir, state)
    except BaseException:
        pass


def load(dir):
    try:
        return _load(dir)
    except BaseException:
        return None
