"""The coach: asked with the real client over HTTP, of the strict server; it comments, and changes no mark.

What it cannot do counts more than what it says: it gets no model answer and nothing private, its words do not move the
cursor, and whatever goes wrong with it, the check ends as it would have ended without it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crashcourse import cli, coach, marking, progress
from crashcourse.catalog import find
from crashcourse.coach import Comment, NoComments
from crashcourse.grading import batch
from crashcourse.screen import Screen
from crashlab.errors import UsageError
from longrun.errors import ApiError
from longrun.fake_api import FakeApi, check_request
from longrun.fake_http import serve
from longrun.knobs import Knobs
from longrun.model import KEY_NAME, LIVE_MODEL
from longrun.stream import Cut
from tests.crashcourse import results

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashcourse.result import Result

pytest.importorskip("anthropic", reason="the client is not here: pip install 'crashlab[agents]'")

SLUG = "unbreakable-save"
KEY = "sk-of-nobody"
SAID = (
    "Essential: the name is not synced.\n\n**actionable**: What does a power loss take?\nCelebratory: No mix anywhere."
)
HEARD = [
    Comment("essential", "the name is not synced."),
    Comment("actionable", "What does a power loss take?"),
    Comment("celebratory", "No mix anywhere."),
]


class Adviser(FakeApi):
    """The strict server, that says ``text`` to whatever request is sound, or fails."""

    def __init__(
        self, text: str = SAID, *, stop: str = "end_turn", fails: ApiError | None = None, cut: Cut | None = None
    ) -> None:
        super().__init__(knobs={1: Knobs(cut=cut)})
        self.text, self.stop, self.fails = text, stop, fails
        self.requests: list[dict[str, Any]] = []

    def answer(self, request: Any) -> Any:
        self.requests.append(request)
        if self.fails is not None:
            raise self.fails
        return super().answer(request)

    def _answer(self, request: dict[str, Any], knobs: Knobs) -> dict[str, Any]:
        message = super()._answer(request, knobs)
        content = [{"type": "text", "text": self.text}] if self.text else []
        return {**message, "content": content, "stop_reason": self.stop, "stop_sequence": None}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's file, and a check whose result is made up: 56 points, a violation, and a private twin beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(marking, "mark", lambda *_, **__: results.of_status("fail"))
    monkeypatch.setenv(KEY_NAME, KEY)
    file = tmp_path / "work" / SLUG / "exercise.py"
    file.parent.mkdir(parents=True)
    file.write_text("# why: I sync the data, so nothing can be lost\n")
    return file


def checked(monkeypatch: pytest.MonkeyPatch, adviser: Adviser, *words: str) -> int:
    with serve(adviser) as base_url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", base_url)
        return cli.main(["check", SLUG, "--coach", *words])


# --- what it gets, and what it gives ------------------------------------------------------------------


def test_comments_stand_below_the_check_and_in_a_file(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One request, made once; the lines before and the exit code are those of a check without a coach."""
    assert cli.main(["check", SLUG]) == 1
    without = capsys.readouterr().out
    adviser = Adviser()
    assert checked(monkeypatch, adviser) == 1
    shown = capsys.readouterr().out
    assert shown == without + (
        "  coach   essential: the name is not synced.\n"
        "  coach   actionable: What does a power loss take?\n"
        "  coach   celebratory: No mix anywhere.\n"
    )
    kept = json.loads(desk.with_name("coach.json").read_text())
    assert (kept["schema"], kept["model"], kept["error"]) == ("crashcourse.coach/1", LIVE_MODEL, "")
    assert [Comment(**each) for each in kept["comments"]] == HEARD
    assert [each.status for each in adviser.exchanges] == [200]


