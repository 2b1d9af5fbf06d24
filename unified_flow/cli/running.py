"""Running one turn for the command line: documents brought up to date, phases shown live."""

from __future__ import annotations

import secrets
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rich.console import Console

from unified_flow.cli.live import LivePhases
from unified_flow.errors import PhaseError, RetrievalError
from unified_flow.events import Observed
from unified_flow.folding import apply
from unified_flow.ledger import Observer
from unified_flow.turn import Turn

if TYPE_CHECKING:
    from unified_flow.flow import UnifiedFlow


def new_session_id() -> str:
    return f"session_{secrets.token_hex(6)}"


async def run_turn(
    flow: UnifiedFlow,
    session: str | None,
    question: str,
    *,
    live: bool,
    again: bool = False,
    observer: Observer | None = None,
) -> tuple[Turn, PhaseError | None]:
    """The turn as it ended, and the error that halted it. `again` as in `refresh_documents`."""
    refresh_documents(flow, show=live, again=again)
    turn = Turn()
    with LivePhases(Console(stderr=True)) if live else nullcontext() as view:

        def follow(event: Observed) -> None:
            nonlocal turn
            turn = apply(turn, event)
            if observer is not None:
                observer(event)
            if view is not None:
                view(event)

        try:
            return await flow.process(session or new_session_id(), question, observer=follow), None
        except PhaseError as exc:
            return turn, exc


def refresh_documents(flow: UnifiedFlow, *, show: bool, again: bool = False) -> None:
    """Index what is new or changed, with a progress bar for whoever watches.

    Once for each process, unless `again`.
    """
    documents = flow.services.documents
    if documents is None:
        return
    from unified_flow.cli.progress import bar

    try:
        with bar("indexing", show=show) as progress:
            (documents.refresh if again else documents.ensure_fresh)(progress)
    except RetrievalError:
        # The turn meets the same trouble in doc.search, where it becomes an intervention.
        return
