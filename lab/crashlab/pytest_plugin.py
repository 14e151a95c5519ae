"""The pytest plugin: options and a marker for every check, a line for each in the summary and in the JUnit file.

Nothing is patched and nothing is collected: a test calls :func:`crashlab.check` like any function, and
what this module does is to surround it. Each test tells its checks who they are and what the marker and
the command line ask for; each check tells the test what came out. The lines travel as user properties of
the test's report, so they come through pytest-xdist and into JUnit files as they are.

Starting costs nothing: no stage of the lab is imported before a check runs, unless an option of the lab
is given and has to be looked at. ``-p no:crashlab`` takes all of this away, and leaves ``check``.

PYTEST_DONT_REWRITE: there is no assertion here that could fail in a test.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import crashlab
from crashlab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from crashlab.pytest_lines import Seen

PROPERTY = "crashlab"
"""The name of the property that a check leaves in the report of its test, and so in the JUnit file."""

NOTE_ON_PATCHES = (
    "This test uses monkeypatch. Patches do not reach the fresh process; patch inside the callable or use env."
)

_OPTIONS = {
    "budget": ("NAME", "how much is tried: quick, full or brief"),
    "faults": ("LIST", "what is tried: kill, power, error, damage, recovery, race, or all"),
    "profile": ("LIST", "file systems of a power loss: ext4, xfs, btrfs, posix"),
    "seed": ("N", "chooses the samples"),
    "out": ("DIR", "where runs are kept; default .crashlab"),
    "accept": ("REASON", "accept what is found, in crashlab-baseline.toml"),
    "only": ("ID", "judge one crash state, for example kill@7; wins over every argument"),
}
_seen = pytest.StashKey[list["Seen"]]()
_lines = pytest.StashKey[dict[str, list[str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; each says what an argument of ``check`` says, for all checks of the run."""
    group = parser.getgroup("crashlab", "crash injection")
    for name, (metavar, text) in _OPTIONS.items():
        kind = int if name == "seed" else str
        group.addoption(f"--crashlab-{name}", metavar=metavar, type=kind, help=text)
    group.addoption(
        "--crashlab-unmeasured",
        choices=("fail", "skip"),
        default="fail",
        help="what a test comes to whose check could not judge: fail (default), or skip with the reason",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and refuse at once an option that means nothing."""
    text = "crashlab(**arguments): arguments of crashlab.check, for the checks that this test makes"
    config.addinivalue_line("markers", text)
    config.stash[_lines] = {}
    given = _command(config)
    if not given and config.getoption("crashlab_only") is None:
        return
    from crashlab.context import Context, surrounded  # noqa: PLC0415 - coverage must have started
    from crashlab.settings import resolve  # noqa: PLC0415 - imported only where there is something to look at

    try:
        with surrounded(Context(folder=_folder(config))):
            resolve(**given)
    except crashlab.UsageError as error:
        said = " ".join(f"--crashlab-{name}={value}" for name, value in given.items())
        message = f"{said}: {error}"
        raise pytest.UsageError(message) from error


def _command(config: pytest.Config) -> dict[str, Any]:
    """Arguments of a check that the command line gives; ``only`` apart, since it wins over the test's own."""
    values = {name: config.getoption(f"crashlab_{name}") for name in _OPTIONS if name != "only"}
    return {name: value for name, value in values.items() if value is not None}


def _folder(config: pytest.Config) -> Path:
    """Where pytest was started, in a worker of pytest-xdist too: a test that changes the directory moves nothing."""
    return config.invocation_params.dir


def pytest_report_header(config: pytest.Config) -> str:
    """The version, and what the command line asks of every check."""
    from crashlab.context import Context, project_file, surrounded  # noqa: PLC0415 - coverage must have started

    said = [f"{name} {config.getoption(f'crashlab_{name}')}" for name in _OPTIONS]
    asked = [each for each in said if not each.endswith(" None")]
    if config.getoption("crashlab_unmeasured") == "skip":
        asked.append("unmeasured skips")
    with surrounded(Context(folder=_folder(config))):
        file = project_file()
    if file:
        asked.append(f"defaults of {os.path.relpath(file)}")
    return f"crashlab: {', '.join([crashlab.__version__, *asked])}"


# --- around each test -------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tell the checks of this test, fixtures included, which test they are in and what is asked of them."""
    from crashlab.context import Context, surrounded  # noqa: PLC0415 - coverage must have started

    marker: dict[str, Any] = {}
    for each in item.iter_markers("crashlab"):  # the nearest first
        marker = {**each.kwargs, **marker}
    item.stash[_seen] = []
    context = Context(
        test=item.nodeid,
        folder=_folder(item.config),
        marker=marker,
        command=_command(item.config),
        only=item.config.getoption("crashlab_only"),
        notes=lambda: [NOTE_ON_PATCHES] if _patched(item) else [],
        seen=lambda report: _add(item, report),
    )
    with surrounded(context):
        return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a marker that cannot mean anything."""
    for each in item.iter_markers("crashlab"):
        if each.args:
            text = f"@pytest.mark.crashlab takes keyword arguments, those of check, and got {each.args!r}"
            pytest.fail(text, pytrace=False)


def _patched(item: pytest.Item) -> bool:
    """Whether the test has patched something by ``monkeypatch`` that a fresh process does not see.

    Environment variables do reach it: the lab's processes get those of the moment at which the check starts.
    """
    patch = getattr(item, "funcargs", {}).get("monkeypatch")
    if patch is None:
        return False
    items = getattr(patch, "_setitem", [])
    return bool(getattr(patch, "_setattr", items)) or any(each[0] is not os.environ for each in items)


def _add(item: pytest.Item, report: crashlab.Report) -> None:
    from crashlab.pytest_lines import Seen  # noqa: PLC0415 - a check has run, so the lab is there

    item.stash[_seen].append(Seen.of(report))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leave the lines of the checks with the report; turn a check without a verdict into a skip where that is wanted.

    The outermost wrapper: what is expected to fail has been settled by then.
    """
    if seen := item.stash.get(_seen, []):
        from crashlab.pytest_lines import lines_of  # noqa: PLC0415 - a check has run, so the lab is there

        others = [each for each in item.user_properties if each[0] != PROPERTY]
        item.user_properties[:] = [*others, *((PROPERTY, line) for line in lines_of(seen, item.nodeid))]
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, crashlab.Violation | crashlab.Unmeasured | crashlab.UsageError):
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None:  # the first line stands in the summary, where every column counts
            crash.message = str(error)
    if isinstance(error, LabError) and _patched(item):
        report.sections.append(("crashlab", f"{NOTE_ON_PATCHES} They do reach the lab, and may be why it failed."))
    skips = item.config.getoption("crashlab_unmeasured") == "skip"
    if skips and report.outcome == "failed" and isinstance(error, crashlab.Unmeasured):
        path, line, _ = item.reportinfo()
        report.outcome = "skipped"
        report.longrepr = (os.fspath(path), (line or 0) + 1, f"Skipped: {str(error).splitlines()[0]}")
    return report


# --- at the end -------------------------------------------------------------------------------------


class _Collector:
    """Keeps the lines of every report that comes by, from this process or from a worker of pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self._lines = config.stash[_lines]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Each phase of a test has all lines so far; the last one stays."""
        lines = [str(value) for name, value in report.user_properties if name == PROPERTY]
        if lines:
            self._lines[report.nodeid] = lines


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to listen."""
    session.config.pluginmanager.register(_Collector(session.config), "crashlab-lines")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The section ``crashlab``: one line per check."""
    lines: dict[str, list[str]] = config.stash[_lines]
    if not lines or terminalreporter.config.get_verbosity() < -1:
        return
    terminalreporter.section("crashlab")
    for test, of_test in lines.items():
        for line in of_test:
            word, _, rest = line.partition("  ")
            text = f"{word.ljust(max(map(len, _COLOURS)))}  {test}  {rest}"
            terminalreporter.write_line(text, **{_COLOURS.get(word, "red"): True})


_COLOURS = {"PASS": "green", "VIOLATION": "red", "UNMEASURED": "yellow"}
