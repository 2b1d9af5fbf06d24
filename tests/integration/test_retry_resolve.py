"""`resolve --retry` and `interventions retry`: one rule for what they say and exit with."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue
from tests import in_process
from tests.answers import (
    COMPLETE,
    DRAFT,
    QUESTION,
    SEARCH,
    Turns,
    every_phase_by_model,
    open_entries,
    script,
    served_flow,
)
from tests.servers.model_server import Connection, ModelServer, answer, status
from unified_flow.phases.errors import PhaseError

pytestmark = every_phase_by_model

Entry = dict[str, Any]
COMMANDS = {
    "resolve": ("resolve", "-m", "mended", "--retry"),
    "retry": ("retry", "-m", "mended"),
}


def cli(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return in_process.run(*words, home=home)


def command(home: Path, how: str, entry: Entry, *words: str) -> subprocess.CompletedProcess[str]:
    return cli(home, "interventions", *COMMANDS[how], entry["id"], *words)


@pytest.fixture
def fails(home: Path, docs: Path, model_server: ModelServer) -> Callable[..., Entry]:
    """Asks with a server that answers so, and gives the failure's entry."""

    def ask(**over: Any) -> Entry:
        model_server.script = script(**over)
        served = ("--docs", docs, "--model", "m", "--base-url", model_server.url)
        assert cli(home, "unified_flow", "ask", QUESTION, *served).returncode == 1
        model_server.script = script()
        return dict(open_entries(home)[-1])

    return ask


def found(home: Path, entry: Entry) -> Entry:
    return dict(InterventionQueue(home).find(entry["id"]))


def failed_turns(home: Path, docs: Path, server: ModelServer, count: int, session: str) -> None:
    async def ask() -> None:
        async with served_flow(home, server.url, docs) as flow:
            for number in range(count):
                with pytest.raises(PhaseError):
                    await flow.process(session.format(number), QUESTION)

    server.script = script(synthesis=status(500), planner=COMPLETE)
    asyncio.run(ask())
    server.script = script()


@pytest.mark.parametrize("how", COMMANDS)
def test_a_phase_that_fails_again_in_another_round_leaves_it_open(
    how: str, home: Path, fails: Callable[..., Entry], model_server: ModelServer
) -> None:
    entry = fails(planner=status(500))
    model_server.script = script(planner=[SEARCH, status(500)])
    done = command(home, how, entry)
    assert done.returncode == 1, done.stderr
    assert "turn 1 failed again" in done.stderr
    now = found(home, entry)
    assert (now["resolved_at"], now["occurrences"]) == (None, 2)


