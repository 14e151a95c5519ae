"""Crash state to answer: the subject's real recovery, in fresh processes that leave nothing behind."""
