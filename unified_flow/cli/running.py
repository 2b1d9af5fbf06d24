"""Running one turn for the command line: documents brought up to date, phases shown live."""

from __future__ import annotations

import secrets
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rich.console import Console

from interventions.cli.terminal import note
from unified_flow.cli.live import LivePhases
from unified_flow.errors import RetrievalError
from unified_flow.phases.errors import PhaseError
from unified_flow.turns.events import Observed
from unified_flow.turns.ledger import Observer
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:
    from unified_flow.flow import UnifiedFlow
    from unified_flow.retrieval.documents import Documents


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
    with LivePhases(Console(stderr=True)) if live else nullcontext() as view:

        def follow(event: Observed) -> None:
            if observer is not None:
                observer(event)
            if view is not None:
                view(event)

        try:
            return await flow.process(session or new_session_id(), question, observer=follow), None
        except PhaseError as exc:
            return exc.turn, exc


def refresh_documents(
    flow: UnifiedFlow, *, show: bool, again: bool = False
) -> RetrievalError | None:
    """Index what is new or changed, with a progress bar for whoever watches.

    Once for each process, unless `again`. Returns what kept it from being done: the turn meets the
    same trouble in doc.search, where it becomes an intervention.
    """
    documents = flow.services.documents
    if documents is None:
        return None
    try:
        bring_up_to_date(documents, show=show, again=again)
    except RetrievalError as exc:
        return exc
    return None


def bring_up_to_date(documents: Documents, *, show: bool, again: bool = False) -> None:
    """Raises RetrievalError. An index that cannot be written is told and left as it is."""
    from unified_flow.cli.progress import bar
    from unified_flow.retrieval.documents import AS_IT_IS

    if documents.is_read_only and not documents.fresh:
        note(f"the index {documents.index.path} is read-only: {AS_IT_IS}")
    with bar("indexing", show=show) as progress:
        whole = again and not documents.is_read_only
        (documents.refresh if whole else documents.ensure_fresh)(progress)
