"""The grader's secret: it comes through a descriptor, and what is private is derived from it.

A file or an environment variable could be read by a submission that runs as the same user: its parent's environment
is open to it. A descriptor that is read to its end and closed is not.
"""

from __future__ import annotations

import hashlib
import hmac
import os

from crashlab.errors import UsageError

LARGEST_BYTES = 4096
_SEED_BYTES = 7


def read(descriptor: int) -> bytes:
    """All that comes through ``descriptor``, which is closed afterwards. Raises UsageError for nothing, or too much."""
    try:
        with open(descriptor, "rb") as file:
            secret = file.read(LARGEST_BYTES + 1).strip()
    except (OSError, OverflowError) as error:
        text = f"--seed-fd {descriptor}: {error}; open it: crashcourse grade FOLDER --seed-fd 3 3< SECRET"
        raise UsageError(text) from error
    if not secret or len(secret) > LARGEST_BYTES:
        text = f"--seed-fd {descriptor}: expected 1 to {LARGEST_BYTES} bytes of a secret, got {len(secret) or 'none'}"
        raise UsageError(text)
    return secret


def fresh() -> bytes:
    """A secret for this once."""
    return os.urandom(32)


def seed(secret: bytes, exercise: str) -> int:
    """The private seed of an exercise: the same for the same secret, and nothing can be told from it about others."""
    return int.from_bytes(_keyed(secret, "seed", exercise.encode())[:_SEED_BYTES])


def seal(secret: bytes, owner: str, data: bytes) -> str:
    """What only a holder of the secret can put below a result of ``owner``."""
    return _keyed(secret, f"result of {owner}", data).hex()


def _keyed(secret: bytes, purpose: str, data: bytes) -> bytes:
    return hmac.digest(secret, f"{purpose}\n".encode() + data, hashlib.sha256)
