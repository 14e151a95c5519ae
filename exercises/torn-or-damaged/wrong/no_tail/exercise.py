"""The mistake: whatever cannot be read is damage."""

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
    records = [record_of(line) for line in lines]
    good, prev = 0, NO_SUM
    for record in records:
        if record is None or record["seq"] != good or record["prev"] != prev:
            break
        good, prev = good + 1, record["sum"]
    promised = max([-1 if mark is None else mark, *(record["mark"] for record in records if record is not None)])
    if promised >= good or good < len(lines):
        return ["damage", good]
    return ["tail" if good < len(lines) else "whole", good]


def log():
    """Four lines: record 0 was promised alone, then 1 and 2 in one batch, then 3."""
    lines, prev = [], NO_SUM
    for seq, mark in enumerate((-1, 0, 0, 2)):
        lines.append(line_of(seq, prev, mark, f"text {seq}") + "\n")
        prev = record_of(lines[-1].strip())["sum"]
    return lines


def my_tests():
    """Examples that a correct reader holds, and no wrong one."""
    zero, one, two, three = log()
    bad = "\0" * 60 + "\n"
    cases = [
        (zero + one + two, 2, ["whole", 3]),
        (zero + one + two[:-9], 0, ["tail", 2]),
        (zero + one + two[:-9], 2, ["damage", 2]),
        (zero + bad + two, 0, ["tail", 1]),
        (zero + bad + two + three, None, ["damage", 1]),
        (zero + two, 2, ["damage", 1]),
    ]
    return [{"function": "read", "given": [text, mark], "expect": expect} for text, mark, expect in cases]
