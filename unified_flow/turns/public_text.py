"""What a person or a client is shown: redacted, and unlike a failure's samples never cut short."""

from __future__ import annotations

from interventions.secrets.redaction import redact_text
from unified_flow.turns.results import Citation

MAX_CHARS = 4_000_000


def shown(text: str) -> str:
    return redact_text(text, MAX_CHARS)


def shown_citation(citation: Citation) -> Citation:
    return citation.model_copy(update={"quote": shown(citation.quote)})
