"""A reader that takes whatever it cannot read for a torn tail: exercise 7.4."""

import hashlib
import json

NO_SUM = "0" * 16


def sum_of(body):
    """The sum of a line: of its characters before the sum."""
    return hashlib.sha256(body.encode("latin-1")).hexdigest()[:16]


def line_of(seq, prev, mark, text):
    """A line as the log has it, without its end. Its sum is the `prev` of the next one: `record_of(line)["sum"]`."""
    body = json.dumps({"v": 1, "seq": seq, "prev": prev, "mark": mark, "text": text}, separators=(",", ":"))[:-1]
    return f'{body},"sum":"{sum_of(body)}"}}'


def record_of(line):
    """The record of a line, a dictionary; None where the line does not fit its sum."""
    body, found, rest = line[:-26], line[-26:-18], line[-18:]
    if found != ',"sum":"' or rest != sum_of(body) + '"}':
        return None
    return json.loads(line)


def read(text, mark):
    """The verdict on a log, and how many of its records are good."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    good = 0
    for line in lines:
        if record_of(line) is None:
            break
        good += 1
    # TODO: has each record its place? And was anything promised that is not among the good ones?
    return ["tail" if good < len(lines) else "whole", good]


def my_tests():
    """Examples that a correct reader holds, and no wrong one."""
    first = line_of(0, NO_SUM, -1, "first")
    # TODO: one log tells nothing yet.
    return [{"function": "read", "given": [first + "\n", 0], "expect": ["whole", 1]}]
