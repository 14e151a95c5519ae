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
LIMIT_S = 120.0
ONCE = 1


def kill_everywhere(environment: dict[str, str], directory: Path, *arguments: str) -> list[dict[str, Any]]:
    module, persona, *options = arguments
    program = str(PROGRAMS / "kill_everywhere.py")
    done = subprocess.run(
        [sys.executable, program, module, persona, str(directory), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def doubled(rows: list[dict[str, Any]]) -> list[str]:
    """The effects that the world saw more than once, by name."""
    return [effect.split()[0] for row in rows for effect, count in row["effects"].items() if count > 1]


@pytest.mark.parametrize(
    ("persona", "options"),
    [("careful", ["1"]), ("hasty", ["3"]), ("careful", ["3", "nested"]), ("hasty", ["3", "nested"])],
)
def test_a_kill_at_any_step_costs_nothing_but_an_honest_unknown(
    tmp_path: Path, program_environment: dict[str, str], persona: str, options: list[str]
) -> None:
    """Killed anywhere, once or twice, and resumed: every effect once, or one page left to a person."""
    rows = kill_everywhere(program_environment, tmp_path / "run", "longrun.checkpoint.correct", persona, *options)
    assert len(rows) > 200 // int(options[0])
    assert any(row["inside"] for row in rows)
    for row in rows:
        at = f"step {row['step']}, inside: {row['inside']}"
        assert set(row["effects"].values()) == {ONCE}, at
        assert row["refusals"] == [], at
        assert row["asked_again"] == 0, at
        assert row["left"] == ["checkpoint.json", "effects.jsonl"], at
        assert row["status"] == ("waiting" if row["unknown"] else "done"), at
        assert set(row["unknown"]) <= {"page_oncall"}, at
        assert len(row["effects"]) >= 9 - len(row["unknown"]), at
    unknown = sum(bool(row["unknown"]) for row in rows)
    assert 0 < unknown < len(rows) / 10


@pytest.mark.parametrize("module", ["longrun.checkpoint.naive_b_only", "longrun.resume.naive_drop_call"])
def test_a_naive_harness_is_caught_by_real_kills_too(
    tmp_path: Path, program_environment: dict[str, str], module: str
) -> None:
    """The same kills make it send a reply and ring a page twice: the test above can fail."""
    rows = kill_everywhere(program_environment, tmp_path / "run", module, "careful", "1")
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


@pytest.mark.parametrize("persona", ["careful", "hasty"])
@pytest.mark.parametrize(
    ("place", "status"),
    [
        ("save:6", "done"),  # inside A of turn 3
        ("saved:16", "done"),  # after A of turn 5, before any of its acts
        ("effect:set_label#3", "done"),
        ("effect:open_case#1", "done"),
        ("effect:send_reply#2", "done"),
        ("effect:page_oncall#1", "waiting"),
        ("save:20", "done"),  # inside B of turn 5
    ],
)
def test_the_agent_with_the_real_client_survives_sigkill(
    desk: Any, program_environment: dict[str, str], place: str, status: str, persona: Any
) -> None:
    """Killed at the place and resumed over HTTP: each effect once, no request refused, none uncounted."""
    api = FakeApi(persona)
    with serve(api) as base_url:
        agent = Http(desk, program_environment, base_url)
        agent.killed_at(place)
        before = len(desk.outside.effects)
        last = agent.resumed()
        asked = len(api.exchanges)
        assert agent.resumed() == last
    assert last["status"] == status
    effects = Counter(f"{each.name} {each.detail}" for each in desk.outside.effects if each.counted)
    assert set(effects.values()) == {ONCE}
    assert len(effects) == 9 > before
    assert api.refusals == []
    assert len(api.exchanges) == asked
    assert last["unknown"] == ([["page_oncall", {"ticket": "T-101", "summary": "Checkout is down"}]] * (status != "done"))


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