@pytest.mark.parametrize("how", COMMANDS)
def test_the_answer_is_printed_and_the_options_of_resume_are_taken(
    how: str, home: Path, docs: Path, model_server: ModelServer
) -> None:
    """The server has moved: its new address goes with the retry."""
    away = ("--docs", docs, "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert cli(home, "unified_flow", "ask", QUESTION, *away).returncode == 1
    entry = dict(open_entries(home)[-1])
    model_server.script = script()
    done = command(home, how, entry, "--base-url", model_server.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == DRAFT.response
    assert found(home, entry)["resolved_at"]


@pytest.mark.parametrize("option", ["--tools-done", "--base-url=http://127.0.0.1:9/v1"])
def test_an_option_of_the_turn_needs_a_turn_that_goes_on(
    option: str, home: Path, fails: Callable[..., Entry]
) -> None:
    entry = fails(synthesis=status(500))
    done = cli(home, "interventions", "resolve", entry["id"], "-m", "mended", option)
    assert done.returncode == 2
    assert "needs --retry" in done.stderr
    assert found(home, entry)["resolved_at"] is None


@pytest.mark.parametrize("how", COMMANDS)
def test_got_past_it_and_failed_later_is_1_for_both(
    how: str, home: Path, fails: Callable[..., Entry], model_server: ModelServer
) -> None:
    entry = fails(synthesis=status(500))
    model_server.script = script(validation=status(500))
    done = command(home, how, entry, "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    result = told["result"] if how == "retry" else told["results"][entry["id"]]
    assert (result["passed"], result["status"], result["phase"]) == (True, "failed", "validation")
    assert found(home, entry)["resolutions"][0]["turn_status"] == "failed in validation"


def test_another_version_is_refused_before_anything_runs(
    home: Path, fails: Callable[..., Entry], model_server: ModelServer
) -> None:
    entry = fails(synthesis=status(500))
    asked = len(model_server.requests)
    done = command(home, "resolve", entry, "--expected-version", "99")
    assert done.returncode == 5, done.stderr
    assert len(model_server.requests) == asked
    assert found(home, entry)["resolved_at"] is None
    assert (
        command(home, "resolve", entry, "--expected-version", str(entry["version"])).returncode == 0
    )


@pytest.mark.parametrize("how", COMMANDS)
def test_what_a_dead_process_could_not_close_is_closed_and_said(
    how: str, home: Path, fails: Callable[..., Entry], model_server: ModelServer
) -> None:
    entry = fails(synthesis=status(500))
    queue = home / "shared_state/intervention_queue.json"
    before = queue.read_bytes()
    assert cli(home, "unified_flow", "resume", entry["id"]).returncode == 0
    queue.write_bytes(before)  # as if it had died between the two
    asked = len(model_server.requests)
    done = command(home, how, entry)
    assert done.returncode == 0, done.stderr
    assert "turn 1 was answered before" in done.stderr
    assert f"resolved {entry['id']}" in done.stdout
    assert len(model_server.requests) == asked
    assert found(home, entry)["resolutions"][0]["verified"]


@pytest.mark.parametrize("how", COMMANDS)
def test_an_entry_that_somebody_dismissed_meanwhile_is_not_called_resolved(
    how: str, home: Path, fails: Callable[..., Entry], model_server: ModelServer
) -> None:
    entry = fails(synthesis=status(500))

    def dismissing(connection: Connection) -> None:
        InterventionQueue(home).dismiss(entry["id"], "not ours")
        answer(DRAFT)(connection)

    model_server.script = script(synthesis=dismissing)
    done = command(home, how, entry)
    assert done.returncode == 5, done.stderr
    assert "resolved" not in done.stdout
    assert "was dismissed while its turn went on" in done.stderr


def test_turns_that_are_counted_on_it_keep_it_open_and_all_of_them_close_it(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    failed_turns(home, docs, model_server, 7, "one session")
    (entry,) = [dict(each) for each in open_entries(home) if each.get("turns")]
    assert entry["turns"] == [6, 7]
    done = command(home, "resolve", entry)
    assert done.returncode == 1
    assert "stays open: turn 7 waits, too" in done.stderr
    assert "--all" in done.stderr
    assert "turn 5 went on from synthesis and is answered" in done.stderr
    again = command(home, "retry", entry)
    assert again.returncode == 2
    assert "nothing left to do" in again.stderr
    everything = cli(home, "interventions", "retry", entry["id"], "--all", "--json")
    assert everything.returncode == 0, everything.stderr
    passed = {turn["turn_id"] for turn in json.loads(everything.stdout)["passed"]}
    assert passed == {1, 2, 3, 4, 6, 7}
    assert all(each["resolutions"][0]["verified"] for each in open_entries(home))


@pytest.mark.parametrize("how", COMMANDS)
def test_a_turn_that_cannot_be_begun_has_not_failed_again(
    how: str, home: Path, docs: Path, fails: Callable[..., Entry], model_server: ModelServer
) -> None:
    entry = fails(synthesis=status(500))
    shutil.rmtree(docs)
    asked = len(model_server.requests)
    done = command(home, how, entry)
    assert done.returncode == 2, done.stderr
    assert "failed again" not in done.stderr
    assert "turn 1 cannot be resumed: There is no file or folder" in done.stderr
    assert "hint:" in done.stderr
    assert len(model_server.requests) == asked
    assert found(home, entry)["occurrences"] == 1


def test_a_damaged_turn_is_skipped_and_another_is_tried_first(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    failed_turns(home, docs, model_server, 3, "session {}")
    journal = Turns(home).journal(1)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join((lines[0], b"garbage\n", *lines[2:])))
    entry = dict(open_entries(home)[0])
    done = cli(home, "interventions", "retry", entry["id"], "--all", "--json")
    told = json.loads(done.stdout)
    assert [turn["turn_id"] for turn in told["passed"]] == [2, 3], done.stderr
    assert [turn["turn_id"] for turn in told["skipped"]] == [1]
    assert done.returncode == 0
    only = cli(home, "interventions", "retry", entry["id"], "--all")
    assert only.returncode == 2, "none of them could be resumed"
    assert only.stdout == "passed 0, failed 0, skipped 1\n"


def test_documents_that_have_moved_are_no_matter_of_spelling(
    home: Path, docs: Path, fails: Callable[..., Entry]
) -> None:
    entry = fails(synthesis=status(500))
    docs.rename(moved := docs.with_name("moved"))
    refused = command(home, "retry", entry)
    assert refused.returncode == 2
    assert "hint: name where they are now: unified-flow resume 1 --docs FOLDER" in refused.stderr
    assert cli(home, "unified_flow", "resume", "1", "--docs", moved).returncode == 0
    assert found(home, entry)["resolutions"][-1]["verified"]


def test_a_later_failure_of_which_nobody_is_told_is_4(
    home: Path, docs: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue takes no more: the solved entry makes room for one, and one too many is open."""
    failed_turns(home, docs, model_server, 3, "session {}")
    first, second, _ = (entry["id"] for entry in open_entries(home))
    monkeypatch.setenv("UNIFIED_FLOW_QUEUE__MAX_SIZE", "1")
    model_server.script = script(validation=status(500))
    one = command(home, "retry", {"id": first})
    every = cli(home, "interventions", "retry", second, "--all")
    for done in (one, every):
        assert done.returncode == 4, done.stderr
        assert "then failed in validation (not queued)" in done.stderr
        assert "None" not in done.stdout + done.stderr
    assert "passed 0, failed 1, skipped " in every.stdout
