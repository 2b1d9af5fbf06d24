"""Word: paragraphs and tables in their order, under the headings of the styles.

Read from the XML, because python-docx passes over insertions that are tracked, content controls,
text boxes, notes and comments. What is deleted or hidden is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats.chunk import Heading, outlined
from unified_flow.retrieval.formats.office import whole_file
from unified_flow.retrieval.formats.table import table_lines

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
# What stands around blocks, rows and cells without showing.
_WRAPPERS = {f"{_W}{each}" for each in ("sdt", "sdtContent", "ins", "moveTo", "customXml")}
# Alternate content holds the same drawing again, for old versions of Word.
_NOT_SHOWN = {f"{_W}del", f"{_W}moveFrom", f"{_W}pPr", _FALLBACK}
_SPACES = {f"{_W}tab": " ", f"{_W}br": " ", f"{_W}cr": " ", f"{_W}noBreakHyphen": "-"}
_NOTES = {f"{_W}{each}Reference": f"{each}s" for each in ("footnote", "endnote", "comment")}
_BOX = f"{_W}txbxContent"
_HEADING = re.compile(r"heading ([1-9])\Z|title\Z", re.IGNORECASE)

Notes = dict[tuple[str, str], str]  # the text of each by its kind and number


def word_sections(data: bytes) -> Iterator[Section]:
    """What headers and footers say comes once, at the end."""
    import docx

    with whole_file(data, "Word document") as file:
        document = docx.Document(file)
        blocks = list(_inside(document.element.body, "p", "tbl"))
        margins = [root for kind in ("header", "footer") for root in _related(document, kind)]
        notes = {
            (kind, note.get(f"{_W}id")): " ".join(_lines(note, {}))
            for kind in _NOTES.values()
            for root in _related(document, kind)
            for note in root
        }
    names = {style.style_id: style.name or "" for style in document.styles}
    lines: list[str] = []
    headings: list[Heading] = []
    for block in blocks:
        style = block.find(f"{_W}pPr/{_W}pStyle")
        name = names.get(style.get(f"{_W}val"), "") if style is not None else ""
        text, *below = _block_lines(block, notes)
        if (match := _HEADING.match(name)) and text:
            headings.append(Heading(text, int(match[1] or 0), len(lines), len(lines) + 1))
        elif text and name.startswith("List ") and name != "List Paragraph":
            text, below = f"- {text}", below[1:]
        lines += [text, *below]
    yield from outlined(lines, headings, of_file=False)
    yield Section((), list(dict.fromkeys(line for root in margins for line in _lines(root, notes))))


def _related(document: Any, kind: str) -> Iterator[Any]:
    """The root elements of the document's parts of this kind."""
    from docx.oxml import parse_xml

    for relation in document.part.rels.values():
        if not relation.is_external and relation.reltype.endswith(f"/{kind}"):
            yield parse_xml(relation.target_part.blob)


def _inside(element: Any, *names: str) -> Iterator[Any]:
    """The elements of these names right below, whatever is wrapped around them."""
    for child in element:
        if child.tag in _WRAPPERS:
            yield from _inside(child, *names)
        elif child.tag in {f"{_W}{name}" for name in names}:
            yield child


def _shown(element: Any) -> Iterator[Any]:
    """All elements within that show; of a text box the box alone."""
    for child in element:
        if child.tag not in _NOT_SHOWN and child.find(f"{_W}rPr/{_W}vanish") is None:
            yield child
            if child.tag != _BOX:
                yield from _shown(child)


def _lines(container: Any, notes: Notes) -> list[str]:
    """The lines of all blocks in it that are not blank."""
    found = (_block_lines(block, notes) for block in _inside(container, "p", "tbl"))
    return [line for lines in found for line in lines if line]


def _block_lines(block: Any, notes: Notes) -> Iterator[str]:
    """A table between blank lines; or a paragraph in one line, a blank one, and what is anchored in
    the paragraph: text boxes and notes."""
    if block.tag == f"{_W}tbl":
        rows = (row for row in _inside(block, "tr") if row.find(f"{_W}trPr/{_W}del") is None)
        cells = ([" ".join(_lines(cell, notes)) for cell in _inside(row, "tc")] for row in rows)
        yield from ("", *table_lines(cells), "")
        return
    text, anchored = "", []
    for each in _shown(block):
        text += (each.text or "") if each.tag == f"{_W}t" else _SPACES.get(each.tag, "")
        if kind := _NOTES.get(each.tag):
            number = each.get(f"{_W}id")
            mark = f"[comment {number}]" if kind == "comments" else f"[{number}]"
            text += mark
            anchored += [f"{mark} {notes.get((kind, number), '')}", ""]
        elif each.tag == _BOX:
            anchored += [*_lines(each, notes), ""]
    yield from (" ".join(text.split()), "", *anchored)
