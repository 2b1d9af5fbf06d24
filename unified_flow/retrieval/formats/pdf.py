"""PDF: a part for each page, divided where its bookmarks say that something begins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from unified_flow.lib.sandbox import ConversionLimitError, Part, UnusableError
from unified_flow.retrieval.formats.chunk import Trail

MAX_PAGES = 5_000
MAX_BOOKMARKS = 20_000
_DEPTH = 6
_FEWEST = 4  # pages that show what repeats
_REASONS = {4: "encrypted: it needs a password", 5: "encrypted: its protection is not known"}
_HYPHEN = re.compile("[\ufffe\u00ad\x02]\n?(\\S*)[ ]?\n?")  # what PDFium puts for a divided word
_DIGITS = re.compile(r"\d+")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")

Marks = dict[int, list[tuple[int, str]]]
"""Page (from 1) to the (level, title) of the bookmarks that lead to it."""


def pdf_parts(data: bytes) -> Iterator[Part]:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as exc:
        reason = _REASONS.get(getattr(exc, "err_code", 0) or 0, "broken: no PDF can be read in it")
        raise UnusableError(reason) from exc
    if len(document) > MAX_PAGES:
        raise ConversionLimitError(f"{len(document):,} pages, {MAX_PAGES:,} at most")
    marks = _bookmarks(document)
    trail = Trail()
    pages = [_lines(_text(document, at, pypdfium2.PdfiumError)) for at in range(len(document))]
    if not any(map(any, pages)):
        raise UnusableError("no text in it: scanned pages would have to be recognised first")
    _blank_repeated(pages)
    for number, lines in enumerate(pages, 1):
        yield from _page(lines, number, marks.get(number, []), trail)


def _text(document: Any, index: int, broken: type[Exception]) -> str:
    """One broken page is an empty one; the others can still be read."""
    try:
        page = document[index]
        text: str = page.get_textpage().get_text_range()
        page.close()
    except broken:
        return ""
    return text


def _lines(text: str) -> list[str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    text = _HYPHEN.sub(r"\1\n", text)
    return [_CONTROL.sub("", line).strip() for line in text.split("\n")]


def _blank_repeated(pages: list[list[str]]) -> None:
    """Headers, footers and page numbers: what begins or ends most pages says nothing of any."""
    if len(pages) < _FEWEST:
        return
    for edge in (1, -1):
        places = [next((at for at in range(len(p))[::edge] if p[at]), None) for p in pages]
        found = [
            "" if at is None else _DIGITS.sub("0", lines[at])
            for lines, at in zip(pages, places, strict=True)
        ]
        often = {text for text, count in Counter(found).items() if count > len(pages) / 2}
        for lines, at, text in zip(pages, places, found, strict=True):
            if at is not None and text in often:
                lines[at] = ""


def _bookmarks(document: Any) -> Marks:
    found: Marks = {}
    for count, mark in enumerate(document.get_toc(max_depth=_DEPTH)):
        if count >= MAX_BOOKMARKS:
            break
        goal = mark.get_dest()
        index = goal.get_index() if goal is not None else None
        title = " ".join(_CONTROL.sub("", mark.get_title() or "").split())
        if index is not None and title:
            found.setdefault(index + 1, []).append((mark.level, title))
    return found


def _page(
    lines: list[str], number: int, marks: list[tuple[int, str]], trail: Trail
) -> Iterator[Part]:
    """The page's parts. `trail` is what the page before left, and is brought up to date."""
    start = 0
    lead: tuple[str, ...] = ()
    for level, title in marks:
        at = _where(lines, title, start)
        if at is not None:
            yield Part(trail.titles, lines[start:at], lead, number)
            start, lead = at + 1, (lines[at],)
        trail.enter(level, title)
    yield Part(trail.titles, lines[start:], lead, number)


def _where(lines: list[str], title: str, start: int) -> int | None:
    """The line that holds the bookmark's title and no more than a number besides."""
    wanted = _bare(title)
    for at in range(start, len(lines)):
        if wanted and _bare(lines[at]) == wanted:
            return at
    return None


def _bare(text: str) -> str:
    return re.sub(r"^[\d.\s]+", "", text).casefold().strip()
