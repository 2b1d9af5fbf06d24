"""What was indexed by hand and is not asked, because the settings name other documents."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from interventions.cli.terminal import note

if TYPE_CHECKING:
    from pathlib import Path


def note_unasked(home: Path | None, collection: str | None) -> None:
    """Says which, and what can be done about it; nothing where all is asked."""
    from unified_flow.errors import InputError
    from unified_flow.retrieval.documents import unsearched_roots

    with suppress(InputError):  # a configured folder that is not there is told where it is needed
        if left := unsearched_roots(home, collection):
            names = ", ".join(str(root) for root in left)
            note(f"not asked, because the setting docs names other documents: {names}")
            note("hint: add it to docs in unified_flow.toml, or unified-flow index --forget PATH")
