"""Files that are no text: one module a format, run in the sandbox.

Each module has `convert(data)`, which yields `Part`s and raises `UnusableError` with a reason for
a person, and imports its library late (the extra `documents`); EPUB needs none.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from unified_flow.lib.sandbox import Part

INSTALL = "pip install 'unified-flow[documents]'"

# Extension to (module, what people call the format, the library it needs).
FORMATS: dict[str, tuple[str, str, str]] = {
    ".pdf": ("pdf", "PDF", "pypdfium2"),
    ".docx": ("word", "Word", "docx"),
    ".docm": ("word", "Word", "docx"),
    ".pptx": ("powerpoint", "PowerPoint", "pptx"),
    ".pptm": ("powerpoint", "PowerPoint", "pptx"),
    ".xlsx": ("excel", "Excel", "openpyxl"),
    ".xlsm": ("excel", "Excel", "openpyxl"),
    ".epub": ("epub", "EPUB", ""),
}


def convertible(extension: str) -> bool:
    return extension in FORMATS


@cache
def missing(extension: str) -> str | None:
    """Why files of this kind are not read here, with what to type; None if they are."""
    _, name, library = FORMATS[extension]
    if not library or find_spec(library) is not None:
        return None
    return f"{name} files need an extra: {INSTALL}"


def module_of(extension: str) -> str:
    """What converts it, in the sandbox."""
    return f"{__name__}.{FORMATS[extension][0]}"


def lines_of(parts: list[Part]) -> list[str]:
    """The document as text: what `line` of a passage counts, and what `file.read` shows."""
    found: list[str] = []
    for part in parts:
        found += [*part.lead, *part.lines, ""]
    return found


def page_lines(parts: list[Part]) -> dict[int, tuple[int, int]]:
    """Page to its (first line, last line) in `lines_of`, both from 1."""
    found: dict[int, tuple[int, int]] = {}
    line = 0
    for part in parts:
        first, line = line + 1, line + len(part.lead) + len(part.lines) + 1
        if part.page is not None:
            found[part.page] = (found.get(part.page, (first, 0))[0], line)
    return found
