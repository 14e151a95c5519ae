"""Real deaths: SIGKILL at every step of the agent, and of the agent with the real client over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from longrun.errors import ApiError
from longrun.fake_api import FakeApi
from longrun.fake_http import serve

PROGRAMS = Path(__file__).parent / "programs"
LIMIT_S = 600.0
KILLS_LIMIT_S = 1_200.0
"""Of all kills of one run together; the full profile takes hundreds."""
ONCE = 1


def kill_everywhere(environment: dict[str, str], directory: Path, *arguments: str) -> list[dict[str, Any]]:
    module, persona, *options = arguments
    program = str(PROGRAMS / "kill_everywhere.py")
    done = subprocess.run(
        [sys.executable, program, module, persona, str(directory), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=KILLS_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


SAVES = 23
"""Of an uncrashed run; each is a write that may be cut."""


def doubled(rows: list[dict[str, Any]]) -> list[str]:
    """The effects that the world saw more than once, by name."""
    return [effect.split()[0] for row in rows for effect, count in row["effects"].items() if count > 1]


@pytest.mark.parametrize(
    ("persona", "options"),
    [("careful", []), ("hasty", []), ("careful", ["nested"]), ("hasty", ["nested"])],
)
def test_a_kill_at_any_step_costs_nothing_but_an_honest_unknown(
    quick_path: Path, program_environment: dict[str, str], persona: str, options: list[str], budget_examples: int
) -> None:
    """Killed anywhere, once or twice, and resumed: every effect once, or one page left to a person."""
    stride = 1 if budget_examples > 100 else 3  # by threes every kind of step is met; the full profile takes all
    correct, place = "longrun.checkpoint.correct", quick_path / "run"
    rows = kill_everywhere(program_environment, place, correct, persona, str(stride), *options)
    assert len(rows) > 200 // stride
    assert sum(row["inside"] for row in rows) >= SAVES // stride
    for row in rows:
        at = f"step {row['step']}, inside: {row['inside']}"
        assert set(row["effects"].values()) == {ONCE}, at
        assert row["refusals"] == [], at
        assert row["asked_again"] == 0, at
        assert row["left"] == ["checkpoint.json", "effects.jsonl", "lease.lock"], at
        assert row["status"] == ("waiting" if row["unknown"] else "done"), at
        assert set(row["unknown"]) <= {"page_oncall"}, at
        assert len(row["effects"]) >= 9 - len(row["unknown"]), at
    unknown = sum(bool(row["unknown"]) for row in rows)
    assert 0 < unknown < len(rows) / 10


@pytest.mark.parametrize("module", ["longrun.checkpoint.naive_b_only", "longrun.resume.naive_drop_call"])
def test_a_naive_harness_is_caught_by_real_kills_too(
    quick_path: Path, program_environment: dict[str, str], module: str
) -> None:
    """The same kills make it send a reply and ring a page twice: the test above can fail."""
    rows = kill_everywhere(program_environment, quick_path / "run", module, "careful", "1")
    assert set(doubled(rows)) == {"send_reply", "page_oncall"}


# --- the real client over HTTP --------------------------------------------------------------------


class Http:
    """The agent of ``programs/http_agent.py``, to be started, killed at a place, and started again."""

    def __init__(self, desk: Any, environment: dict[str, str], base_url: str) -> None:
        self.arguments = [sys.executable, str(PROGRAMS / "http_agent.py"), base_url, str(desk.directory)]
        self.environment = environment

    def killed_at(self, place: str) -> None:
        with subprocess.Popen(
            [*self.arguments, place],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as agent:
            assert agent.stdout is not None
            assert agent.stdout.readline() == "here\n", f"the agent never came to {place}"
            agent.kill()
            assert agent.wait(LIMIT_S) == -signal.SIGKILL

    def resumed(self) -> dict[str, Any]:
        done = subprocess.run(
            self.arguments, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))


PAGE_TO_DECIDE = [["page_oncall", {"ticket": "T-101", "summary": "Checkout is down"}]]


@pytest.mark.parametrize(
    ("persona", "places", "unknown"),
    [
        # Inside A of turn 3 (save 6) or after A of turn 5 (save 15); then right after effects, one death per process.
        ("careful", ["save:6", "effect:set_label#3", "effect:open_case#1", "effect:send_reply#2"], []),
        ("careful", ["effect:page_oncall#1"], PAGE_TO_DECIDE),
        ("hasty", ["saved:15", "effect:send_reply#1", "effect:page_oncall#1"], PAGE_TO_DECIDE),
    ],
)
def test_the_agent_with_the_real_client_survives_sigkill(
    desk: Any, program_environment: dict[str, str], persona: Any, places: list[str], unknown: list[Any]
) -> None:
    """Killed at the places, one after the other, and resumed over HTTP: each effect once, no request refused."""
    api = FakeApi(persona)
    with serve(api) as base_url:
        agent = Http(desk, program_environment, base_url)
        for place in places:
            agent.killed_at(place)
        before = len(desk.outside.effects)
        last = agent.resumed()
    assert last["status"] == ("waiting" if unknown else "done")
    assert last["unknown"] == unknown
    effects = Counter(f"{each.name} {each.detail}" for each in desk.outside.effects if each.counted)
    assert set(effects.values()) == {ONCE}
    assert len(effects) == 9
    assert before < len(desk.outside.effects)
    assert api.refusals == []


def test_a_transcript_that_lost_a_result_is_refused_over_http(desk: Any) -> None:
    """The real client passes the server's 400 on as the loop's own error, and the server has recorded it."""
    from longrun.client import ClientModel  # noqa: PLC0415 - only these tests need the client's packages

    api = FakeApi()
    last = desk.agent().start()
    broken = [*last.messages[:2], last.messages[4]]
    request = {"model": "m", "max_tokens": 1, "tools": [], "messages": broken}
    with (
        serve(api) as base_url,
        ClientModel.at(base_url).client as client,
        pytest.raises(ApiError, match=r"messages\.2\.content\.0: unexpected `tool_use_id`"),
    ):
        ClientModel(client).reply(request)
    assert len(api.refusals) == 1
