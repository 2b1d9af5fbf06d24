"""Plain text: no headings that could be relied on."""

from __future__ import annotations

from collections.abc import Iterator

from unified_flow.retrieval.chunk import Section

EXTENSIONS = frozenset({".txt", ".text", ".log", ".csv", ".tsv"})


def sections(text: str) -> Iterator[Section]:
    yield Section((), 1, text.split("\n"))
