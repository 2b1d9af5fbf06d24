"""PowerPoint: a part for each slide under its title, with its notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unified_flow.lib.sandbox import ConversionLimitError, Part, UnusableError
from unified_flow.retrieval.converters.archive import opened
from unified_flow.retrieval.converters.tables import table_lines

MAX_SLIDES = 5_000
_DEEPEST = 20


def convert(data: bytes) -> Iterator[Part]:
    opened(data).close()
    import io

    import pptx

    try:
        slides = list(pptx.Presentation(io.BytesIO(data)).slides)
    except (ValueError, KeyError, AttributeError, SyntaxError) as exc:  # XML errors are the last
        raise UnusableError("broken: no presentation can be read in it") from exc
    if len(slides) > MAX_SLIDES:
        raise ConversionLimitError(f"{len(slides):,} slides, {MAX_SLIDES:,} at most")
    for number, slide in enumerate(slides, 1):
        title = slide.shapes.title
        heading = " ".join(title.text_frame.text.split()) if title is not None else ""
        shown = (
            shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id
        )
        lines = [line for shape in shown for line in _lines(shape, 0)]
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            lines += ["", *_paragraphs(notes.text)]
        named = (heading,) if heading else ()
        if heading and not any(lines):
            lines = [heading]  # a slide that is nothing but its title says that much
            yield Part((), lines, (), number)
        else:
            yield Part(named, lines, named, number)


def _lines(shape: Any, depth: int) -> Iterator[str]:
    if hasattr(shape, "shapes"):
        if depth < _DEEPEST:
            for inner in shape.shapes:
                yield from _lines(inner, depth + 1)
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
