"""The host starts and ends cleanly, says what is wrong with a subject, and streams."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Subject, UsageError
from crashlab import trace as t
from crashlab.errors import LabError
from crashlab.recover import travel
from crashlab.recover.host import Host
from crashlab.recover.place import NO_NAMESPACE
from tests.crashlab.recover.one_step import end_of, recorded, request, write_one

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = Subject(write_one, lambda lab: str(lab.dir))


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The lab's temporary folders go here, and nothing may be left of them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob("crashlab-*")) == []


@pytest.mark.usefixtures("folders")
def test_many_states_stream_through_two_workers_at_one_path() -> None:
    """Every request is answered once, at the recorded path, and at most two per worker are ahead."""
    taken = answered = ahead = 0

    def requests(trace: t.Trace) -> Iterator[dict[str, Any]]:
        nonlocal taken
        for n in range(40):
            taken += 1
            yield {**request(trace), "state": f"kill@{n % (len(trace.ops) + 1)}"}

    with Host(travel.pack(NOW), jobs=2) as host:
        trace = recorded(host)
        for answer in host.recover(requests(trace)):
            assert end_of(answer) == f"{trace.root}/dir"
            answered += 1
            ahead = max(ahead, taken - answered)
        assert host.root == trace.root
    assert (taken, answered) == (40, 40)
    assert ahead <= 2 * 2 + 2  # two for each worker, and answers that came at the same moment


@pytest.mark.usefixtures("folders")
def test_without_a_namespace_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where mounts are refused the state lies at the root itself, and one worker uses it."""
    monkeypatch.setenv(NO_NAMESPACE, "1")
    with Host(travel.pack(NOW), jobs=4) as host:
        trace = recorded(host)
        assert (host.pinned, host.jobs) == ("one at a time: CRASHLAB_NO_NAMESPACE=1", 1)
        answers = [end_of(answer) for answer in host.recover([request(trace), request(trace)])]
        assert answers == [f"{host.root}/dir"] * 2
        assert Path(host.root, "dir", "file").read_text() == "content"


@pytest.mark.usefixtures("folders")
def test_with_a_namespace_nothing_is_seen_from_outside() -> None:
    """States lie in the workers' own mounts."""
    with Host(travel.pack(NOW), jobs=2) as host:
        trace = recorded(host)
        assert host.pinned == "namespace"
        assert [len(answer.steps) for answer in host.recover([request(trace)])] == [1]
        assert os.listdir(f"{host.root}/dir") == []


@pytest.mark.usefixtures("folders")
def test_a_stream_that_is_left_early_blocks_nothing() -> None:
    """Who stops reading answers may record or recover again at once, also while a step hangs."""

    def resume(lab: Any) -> str:
        if lab.lookup("mail", key="m"):
            threading.Event().wait()
        return "recovered"

    def run(lab: Any) -> None:
        lab.save_point("before")
        lab.effect("mail", key="m")

    with Host(travel.pack(Subject(run, resume)), jobs=1) as host:
        trace = recorded(host)
        forms = [{**request(trace, timeout_s=60.0), "state": f"kill@{n}"} for n in (1, 2, 2)]
        stream = host.recover(forms)
        assert next(stream).state == "kill@1"
        stream.close()
        assert host.record(timeout_s=20).how == "returned"
        assert [end_of(answer) for answer in host.recover(forms[:1])] == ["recovered"]


@pytest.mark.usefixtures("folders")
def test_runs_are_recorded_several_at_a_time_and_come_in_order(tmp_path: Path) -> None:
    """Each waits for the next one, in a place of its own: one after the other they would hang. Who stops reading
    leaves nothing behind, and the next runs get workers of their own."""
    meeting = str(tmp_path / "meeting")
    os.mkdir(meeting)

    def run(lab: Any) -> str:
        number = 1
        while True:
            try:
                os.mkdir(f"{meeting}/{number}")
                break
            except FileExistsError:
                number += 1
        while not os.path.isdir(f"{meeting}/{number + 1 if number % 2 else number - 1}"):
            threading.Event().wait(0.01)
        (lab.dir / "file").write_text("met")
        return "met"

    with Host(travel.pack(Subject(run)), jobs=2) as host:
        ways: list[Any] = [{}, {"kill": (1, 0)}, {"kill": (1, 0)}, {}]
        found = list(host.record_many(iter(ways), timeout_s=20))
        assert [each.how for each in found] == ["returned", "signal", "signal", "returned"]
        assert [len(each.ops) for each in found] == [2, 1, 1, 2]
        stream = host.record_many(iter(ways), timeout_s=20)
        assert next(stream).how == "returned"
        stream.close()
        if len(os.listdir(meeting)) % 2:  # one was ended before it came: the next two are to meet each other
            os.mkdir(f"{meeting}/{len(os.listdir(meeting)) + 1}")
        again = [each.how for each in host.record_many(iter(ways[:2]), timeout_s=20)]
        assert again == ["returned", "signal"]


