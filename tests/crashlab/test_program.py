"""Running the commands of a subject: how they end, what they tell, what they print."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.lab import EffectRecord, Lab
from crashlab.program import ProgramExit, filled, resume, shown
from crashlab.recover import sweep
from crashlab.subject import Commands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST = {"step": "first", "nothing": None}


@pytest.fixture(autouse=True)
def subreaper() -> Iterator[None]:
    """As the process that runs commands is; afterwards not, or orphans of other tests would become our children."""
    sweep.become_subreaper()
    yield
    sweep._prctl(sweep._PR_SET_CHILD_SUBREAPER, 0)


class Told:
    """A root with its places, and a lab that keeps what it is told."""

    def __init__(
        self, tmp_path: Path, *, effects: list[EffectRecord] | None = None, acked: list[Any] | None = None
    ) -> None:
        self.root = tmp_path / "root"
        for name in ("dir", "home", "tmp"):
            (self.root / name).mkdir(parents=True)
        self.events: list[tuple[type[t.Op], dict[str, Any]]] = []
        self.lab = Lab(self.root / "dir", self._take, effects or [], acked or [])

    def _take(self, event_type: type[t.Op], **fields: Any) -> None:
        self.events.append((event_type, fields))

    def resume(self, *args: Any, step: dict[str, Any] = FIRST, **fields: Any) -> dict[str, Any]:
        """One step of a subject of these commands; nothing of ours may be left beside the root."""
        try:
            return resume(Commands(*args, **fields), self.lab, step)
        finally:
            assert os.listdir(self.root.parent) == ["root"]


def test_places_are_filled_in_and_quoted_where_a_shell_reads_them() -> None:
    """A list is executed as it is, a text goes to sh."""
    assert filled(["a b", "{dir}/x", "{tmp}", "{home}"], "/r o") == ["a b", "/r o/dir/x", "/r o/tmp", "/r o/home"]
    assert filled("cat {dir}/x {other}", "/it's") == ["sh", "-c", "cat '/it'\"'\"'s/dir'/x {other}"]
    assert shown("cat {dir}") == "cat {dir}"


@pytest.mark.parametrize("command", ["", "  ", [], [1]])
def test_a_command_that_is_none_is_refused(command: Any) -> None:
    """At once, with what to write."""
    with pytest.raises(UsageError, match="write a text for sh, or a list of words"):
        filled(command, "/r")


def test_the_end_is_what_view_prints_or_the_files(tmp_path: Path) -> None:
    """Without resume the program is started again."""
    told = Told(tmp_path)
    assert told.resume("echo hi > {dir}/a")["end"]["$files"].keys() == {"a"}
    assert told.resume(["true"], "echo there >> {dir}/a", view="cat {dir}/a") == {"end": "hi\nthere\n"}
    assert told.resume(["true"], view=["printf", "\\377"])["end"] != {"end": "\ufffd"}


def test_a_view_that_fails_is_an_end_of_its_own(tmp_path: Path) -> None:
    """It differs from every good end, and says why."""
    found = Told(tmp_path).resume(["true"], view="cat {dir}/gone")
    assert found["end"] == {"$view": found["view_failed"]}
    assert found["view_failed"].startswith("cat {dir}/gone exited with 1: cat: ")


def test_events_before_the_crash_can_be_read_and_new_ones_are_told(tmp_path: Path) -> None:
    """A key that the outside world knows gets its first receipt, and nothing is done."""
    told = Told(tmp_path, effects=[EffectRecord("mail", "k1", {"to": "ada"}, "mail-1")])
    mail = 'echo effect mail key={} to=ada >> "$CRASHLAB_EVENTS"; '
    told.resume(["false"], 'cp "$CRASHLAB_EVENTS" {dir}/seen; ' + mail.format("k1") + mail.format("k2"))
    assert (told.root / "dir/seen").read_text() == '{"effect": "mail", "key": "k1", "to": "ada"}\n'
    assert [(fields["key"], fields["receipt"], fields["counted"]) for _, fields in told.events] == [
        ("k1", "mail-1", False),
        ("k2", "mail-2", True),
    ]


def test_an_effect_is_told_again_in_the_words_of_the_program(tmp_path: Path) -> None:
    """A script looks for the line that it would write."""
    line = "effect mail to=ada"
    told = Told(tmp_path, effects=[EffectRecord("mail", None, {"to": "ada"}, "mail-1", line=line)])
    told.resume(["false"], f'grep -qx "{line}" "$CRASHLAB_EVENTS" || echo {line} >> "$CRASHLAB_EVENTS"')
    assert told.events == []


def test_a_line_that_is_no_event_is_an_error_with_the_line(tmp_path: Path) -> None:
    """A misspelt event must not be a missing one."""
    with pytest.raises(UsageError, match="no event: 'efect mail"):
        Told(tmp_path).resume('echo efect mail >> "$CRASHLAB_EVENTS"')


@pytest.mark.parametrize("how", ['> "$E"', '> "$E.x"; mv "$E.x" "$E"', '> /dev/null; rm "$E"'])
def test_an_events_file_that_is_emptied_or_replaced_is_an_error(tmp_path: Path, how: str) -> None:
    """What was told before is gone with it, so an effect done twice would count as once."""
    told = Told(tmp_path, effects=[EffectRecord("mail", None, {}, "mail-1")])
    with pytest.raises(UsageError, match="emptied or replaced its events file"):
        told.resume(["true"], f'E="$CRASHLAB_EVENTS"; echo effect mail {how}')


def test_what_a_process_in_the_background_does_belongs_to_the_recovery(tmp_path: Path) -> None:
    """Its effects and its files, as in the recorded run; it ends within the grace that every process has."""
    told = Told(tmp_path)
    late = '(sleep 0.2; echo effect mail >> "$CRASHLAB_EVENTS"; echo x > {dir}/late) &'
    assert told.resume(["true"], late)["end"]["$files"].keys() == {"late"}
    assert [kind for kind, _ in told.events] == [t.Effect]


def test_an_exit_code_says_which_command_ended_so_and_its_events_count(tmp_path: Path) -> None:
    """What was done before it failed was done."""
    told = Told(tmp_path)
    with pytest.raises(ProgramExit) as caught:
        told.resume(["true"], 'echo effect mail >> "$CRASHLAB_EVENTS"; exit 3')
    assert (caught.value.code, caught.value.told.endswith("exit 3 exited with 3")) == (3, True)
    assert [kind for kind, _ in told.events] == [t.Effect]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_is_told_as_one(tmp_path: Path, number: int) -> None:
    """The end of a step is one too: that is for the process that has to say so."""
    with pytest.raises(ProgramExit) as caught:
        Told(tmp_path).resume(["true"], f"kill -{number} $$")
    assert (caught.value.code, caught.value.told) == (-number, f"kill -{number} $$ was ended by signal {number}")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_process_ends_by_the_signal_of_its_program(tmp_path: Path, number: int) -> None:
    """And leaves no core."""
    code = "import sys; from crashlab.program import die_by; die_by(int(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(int(number))], cwd=tmp_path, check=False)
    assert (done.returncode, os.listdir(tmp_path)) == (-number, [])


def test_resuming_twice_in_one_step(tmp_path: Path) -> None:
    """The second time may fail: that is told, and is no end of the step."""
    told, again = Told(tmp_path), {**FIRST, "again": True}
    grow = "echo x >> {dir}/a"
    assert told.resume(grow, view="wc -l < {dir}/a", step=again) == {"end": "1\n", "again": {"end": "2\n"}}
    once = "mkdir {dir}/b"
    assert told.resume(once, view="true", step=again)["again"] == {"error": "mkdir {dir}/b exited with 1"}


@pytest.mark.parametrize(
    ("check", "found"),
    [
        ("true", {"check": None}),
        ("echo two of one; exit 1", {"check": {"kind": "diverged", "text": "two of one"}}),
        ("exit 1", {"check": {"kind": "diverged", "text": "exit 1 exited with 1"}}),
        (
            "echo no judge >&2; exit 2",
            {"check": None, "check_error": "echo no judge >&2; exit 2 exited with 2: no judge"},
        ),
    ],
)
def test_a_check_answers_by_its_exit_code(tmp_path: Path, check: str, found: dict[str, Any]) -> None:
    """0 right, 1 wrong, anything else: it could not judge."""
    end = Told(tmp_path).resume(["true"], view="true", check=check)
    assert {key: value for key, value in end.items() if key.startswith("check")} == found


def test_a_check_sees_what_was_acked_and_a_recovery_does_not(tmp_path: Path) -> None:
    """A recovery that could read the acks would not need its files."""
    told = Told(tmp_path, acked=[1, {"n": 2}])
    copy = 'cp "$CRASHLAB_EVENTS" {dir}/'
    for step in (FIRST, {**FIRST, "again": True}):  # the second recovery of one step comes after the first check
        told.resume(["true"], copy + "resumed", check=copy + "checked", step=step)
        assert (told.root / "dir/resumed").read_text() == ""
        assert (told.root / "dir/checked").read_text() == '{"ack": 1}\n{"ack": {"n": 2}}\n'
    assert told.events == []


def test_a_program_that_cannot_be_started_is_a_misuse(tmp_path: Path) -> None:
    """With the name that was tried."""
    with pytest.raises(UsageError, match="cannot start 'no-such-program': No such file or directory"):
        Told(tmp_path).resume(["no-such-program"])
