"""`file.read`: lines of one text file inside the allowed folders."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator

from unified_flow.errors import FileUnusableError, ToolArgumentError
from unified_flow.results import Claim
from unified_flow.retrieval.decode import UndecodableError, decode
from unified_flow.tools import Access, Arguments, Tool, ToolOutput
from unified_flow.tools.roots import Located, Roots

NAME = "file.read"
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_CHARS = 64_000
CLAIM_LINES = 40
CLAIM_CHARS = 4_000


class ReadArguments(Arguments):
    path: str = Field(min_length=1, max_length=4096, description="as a search shows it")
    start_line: int = Field(default=1, ge=1, description="first line, counted from 1")
    end_line: int | None = Field(default=None, ge=1, description="last line; to the end if null")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end_line is not None and self.end_line < self.start_line:
            raise ValueError("end_line is before start_line")
        return self


def file_read(roots: Roots) -> Tool:
    async def run(args: ReadArguments) -> ToolOutput:
        return await asyncio.to_thread(_read, roots, args)

    return Tool(
        name=NAME,
        description="Read a text file, or some lines of it.",
        arguments=ReadArguments,
        access=frozenset({Access.READS}),
        run=run,
    )


def read_text(roots: Roots, located: Located) -> str:
    """Raises FileUnusableError for a file that is not text or too large, and as Roots.read."""
    data = roots.read(located, MAX_FILE_BYTES)
    if len(data) > MAX_FILE_BYTES:
        raise FileUnusableError(
            f"{located.shown} is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB",
            hint="Name a smaller file.",
        )
    try:
        return decode(data).text
    except UndecodableError as exc:
        raise FileUnusableError(
            f"{located.shown} is not a text file: {exc}", hint="Name a text file."
        ) from exc


def _read(roots: Roots, args: ReadArguments) -> ToolOutput:
    located = roots.locate(args.path)
    lines = read_text(roots, located).removesuffix("\n").split("\n")
    if args.start_line > len(lines):
        raise ToolArgumentError(
            f"{located.shown} has {len(lines)} lines, so none from {args.start_line} on"
        )
    wanted = lines[args.start_line - 1 : args.end_line]
    shown = _bounded(wanted)
    last = args.start_line + len(shown) - 1
    return ToolOutput(
        result={
            "path": located.shown,
            "start_line": args.start_line,
            "end_line": last,
            "total_lines": len(lines),
            "truncated": len(shown) < len(wanted) or shown[-1] != wanted[len(shown) - 1],
            "text": "\n".join(shown),
        },
        claims=list(_claims(located.shown, args.start_line, shown)),
    )


def _bounded(lines: list[str]) -> list[str]:
    """As many lines as fit, and at least the beginning of one."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line) + 1
        if size > MAX_CHARS:
            return lines[:count] or [line[:MAX_CHARS]]
    return lines


def _claims(shown: str, first: int, lines: list[str]) -> Iterator[Claim]:
    """Pieces short enough that a source says where; blank ones say nothing."""
    piece: list[str] = []
    for number, line in enumerate(lines, first):
        size = sum(map(len, piece)) + len(piece) + len(line)
        if piece and (len(piece) == CLAIM_LINES or size > CLAIM_CHARS):
            yield from _claim(shown, number - len(piece), piece)
            piece = []
        piece.append(line)
    yield from _claim(shown, first + len(lines) - len(piece), piece)


def _claim(shown: str, first: int, piece: list[str]) -> Iterator[Claim]:
    text = "\n".join(piece)
    if text.strip():
        text = text if len(text) <= CLAIM_CHARS else text[: CLAIM_CHARS - 1] + "…"
        yield Claim(claim=text, confidence=1.0, source=f"{shown}:{first}")
