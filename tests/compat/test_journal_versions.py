"""Which versions of the program read which journals (architecture/journal-versions.md).

`journals/vN` holds two journals as the program of journal version N wrote them: a turn whose voice
failed, and one that went on after that.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from interventions.retry.contract import lost_turns
from tests.answers import QUESTION, Turns, open_entries, renumbered, scripted_flow
from unified_flow.cli.turns import show_turn
from unified_flow.engine.ephemeral_turns import EphemeralTurns
from unified_flow.errors.turns import JournalVersionError
from unified_flow.phases.errors import SynthesisError
from unified_flow.resume import housekeeping, retention
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.journal_reader import JournalReader
from unified_flow.resume.replay.replay import replay
from unified_flow.resume.resumption import resume_turn
from unified_flow.turns import fold, lines, results
from unified_flow.turns.events import VERSION
from unified_flow.turns.lock import JOURNAL

JOURNALS = Path(__file__).parent / "journals"
WRITTEN = sorted(int(folder.name[1:]) for folder in JOURNALS.iterdir())
ANSWERED, FAILED = 1, 2


def home_of(version: int, home: Path) -> Path:
    for turn_id, name in ((ANSWERED, "answered"), (FAILED, "failed")):
        folder = home / f"shared_state/turns/turn_{turn_id:06d}"
        folder.mkdir(parents=True)
        shutil.copy(JOURNALS / f"v{version}" / f"{name}.jsonl", folder / JOURNAL)
    return home


def rewritten(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The journal with other records, numbered and summed as a program would."""
    records = map(json.loads, path.read_bytes().splitlines())
    path.write_bytes(renumbered(json.dumps(change(record)).encode() for record in records))


def test_every_version_so_far_has_a_step_and_journals() -> None:
    assert list(lines.UPCASTERS) == list(range(1, VERSION))
    assert list(range(1, VERSION + 1)) == WRITTEN


@pytest.mark.parametrize("version", WRITTEN)
def test_a_journal_of_every_version_is_read_and_its_turn_goes_on(
    version: int, home: Path, docs: Path
) -> None:
    archive = Turns(home_of(version, home))
    answered, failed = archive.require(ANSWERED), archive.require(FAILED)
    assert (answered.status, answered.resumed) == ("answered", 1)
    assert answered.response == "A topic is a named bus."
    assert (failed.status, failed.failure and failed.failure.phase) == ("failed", "synthesis")
    assert "synthesis failed" in archive.page(FAILED)
    replayed = replay(archive.events(ANSWERED))
    assert replayed.same
    assert len(replayed.visits) == 9

    resumed = asyncio.run(resume_turn(scripted_flow(home, docs), FAILED, ResumeRequest()))
    assert resumed.turn.response == "A topic is a named bus."
    assert archive.require(FAILED) == resumed.turn
    fork = asyncio.run(
        resume_turn(scripted_flow(home, docs), ANSWERED, ResumeRequest(from_phase="synthesis"))
    )
    assert (fork.turn.status, fork.turn.fork_of) == ("answered", ANSWERED)
    assert archive.require(fork.turn_id) == fork.turn
    assert archive.require(ANSWERED) == answered
    old = (JOURNALS / f"v{version}" / "failed.jsonl").read_bytes()
    assert archive.journal(FAILED).read_bytes().startswith(old)


# A simulated next version


DOWN = RuntimeError("down")


def raised(done: housekeeping.Abandoned) -> None:
    """What the command raises for the turn that it names."""
    raise done.refused[0]


LATER = datetime(2100, 1, 1, tzinfo=UTC)


async def _failed(home: Path, docs: Path) -> None:
    with pytest.raises(SynthesisError):
        await scripted_flow(home, docs, synthesis=DOWN).process("s", QUESTION)


async def _answered(home: Path, docs: Path) -> None:
    await scripted_flow(home, docs).process("s", QUESTION)


def newer(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"version": VERSION + 1} if "version" in record else record


def newer_once_resumed(record: dict[str, Any]) -> dict[str, Any]:
    return newer(record) if record["event"] == "turn_resumed" else record


def with_event(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"event": "dreamt"} if record["event"] == "model_failed" else record


def with_phase(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"phase": "recall"} if record.get("phase") == "reflection" else record


def with_value(record: dict[str, Any]) -> dict[str, Any]:
    if record["event"] != "phase_completed" or record["phase"] != "planner":
        return record
    return record | {"output": record["output"] | {"decision": "POSTPONE"}}


