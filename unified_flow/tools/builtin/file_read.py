"""`file.read`: lines of one file inside the allowed folders; of a document that needs a converter,
lines of its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Self

from pydantic import Field, model_validator

from interventions.errors import how_to_install
from unified_flow.config import tool_names
from unified_flow.config.tables import DocumentSettings
from unified_flow.errors import FileUnusableError, ToolArgumentError
from unified_flow.lib.sandbox import SandboxLimits, UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.threads import in_daemon_thread
from unified_flow.retrieval.formats.document import (
    converted,
    convertible,
    extension_of,
    lines_of,
    missing_library,
    page_lines,
)
from unified_flow.retrieval.formats.encoding import decode, is_packed, unpacked
from unified_flow.tools import MAX_CLAIM_CHARS, Access, Arguments, Tool, ToolOutput, claim
from unified_flow.tools.builtin.roots import Located, Roots
from unified_flow.turns.passage import source_of
from unified_flow.turns.results import Claim

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_CHARS = 64_000
CLAIM_LINES = 40
# A place inside a document as a source names it: `notes.md:12`, `report.pdf:p3`.
_PLACE = re.compile(r"(.+):(p?)([1-9]\d{0,8})\Z", re.DOTALL)


class ReadArguments(Arguments):
    path: str = Field(min_length=1, max_length=4096, description="as a search shows it")
    start_line: int = Field(default=1, ge=1, description="first line, counted from 1")
    end_line: int | None = Field(default=None, ge=1, description="last line; to the end if null")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end_line is not None and self.end_line < self.start_line:
            raise ValueError("end_line is before start_line")
        return self


def file_read(roots: Roots, reading: DocumentSettings | None = None) -> Tool:
    """Files are read as the index reads them."""

    async def run(args: ReadArguments) -> ToolOutput:
        return await in_daemon_thread(partial(_read, roots, reading or DocumentSettings(), args))

    return Tool(
        name=tool_names.FILE_READ,
        description="Read a file, or some lines or a page (report.pdf:p3) of it.",
        arguments=ReadArguments,
        access=frozenset({Access.READS}),
        run=run,
    )


def read_text(roots: Roots, located: Located) -> str:
    """Raises FileUnusableError for a file that is not text or too large, and as Roots.read."""
    data = _bytes(roots, located, MAX_FILE_BYTES)
    try:
        return decode(data).text
    except UnusableError as exc:
        raise FileUnusableError(
            f"{located.shown} is not a text file: {exc}", hint="Name a text file."
        ) from exc


def _bytes(roots: Roots, located: Located, most: int) -> bytes:
    packed = is_packed(str(located.real))
    try:
        return unpacked(roots.read(located, most), most, packed=packed)
    except UnusableError as exc:
        raise FileUnusableError(f"{located.shown} is {exc}", hint="Name a smaller file.") from exc


def _read(roots: Roots, reading: DocumentSettings, args: ReadArguments) -> ToolOutput:
    located, page, line = _located(roots, args.path)
    extension = extension_of(str(located.real), reading.formats)
    if convertible(extension):
        document = _converted(roots, located, extension, reading.ocr)
    else:
        text = read_text(roots, located)
        document = Converted(text.removesuffix("\n").split("\n"), {})
    lines = document.lines
    if page is None:
        start = args.start_line if "start_line" in args.model_fields_set else line or 1
        end = args.end_line
    elif page in document.pages:
        start, end = document.pages[page]
    else:
        raise ToolArgumentError(
            f"{located.shown} has {len(document.pages)} pages, so no page {page}"
        )
    if start > len(lines):
        raise ToolArgumentError(f"{located.shown} has {len(lines)} lines, so none from {start} on")
    wanted = lines[start - 1 : end]
    shown = _bounded(wanted)
    last = start + len(shown) - 1
    return ToolOutput(
        result={
            "path": located.shown,
            **({} if page is None else {"page": page}),
            "start_line": start,
            "end_line": last,
            "total_lines": len(lines),
            "truncated": len(shown) < len(wanted) or shown[-1] != wanted[len(shown) - 1],
            "text": "\n".join(shown),
        },
        claims=list(_claims(located.shown, start, shown, document)),
    )


def _bounded(lines: list[str]) -> list[str]:
    """The lines that fit, and at least the beginning of one."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line) + 1
        if size > MAX_CHARS:
            return lines[:count] or [line[:MAX_CHARS]]
    return lines


def _claims(shown: str, first: int, lines: list[str], document: Converted) -> Iterator[Claim]:
    """Pieces short enough that a source says where; blank ones say nothing."""
    begins = {start for start, _ in document.pages.values()}
    piece: list[str] = []
    for number, line in enumerate(lines, first):
        size = sum(map(len, piece)) + len(piece) + len(line)
        if piece and (len(piece) == CLAIM_LINES or size > MAX_CLAIM_CHARS or number in begins):
            yield from _claim(shown, number - len(piece), piece, document)
            piece = []
        piece.append(line)
    yield from _claim(shown, first + len(lines) - len(piece), piece, document)


def _claim(shown: str, first: int, piece: list[str], document: Converted) -> Iterator[Claim]:
    text = "\n".join(piece)
    if text.strip():
        yield claim(text, source_of(shown, first, document.page_of(first)))


@dataclass(frozen=True)
class Converted:
    """`pages` has the (first, last) line of each page or slide, if there are any."""

    lines: list[str]
    pages: dict[int, tuple[int, int]]

    def page_of(self, line: int) -> int | None:
        return next((p for p, (first, last) in self.pages.items() if first <= line <= last), None)


def _located(roots: Roots, path: str) -> tuple[Located, int | None, int | None]:
    """(the file, the page, the line): the path as it is, or else without the place at its end,
    which is a page or a line, from 1. Raises as Roots.locate."""
    try:
        return roots.locate(path), None, None
    except FileUnusableError:
        match = _PLACE.match(path)
        if match is None:
            raise
        located, number = roots.locate(match[1]), int(match[3])
        return (located, number, None) if match[2] else (located, None, number)


def _converted(roots: Roots, located: Located, extension: str, ocr: str | None) -> Converted:
    """The text that the index has of it too. Raises FileUnusableError, and as Roots.read."""
    if reason := missing_library(extension):
        raise FileUnusableError(
            f"{located.shown} cannot be read: {reason}", hint=how_to_install("documents")
        )
    limits = SandboxLimits()
    data = _bytes(roots, located, limits.file_bytes)
    try:
        with Converter(limits) as converter:
            parts, _ = converted(extension, data, converter, ocr)
    except UnusableError as exc:
        raise FileUnusableError(
            f"{located.shown} cannot be read: {exc}", hint="Mend the file, or name another."
        ) from exc
    return Converted(lines_of(parts), page_lines(parts))
