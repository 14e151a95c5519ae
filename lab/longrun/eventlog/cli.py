r"""``longrun log inspect|verify|show DIR``: look at a session without opening it.

Nothing is written, and no lease is taken. ``inspect`` reads as an opening would, from the newest snapshot on, and says
what an opening would mend. ``verify`` reads every line of every segment. ``show`` prints what the log says: to a
person, to the model, or of what was done. What a log holds was written by anybody: what a terminal would obey is
printed as an escape.

Exit codes: 0 sound, with nothing to mend; 1 sound as far as it was promised, and an opening would mend or remark
something; 2 damaged, of a newer program, or not to be read; 64 misuse. ``show`` knows 0, 2 and 64.

>>> shown("a\x1b[31mb\u202e")
'a\\x1b[31mb\\u202e'
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longrun.errors import UsageError
from longrun.eventlog import project
from longrun.eventlog.errors import LogDamaged, LogError
from longrun.eventlog.opening import inspect_directory
from longrun.eventlog.segments import segment_numbers
from longrun.messages import canonical

if TYPE_CHECKING:
    import argparse

    from longrun.eventlog.opening import Inspection

NAME = "log"
SOUND, TO_MEND, REFUSED = 0, 1, 2
_FILE = re.compile(r"(seg|snap)-\d+\.jsonl?|mark|lease")
VIEWS = ("rows", "messages", "effects")


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the command line."""
    log = commands.add_parser(NAME, help="look at a session in an event log, and change nothing")
    actions = log.add_subparsers(dest="action", required=True)
    for name, words in (
        ("inspect", "say what is there, and what an opening would mend"),
        ("verify", "read every line of every segment"),
        ("show", "print what the log says"),
    ):
        parser = actions.add_parser(name, help=words)
        parser.add_argument("where", type=Path, metavar="DIR", help="the directory of the session, with its segments")
        parser.add_argument("--json", action="store_true", help="for programs")
        if name == "show":
            parser.add_argument("--view", choices=VIEWS, default=VIEWS[0], help="to whom (default: %(default)s)")


def carry_out(given: argparse.Namespace) -> int:
    """Do what was asked for, print it, and return the exit code. Raises UsageError where DIR holds no session."""
    _require_session(given.where)
    try:
        found = inspect_directory(given.where, whole=given.action == "verify")
        if given.action == "show":
            _show(found, given.view, as_json=given.json)
            return SOUND
    except (LogError, OSError) as error:
        _refused(given, error)
        return REFUSED
    _told(found, given)
    return TO_MEND if found.repairs or found.report else SOUND


def shown(text: str) -> str:
    """``text`` with everything escaped that a terminal would obey or hide, or that it cannot show."""
    safe = "".join(each if each.isprintable() else _escape(each) for each in text)
    encoding = sys.stdout.encoding or "ascii"
    return safe.encode(encoding, "backslashreplace").decode(encoding)


def _escape(character: str) -> str:
    return (
        character.encode("ascii", "backslashreplace").decode()
        if not character.isascii()
        else f"\\x{ord(character):02x}"
    )


def _require_session(directory: Path) -> None:
    """Raise UsageError unless there are segments, all of them files: to read another thing might never end."""
    if not directory.is_dir():
        text = f"there is no directory {shown(str(directory))}"
        raise UsageError(text)
    for path in directory.iterdir():
        if _FILE.fullmatch(path.name) and not path.is_file():
            text = f"{shown(str(path))} is no file: {shown(str(directory))} is not the directory of a session"
            raise UsageError(text)
    if segment_numbers(directory) or (directory / "mark").exists():
        return
    inside = sorted(path.name for path in directory.iterdir() if path.is_dir() and segment_numbers(path))
    hint = f"; there are sessions in it: {', '.join(map(shown, inside[:5]))}" if inside else ""
    text = f"{shown(str(directory))} holds no session{hint}"
    raise UsageError(text)


# --- inspect and verify ----------------------------------------------------------------------------


def _told(found: Inspection, given: argparse.Namespace) -> None:
    facts: dict[str, Any] = {
        "verdict": "unfinished" if found.repairs or found.report else "sound",
        "session": found.grammar.session_id,
        "records": len(found.records),
        "segments": 1 + found.records.places[-1][0],
        "turns": found.grammar.turn,
        "promised": found.promised,
        "report": found.report,
        "repairs": [{"type": event.TYPE, "data": event.data()} for event in found.repairs],
    }
    if given.json:
        print(json.dumps(facts))
        return
    counts = f"{facts['records']} records, {facts['turns']} turns, segments 0 to {facts['segments'] - 1}"
    print(f"{facts['verdict'].upper()}  {shown(facts['session'])}: {counts}, promised up to record {facts['promised']}")
    for line in found.report:
        print(f"report   {shown(line)}")
    for event in found.repairs:
        print(f"adds     {event.TYPE:<12} {shown(canonical(event.data()))}")


def _refused(given: argparse.Namespace, error: LogError | OSError) -> None:
    if given.json:
        place = ("kind", "segment", "line", "byte", "expected", "found") if isinstance(error, LogDamaged) else ()
        facts = {"verdict": "refused", "error": type(error).__name__, "text": str(error)}
        print(json.dumps(facts | {name: getattr(error, name) for name in place}))
    print(f"longrun: REFUSED {shown(str(error))}", file=sys.stderr)


# --- show --------------------------------------------------------------------------------------------


def _show(found: Inspection, view: str, *, as_json: bool) -> None:
    """All of a view is made before any of it is printed: a record that cannot be read leaves no half of one."""
    lines: list[str] = []
    values: list[Any]
    match view:
        case "messages":
            values = project.messages(found.records)
            lines = [f"{each['role']:<9} {shown(canonical(each['content']))}" for each in values]
        case "effects":
            values = [dataclasses.asdict(each) for each in project.effects(found.records)]
            for each in values:
                what = f"{each['name']} {canonical(each['input'])} {each['key'] or ''} {each['content']}"
                lines.append(f"{each['seq']:>6}  {each['outcome'] or 'open':<11} {shown(what)}")
        case _:
            values = [dataclasses.asdict(each) for each in project.ui(found.records)]
            for each in values:
                marks = f"  [{', '.join(each['marks'])}]" if each["marks"] else ""
                lines.append(f"{each['seq']:>6}  {shown(each['type']):<17} {shown(each['text'])}{marks}")
    print(json.dumps(values) if as_json else "\n".join(lines))
