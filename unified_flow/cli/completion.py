"""What the shell completes: sessions, turns and collections, as they are on disk. Where something
cannot be read, it offers nothing."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import typer

from interventions.home import find_home
from unified_flow.cli.terminal import beginning
from unified_flow.errors import UnifiedFlowError

MOST = 100


def session_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from unified_flow.stores import session_store

    with suppress(UnifiedFlowError):
        found = session_store(_home(ctx)).sessions(limit=MOST)
        every = [(each.session_id, beginning(each.opening, 60)) for each in found]
        return [(name, opening) for name, opening in every if name.startswith(incomplete)]
    return []


def turn_numbers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Newest first."""
    from unified_flow.lib.threads import wait_for
    from unified_flow.stores import turn_store

    numbers = (str(number) for number in reversed(wait_for(turn_store(_home(ctx)).ids())))
    return [number for number in numbers if number.startswith(incomplete)][:MOST]


def collection_names(ctx: typer.Context, incomplete: str) -> list[str]:
    from unified_flow.retrieval.collection import collection_names
    from unified_flow.retrieval.documents import index_folder

    found = collection_names(index_folder(_home(ctx)))
    return sorted(name for name in found if name.startswith(incomplete))


def _home(ctx: typer.Context) -> Path:
    return find_home(ctx.params.get("home"))
