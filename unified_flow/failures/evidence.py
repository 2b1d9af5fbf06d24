"""What a person needs to see of a turn that failed: `context.turn` of its intervention."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pydantic import BaseModel

from unified_flow.phases import NAMES
from unified_flow.retrieval import source_of
from unified_flow.running.kit import Kit
from unified_flow.turns.results import ToolResult
from unified_flow.turns.turn import Turn

SHOWN = ("completed", "running", "failed", "interrupted")


def turn_context(phase: str, kit: Kit | None, turn: Turn) -> dict[str, Any]:
    """The ribbon, the failed phase's input, the retrieval evidence, recipe and model."""
    return {
        "ribbon": ribbon(turn, failed=phase),
        "question": turn.question,
        "input": _input(kit),
        "evidence": [_evidence(result) for result in turn.sections.coordinator],
        **recipe_and_model(kit),
    }


def recipe_and_model(kit: Kit | None) -> dict[str, Any]:
    if kit is None:
        return {}
    return {
        "recipe": str(kit.recipe.path),
        "recipe_digest": kit.recipe.digest,
        "model": kit.where.model,
    }


def ribbon(turn: Turn, failed: str | None = None) -> list[dict[str, Any]]:
    """The eight phases, each completed, running, failed, interrupted or not_run; its latest visit
    counts."""
    latest = {visit.phase: visit for visit in turn.visits if visit.status in SHOWN}
    return [
        {
            "name": name,
            "status": "failed"
            if name == failed
            else latest[name].status
            if name in latest
            else "not_run",
            "duration_ms": latest[name].duration_ms if name in latest else None,
        }
        for name in NAMES
    ]


def _input(kit: Kit | None) -> dict[str, Any]:
    """The sections that the phase read, but for the tool results: the evidence stands for them."""
    if kit is None:
        return {}
    read = {own.name: getattr(kit.sections, own.name) for own in fields(kit.sections)}
    return {
        name: value.model_dump(mode="json")
        for name, value in read.items()
        if isinstance(value, BaseModel)
    }


def _evidence(result: ToolResult) -> dict[str, Any]:
    """What a tool found: for a search its query, and each passage's id, source and score."""
    found = result.result if isinstance(result.result, dict) else {}
    passages = [
        {
            "chunk_id": passage["chunk_id"],
            "source": source_of(passage["path"], passage["line"], passage.get("page")),
            "score": passage["score"],
        }
        for passage in found.get("passages", [])
    ]
    return {"tool": result.tool, "query": found.get("query"), "passages": passages}
