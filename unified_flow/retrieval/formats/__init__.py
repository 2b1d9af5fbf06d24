"""One module a format: `EXTENSIONS` and `sections(text)`, which yields a file's sections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from unified_flow.retrieval.chunk import Section
from unified_flow.retrieval.formats import code, html, markdown, plain, restructured


class Format(Protocol):
    EXTENSIONS: frozenset[str]

    def sections(self, text: str) -> Iterator[Section]:
        """The sections of a document whose lines end with a newline character each."""
        ...


_FORMATS: tuple[Format, ...] = (markdown, restructured, html, code, plain)
_BY_EXTENSION = {extension: each for each in _FORMATS for extension in each.EXTENSIONS}


def format_of(extension: str) -> Format:
    """`extension` is lower case with its dot; what nobody claims is read as plain text."""
    return _BY_EXTENSION.get(extension, plain)
