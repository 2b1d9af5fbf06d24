"""What the shell completes: names that are on disk or in the settings. It starts nothing, asks no
server and imports no tool; where something cannot be read, it offers nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import get_args

import typer

from interventions.home import find_home
from unified_flow.cli.terminal import beginning
from unified_flow.errors import UnifiedFlowError

MOST = 100


def tool_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The built-in tools, and those that were ever allowed."""
    from unified_flow.config.tool_names import BUILT_IN

    return _fitting({*BUILT_IN, *granted_names(ctx, "")}, incomplete)


def granted_names(ctx: typer.Context, incomplete: str) -> list[str]:
    from unified_flow.tools.grants import grants_of

    with suppress(UnifiedFlowError):
        return _fitting({grant.tool for grant in grants_of(_home(ctx)).all()}, incomplete)
    return []


def memory_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from unified_flow.turns.memory import MemoryStore

    with suppress(UnifiedFlowError):
        records = MemoryStore.of(_home(ctx)).all(ctx.params.get("user") or "default")
        return [(r.id, r.text[:60]) for r in records if r.id.startswith(incomplete)]
    return []


def model_names(ctx: typer.Context, incomplete: str) -> list[str]:
    from unified_flow.config.settings import EMBEDDED, LOCAL, load

    with suppress(UnifiedFlowError):
        return _fitting({EMBEDDED, LOCAL, *load(_home(ctx)).models}, incomplete)
    return []


def session_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from unified_flow.turns.sessions.book import SessionBook

    with suppress(UnifiedFlowError):
        found = SessionBook.of(_home(ctx)).sessions(limit=MOST)
        every = [(each.session_id, beginning(each.opening, 60)) for each in found]
        return [(name, opening) for name, opening in every if name.startswith(incomplete)]
    return []


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
    from unified_flow.config.settings import PolicyName

    return _fitting(get_args(PolicyName), incomplete)


def phase_names(incomplete: str) -> list[str]:
    from unified_flow.phases import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def _home(ctx: typer.Context) -> Path:
    return find_home(ctx.params.get("home"))


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
