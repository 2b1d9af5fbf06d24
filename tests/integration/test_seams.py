"""Roles, the policy, a full queue, observers, and a journal that fails at any write."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from interventions import InterventionQueue, InterventionRequest
from tests.answers import (
    APPROVE,
    PROCEED,
    QUESTION,
    every_phase_by_model,
    journal_lines,
    open_entries,
    script,
    scripted_flow,
    served_flow,
    started_phases,
)
from tests.servers.model_server import ModelServer
from unified_flow.errors import ConfigError, QueueFullError
from unified_flow.flow import UnifiedFlow
from unified_flow.models.scripted import ScriptedModel
from unified_flow.phases.errors import PhaseError, ReflectionError
from unified_flow.phases.recipe import PACKAGED
from unified_flow.policies import UNBOUNDED, Failure, Retry, Stop
from unified_flow.turns import journal
from unified_flow.turns.events import AnyEvent, PhaseCompleted
from unified_flow.turns.fold import fold
from unified_flow.turns.journal import read
from unified_flow.wiring import wire


@every_phase_by_model
def test_a_role_maps_to_a_model_and_a_recipe_overrides_it(home: Path, docs: Path) -> None:
    models = {name: ScriptedModel(script(), name=name) for name in ("rules", "talker", "judge")}
    recipes = home / "recipes"
    recipes.mkdir()
    packaged = PACKAGED / "validation.md"
    text = packaged.read_text().replace('role = "mind"', 'role = "mind"\nmodel = "judge"')
    (recipes / "validation.md").write_text(text)
    services = wire(
        home, docs=[docs], extra_models=models, model="rules", roles={"voice": "talker"}
    )
    asyncio.run(UnifiedFlow(services).process("s", QUESTION))
    assert models["talker"].phases == ["synthesis"]
    assert models["judge"].phases == ["validation"]
    assert models["rules"].phases == ["query_analyzer", "reflection", "planner", "planner"]


@every_phase_by_model
def test_a_phase_sees_only_what_its_recipe_reads(home: Path, docs: Path) -> None:
    model = ScriptedModel(script())
    flow = UnifiedFlow(wire(home, docs=[docs], extra_models={"m": model}, model="m"))
    asyncio.run(flow.process("s", QUESTION))
    seen = {call.phase: call.sections for call in model.calls}
    assert seen["reflection"].query_analyzer is not None
    assert seen["reflection"].tools == ()
    assert seen["planner"].tools != ()
    assert seen["synthesis"].coordinator != ()
    assert seen["synthesis"].reflection is None
    assert all(call.query == QUESTION for call in model.calls), "the user's words in every call"


def test_with_a_model_configured_every_phase_that_asks_asks_it(
    home: Path, docs: Path, model_server: ModelServer
) -> None:
    model_server.script = script()

    async def run() -> None:
        async with served_flow(home, model_server.url, docs) as flow:
            await flow.process("s", QUESTION)

    asyncio.run(run())
    asked = ["query_analyzer", "reflection", "planner", "planner", "synthesis", "validation"]
    assert model_server.phases == asked


class Stubborn:
    """Tries twice, without waiting."""

    name = "fail_fast"
    bounds = UNBOUNDED

    def again(self, failure: Failure) -> Retry | None:
        return Retry(after_s=0.0) if failure.attempt < 2 else None

    def ends(self, failure: Failure) -> Stop:
        return Stop("halt")


@every_phase_by_model
@pytest.mark.parametrize("failures", [1, 2])
def test_a_policy_may_try_again_without_a_phase_knowing(
    failures: int, home: Path, docs: Path
) -> None:
    model = ScriptedModel(script(reflection=[RuntimeError("once")] * failures + [PROCEED]))
    services = wire(home, docs=[docs], extra_models={"m": model}, model="m")
    flow = UnifiedFlow(dataclasses.replace(services, policy=Stubborn()))
    if failures == 1:
        assert asyncio.run(flow.process("s", QUESTION)).status == "answered"
        assert open_entries(home) == []
    else:
        with pytest.raises(ReflectionError):
            asyncio.run(flow.process("s", QUESTION))
        assert len(open_entries(home)) == 1
    actions = [line["action"] for line in journal_lines(home) if line["event"] == "phase_failed"]
    assert actions == ["retry", "halt"][:failures]


def test_a_full_queue_refuses_new_turns_if_it_is_told_to(home: Path, docs: Path) -> None:
    (home / "unified_flow.toml").write_text("[queue]\nmax_size = 1\nrefuse_when_full = true\n")
    InterventionQueue(home, max_size=1).put(
        InterventionRequest(
            type="error",
            severity="high",
            phase="planner",
            error_type="E",
            error_message="m",
            session_id="s",
            turn_id=1,
        )
    )
    flow = scripted_flow(home, docs)
    with pytest.raises(QueueFullError):
        asyncio.run(flow.process("s", QUESTION))
    answer = asyncio.run(flow.process_request("s", QUESTION))
    assert (answer["error"], answer["error_type"]) == (True, "QueueFullError")
    assert not (home / "shared_state" / "turns").exists()
    assert len(open_entries(home)) == 1


def test_bad_input_is_a_validation_error_to_clients(home: Path) -> None:
    answer = asyncio.run(scripted_flow(home).process_request("s", ""))
    assert (answer["error_type"], answer["intervention_id"]) == ("ValidationError", None)


def test_an_observer_that_fails_does_not_fail_the_turn(home: Path, docs: Path) -> None:
    def break_off(event: AnyEvent) -> None:
        if isinstance(event, PhaseCompleted):
            raise BrokenPipeError

    turn = asyncio.run(scripted_flow(home, docs).process("s", QUESTION, observer=break_off))
    assert turn.status == "answered"
    assert open_entries(home) == []


class FullDisk:
    """The disk is full for one write of the journal, the one numbered `at`."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, descriptor: int, data: bytes) -> None:
        self.left -= 1
        if self.left == 0:
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        while data:
            data = data[os.write(descriptor, data) :]


