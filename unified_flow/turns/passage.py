"""A passage of a document, and how its place is written."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

_PLACE = re.compile(r"(?:#L|:p?)\d+\Z")


class Passage(BaseModel):
    """A chunk of a document that a search found.

    `path` is relative to the indexed root's parent where possible, or the address of a web page;
    `line` the first line of `text` (1-based; of a converted document, of its text as `file.read`
    shows it), `page` the page or slide (1-based) of a file that has them, `heading` the headings
    above it joined by " > ", `score` 0..1; `continues` says that the section of the passage before
    it in the document goes on.
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
    continues: bool = False

    def source(self, offset: int = 0) -> str:
        """The place of `text[offset]`, as `source_of` writes it."""
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


def passages_in(result: Any) -> list[Passage]:
    """The passages in a search's result. Another tool's result may hold `passages` of its own."""
    found = result.get("passages") if isinstance(result, dict) else None
    passages: list[Passage] = []
    for raw in found if isinstance(found, list) else []:
        with suppress(ValidationError):
            passages.append(Passage.model_validate(raw))
    return passages


def title_of(heading: str, source: str) -> str:
    """What stands above a passage in an answer."""
    return f"{heading} ({source})" if heading else f"({source})"


def reference(chapter: str, section: str) -> str:
    """`chapter/section`, as Message.sources holds it (data-model.md, 1)."""
    return f"{chapter}/{section}" if section else chapter
