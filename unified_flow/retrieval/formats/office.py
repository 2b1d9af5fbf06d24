"""Office documents, zip archives all of them: Word, PowerPoint and Excel.

Run in the sandbox. Nothing is read of text boxes, footnotes, headers and pictures.
"""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from unified_flow.lib.sandbox import ConversionLimitError, Part, UnusableError
from unified_flow.retrieval.formats.chunk import Trail

MAX_UNPACKED = 256 * 1024 * 1024
MAX_ENTRIES = 20_000
MAX_SLIDES = 5_000
MAX_COLUMNS = 500
MAX_EMPTY = 20  # rows in a row
MAX_CELL = 2_000  # characters
_DEEPEST = 20  # groups of shapes
_HEADING = re.compile(r"heading ([1-9])\Z", re.IGNORECASE)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # what Office wraps a password around


def opened(data: bytes) -> zipfile.ZipFile:
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
        raise ConversionLimitError(
            f"unpacks to {size / 1024 / 1024:,.0f} MiB in {len(entries):,} files, "
            f"{MAX_UNPACKED // 1024 // 1024} MiB in {MAX_ENTRIES:,} at most"
        )
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnusableError("encrypted")
    return archive


@contextmanager
def _whole(data: bytes, kind: str) -> Iterator[io.BytesIO]:
    """The file, once it is `opened`. Whatever its library stumbles over means that it is broken."""
    opened(data).close()
    try:
        yield io.BytesIO(data)
    except (
        zipfile.BadZipFile,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        SyntaxError,
    ) as exc:
        raise UnusableError(f"broken: no {kind} can be read in it") from exc


def word_parts(data: bytes) -> Iterator[Part]:
    """Paragraphs and tables in their order, under the headings of the styles."""
    import docx
    from docx.table import Table

    with _whole(data, "Word document") as file:
        document = docx.Document(file)
        blocks = list(document.iter_inner_content())
    levels = {style.style_id: _level(style.name) for style in document.styles}
    trail = Trail()
    lead: tuple[str, ...] = ()
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Table):
            lines += ["", *table_lines(_word_rows(block)), ""]
            continue
        text = " ".join(block.text.split())
        style = _style(block)
        level = levels.get(style)
        if level is not None and text:
            yield Part(trail.titles, lines, lead)
            trail.enter(level, text)
            lead, lines = (text,), []
        elif text:
            listed = style is not None and style.startswith("List") and style != "ListParagraph"
            lines += [f"- {text}"] if listed else [text, ""]
        elif lines and lines[-1]:
            lines.append("")
    yield Part(trail.titles, lines, lead)


def _level(name: str | None) -> int | None:
    """Title 0, Heading 1 to 9; None for what is no heading."""
    if name is None:
        return None
    if name.casefold() == "title":
        return 0
    match = _HEADING.match(name)
    return int(match[1]) if match else None


def _style(paragraph: Any) -> str | None:
    properties = paragraph._p.pPr
    return properties.style if properties is not None else None


def _word_rows(table: Any) -> Iterator[list[str]]:
    """Each cell once; what is nested in one becomes part of its text."""
    from docx.table import _Cell

    for row in table._tbl.tr_lst:
        yield [_Cell(cell, table).text for cell in row.tc_lst]


def powerpoint_parts(data: bytes) -> Iterator[Part]:
    """A part for each slide under its title, with its notes."""
    import pptx

    with _whole(data, "presentation") as file:
        slides = list(pptx.Presentation(file).slides)
    if len(slides) > MAX_SLIDES:
        raise ConversionLimitError(f"{len(slides):,} slides, {MAX_SLIDES:,} at most")
    for number, slide in enumerate(slides, 1):
        title = slide.shapes.title
        heading = " ".join(title.text_frame.text.split()) if title is not None else ""
        shown = (
            shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id
        )
        lines = [line for shape in shown for line in _shape_lines(shape, 0)]
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            lines += ["", *_paragraphs(notes.text)]
        named = (heading,) if heading else ()
        if heading and not any(lines):
            lines = [heading]  # a slide that is nothing but its title says that much
            yield Part((), lines, (), number)
        else:
            yield Part(named, lines, named, number)


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


def excel_parts(data: bytes) -> Iterator[Part]:
    """A part for each sheet under its name, a line for each row, values as last computed."""
    import openpyxl

    with _whole(data, "workbook") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # a size that the file only claims would be filled with None
            lines = list(table_lines(_sheet_rows(sheet)))
            yield Part((sheet.title,), lines, (sheet.title,))


def _sheet_rows(sheet: Any) -> Iterator[list[str]]:
    """Without the many empty ones before a cell that lies far out."""
    empty = 0
    before = None
    for row in sheet.iter_rows(values_only=True, max_col=MAX_COLUMNS):
        # For rows that the file lacks openpyxl gives one and the same.
        if (row is before and empty) or row.count(None) == len(row):
            before = row
            empty += 1
            if empty <= MAX_EMPTY:
                yield []
        else:
            empty = 0
            yield [_shown(value) for value in row]


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
        case datetime.datetime():
            return value.isoformat(" ")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return str(value)


def table_lines(rows: Iterable[list[str]]) -> Iterator[str]:
    """A line a row, empty for an empty row.

    Where the first row reads like names of columns, each cell below carries its name, because a
    search returns rows without the top of their table.
    """
    names: list[str] | None = None
    for row in rows:
        cells = [" ".join(cell.split())[:MAX_CELL] for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            yield ""
        elif names is None:
            names = cells if _are_names(cells) else []
            yield " | ".join(cells)
        else:
            yield " | ".join(_named(names, place, cell) for place, cell in enumerate(cells) if cell)


def _are_names(cells: list[str]) -> bool:
    texts = [cell for cell in cells if cell]
    return (
        len(texts) > 1
        and len(set(texts)) == len(texts)
        and all(len(text) <= 60 and not text[0].isdigit() for text in texts)
    )


def _named(names: list[str], place: int, cell: str) -> str:
    return f"{names[place]}: {cell}" if place < len(names) and names[place] else cell