@pytest.mark.parametrize("at", range(1, 22))
def test_the_journal_is_the_turn_whichever_write_fails(
    at: int, home: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(at)
    monkeypatch.setattr(journal.blobs, "write_all", disk)
    seen: list[AnyEvent] = []
    error: Exception | None = None
    try:
        asyncio.run(scripted_flow(home, docs).process("s", QUESTION, observer=seen.append))
    except (PhaseError, ConfigError) as exc:
        error = exc
    turns = sorted((home / "shared_state" / "turns").iterdir())
    if isinstance(error, ConfigError):
        assert turns == []
        return
    written = list(read(turns[0]))
    assert [e.event for e in written] == [e.event for e in seen]
    assert fold(written) == fold(seen)
    if isinstance(error, PhaseError):
        (entry,) = open_entries(home)
        assert entry["error_type"] == "OSError"
        assert entry["phase"] == started_phases(home)[-1]


def test_a_page_that_cannot_be_written_costs_nothing(home: Path, docs: Path) -> None:
    def block(call: Any) -> Any:
        (home / "shared_state/turns/turn_000001/context.md").mkdir()
        return APPROVE

    turn = asyncio.run(scripted_flow(home, docs, validation=block).process("s", QUESTION))
    assert (turn.status, turn.saved) == ("answered", True)


def test_a_turn_folder_that_was_removed_is_not_given_to_another_turn(
    home: Path, docs: Path
) -> None:
    import shutil

    first = asyncio.run(scripted_flow(home, docs).process("a", QUESTION))
    shutil.rmtree(home / "shared_state" / "turns")
    second = asyncio.run(scripted_flow(home, docs).process("b", QUESTION))
    assert second.turn_id > first.turn_id


def test_a_store_that_is_moved_aside_begins_anew(home: Path, docs: Path) -> None:
    flow = scripted_flow(home, docs, planner=script()["planner"] * 2)
    asyncio.run(flow.process("a", QUESTION))
    store = home / "shared_state" / "sessions.sqlite3"
    store.rename(store.with_name("aside.sqlite3"))
    turn = asyncio.run(flow.process("a", QUESTION))
    assert turn.saved
    assert store.exists()


def test_a_folder_without_documents_is_the_caller_s_mistake(home: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    answer = asyncio.run(scripted_flow(home, empty).process_request("s", QUESTION))
    assert answer["error_type"] == "ValidationError"
    assert open_entries(home) == []
