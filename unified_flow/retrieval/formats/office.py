"""Office documents, zip archives all of them: how they are opened, PowerPoint and Excel.

Run in the sandbox. Nothing is read of pictures.
"""

from __future__ import annotations

import datetime
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unified_flow.lib.sandbox import Section, UnusableError
from unified_flow.retrieval.formats.table import table_lines

_STUMBLES = (ValueError, LookupError, TypeError, AttributeError, SyntaxError)
MAX_UNPACKED = 256 * 1024 * 1024
MAX_ENTRIES = 20_000
MAX_SLIDES = 5_000
MAX_COLUMNS = 500
MAX_EMPTY = 20  # rows in a row
_DEEPEST = 20  # groups of shapes
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # what Office wraps a password around


def _require_archive(data: bytes) -> None:
    """Raises UnusableError. `zipfile` never reads more of an entry than its size says."""
    if data.startswith(_OLE):
        raise UnusableError("encrypted, or of an older format")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as exc:
        raise UnusableError("broken: not a complete zip archive") from exc
    entries = archive.infolist()
    size = sum(entry.file_size for entry in entries)
    if size > MAX_UNPACKED or len(entries) > MAX_ENTRIES:
        raise UnusableError(
            f"unpacks to {size / 1024 / 1024:,.0f} MiB in {len(entries):,} files, "
            f"{MAX_UNPACKED // 1024 // 1024} MiB in {MAX_ENTRIES:,} at most"
        )
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnusableError("encrypted")


@contextmanager
def whole_file(data: bytes, kind: str) -> Iterator[io.BytesIO]:
    """Whatever the file's library stumbles over means that it is broken. Raises UnusableError."""
    _require_archive(data)
    try:
        yield io.BytesIO(data)
    except (zipfile.BadZipFile, zlib.error, *_STUMBLES) as exc:
        raise UnusableError(f"broken: no {kind} can be read in it") from exc


def powerpoint_sections(data: bytes) -> Iterator[Section]:
    """A part for each slide under its title, with its notes."""
    import pptx
    from pptx.shapes.picture import Picture

    with whole_file(data, "presentation") as file:
        slides = list(pptx.Presentation(file).slides)
    if len(slides) > MAX_SLIDES:
        raise UnusableError(f"{len(slides):,} slides, {MAX_SLIDES:,} at most")
    for number, slide in enumerate(slides, 1):
        title = slide.shapes.title
        heading = " ".join(title.text_frame.text.split()) if title is not None else ""
        shown = (
            shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id
        )
        lines = [line for shape in shown for line in _shape_lines(shape, 0)]
        pictures = any(isinstance(shape, Picture) for shape in slide.shapes)
        is_picture = pictures and not (heading or any(lines))
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            lines += ["", *_paragraphs(notes.text)]
        named = (heading,) if heading else ()
        if heading and not any(lines):  # a slide that is nothing but its title says that much
            lines, named = [heading], ()
        yield Section(named, lines, named, number, is_picture)


def _shape_lines(shape: Any, depth: int) -> Iterator[str]:
    if hasattr(shape, "shapes"):
        if depth < _DEEPEST:
            for inner in shape.shapes:
                yield from _shape_lines(inner, depth + 1)
    elif shape.has_text_frame:
        yield from _paragraphs(shape.text_frame.text)
        yield ""
    elif getattr(shape, "has_table", False):
        yield from table_lines([cell.text for cell in row.cells] for row in shape.table.rows)
        yield ""


def _paragraphs(text: str) -> Iterator[str]:
    for line in text.replace("\v", "\n").split("\n"):
        if line.strip():
            yield " ".join(line.split())


def excel_sections(data: bytes) -> Iterator[Section]:
    """A part for each sheet under its name, a line for each row, values as last computed."""
    import openpyxl

    with whole_file(data, "workbook") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # a size that the file only claims would be filled with None
            beyond: list[object] = []
            lines = list(table_lines(_sheet_rows(sheet, beyond)))
            unread = f"{len(beyond)} cells of {sheet.title} beyond column {MAX_COLUMNS}"
            yield Section((sheet.title,), lines, (sheet.title,), unread=unread if beyond else "")
        if any("omments" in name for name in zipfile.ZipFile(file).namelist()):
            yield Section((), [], unread="comments on cells")


def _sheet_rows(sheet: Any, beyond: list[object]) -> Iterator[list[str]]:
    """The rows, without the many empty ones before a cell that lies far out; cells that lie too far
    to the right go to `beyond`."""
    empty = 0
    before = None
    for row in sheet.iter_rows(values_only=True):
        # For rows that the file lacks openpyxl gives one and the same.
        if (row is before and empty) or row.count(None) == len(row):
            before = row
            empty += 1
            if empty <= MAX_EMPTY:
                yield []
        else:
            empty = 0
            beyond += [value for value in row[MAX_COLUMNS:] if value is not None]
            yield [_shown(value) for value in row[:MAX_COLUMNS]]


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:.10g}"
        case datetime.datetime() if value.time() == datetime.time():
            return value.date().isoformat()
        case _:
            return str(value)
