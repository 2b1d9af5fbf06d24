"""What a model that does its work well says in each phase, and ways to set up a flow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from interventions.queue import queue_at
from unified_flow.flow import UnifiedFlow
from unified_flow.lib.compact_json import encode
from unified_flow.lib.threads import wait_for
from unified_flow.models.scripted import ScriptedModel
from unified_flow.resume import housekeeping
from unified_flow.retrieval.documents import open_documents, publish
from unified_flow.stores import shared_database, turn_store
from unified_flow.turns.archive import TurnArchive, Unreadable, read_turn
from unified_flow.turns.events import AnyEvent, TurnSalvaged
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.lines import sealed
from unified_flow.turns.lock import JOURNAL
from unified_flow.turns.results import (
    Checks,
    Citation,
    Draft,
    Plan,
    QueryAnalysis,
    ReferenceResolution,
    Reflection,
    ToolRequest,
    Verdict,
)
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import Turn
from unified_flow.turns.turn_index import TurnQuery
from unified_flow.wiring import wire

if TYPE_CHECKING:  # the extra `shared`
    from unified_flow.shared.turn_store import PostgresTurnStore

# A small model leaves four phases to rules. A test that scripts a model from a file in every phase
# says so: with size="large" for a flow that it makes itself, with the mark for what reads the
# environment.
IN_ENVIRONMENT = {"UNIFIED_FLOW_SIZE": "large"}
every_phase_by_model = pytest.mark.usefixtures("_every_phase_by_model")

QUESTION = "What is a topic?"
ANALYSIS = QueryAnalysis(
    resolved_query=QUESTION,
    reference_resolution=ReferenceResolution(status="not_needed"),
    query_type="specific_content",
)
PROCEED = Reflection(decision="PROCEED", confidence=0.9)
SEARCH = Plan(
    decision="EXECUTE",
    route="coordinator",
    tool_requests=[ToolRequest(tool="doc.search", args={"query": "topic"}, goal_id="g1")],
)
COMPLETE = Plan(decision="COMPLETE", route="synthesis")
DRAFT = Draft(
    response="A topic is a named bus.",
    citations=[Citation(source="docs/robots.md:5", quote="A topic is a named bus", score=0.9)],
)
# A draft that needs no source: what the tools of a test return need not support it.
NOTHING_CLAIMED = DRAFT.model_copy(update={"abstained": True, "citations": []})
ALL_WELL = Checks(
    claims_supported=True, no_hallucinations=True, query_addressed=True, coherent_format=True
)


def verdict(decision: str) -> Verdict:
    return Verdict(decision=decision, confidence=0.8, checks=ALL_WELL, issues=["an issue"])


APPROVE = verdict("APPROVE")


def script(**over: Any) -> dict[str, Any]:
    """A good answer for each phase; the planner searches once. `over` replaces some."""
    return {
        "query_analyzer": ANALYSIS,
        "reflection": PROCEED,
        "planner": [SEARCH, COMPLETE],
        "synthesis": DRAFT,
        "validation": APPROVE,
        **over,
    }


both_homes = pytest.mark.parametrize("home", ["files", "shared"], indirect=True)


@cache
def turns_here(database_url: str) -> PostgresTurnStore:
    """Turns in a database, which run in this process."""
    from unified_flow.shared.database import Database
    from unified_flow.shared.turn_store import PostgresTurnStore

    return PostgresTurnStore(Database(database_url, "the database of the test"))


def stores_here(home: Path, docs: Path | None) -> dict[str, Any]:
    """For `wire`: a flow that runs its turns in this process, also in a shared home, where the
    documents are published."""
    database = shared_database(home)
    if database is None:
        return {"docs": [docs] if docs else None}
    if docs is not None:
        with closing(open_documents(home, [docs])) as documents:
            documents.refresh()
            publish(home, None, documents.index, database)
    return {"turns": turns_here(database.url)}


def scripted_flow(
    home: Path,
    docs: Path | None = None,
    *,
    policy: str | None = None,
    turns: TurnStore | None = None,
    **over: Any,
) -> UnifiedFlow:
    """A flow whose model answers from a script, in this process."""
    model = ScriptedModel(script(**over))
    settings: dict[str, Any] = {"model": "scripted", "size": "large", "policy": policy}
    stores = stores_here(home, docs) | ({"turns": turns} if turns is not None else {})
    return UnifiedFlow(wire(home, extra_models={"scripted": model}, **stores, **settings))


def served_flow(home: Path, url: str, docs: Path, **settings: Any) -> UnifiedFlow:
    """A flow whose model is the server at `url`."""
    settings = {"model": "test-model", "size": "large", **settings}
    return UnifiedFlow.from_config(home, docs=[docs], base_url=url, timeout_s=2.0, **settings)


def open_entries(home: Path) -> list[Mapping[str, Any]]:
    return list(queue_at(home).entries())


def journal_lines(home: Path, turn_id: int = 1) -> list[dict[str, Any]]:
    path = home / f"shared_state/turns/turn_{turn_id:06d}/journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def renumbered(lines: Iterable[bytes]) -> bytes:
    """A journal of these lines as if they had been written in this order."""
    records = [json.loads(line) for line in lines]
    bare = [{k: v for k, v in r.items() if k not in ("seq", "crc32")} for r in records]
    return b"".join(sealed(encode(r), n) + b"\n" for n, r in enumerate(bare, 1))


def started_phases(home: Path, turn_id: int = 1) -> list[str]:
    lines = journal_lines(home, turn_id)
    return [line["phase"] for line in lines if line["event"] == "phase_started"]


class Turns:
    """The turns of a home, for a test without a loop."""

    def __init__(self, home: Path) -> None:
        self.store = turn_store(home)
        self.archive = TurnArchive(self.store)
        self.root = Path(self.store.place())

    def path(self, turn_id: int) -> Path:
        return Path(self.store.place(turn_id))

    def journal(self, turn_id: int) -> Path:
        return self.path(turn_id) / JOURNAL

    def ids(self) -> list[int]:
        return wait_for(self.store.ids())

    def load(self, turn_id: int) -> Turn | None:
        return wait_for(self.archive.load(turn_id))

    def require(self, turn_id: int) -> Turn:
        return wait_for(self.archive.require(turn_id))

    def latest(self, *, interrupted: bool = False) -> tuple[list[Turn], Unreadable]:
        return wait_for(
            self.archive.latest(None, TurnQuery(status="interrupted" if interrupted else None))
        )

    def page(self, turn_id: int) -> str:
        return wait_for(self.archive.page(turn_id))

    def events(self, turn_id: int) -> list[AnyEvent]:
        return wait_for(read_turn(self.store, turn_id))[1]

    def salvage(self, turn_id: int) -> tuple[int, TurnSalvaged]:
        return wait_for(housekeeping.salvage(self.store, turn_id))

    def open(self, turn_id: int) -> Ledger:
        return wait_for(Ledger.open(self.store, turn_id))
