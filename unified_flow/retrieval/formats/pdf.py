"""PDF: a part for each page, divided where its bookmarks say that something begins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from unified_flow.lib.sandbox import Section, UnusableError
from unified_flow.retrieval.formats.chunk import Heading, Trail, outlined

MAX_PAGES = 5_000
MAX_BOOKMARKS = 20_000
_DEPTH = 6
_FEWEST = 4  # pages that show what repeats
_REASONS = {4: "encrypted: it needs a password", 5: "encrypted: its protection is not known"}
_HYPHEN = re.compile("[\ufffe\u00ad\x02]\n?(\\S*)[ ]?\n?")  # what PDFium puts for a divided word
_OF = r"(?:\s*(?:/|of|von|av|de|sur|di|из)\s*\d{1,6})?"
_LABELLED = re.compile(
    rf"(?<!\w)(?:page|p\.|pg\.|seite|sida|side|página|pagina|strona|стр\.)\s*\d{{1,6}}{_OF}(?!\w)",
    re.IGNORECASE,
)
# Alone in its line, or set apart from the rest of it.
_ALONE = re.compile(
    rf"^\W*(\d{{1,6}}){_OF}\W*$|^(\d{{1,6}})(?=\s*[|–—·•])|(?<=[|–—·•])\s*(\d{{1,6}})$"  # noqa: RUF001
)
_PAGE_ALONE = re.compile(r"\W*#[\W\d]*\Z")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")

Marks = dict[int, list[tuple[int, str]]]
"""Page (from 1) to the (level, title) of the bookmarks that lead to it."""


def pdf_sections(data: bytes) -> Iterator[Section]:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as exc:
        reason = _REASONS.get(getattr(exc, "err_code", 0) or 0, "broken: no PDF can be read in it")
        raise UnusableError(reason) from exc
    if len(document) > MAX_PAGES:
        raise UnusableError(f"{len(document):,} pages, {MAX_PAGES:,} at most")
    marks = _bookmarks(document)
    trail = Trail()
    pages = [_lines(_text(document, at, pypdfium2.PdfiumError)) for at in range(len(document))]
    _blank_repeated(pages)
    for number, lines in enumerate(pages, 1):
        is_picture = not any(lines) and _shows_more(document[number - 1])
        yield from _page(lines, number, marks.get(number, []), trail, is_picture)


def _text(document: Any, index: int, broken: type[Exception]) -> str:
    """The text of a page; a broken one is empty, so that the others can still be read."""
    try:
        page = document[index]
        text: str = page.get_textpage().get_text_range()
        page.close()
    except broken:
        return ""
    return text


def _shows_more(page: Any) -> bool:
    """Whether there is anything on the page besides text."""
    from pypdfium2.raw import FPDF_PAGEOBJ_TEXT

    return any(each.type != FPDF_PAGEOBJ_TEXT for each in page.get_objects(max_depth=2))


def _lines(text: str) -> list[str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    text = _HYPHEN.sub(r"\1\n", text)
    return [_CONTROL.sub("", line).strip() for line in text.split("\n")]


def _blank_repeated(pages: list[list[str]]) -> None:
    """Headers and footers that are the same on most pages stay on the first alone; page numbers go.
    A line with any other number says something of its page."""
    if len(pages) < _FEWEST:
        return
    for edge in (1, -1):
        places = [next((at for at in range(len(p))[::edge] if p[at]), None) for p in pages]
        found = [
            "" if at is None else _without_page_number(lines[at], number)
            for number, (lines, at) in enumerate(zip(pages, places, strict=True), 1)
        ]
        often = {text for text, count in Counter(found).items() if count > len(pages) / 2}
        shown = {text for text in often if _PAGE_ALONE.match(text)}
        for lines, at, text in zip(pages, places, found, strict=True):
            if at is not None and text in shown:
                lines[at] = ""
            elif text in often:
                shown.add(text)


def _without_page_number(line: str, page: int) -> str:
    """With how far its number is from the page's instead: the same on all pages if it counts them.
    "Article 3" and "Total: 3" say something else, even on page 3."""
    line = _LABELLED.sub("#", line)
    return _ALONE.sub(lambda match: f"#{int(match[match.lastindex or 0]) - page}", line)


def _bookmarks(document: Any) -> Marks:
    found: Marks = {}
    for mark in islice(document.get_toc(max_depth=_DEPTH), MAX_BOOKMARKS):
        goal = mark.get_dest()
        index = goal.get_index() if goal is not None else None
        title = " ".join(_CONTROL.sub("", mark.get_title() or "").split())
        if index is not None and title:
            found.setdefault(index + 1, []).append((mark.level, title))
    return found


def _page(
    lines: list[str], number: int, marks: list[tuple[int, str]], trail: Trail, is_picture: bool
) -> Iterator[Section]:
    """The page's sections. `trail` is what the page before left, and is brought up to date."""
    headings: list[Heading] = []
    start = 0
    for level, title in marks:
        at = _where(lines, title, start)
        headings.append(
            Heading(title, level, start, start) if at is None else Heading(title, level, at, at + 1)
        )
        start = headings[-1].end
    *before, last = outlined(lines, headings, trail, of_file=False, page=number)
    yield from before
    yield replace(last, is_picture=is_picture)  # a picture is one, whatever leads to its page


def _where(lines: list[str], title: str, start: int) -> int | None:
    """The line that holds the bookmark's title and no more than a number besides."""
    wanted = _bare(title)
    places = (at for at in range(start, len(lines)) if wanted and _bare(lines[at]) == wanted)
    return next(places, None)


def _bare(text: str) -> str:
    return re.sub(r"^[\d.\s]+", "", text).casefold().strip()
