"""Files that are no text: one module a format, run in a process of its own by `process.py`.

Each module has `convert(data)`, which yields `Part`s and raises `UnusableError` with a reason for
a person, and `NEEDS`, the library that it imports late (the extra `documents`); EPUB needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

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


@dataclass(frozen=True)
class Part:
    """A stretch of the document under one trail of headings; `lead` is its own heading as text.

    `page` is the page or slide, from 1, where the format has them.
    """

    trail: tuple[str, ...]
    lines: list[str]
    lead: tuple[str, ...] = ()
    page: int | None = None


class UnusableError(Exception):
    """The message is the reason, for a person."""


class ConversionLimitError(UnusableError):
    """More than a document holds: pages, text, or what an archive unpacks to."""


def convertible(extension: str) -> bool:
    return extension in FORMATS


@cache
def missing(extension: str) -> str | None:
    """Why files of this kind are not read here, with what to type; None if they are."""
    _, name, library = FORMATS[extension]
    if not library or find_spec(library) is not None:
        return None
    return f"{name} files need an extra: {INSTALL}"


def parts(extension: str, data: bytes) -> Iterator[Part]:
    """In the converting process only: imports the library."""
    from importlib import import_module

    module = import_module(f"{__name__}.{FORMATS[extension][0]}")
    found: Iterator[Part] = module.convert(data)
    return found
