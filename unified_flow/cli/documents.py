"""The documents of a question, indexed before it is asked; those that it does not search."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from interventions.cli.terminal import note
from unified_flow.cli.terminal import progress_bar
from unified_flow.errors import InputError, RetrievalError

if TYPE_CHECKING:
    from pathlib import Path

    from unified_flow.flow import UnifiedFlow
    from unified_flow.retrieval.documents import Documents

NAME_DOCUMENTS = "name a folder with --docs, or as docs = [...] in unified_flow.toml"


def refresh_documents(
    flow: UnifiedFlow, *, show: bool, again: bool = False
) -> RetrievalError | None:
    """Index what is new or changed, with a progress bar on a terminal.

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
    """Raises RetrievalError. An index that cannot be written is named and left as it is."""
    from unified_flow.retrieval.documents import AS_IT_IS

    if documents.index.is_read_only and not documents.fresh:
        note(f"the index {documents.index.path} is read-only: {AS_IT_IS}")
    with progress_bar("indexing", show=show) as progress:
        documents.ensure_fresh(progress, again=again)


def document_folders(flow: UnifiedFlow) -> list[Path]:
    """The roots on this machine; places of passages are relative to where these lie."""
    from unified_flow.config.document_roots import folders_of

    documents = flow.services.documents
    try:
        return folders_of(documents.watched()) if documents is not None else []
    except RetrievalError:
        return []  # of an index that is broken, which the turn has reported


def note_unasked(home: Path | None, collection: str | None) -> None:
    """Names what was indexed by hand and is not searched, because the setting docs names other
    documents. Says nothing where all is searched."""
    from unified_flow.retrieval.documents import unsearched_roots

    with suppress(InputError):  # a configured folder that is missing is reported where it is needed
        if left := unsearched_roots(home, collection):
            names = ", ".join(str(root) for root in left)
            note(f"not asked, because the setting docs names other documents: {names}")
            note("hint: add it to docs in unified_flow.toml, or unified-flow index --delete PATH")
