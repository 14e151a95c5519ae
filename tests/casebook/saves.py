"""Whole files that are saved: in place, in pieces, without room, without a barrier, without a word.

Every function that is wrong says so, and where it was met. All values are made up.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import Store, Subject
from tests.casebook.durable import read_json, replace_json, sync
from tests.casebook.scenario import Scenario, scenario

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Lab

VALUES = ({"n": 1, "text": "a" * 5000}, {"n": 2})
SMALL = ({"n": 1}, {"n": 2})


def save(directory: Path, value: Any) -> None:
    """Right."""
    replace_json(directory / "state.json", value)


def load(directory: Path) -> Any:
    """The value, or None where nothing was saved."""
    return read_json(directory / "state.json")


RIGHT, RIGHT_SMALL = Store(save, load, values=VALUES), Store(save, load, values=SMALL)


def save_in_place(directory: Path, value: Any) -> None:
    """Wrong: empties the only copy, then fills it.

    A history grown to many megabytes: https://github.com/cline/cline/issues/2321
    A model checkpoint: https://github.com/Lightning-AI/pytorch-lightning/issues/688
    The same, back after its mend: https://github.com/Lightning-AI/pytorch-lightning/issues/19970
    With a disk that is full: https://github.com/anomalyco/opencode/issues/7607
    """
    (directory / "state.json").write_text(json.dumps(value))


def save_over(directory: Path, value: Any) -> None:
    """Wrong: writes over the old bytes, and cuts the file to the new length afterwards.

    https://github.com/aaif-goose/goose/issues/2529
    https://github.com/anthropics/claude-code/issues/35345
    """
    descriptor = os.open(directory / "state.json", os.O_RDWR | os.O_CREAT, 0o644)
    data = json.dumps(value).encode()
    os.write(descriptor, data)
    os.ftruncate(descriptor, len(data))
    os.close(descriptor)


def save_copying(directory: Path, value: Any) -> None:
    """Wrong: the copy is made before the file is rewritten, and no load looks at it.

    https://github.com/jupyter/notebook/issues/1198
    """
    path = directory / "state.json"
    if path.exists():
        shutil.copyfile(path, directory / ".~state.json")
    path.write_text(json.dumps(value))
    (directory / ".~state.json").unlink(missing_ok=True)


def save_rotating(directory: Path, value: Any) -> None:
    """Wrong: the backup is the last file, which was never forced, and neither is the new one.

    https://github.com/music-assistant/server/pull/4534
    """
    path = directory / "state.json"
    if path.exists():
        path.replace(directory / "state.backup")
    path.write_text(json.dumps(value))
    sync(directory)


def load_rotated(directory: Path) -> Any:
    """The file, or its backup, or nothing."""
    for name in ("state.json", "state.backup"):
        with contextlib.suppress(OSError, ValueError):
            return json.loads((directory / name).read_text())
    return None


def save_retrying(directory: Path, value: Any) -> None:
    """Wrong: a save without room is tried again with what the file now holds, and that is nothing.

    https://github.com/microsoft/vscode/issues/186073
    """
    try:
        save_in_place(directory, value)
    except OSError:
        save_in_place(directory, json.loads((directory / "state.json").read_text() or "null"))


def save_silently(directory: Path, value: Any) -> None:
    """Wrong: says nothing of an error; the file is not there, or is the old one.

    https://github.com/Lightning-AI/pytorch-lightning/issues/21800
    """
    with contextlib.suppress(OSError):
        save(directory, value)


def save_leaving_drafts(directory: Path, value: Any) -> None:
    """Wrong: the rename fails without a word, and one draft more is left.

    https://github.com/joblib/joblib/issues/1046
    """
    draft = directory / f"state.json.draft-{len(list(directory.iterdir()))}"
    draft.write_text(json.dumps(value))
    sync(draft)
    with contextlib.suppress(OSError):
        draft.rename(directory / "state.json")
    sync(directory)


# --- a value that cannot be written -------------------------------------------------------------------


def refuse_a_value(lab: Lab, *, whole_first: bool) -> Any:
    """A good value is saved, then one that JSON does not know. Wrong unless ``whole_first``: half of it is written.

    https://github.com/msiemens/tinydb/issues/89
    https://github.com/crewAIInc/crewAI/issues/7358
    """
    save(lab.dir, {"n": 1})
    try:
        if whole_first:
            json.dumps({"n": 2, "tags": {"a", "b"}})
        else:
            with (lab.dir / "state.json").open("w") as file:
                json.dump({"n": 2, "tags": {"a", "b"}}, file)
    except TypeError:
        return 1
    return 2


def open_again(lab: Lab) -> Any:
    """The number that was saved; a new file holds 1."""
    if load(lab.dir) is None:
        save(lab.dir, {"n": 1})
    return load(lab.dir)["n"]


# --- several files ------------------------------------------------------------------------------------


def save_in_pieces(directory: Path, value: Any) -> None:
    """Wrong: a directory per save, filled file after file; the newest is taken whatever it holds.

    https://github.com/huggingface/transformers/issues/35782
    """
    folder = directory / f"step-{len(list(directory.iterdir())):04d}"
    folder.mkdir()
    for name, piece in value.items():
        replace_json(folder / name, piece)


def save_in_pieces_then_name(directory: Path, value: Any) -> None:
    """Right: the name that a load looks for comes last."""
    shutil.rmtree(directory / "draft", ignore_errors=True)
    (directory / "draft").mkdir()
    for name, piece in value.items():
        replace_json(directory / "draft" / name, piece)
    (directory / "draft").rename(directory / f"step-{len(list(directory.glob('step-*'))):04d}")
    sync(directory)


def load_newest(directory: Path) -> Any:
    """All files of the newest directory."""
    folders = sorted(directory.glob("step-*"))
    return {each.name: read_json(each) for each in sorted(folders[-1].iterdir())} if folders else None


WEIGHTS = ({"optimizer": 1, "weights": 1}, {"optimizer": 2, "weights": 2})


def next_session(directory: Path) -> Path:
    """A name that no session has."""
    return directory / f"session-{len(list(directory.glob('session-*'))):04d}.jsonl"


def save_header_first(directory: Path, value: Any) -> None:
    """Wrong: the new session has its name and its first line, the history follows; a stop leaves a session of one line.

    https://github.com/anthropics/claude-code/issues/7004
    """
    with next_session(directory).open("w") as file:
        for line in value:
            file.write(json.dumps(line) + "\n")
            file.flush()


def save_named_last(directory: Path, value: Any) -> None:
    """Right: the file is whole before it has its name."""
    draft = directory / "draft"
    draft.write_text("".join(json.dumps(line) + "\n" for line in value))
    sync(draft)
    draft.rename(next_session(directory))
    sync(directory)


def load_last_session(directory: Path) -> Any:
    """The lines of the newest session."""
    sessions = sorted(directory.glob("session-*"))
    return [json.loads(line) for line in sessions[-1].read_text().splitlines()] if sessions else None


SESSIONS = (["first", "hello", "well met"], ["second", "hello", "again"])


SCENARIOS: dict[str, Scenario] = {
    "rewritten in place": scenario(Store(save_in_place, load, values=VALUES), RIGHT, "kill", "lost", "stuck"),
    "rewritten without room": scenario(
        Store(save_in_place, load, values=SMALL), RIGHT_SMALL, "error:ENOSPC", "lost", "stuck"
    ),
    "a shorter value over a longer": scenario(Store(save_over, load, values=VALUES), RIGHT, "kill", "lost", "stuck"),
    "a copy that nobody reads": scenario(Store(save_copying, load, values=VALUES), RIGHT, "kill", "lost", "stuck"),
    "a backup as weak as the file": scenario(
        Store(save_rotating, load_rotated, values=SMALL), RIGHT_SMALL, "power", "lost", "silent-reset"
    ),
    "a save tried again from the file": scenario(
        Store(save_retrying, load, values=SMALL), RIGHT_SMALL, "error:ENOSPC", "lost", "stuck"
    ),
    "a save that says nothing": scenario(
        Store(save_silently, load, values=SMALL), RIGHT_SMALL, "error:EROFS", "lost", "silent-reset"
    ),
    "a rename that says nothing": scenario(
        Store(save_leaving_drafts, load, values=SMALL), RIGHT_SMALL, "error:ENOSPC", "lost", "silent-reset"
    ),
    "a value that cannot be written": scenario(
        Subject(partial(refuse_a_value, whole_first=False), open_again),
        Subject(partial(refuse_a_value, whole_first=True), open_again),
        "kill",
        "stuck",
    ),
    "the newest directory, not whole": scenario(
        Store(save_in_pieces, load_newest, values=WEIGHTS),
        Store(save_in_pieces_then_name, load_newest, values=WEIGHTS),
        "kill",
        *("torn", "lost", "stuck"),
    ),
    "a session of one line": scenario(
        Store(save_header_first, load_last_session, values=SESSIONS),
        Store(save_named_last, load_last_session, values=SESSIONS),
        "kill",
        "torn",
    ),
}
