"""A passage of a document, and how its place is written."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field

_PLACE = re.compile(r"(?:#L|:p?)\d+\Z")


class Passage(BaseModel):
    """A chunk of a document that a search found.

    `path` is relative to the indexed root's parent where possible, or the address of a web page;
    `line` the first line of `text` (1-based; of a converted document, of its text as `file.read`
    shows it), `page` the page or slide (1-based) of a file that has them, `heading` the headings
    above it joined by " > ", `score` 0..1.
    """

    model_config = ConfigDict(frozen=True)

    chunk_id: str
    path: str
    line: int = Field(ge=1)
    end_line: int = Field(ge=1)
    heading: str = ""
    text: str
    score: float = Field(ge=0.0, le=1.0)
    page: int | None = Field(default=None, ge=1)

    def source(self, offset: int = 0) -> str:
        """Where `text[offset]` stands, as `source_of` writes it."""
        return source_of(self.path, self.line + self.text.count("\n", 0, offset), self.page)


def source_of(path: str, line: int, page: int | None) -> str:
    """`notes.md:12`, `report.pdf:p3` for page or slide 3, or `https://host/page#L12`, which still
    opens the page."""
    if page is not None:
        return f"{path}:p{page}"
    return f"{path}#L{line}" if "://" in path else f"{path}:{line}"


def path_of(source: str) -> str:
    """The path or address in what `source_of` gave."""
    return _PLACE.sub("", source)
