"""A turn that stopped goes on: where, by whom, with what, and what becomes of its intervention."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import unified_flow
from interventions import Admission, InterventionQueue, InterventionRequest
from interventions.home import lock_file
from interventions.storage.lock import FairLock
from tests.answers import (
    APPROVE,
    COMPLETE,
    DRAFT,
    QUESTION,
    SEARCH,
    Turns,
    both_homes,
    every_phase_by_model,
    journal_lines,
    open_entries,
    script,
    started_phases,
    stores_here,
    verdict,
)
from unified_flow.errors.turns import NoSuchTurnError, NotResumableError, TurnBusyError
from unified_flow.flow import UnifiedFlow
from unified_flow.models.scripted import ScriptedModel
from unified_flow.phases import NAMES
from unified_flow.phases import errors as phase_errors
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.resumption import ResumeResult, resume_turn
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.turns.events import TurnResumed, this_process
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.results import Plan, Reflection, ToolRequest
from unified_flow.turns.turn import Turn
from unified_flow.wiring import wire

pytestmark = every_phase_by_model

BROKEN = RuntimeError("the model is down")


def make(home: Path, docs: Path | None, **over: Any) -> UnifiedFlow:
    """A flow with a script and settings; `tools` and `limits` go to the wiring."""
    wired = {key: over.pop(key) for key in ("tools", "limits", "allow_tools") if key in over}
    model = ScriptedModel(script(**over))
    return UnifiedFlow(
        wire(
            home,
            extra_models={"scripted": model},
            model="scripted",
            **{"allow_tools": ["*"], **wired, **stores_here(home, docs)},
        )
    )


def ask(flow: UnifiedFlow) -> Turn | phase_errors.PhaseError:
    try:
        return asyncio.run(flow.process("s", QUESTION))
    except phase_errors.PhaseError as exc:
        return exc


def resume(flow: UnifiedFlow, turn: int = 1, **wanted: Any) -> ResumeResult:
    return asyncio.run(resume_turn(flow, turn, ResumeRequest(**wanted)))


def asked(flow: UnifiedFlow) -> list[str]:
    model = flow.services.models.named("scripted")
    assert isinstance(model, ScriptedModel)
    return model.phases


@both_homes
def test_only_the_failed_phase_and_those_after_it_run(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    mended = make(home, docs)
    resumed = resume(mended, note="mended")
    assert asked(mended) == ["synthesis", "validation"]
    assert (resumed.turn.status, resumed.turn.saved) == ("answered", True)
    assert resumed.turn.response == DRAFT.response
    (entry,) = open_entries(home)
    (row,) = entry["resolutions"]
    assert (entry["resolution"], row["verified"], row["turn_status"]) == (
        "mended",
        True,
        "answered",
    )


def test_the_turn_on_disk_is_the_one_that_was_resumed(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    resumed = resume(make(home, docs))
    assert Turns(home).load(1) == resumed.turn
    page = Turns(home).page(1)
    assert page.index("synthesis failed") < page.index("Resumed at synthesis by")
    on_disk = (home / "shared_state/turns/turn_000001/context.md").read_text()
    assert on_disk == page


@both_homes
def test_the_same_failure_is_one_more_occurrence(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    resumed = resume(make(home, docs, synthesis=RuntimeError("another trouble")), note="mended")
    assert not resumed.passed
    (entry,) = open_entries(home)
    assert (entry["resolved_at"], entry["occurrences"]) == (None, 2)


@both_homes
def test_past_the_failed_phase_the_old_entry_closes_and_a_new_one_opens(
    home: Path, docs: Path
) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    resumed = resume(make(home, docs, validation=BROKEN), note="server mended")
    assert resumed.passed
    old, new = open_entries(home)
    assert (old["phase"], old["resolution"]) == ("synthesis", "server mended")
    assert old["resolutions"][0]["turn_status"] == "failed in validation"
    assert (new["phase"], new["resolved_at"]) == ("validation", None)
    assert resumed.turn.failure is not None
    assert resumed.turn.failure.intervention_id == new["id"]


@both_homes
def test_a_failure_before_the_failed_phase_proves_nothing(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    resume(make(home, docs, planner=BROKEN), from_phase="planner", note="mended")
    old, new = open_entries(home)
    assert (old["phase"], old["resolved_at"]) == ("synthesis", None)
    assert new["phase"] == "planner"


@both_homes
def test_an_entry_that_somebody_closed_meanwhile_stays_as_they_closed_it(
    home: Path, docs: Path
) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    (entry,) = open_entries(home)

    def close_it(call: object) -> object:
        InterventionQueue(home).dismiss(entry["id"], "not ours")
        return DRAFT

    resumed = resume(make(home, docs, synthesis=close_it), note="mended")
    assert resumed.closed is None
    assert open_entries(home)[0]["resolution"] == "not ours"


@both_homes
def test_the_counters_start_anew(home: Path, docs: Path) -> None:
    ask(make(home, docs, planner=SEARCH))
    (entry,) = open_entries(home)
    assert entry["type"] == "limit_exceeded"
    resumed = resume(make(home, docs, planner=[SEARCH] * 4 + [COMPLETE]), note="recipe mended")
    assert resumed.turn.status == "answered"
    assert len(resumed.turn.sections.coordinator) == 5 + 4
    assert open_entries(home)[0]["resolutions"][0]["verified"] is True


@pytest.mark.parametrize("phase", [name for name in NAMES if name != "save"])
def test_going_back_runs_everything_from_there(phase: str, home: Path, docs: Path) -> None:
    ask(make(home, docs, validation=BROKEN))
    before = started_phases(home)
    planned = [COMPLETE] if phase == "coordinator" else [SEARCH, COMPLETE]
    resumed = resume(make(home, docs, planner=planned), from_phase=phase)
    again = started_phases(home)[len(before) :]
    whole = [*NAMES[:4], "coordinator", "planner", *NAMES[5:]]
    assert again == whole[whole.index(phase) :]
    assert len(resumed.turn.sections.coordinator) == 1
    assert resumed.turn.status == "answered"


def test_a_phase_that_was_not_reached_cannot_be_gone_back_to(home: Path, docs: Path) -> None:
    ask(make(home, docs, reflection=BROKEN))
    before = journal_lines(home)
    with pytest.raises(NotResumableError, match="has not come to synthesis"):
        resume(make(home, docs), from_phase="synthesis")
    with pytest.raises(NotResumableError, match="there is no phase 'synthesys'"):
        resume(make(home, docs), from_phase="synthesys")
    assert journal_lines(home) == before


@both_homes
def test_nothing_left_to_do_is_said(home: Path, docs: Path) -> None:
    ask(make(home, docs))
    with pytest.raises(NotResumableError, match="nothing left to do"):
        resume(make(home, docs))
    with pytest.raises(NoSuchTurnError):
        asyncio.run(resume_turn(make(home, docs), 7, ResumeRequest()))
    assert Turns(home).ids() == [1]


def test_an_answer_that_could_not_be_saved_is_saved(home: Path, docs: Path) -> None:
    blocked = home / "shared_state" / "sessions.sqlite3"

    def block(call: object) -> object:
        blocked.mkdir()
        return APPROVE

    turn = ask(make(home, docs, validation=block))
    assert isinstance(turn, Turn)
    assert not turn.saved
    blocked.rmdir()
    mended = make(home, docs)
    resumed = resume(mended, note="made room")
    assert asked(mended) == []
    assert resumed.turn.saved
    assert open_entries(home)[0]["resolutions"][0]["verified"] is True


@both_homes
def test_two_people(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))

    async def both() -> None:
        started, go_on = asyncio.Event(), asyncio.Event()
        first, second = make(home, docs), make(home, docs)
        model = first.services.models.named("scripted")
        assert isinstance(model, ScriptedModel)
        answer = model.complete

        async def slow(call: Any) -> Any:
            started.set()
            await go_on.wait()
            return await answer(call)

        model.complete = slow  # type: ignore[method-assign]
        running = asyncio.create_task(resume_turn(first, 1, ResumeRequest(by="ada")))
        await started.wait()
        with pytest.raises(TurnBusyError, match=r"being resumed by ada on .*, process \d+ since 2"):
            await resume_turn(second, 1, ResumeRequest(by="ben"))
        go_on.set()
        assert (await running).turn.status == "answered"

    asyncio.run(both())


def test_a_failure_that_the_queue_knows_and_the_journal_does_not_is_the_same_one(
    home: Path, docs: Path
) -> None:
    """Killed between the two: the next failure is an occurrence, and passing it resolves it."""
    ask(make(home, docs, synthesis=BROKEN))
    path = home / "shared_state/turns/turn_000001/journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"phase_failed"' not in line))
    resume(make(home, docs, synthesis=BROKEN), note="n")
    (entry,) = open_entries(home)
    assert entry["occurrences"] == 2
    assert resume(make(home, docs), note="mended").closed == entry["id"]
    assert open_entries(home)[0]["resolutions"][0]["verified"]


def test_what_a_phase_did_is_on_disk_before_anybody_is_told(home: Path, docs: Path) -> None:
    """Telling waits for the queue's lock; who dies then has lost no reply of a model."""
    seen: list[bytes] = []

    class Looking(InterventionQueue):
        def put(self, request: InterventionRequest) -> Admission:
            seen.append((home / "shared_state/turns/turn_000001/journal.jsonl").read_bytes())
            return super().put(request)

    flow = make(home, docs, synthesis="this is no JSON")
    ask(UnifiedFlow(replace(flow.services, queue=Looking(home))))
    (line,) = [json.loads(line) for line in seen[0].splitlines()][-1:]
    assert (line["event"], line["reply"]) == ("model_called", "this is no JSON")


