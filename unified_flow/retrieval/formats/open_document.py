"""OpenDocument: paragraphs, lists and tables in their order, under headings and sheets; RTF."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from unified_flow.lib.sandbox import Section, UnusableError
from unified_flow.retrieval.formats.chunk import Heading, outlined
from unified_flow.retrieval.formats.office import MAX_COLUMNS, whole_file
from unified_flow.retrieval.formats.table import table_lines

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_HEADING, _PARAGRAPH, _ITEM = f"{_TEXT}h", f"{_TEXT}p", f"{_TEXT}list-item"
# Deleted text, and what is made of the headings.
_NOT_SHOWN = {f"{_TEXT}tracked-changes", f"{_TEXT}table-of-content"}
_ASIDES = {f"{_TEXT}note-body", f"{_OFFICE}annotation"}
_SPACES = {f"{_TEXT}s": " ", f"{_TEXT}tab": " ", f"{_TEXT}line-break": " "}
_HIDDEN = re.compile(rb"\\v(?![-\w])[^{}]*?(?=\\v0(?!\d)|\\plain\b|\})")
# striprtf leaves them out; each is shown where it stands, in a line of its own.
_BESIDES = re.compile(rb"\\(?:footnote|(?:header|footer)[lrf]?|shptxt)\b")


def rich_text_sections(data: bytes) -> Iterator[Section]:
    from striprtf.striprtf import rtf_to_text

    if not data.startswith(b"{\\rtf"):
        raise UnusableError("broken: no RTF can be read in it")
    source = _BESIDES.sub(rb"\\line ", _HIDDEN.sub(b"", data)).decode("latin-1")
    text: str = rtf_to_text(source, errors="replace")  # type: ignore[no-untyped-call]
    yield Section((), [" ".join(line.split()) for line in text.replace("|\n", "\n").split("\n")])


def open_document_sections(data: bytes) -> Iterator[Section]:
    """What headers and footers say comes once, at the end."""
    with whole_file(data, "text (or it is encrypted)") as file, zipfile.ZipFile(file) as archive:
        content = ElementTree.fromstring(archive.read("content.xml"))
        styles = ElementTree.fromstring(archive.read("styles.xml"))
    lines: list[str] = []
    headings: list[Heading] = []
    sheets = content.iterfind(f"{_OFFICE}body/{_OFFICE}spreadsheet/{_TABLE}table")
    names = {sheet: sheet.get(f"{_TABLE}name", "") for sheet in sheets}
    for block in _blocks(content.find(f"{_OFFICE}body")):
        title = _words(block) if block.tag == _HEADING else names.get(block, "")
        if title:
            level = int(block.get(f"{_TEXT}outline-level", "1"))
            headings.append(Heading(title, level, len(lines), len(lines) + 1))
            lines.append(title)
        if block.tag != _HEADING:
            lines += [*_lines(block), ""]
    yield from outlined(lines, headings, of_file=False)
    margins = _blocks(styles.find(f"{_OFFICE}master-styles"))
    yield Section((), list(dict.fromkeys(line for block in margins for line in _lines(block))))


def _blocks(element: Element | None) -> Iterator[Element]:
    """Headings, paragraphs, items and tables, whatever encloses them."""
    for child in element if element is not None else ():
        if child.tag in (_HEADING, _PARAGRAPH, _ITEM, f"{_TABLE}table"):
            yield child
        elif child.tag not in _NOT_SHOWN:
            yield from _blocks(child)


def _lines(block: Element) -> Iterator[str]:
    if block.tag == f"{_TABLE}table":
        rows = block.iter(f"{_TABLE}table-row")
        yield from table_lines([text for cell in row for text in _cells(cell)] for row in rows)
    elif block.tag == _ITEM:
        first, *more = [line for each in _blocks(block) for line in _lines(each)] or [""]
        yield from (f"- {first}", *(f"  {line}" for line in more))
    else:
        yield _words(block)


def _cells(cell: Element) -> list[str]:
    """A cell that stands for several like it says so once."""
    repeated = int(cell.get(f"{_TABLE}number-columns-repeated", "1"))
    return [" ".join(map(_words, _blocks(cell)))] * min(repeated, MAX_COLUMNS)


def _words(element: Element) -> str:
    return " ".join(_text(element).split())


def _text(element: Element) -> str:
    """The element's text, with that of notes, comments and boxes anchored in it."""
    found = _SPACES.get(element.tag, element.text or "")
    for child in element:
        if child.tag in _ASIDES:
            found += f" ({' '.join(map(_words, _blocks(child)))}) "
        elif child.tag not in _NOT_SHOWN:
            found += _text(child)
        found += child.tail or ""
    return found
