"""What the shell completes: names that are on disk or in the settings. Nothing is started, no
server asked, no tool's module imported; where something cannot be read, nothing is offered."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import typer

MOST = 100


def tool_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The built-in tools, and those that were ever allowed."""
    from contextlib import suppress

    from unified_flow.config.tool_names import BUILT_IN
    from unified_flow.errors import UnifiedFlowError
    from unified_flow.tools.grants import grants_of

    collection_names = set(BUILT_IN)
    with suppress(UnifiedFlowError):
        collection_names |= {grant.tool for grant in grants_of(_home(ctx)).all()}
    return _fitting(collection_names, incomplete)


def granted_names(ctx: typer.Context, incomplete: str) -> list[str]:
    from unified_flow.errors import UnifiedFlowError
    from unified_flow.tools.grants import grants_of

    try:
        return _fitting({grant.tool for grant in grants_of(_home(ctx)).all()}, incomplete)
    except UnifiedFlowError:
        return []


def memory_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from unified_flow.errors import UnifiedFlowError
    from unified_flow.turns.memory import MemoryStore

    store = MemoryStore.of(_home(ctx))
    try:
        records = store.all(ctx.params.get("user") or "default")
    except UnifiedFlowError:
        return []
    return [(r.id, r.text[:60]) for r in records if r.id.startswith(incomplete)]


def model_names(ctx: typer.Context, incomplete: str) -> list[str]:
    from unified_flow.config.settings import EMBEDDED, LOCAL, load
    from unified_flow.errors import UnifiedFlowError

    try:
        named = load(_home(ctx)).models
    except UnifiedFlowError:
        return []
    return _fitting({EMBEDDED, LOCAL, *named}, incomplete)


def session_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from unified_flow.cli.terminal import beginning
    from unified_flow.errors import UnifiedFlowError
    from unified_flow.turns.sessions.book import SessionBook

    try:
        found = SessionBook.of(_home(ctx)).sessions(limit=MOST)
    except UnifiedFlowError:
        return []
    return [
        (each.session_id, beginning(each.opening, 60))
        for each in found
        if each.session_id.startswith(incomplete)
    ]


def turn_numbers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Newest first."""
    from unified_flow.turns.archive import TurnArchive

    numbers = (str(number) for number in reversed(TurnArchive.of(_home(ctx)).folders.ids()))
    return [number for number in numbers if number.startswith(incomplete)][:MOST]


def collection_names(ctx: typer.Context, incomplete: str) -> list[str]:
    from unified_flow.retrieval.collection import collection_names
    from unified_flow.retrieval.documents import index_folder

    return _fitting(collection_names(index_folder(_home(ctx))), incomplete)


def paths(incomplete: str) -> list[str]:
    """Files and folders. bash and zsh know them themselves, where nothing is offered, and know
    better when a word is to be closed; fish does not."""
    if os.environ.get("_UNIFIED_FLOW_COMPLETE") != "complete_fish":
        return []
    typed = Path(incomplete).expanduser()
    folder = typed if incomplete.endswith("/") else typed.parent
    shown = incomplete[: incomplete.rfind("/") + 1]
    try:
        found = [f"{shown}{each.name}{'/' * each.is_dir()}" for each in folder.iterdir()]
    except OSError:
        return []
    return _fitting(found, incomplete)[:MOST]


def policies(incomplete: str) -> list[str]:
    return _fitting(("fail_fast", "graceful", "silent"), incomplete)


def phase_names(incomplete: str) -> list[str]:
    from unified_flow.phases import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def _home(ctx: typer.Context) -> Path:
    from interventions.home import find_home

    return find_home(ctx.params.get("home"))


def _fitting(collection_names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in collection_names if name.startswith(incomplete))
