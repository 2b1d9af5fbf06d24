"""What leaves a turn as a test or as a page: no secret in it, and still the failure that it was."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.answers import (
    APPROVE,
    COMPLETE,
    DRAFT,
    QUESTION,
    SEARCH,
    every_phase_by_model,
    renumbered,
)
from tests.integration.test_replay import (
    cli,
    exported_journal,
    journal_of,
    ran,
    run_alone,
    with_journal,
)
from tests.integration.test_resume import BROKEN, ask, make, resume
from unified_flow.errors import RetrievalError
from unified_flow.resume.replay.export import NotReplayableError, as_test
from unified_flow.resume.replay.replay import replay
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.turns.lock import JOURNAL
from unified_flow.turns.results import Plan, ToolRequest

ARGS: dict[str, Any] = {
    "headers": [{"name": "X-Api-Key", "value": "zzzhush456"}],
    "credentials": {"user": "bob", "pass": "swordfish99"},
}
SECRETS = ("zzzhush456", "swordfish99", "hunter2hunter2", "opensesame1")


class Anything(Arguments):
    headers: list[dict[str, str]]
    credentials: dict[str, str]


def leaky_turn(home: Path) -> None:
    async def run(args: Anything) -> ToolOutput:
        return ToolOutput({"passwords": ["hunter2hunter2"], "pair": ["API_KEY", "opensesame1"]})

    tool = Tool("web.get", "gets", Anything, frozenset({Access.READS}), run)
    requests = [ToolRequest(tool="web.get", args=ARGS)]
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=requests)
    ask(make(home, None, planner=[plan, COMPLETE], validation="no JSON", tools=[tool]))


def exported(home: Path, folder: Path) -> Path:
    folder.mkdir()
    test = folder / "test_regression.py"
    test.write_text(as_test(journal_of(home), "x"))
    return test


@every_phase_by_model
def test_secrets_that_only_a_structure_tells_stay_here(home: Path, tmp_path: Path) -> None:
    leaky_turn(home)
    test = exported(home, tmp_path / "elsewhere")
    journal = (home / "shared_state/turns/turn_000001" / JOURNAL).read_text()
    assert all(secret in journal for secret in SECRETS), "else nothing is proven"
    whole = test.read_text().replace("'\n    '", "")
    for whose in ('"session_id":"s"', '"user_id":"default"'):
        assert whose in journal, "else nothing is proven"
        assert whose not in whole
    shown = cli(home, "unified_flow", "turns", "show", "1", "--full").stdout
    assert "web.get" in shown
    for secret in SECRETS:
        assert secret not in test.read_text()
        assert secret not in shown
    failing = run_alone(test)
    assert failing.returncode == 1, failing.stdout
    assert "NotJSONError" in failing.stdout


def test_a_long_reply_is_played_whole(home: Path, docs: Path, tmp_path: Path) -> None:
    long = DRAFT.model_copy(update={"response": "A topic is a named bus. " * 400})
    ran(home, docs, synthesis=long, validation='{"decision": "MAYBE"}')
    failing = run_alone(exported(home, tmp_path / "elsewhere"))
    assert failing.returncode == 1, failing.stdout
    assert "phase='validation'" in failing.stdout


@every_phase_by_model
def test_a_limit_of_its_own_configuration_is_reached(
    home: Path, docs: Path, tmp_path: Path
) -> None:
    ask(make(home, docs, planner=SEARCH, limits={"planning_loop": 2}))
    failing = run_alone(exported(home, tmp_path / "elsewhere"))
    assert failing.returncode == 1, failing.stdout
    assert "LoopLimitError" in failing.stdout


def test_a_failure_that_does_not_come_again_is_refused(home: Path, docs: Path) -> None:
    _, journal = ran(home, docs, synthesis="no JSON")
    mended = [
        event.model_copy(update={"reply": DRAFT.model_dump_json()})
        if event.event == "model_called" and event.phase == "synthesis"
        else event
        for event in journal
    ]
    with pytest.raises(NotReplayableError, match=r"synthesis cannot be repeated .*: it passes"):
        as_test(mended, "x")


def test_a_flow_that_asks_for_something_else_is_not_mended(
    home: Path, docs: Path, tmp_path: Path
) -> None:
    """Here, for one more plan, as the limit is not reached: nothing was recorded for it."""
    ran(home, docs, planner=SEARCH)
    test = exported(home, tmp_path / "elsewhere")
    journal = exported_journal(test.read_text())
    (failed,) = (event for event in journal if event["event"] == "phase_failed")
    failed["limit"]["limit"] += 1
    test.write_text(with_journal(test.read_text(), journal))
    diverged = run_alone(test)
    assert diverged.returncode == 1, diverged.stdout
    assert "DivergedError" in diverged.stdout


@pytest.mark.parametrize("phase", ["query_analyzer", "planner", "synthesis", "validation"])
def test_a_turn_that_was_stopped_is_the_same_as_far_as_it_came(
    phase: str, home: Path, docs: Path
) -> None:
    with suppress(asyncio.CancelledError):
        ran(home, docs, **{phase: asyncio.CancelledError()})
    replayed = replay(journal_of(home))
    assert replayed.same, replayed
    assert replayed.visits[-1].what.startswith("was stopped here")
    done = cli(home, "unified_flow", "replay", "1")
    assert done.returncode == 0, done.stderr


def test_a_turn_cut_anywhere_replays_the_same(home: Path, docs: Path) -> None:
    ran(home, docs)
    path = home / "shared_state/turns/turn_000001" / JOURNAL
    whole = path.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(whole)):
        path.write_bytes(b"".join(whole[:kept]))
        replayed = replay(journal_of(home))
        assert replayed.same, (kept, replayed)


def test_a_replay_needs_nothing_that_it_does_not_read(home: Path, docs: Path) -> None:
    ran(home, docs)
    asked_with = f'"docs":["{docs}"]'
    assert asked_with in (home / "shared_state/turns/turn_000001" / JOURNAL).read_text()
    shutil.rmtree(docs)
    done = cli(home, "unified_flow", "replay", "1")
    assert done.returncode == 0, done.stderr
    assert "not compared with today's prompts" in done.stderr


def test_a_journal_with_a_line_missing_is_damaged_or_replayed(home: Path, docs: Path) -> None:
    """And nothing else: a mistake of ours is no damage."""
    ran(home, docs)
    path = home / "shared_state/turns/turn_000001" / JOURNAL
    whole = path.read_bytes().splitlines(keepends=True)
    for missing in range(1, len(whole)):
        path.write_bytes(renumbered(whole[:missing] + whole[missing + 1 :]))
        with suppress(RetrievalError):
            replayed = replay(journal_of(home))
            assert not (replayed.same and b'"phase_completed"' in whole[missing]), whole[missing]


def test_the_page_says_what_was_edited(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    resume(make(home, docs), edited={"question": "What is a bus?"})
    shown = cli(home, "unified_flow", "turns", "show", "1", "--full").stdout
    assert shown.index(f"> {QUESTION}") < shown.index("Edited, question is from here on:")
    assert "> What is a bus?" in shown
    plan = SEARCH.model_dump(mode="json")
    plan["tool_requests"][0]["args"]["query"] = "bus"
    back = make(home, docs, planner=COMPLETE, validation=APPROVE)
    resume(back, from_phase="coordinator", edited={"planner": plan})
    shown = cli(home, "unified_flow", "turns", "show", "2", "--full").stdout
    assert "Edited, planner is" in shown