def test_with_json_the_result_is_alone_on_stdout(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The comments are in the file; stderr says so."""
    assert checked(monkeypatch, Adviser(), "--json") == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["schema"] == "crashcourse.result/1"
    assert "coach" not in shown.out
    assert shown.err.endswith("the coach's comments are in coach.json\n")
    assert desk.with_name("coach.json").exists()


@pytest.mark.parametrize("status", results.STATUSES)
def test_it_gets_the_learners_side_and_no_more(status: str) -> None:
    """Task, rubric, file and the public findings; no model answer, no hint, nothing of the twin, no key, no points."""
    exercise, result = find(SLUG), results.of_status(status)
    asked = coach.request(exercise, b"why = 'I sync the data'", result)
    check_request(asked)
    text = json.dumps(asked, ensure_ascii=False)
    assert "I sync the data" in text
    assert exercise.task.strip()[:60] in asked["messages"][0]["content"]
    assert all(case.invariant in text for case in exercise.cases)
    assert (results.PUBLIC_TEXT in text) == (status in ("fail", "incomplete"))
    assert results.PRIVATE_TEXT not in text
    assert not any(each in text for each in (exercise.model, *exercise.hints))
    solution = (exercise.folder / "solution" / exercise.file).read_text()
    own = [line for line in solution.splitlines() if len(line) > 40]
    assert own
    assert not any(line.strip() in text for line in own)


def test_a_long_file_is_cut_and_an_odd_one_is_sent_readably() -> None:
    """What is sent costs, and must be text."""
    result = results.of_status("fail")
    long = coach.request(find(SLUG), b"x" * 900_000, result)["messages"][0]["content"]
    assert len(long) < coach.LONGEST_FILE + 20_000
    assert "[cut here: the file has 900,000 characters]" in long
    assert "\ufffd" in coach.request(find(SLUG), b"\xff", result)["messages"][0]["content"]
    assert "(empty)" in coach.request(find(SLUG), b"", result)["messages"][0]["content"]


def said(text: str) -> list[Comment]:
    return coach.comments({"stop_reason": "end_turn", "content": [{"type": "text", "text": text}]})


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        (SAID, HEARD),
        ("2. **Essential:** `fsync` it", [Comment("essential", "`fsync` it")]),
        ("- Actionable : one\n  line more", [Comment("actionable", "one line more")]),
        ("Here is what I think.\nessential: a\nessential:\n", [Comment("essential", "a")]),
        (
            "essential: a\nactionable: b\ncelebratory: c\nessential: d",
            [Comment(*each) for each in zip(coach.KINDS, "abc", strict=True)],
        ),
        ("celebratory: " + "x" * 2_000, [Comment("celebratory", "x" * coach.LONGEST_COMMENT)]),
    ],
    ids=["as asked", "marked up", "a line more", "chatter", "four", "long"],
)
def test_at_most_three_comments_are_read(text: str, heard: list[Comment]) -> None:
    """In the form that was asked for, read with some patience."""
    assert said(text) == heard


def test_what_the_coach_says_cannot_move_the_cursor() -> None:
    """It may repeat what a learner's file made it say."""
    found = said("essential: \x1b[2Jgone\u202e and … so on")
    assert list(coach.lines(found, Screen())) == [r"  coach   essential: \x1b[2Jgone\u202e and ... so on"]
    assert list(coach.lines(found, Screen(ascii_only=False))) == [r"  coach   essential: \x1b[2Jgone\u202e and … so on"]


# --- what goes wrong ------------------------------------------------------------------------------------


def api_error(status: int, kind: str) -> Callable[[], Adviser]:
    return lambda: Adviser(fails=ApiError(status, kind, f"what the service says of \x1b[31m {kind}"))


FAILURES: dict[str, tuple[Callable[[], Adviser], str]] = {
    "400": (
        api_error(400, "invalid_request_error"),
        "the service does not take the request (400 invalid_request_error",
    ),
    "401": (api_error(401, "authentication_error"), f"the key in {KEY_NAME} is not accepted (401 authentication_error"),
    "403": (api_error(403, "permission_error"), f"the key in {KEY_NAME} is not accepted (403 permission_error"),
    "404": (api_error(404, "not_found_error"), "the service does not take the request (404 not_found_error"),
    "429": (api_error(429, "rate_limit_error"), "too many requests, or no credit is left (429 rate_limit_error"),
    "529": (api_error(529, "overloaded_error"), "the service is out of order (529 overloaded_error"),
    "refusal": (lambda: Adviser("", stop="refusal"), "the model declined to answer"),
    "too long": (lambda: Adviser(stop="max_tokens"), "the answer was cut for its length"),
    "empty": (lambda: Adviser(""), "the answer was empty"),
    "blank": (lambda: Adviser(" \n"), "the answer was empty"),
    "another form": (lambda: Adviser("Well done!"), "the answer held no comment in the form that was asked for"),
    "cut": (lambda: Adviser(cut=Cut(after=2, clean=False)), "its answer did not come whole"),
    "cut cleanly": (lambda: Adviser(cut=Cut(after=2, clean=True)), "its answer did not come whole"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_coach_that_fails_changes_nothing(
    name: str, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told on stderr, once and without the key; check, exit code and standing are as without it."""
    make, words = FAILURES[name]
    adviser = make()
    assert cli.main(["check", SLUG]) == 1
    without, standing = capsys.readouterr().out, progress.load(Path("work"))
    desk.with_name("coach.json").write_text("of an earlier check")
    assert checked(monkeypatch, adviser) == 1
    shown = capsys.readouterr()
    assert shown.out == without
    assert progress.load(Path("work")) == standing
    assert words in shown.err
    assert shown.err.startswith("crashcourse: no comments of the coach: ")
    assert shown.err.endswith("; the check stands as it is\n")
    assert "\x1b" not in shown.err
    assert KEY not in shown.err
    kept = json.loads(desk.with_name("coach.json").read_text())
    assert kept["comments"] == []
    assert words in kept["error"]
    assert len(adviser.requests) == 1  # asked once: the client must not try again by itself


def test_a_service_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection is told, and not tried again."""
    with socket.socket() as held:  # bound and not listening: whoever calls is refused, and nobody else gets the port
        held.bind(("127.0.0.1", 0))
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{held.getsockname()[1]}")
        asked = coach.request(find(SLUG), b"", results.of_status("fail"))
        with pytest.raises(NoComments, match="could not be reached, or its answer did not come whole"):
            coach.ask(KEY, asked)


@pytest.mark.parametrize("address", ["http://[", "ftp://127.0.0.1", "nonsense"])
def test_an_odd_address_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the client makes of it."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    with pytest.raises(NoComments, match="could not be reached"):
        coach.ask(KEY, coach.request(find(SLUG), b"", results.of_status("fail")))


def test_where_nothing_can_be_written_the_comments_are_shown(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are the learner's even if the file is not."""
    desk.with_name("coach.json").mkdir()
    assert checked(monkeypatch, Adviser()) == 1
    shown = capsys.readouterr()
    assert shown.out.endswith("  coach   celebratory: No mix anywhere.\n")
    assert "cannot write coach.json beside work/unbreakable-save/exercise.py" in shown.err


def test_an_interrupted_coach_leaves_the_check(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who presses Ctrl-C while it thinks has had the check, and its exit code."""

    def interrupted(*_: object) -> list[Comment]:
        raise KeyboardInterrupt

    monkeypatch.setattr(coach, "ask", interrupted)
    assert cli.main(["check", SLUG, "--coach"]) == 1
    assert "no comments of the coach: interrupted; the check stands as it is" in capsys.readouterr().err
    assert json.loads(desk.with_name("coach.json").read_text())["error"] == "interrupted"


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ("", f"needs a key in {KEY_NAME}; without --coach no key is needed"),
        (None, f"needs a key in {KEY_NAME}; without --coach no key is needed"),
        ("sk-secret\n", f"the key in {KEY_NAME} holds a space, a line break or another sign that no key has"),
        ("sk-secret\r\nx-other: 1", "holds a space, a line break"),
        ("sk secret", "holds a space, a line break"),
        ("sk-secr\u00e9t", "another sign that no key has"),
    ],
)
def test_without_a_key_that_can_be_sent_nothing_is_judged(
    secret: str | None, told: str, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Misuse is told before a check of a minute, and the key is not quoted."""

    def judged(*_: object, **__: object) -> Result:
        pytest.fail("it was judged")

    monkeypatch.setattr(marking, "mark", judged)
    monkeypatch.delenv(KEY_NAME) if secret is None else monkeypatch.setenv(KEY_NAME, secret)
    assert cli.main(["check", SLUG, "--coach"]) == 64
    shown = capsys.readouterr()
    assert told in shown.err
    assert "secr" not in shown.err
    assert shown.out == ""
    assert not desk.with_name("coach.json").exists()


def test_without_the_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core has no client."""
    monkeypatch.setitem(sys.modules, "longrun.client", None)
    with pytest.raises(UsageError, match=r"pip install 'crashlab\[agents\]'"):
        coach.key({KEY_NAME: KEY})


# --- as a learner and a grader meet it -------------------------------------------------------------------


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Nothing is patched: the command, the check of a file that cannot be imported, the client, the server."""
    folder = tmp_path / "work" / SLUG
    folder.mkdir(parents=True)
    (folder / "exercise.py").write_text("def (")
    adviser = Adviser()
    with serve(adviser) as base_url:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            KEY_NAME: KEY,
            "ANTHROPIC_BASE_URL": base_url,
        }
        command = [sys.executable, "-m", "crashcourse", "check", SLUG, "--coach"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=900
        )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("VIOLATION  unbreakable-save  0/100")
    assert done.stdout.endswith("  coach   celebratory: No mix anywhere.\n")
    (request,) = adviser.requests
    assert request["model"] == LIVE_MODEL
    assert "SyntaxError" in request["messages"][0]["content"]


def test_the_grader_neither_reads_it_nor_holds_the_key() -> None:
    """Nothing that judges or grades names the coach, and no warden inherits the key."""
    course = Path(coach.__file__).parent
    judging = [*course.glob("grading/*.py"), *course.glob("judges/*.py"), *course.glob("adapters/*.py")]
    judging += [course / f"{name}.py" for name in ("judging", "marking", "result", "inside")]
    assert len(judging) > 20
    assert [path.name for path in judging if "coach" in path.read_text()] == []
    assert KEY_NAME not in batch._KEPT