@both_homes
def test_a_phase_that_passed_once_and_failed_again_is_not_passed(home: Path, docs: Path) -> None:
    ask(make(home, docs, planner=BROKEN))
    resumed = resume(make(home, docs, planner=[SEARCH, BROKEN]), note="n")
    assert not resumed.passed
    (entry,) = open_entries(home)
    assert (entry["resolved_at"], entry["occurrences"]) == (None, 2)


@both_homes
def test_an_older_intervention_is_resolved_only_by_its_own_phase(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    (old,) = open_entries(home)
    assert not resume(make(home, docs, planner=BROKEN), from_phase="planner", note="n").passed
    again = make(home, docs, synthesis=BROKEN)
    resumed = resume(again, note="n", intervention_id=old["id"])
    assert (resumed.passed, resumed.closed) == (False, None)
    mine = {entry["id"]: entry for entry in open_entries(home)}
    assert len(mine) == 2
    assert (mine[old["id"]]["resolved_at"], mine[old["id"]]["occurrences"]) == (None, 2)
    assert resume(make(home, docs), note="n", intervention_id=old["id"]).closed == old["id"]


@both_homes
def test_an_earlier_failure_does_not_pass_for_want_of_an_intervention(
    home: Path, docs: Path
) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    InterventionQueue(home).dismiss(open_entries(home)[0]["id"], "x")
    resumed = resume(make(home, docs, planner=BROKEN), from_phase="planner", note="n")
    assert not resumed.passed


@both_homes
def test_the_turn_that_is_judged_is_the_one_that_ran(
    home: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as its lock is free, somebody else may have taken it up."""
    ask(make(home, docs, synthesis=BROKEN))
    flow = make(home, docs, synthesis=BROKEN)
    others = list[Ledger]()
    mine = flow.resume

    async def then_another(*args: Any, **options: Any) -> Turn:
        try:
            return await mine(*args, **options)
        finally:
            runner = this_process()
            event = TurnResumed(
                phase="synthesis", runner=runner, by="b", via="cli", config_digest="c"
            )
            others.append(await Ledger.open(flow.services.turns, 1))
            await others[0].begin(event)

    monkeypatch.setattr(flow, "resume", then_another)
    resumed = resume(flow, note="n")
    asyncio.run(others[0].__aexit__(None, None, None))
    assert resumed.error is not None
    assert (resumed.turn.status, resumed.passed) == ("failed", False)


@both_homes
def test_an_entry_that_blocks_other_turns_stays_until_the_last_is_past(
    home: Path, docs: Path
) -> None:
    for _ in range(7):  # a session has room for five
        ask(make(home, docs, synthesis=BROKEN))
    (last,) = [entry for entry in open_entries(home) if entry.get("turns")]
    assert (last["turn_id"], last["turns"]) == (5, [6, 7])

    def take_up(turn_id: int) -> ResumeResult:
        wanted = ResumeRequest(note="mended")
        return asyncio.run(resume_turn(make(home, docs), turn_id, wanted))

    own = take_up(5)
    assert (own.turn.status, own.passed, own.closed, own.waiting) == ("answered", True, None, 7)
    left = InterventionQueue(home).find(last["id"])
    assert (left["resolved_at"], left.get("superseded")) == (None, None)
    assert take_up(7).closed is None
    assert take_up(6).closed == last["id"]
    closed = InterventionQueue(home).find(last["id"])
    assert closed["resolutions"][0]["verified"]
    assert closed["resolution"] == "mended"


@both_homes
def test_another_turn_s_intervention_is_not_closed(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    ask(make(home, docs, synthesis=ValueError("another")))
    first, second = open_entries(home)
    resumed = resume(make(home, docs), note="n", intervention_id=second["id"])
    assert (resumed.turn.status, resumed.closed) == ("answered", first["id"])
    assert InterventionQueue(home).find(second["id"])["resolved_at"] is None


def test_a_number_that_was_given_again_is_another_turn(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    (old,) = open_entries(home)
    shutil.rmtree(home / "shared_state/turns/turn_000001")
    ask(make(home, docs, synthesis=ValueError("another")))
    with pytest.raises(NotResumableError, match="its number 1 is another's"):
        resume(make(home, docs), note="n", intervention_id=old["id"])
    assert InterventionQueue(home).find(old["id"])["resolved_at"] is None


def test_what_changed_since_is_told_before_anything_runs(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    recipes = home / "recipes"
    recipes.mkdir()
    packaged = Path(unified_flow.__file__).parent / "phases/recipes" / "synthesis.md"
    (recipes / "synthesis.md").write_text(packaged.read_text() + "\nBe brief.\n")
    resumed = resume(make(home, docs, limits={"model_calls": 24}))
    assert resumed.event.changed == ["configuration", "recipe synthesis"]
    (line,) = [line for line in journal_lines(home) if line["event"] == "turn_resumed"]
    assert line["changed"] == resumed.event.changed


def test_an_interrupted_turn_knows_what_it_ran_on(home: Path, docs: Path) -> None:
    """It could say nothing when it stopped; its first line, and that of a resumption, can."""

    def commit() -> str:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        git = ["git", "-C", str(home), *who]
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        asked = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, check=True)
        return asked.stdout.decode()[:12]

    def stop(flow: UnifiedFlow) -> None:
        with pytest.raises(asyncio.CancelledError):
            resume(flow) if Turns(home).ids() else ask(flow)

    subprocess.run(["git", "init", "-q", str(home)], check=True)
    first = commit()
    stop(make(home, docs, synthesis=asyncio.CancelledError()))
    second = commit()
    (home / "recipes").mkdir()
    packaged = Path(unified_flow.__file__).parent / "phases/recipes" / "planner.md"
    (home / "recipes" / "planner.md").write_text(packaged.read_text() + "\nBe brief.\n")
    stop(make(home, docs, synthesis=asyncio.CancelledError()))
    third = commit()
    resumed = resume(make(home, docs))
    told = [line["changed"] for line in journal_lines(home) if line["event"] == "turn_resumed"]
    assert told[0] == [f"git commit {first} -> {second}", "recipe planner"]
    assert told[1] == resumed.event.changed == [f"git commit {second} -> {third}"]


@both_homes
def test_a_retry_that_is_stopped_is_none(home: Path, docs: Path) -> None:
    """The next one is held against the failure, and the phase that was cut off does not run."""
    ask(make(home, docs, synthesis=BROKEN))
    with pytest.raises(asyncio.CancelledError):
        resume(make(home, docs, synthesis=asyncio.CancelledError()))
    stopped = Turns(home).load(1)
    assert stopped is not None
    assert stopped.status == "interrupted"
    assert stopped.phases[-1]["status"] == "interrupted"
    resumed = resume(make(home, docs, synthesis=RuntimeError("another trouble")), note="mended")
    assert not resumed.passed
    assert str(BROKEN) in resumed.difference[0]
    assert resume(make(home, docs), note="mended").passed


@both_homes
@pytest.mark.parametrize("secret", ["http://ada:hush@host/v1", "http://host/v1?api_key=hush"])
def test_an_address_with_a_secret_in_it_is_not_kept(secret: str, home: Path) -> None:
    for url, kept in ((secret, False), ("http://host/v1", True)):
        services = wire(home, model="m", base_url=url)
        assert ("base_url" in services.asked_with) is kept


@both_homes
def test_the_end_is_no_phase_to_go_back_to(home: Path, docs: Path) -> None:
    back = Reflection(decision="CLARIFY", confidence=1.0, clarification_question="Which one?")
    ask(make(home, docs, reflection=back))
    with pytest.raises(NotResumableError, match="it stands at its end") as refused:
        resume(make(home, docs), from_phase="planner")
    assert refused.value.hint == "it can go back to query_analyzer, reflection"


@both_homes
def test_nothing_changed_is_said_too(home: Path, docs: Path) -> None:
    ask(make(home, docs, synthesis=BROKEN))
    assert resume(make(home, docs)).event.changed == []


@both_homes
def test_revise_is_allowed_again_after_its_limit(home: Path, docs: Path) -> None:
    ask(make(home, docs, validation=verdict("REVISE")))
    assert open_entries(home)[0]["context"]["loop"] == "revise"
    resumed = resume(make(home, docs, validation=[verdict("REVISE"), APPROVE]))
    assert resumed.turn.status == "answered"


def test_what_could_not_be_closed_when_it_was_solved_is_closed_by_the_next_retry(
    home: Path, docs: Path
) -> None:
    """The queue was locked just then: a verified fix is never lost, nor the note of its person."""
    ask(make(home, docs, synthesis=BROKEN))
    (entry,) = open_entries(home)
    impatient = make(home, docs, validation=BROKEN)
    services = replace(impatient.services, queue=InterventionQueue(home, lock_timeout_s=0.05))
    with FairLock(lock_file(home)).hold(1):
        resumed = resume(UnifiedFlow(services), note="restarted", intervention_id=entry["id"])
    assert (resumed.passed, resumed.closed) == (True, None)
    assert "lock" in (resumed.trouble or "")
    done = resume(make(home, docs), note="mended both", intervention_id=entry["id"])
    assert done.closed == entry["id"]
    resolution = InterventionQueue(home).find(entry["id"])["resolutions"][-1]
    assert (resolution["verified"], resolution["turn_status"]) == (True, "answered")


@both_homes
def test_one_that_blocks_others_is_not_closed_by_a_later_failure_of_its_own_turn(
    home: Path, docs: Path
) -> None:
    for _ in range(6):
        ask(make(home, docs, synthesis=BROKEN))
    counting = next(entry for entry in open_entries(home) if entry.get("turns"))
    own = counting["turn_id"]
    resumed = resume(
        make(home, docs, validation=BROKEN), turn=own, note="mended", intervention_id=counting["id"]
    )
    assert (resumed.passed, resumed.closed, resumed.waiting) == (True, None, 6)
    assert InterventionQueue(home).find(counting["id"])["resolved_at"] is None
    last = resume(make(home, docs), turn=6, note="for both", intervention_id=counting["id"])
    assert last.closed == counting["id"]
    closed = InterventionQueue(home).find(counting["id"])
    assert (closed["resolution"], closed["resolutions"][-1]["verified"]) == ("for both", True)


@both_homes
def test_a_tool_with_passages_of_its_own_hides_no_later_failure(home: Path, docs: Path) -> None:
    async def run(args: Arguments) -> ToolOutput:
        return ToolOutput({"passages": ["page one", {"text": "page two"}]})

    shelf = Tool("shelf", "lists pages", Arguments, frozenset({Access.READS}), run)
    request = ToolRequest(tool="shelf", args={})
    plan = Plan(decision="EXECUTE", route="coordinator", tool_requests=[request])
    flow = make(home, docs, planner=[plan, COMPLETE], synthesis=BROKEN, tools=[shelf])
    error = ask(flow)
    assert isinstance(error, phase_errors.SynthesisError)
    (entry,) = open_entries(home)
    assert entry["context"]["turn"]["evidence"] == [
        {"tool": "shelf", "query": None, "passages": []}
    ]