@pytest.mark.usefixtures("folders")
def test_closing_twice_and_using_afterwards() -> None:
    """close is idempotent; afterwards the lab says that it is closed."""
    host = Host(travel.pack(NOW))
    host.close()
    host.close()
    with pytest.raises(LabError, match="the lab is closed"):
        host.record(timeout_s=1)
    assert not os.path.exists(host.root)


@pytest.mark.usefixtures("folders")
def test_recover_before_prepare_and_a_foreign_trace() -> None:
    """Both are refused with what to do."""
    with Host(travel.pack(NOW)) as host:
        with pytest.raises(LabError, match="before prepare"):
            next(host.recover([]))
        recording = host.record(timeout_s=20)
        with pytest.raises(UsageError, match="pass root='/elsewhere/root'"):
            host.prepare(t.Trace(root="/elsewhere/root", base=recording.base, ops=()))


def test_a_stored_run_meets_its_recorded_place(folders: Path) -> None:
    """A later lab recovers at the root of an earlier one; a place in use is refused."""
    with Host(travel.pack(NOW)) as host:
        trace = recorded(host)
        with pytest.raises(UsageError, match="in use"):
            Host(travel.pack(NOW), root=trace.root)
    assert list(folders.iterdir()) == []
    with Host(travel.pack(NOW), root=trace.root) as later:
        later.prepare(trace)
        (answer,) = later.recover([request(trace)])
        assert end_of(answer) == f"{trace.root}/dir"


BROKEN = {
    "raises": (
        "import json\n\n1 / 0\n",
        "cannot import 'broken' in a fresh process: ZeroDivisionError: division by zero",
    ),
    "ends": ("import os\nprint('so long', flush=True)\nos._exit(7)\n", "exit code 7. It printed: so long"),
    "dies": ("import os\nos.kill(os.getpid(), 11)\n", "ended the fresh process with signal 11"),
    "never ends": ("import threading\nthreading.Event().wait()\n", "did not end within 0.5 s"),
    "misses": ("import no_such_module_anywhere\n", "No module named 'no_such_module_anywhere'"),
    "has another": (
        "from crashlab import Store\ncheckpoint = Store(print, print)\n",
        "broken has no 'chekpoint'; did you mean 'checkpoint'?",
    ),
    "is none": ("chekpoint = {}\n", "broken:chekpoint is {} (a dict), not a Store, Log, Subject or Commands"),
    "checks itself": (
        "import crashlab.recover.host as h\nh.Host({})\n",
        "a check was started while the module was imported in a fresh process",
    ),
}


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize("case", sorted(BROKEN))
def test_an_import_that_fails_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """What went wrong in the fresh process is in the message, and nothing is left of it."""
    source, expected = BROKEN[case]
    (tmp_path / "broken.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        Host(travel.pack("broken:chekpoint"), import_limit_s=0.5 if case == "never ends" else 30.0)
    assert expected in str(caught.value)
    if case in ("raises", "misses"):
        assert f"{tmp_path}/broken.py:" in str(caught.value)


@pytest.mark.usefixtures("folders")
def test_servers_print_nothing_on_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the import and the steps print stays away from the main process's output."""
    (tmp_path / "loud.py").write_text(
        "from crashlab import Subject\nprint('imported')\n"
        "def run(lab):\n    print('running')\n    (lab.dir / 'file').write_text('x')\nSUBJECT = Subject(run)\n"
    )
    monkeypatch.chdir(tmp_path)
    with Host(travel.pack("loud:SUBJECT")) as host:
        recording = host.record(timeout_s=20)
    assert recording.stdout == "running\n"
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("folders")
def test_a_killed_recording_dies_where_it_was_told() -> None:
    """After an op, and inside one after so many bytes; what is on disk is what the ops say."""
    with Host(travel.pack(NOW)) as host:
        whole = host.record(timeout_s=20)
        between = host.record(kill=(1, 0), timeout_s=20)
        inside = host.record(kill=(2, 3), timeout_s=20)
        end = host.record(kill=(2, 0), timeout_s=20)
    assert [op.KIND for op in whole.ops] == ["create", "write"]
    assert [(each.how, len(each.ops)) for each in (between, inside, end)] == [
        ("signal", 1),
        ("signal", 2),
        ("signal", 2),
    ]
    sizes = [each.last.node("dir/file").content.size for each in (between, inside, end)]  # type: ignore[union-attr]  # it is a file, or the test fails
    assert sizes == [0, 3, 7]
