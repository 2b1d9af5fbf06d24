"""Word: paragraphs and tables in their order, under the headings of the styles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from unified_flow.lib.sandbox import Part, UnusableError
from unified_flow.retrieval.chunk import Trail
from unified_flow.retrieval.converters.archive import opened
from unified_flow.retrieval.converters.tables import table_lines

_HEADING = re.compile(r"heading ([1-9])\Z", re.IGNORECASE)


def convert(data: bytes) -> Iterator[Part]:
    opened(data).close()
    import io

    import docx
    from docx.table import Table

    try:
        document = docx.Document(io.BytesIO(data))
        blocks = list(document.iter_inner_content())
    except (ValueError, KeyError, AttributeError, SyntaxError) as exc:  # XML errors are the last
        raise UnusableError("broken: no Word document can be read in it") from exc
    levels = {style.style_id: _level(style.name) for style in document.styles}
    trail = Trail()
    lead: tuple[str, ...] = ()
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Table):
            lines += ["", *table_lines(_rows(block)), ""]
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


def _rows(table: Any) -> Iterator[list[str]]:
    """Each cell once; what is nested in one becomes part of its text."""
    from docx.table import _Cell

    for row in table._tbl.tr_lst:
        yield [_Cell(cell, table).text for cell in row.tc_lst]
