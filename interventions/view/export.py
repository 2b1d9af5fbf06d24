"""One entry to hand on: redacted again, because rules may have grown since it was written."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from interventions.entry import Entry, Transition
from interventions.secrets.redaction import redact
from interventions.view.describe import Kind, describe


def as_json(entry: Entry, past: list[Entry], journal: list[Transition], now: datetime) -> str:
    document = {"intervention": entry, "similar": past, "journal": journal}
    clean: dict[str, Any] = {name: _redacted(value) for name, value in document.items()}
    return json.dumps(clean, ensure_ascii=False, indent=2)


def as_markdown(entry: Entry, past: list[Entry], journal: list[Transition], now: datetime) -> str:
    lines = []
    clean_past = [_redacted(other) for other in past]
    for number, section in enumerate(describe(_redacted(entry), clean_past, journal, now)):
        if section.kind is Kind.COMMANDS:
            continue  # they are for this machine
        fence = "~" * _fence_length(section.texts)
        lines += [f"{'#' if number == 0 else '##'} {section.title}", ""]
        lines += [f"{fence}text", *section.texts, fence, ""]
    return "\n".join(lines).rstrip()


def _redacted(value: Any) -> Any:
    """Field by field: one large field must not use up the size limit of the others."""
    if isinstance(value, dict):
        return {name: redact({name: item}).popitem()[1] for name, item in value.items()}
    return [_redacted(item) for item in value]


def _fence_length(lines: list[str]) -> int:
    """Longer than any run of tildes inside, so that the text cannot end its own block."""
    longest = run = 0
    for character in "\n".join(lines):
        run = run + 1 if character == "~" else 0
        longest = max(longest, run)
    return max(longest + 1, 3)