def test_a_field_that_is_not_known_is_named_and_no_damage(
    home: Path, docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(_failed(home, docs))
    rewritten(Turns(home).path(1) / JOURNAL, lambda record: record | {"colour": "blue"})
    show_turn("1", home=home)
    told = capsys.readouterr()
    assert "synthesis" in told.out
    assert "does not know them: turn_started.colour, phase_started.colour" in told.err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (newer, rf"it is journal version {VERSION + 1}; this program reads up to {VERSION}"),
        (newer_once_resumed, rf"it is journal version {VERSION + 1}; this program reads up to"),
        (with_event, "there is no event 'dreamt' here"),
        (with_phase, "there is no phase 'recall' here"),
        (with_value, r"planner.decision: Input should be 'EXECUTE' or 'COMPLETE'"),
    ],
)
def test_what_a_newer_version_wrote_is_told_as_such_and_left_alone(
    change: Callable[[dict[str, Any]], dict[str, Any]], told: str, home: Path, docs: Path
) -> None:
    asyncio.run(_failed(home, docs))
    (entry,) = open_entries(home)
    archive = Turns(home)
    folder = archive.path(1)
    asyncio.run(resume_turn(scripted_flow(home, docs, synthesis=DOWN), 1, ResumeRequest()))
    rewritten(
        folder / JOURNAL, lambda r: change(r) | ({"persist": False} if "persist" in r else {})
    )
    with (folder / JOURNAL).open("ab") as journal:
        journal.write(b'{"event":"mod')
    (folder / "half.tmp").write_bytes(b"of another process")
    asyncio.run(_answered(home, docs))  # the newest turn is never pruned

    def state() -> dict[str, bytes]:
        queue = home / "shared_state/intervention_queue.json"
        return {str(path): path.read_bytes() for path in (*folder.iterdir(), queue)}

    before = state()
    flow = scripted_flow(home, docs)
    queue = flow.services.queue
    for use in (
        lambda: archive.require(1),
        lambda: archive.events(1),
        lambda: asyncio.run(resume_turn(flow, 1, ResumeRequest(note="mended"))),
        lambda: raised(asyncio.run(housekeeping.abandon(archive.store, queue, [1], ""))),
    ):
        with pytest.raises(JournalVersionError, match=f"written by a newer version.*{told}") as no:
            use()
        assert no.value.hint == "update unified-flow"
    assert asyncio.run(retention.unneeded(archive.archive, set(), LATER)) == []
    assert asyncio.run(retention.delete(archive.store, [1], set, before=LATER)) == 0
    shown = JournalReader().turn(home, 1)
    assert shown is not None
    assert "written by a newer version" in shown["error"]
    assert lost_turns(queue.entries(), home) is None
    assert state() == before
    queue.dismiss(entry["id"], "n")
    ephemeral = EphemeralTurns(flow.services)
    asyncio.run(ephemeral.remove_closed())
    assert folder.joinpath(JOURNAL).read_bytes() == before[str(folder / JOURNAL)]


def test_the_next_version_reads_today_s_by_its_step(
    home: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renamed phase and a new required field: by the table, and told as what they are without."""

    class UrgentPlan(results.Plan):
        urgency: int

    asyncio.run(_answered(home, docs))
    archive = Turns(home)
    today = archive.require(1)
    monkeypatch.setattr(lines, "VERSION", VERSION + 1)
    plan, asked = TypeAdapter(UrgentPlan), fold.OUTPUT["query_analyzer"]
    monkeypatch.setitem(fold.OUTPUT, "planner", plan)
    monkeypatch.setitem(lines.UPCASTERS, VERSION, lambda record: record)
    older = rf"written by an older version .*\(journal version {VERSION}\).* should read and cannot"
    with pytest.raises(JournalVersionError, match=f"{older}: .* it lacks planner.urgency"):
        archive.require(1)

    def step(record: dict[str, Any]) -> dict[str, Any]:
        if record.get("phase") == "query_analyzer":
            record |= {"phase": "analyst"}
        if record.get("phase") == "planner" and "output" in record:
            record["output"] |= {"urgency": 1}
        return record

    monkeypatch.delitem(fold.OUTPUT, "query_analyzer")
    with pytest.raises(JournalVersionError, match=f"{older}: .* no phase 'query_analyzer' here"):
        archive.require(1)
    monkeypatch.setitem(fold.OUTPUT, "analyst", asked)
    monkeypatch.setitem(lines.UPCASTERS, VERSION, step)
    monkeypatch.setattr(fold, "changed", _without_analyst(fold.changed))
    read = archive.require(1)
    assert read.visits[0].phase == "analyst"
    assert read.sections.planner == UrgentPlan(urgency=1, **vars(today.sections.planner))
    assert read.response == today.response


def _without_analyst(changed: Callable[..., Any]) -> Callable[..., Any]:
    """The section of the renamed phase is still a field of that name."""
    return lambda record, **changes: changed(
        record, **{"query_analyzer" if k == "analyst" else k: v for k, v in changes.items()}
    )
