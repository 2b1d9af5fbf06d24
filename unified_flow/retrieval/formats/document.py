"""A file to what the index keeps of it, by the file's extension.

Text is read here, by one module a format with `EXTENSIONS` and `sections(text)`. What is no text is
converted in the sandbox by a function that yields `Section`s, too, raises `UnusableError` with a
reason for a person, and imports its library late (the extra `documents`; EPUB needs none).
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import PurePath

from interventions.errors import how_to_install
from unified_flow.errors import InputError
from unified_flow.lib.sandbox import Section, UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.lib.text import language_of_document
from unified_flow.retrieval.formats import (
    asciidoc,
    html,
    manual_page,
    markdown,
    notebook,
    openapi,
    python_module,
    restructured_text,
    source_code,
    table,
    words_of,
)
from unified_flow.retrieval.formats.chunk import Chunk, chunks
from unified_flow.retrieval.formats.encoding import decode

MAX_BYTES = 16 * 1024 * 1024
OCR_MAX_BYTES = 32 * 1024 * 1024
OCR_TIMEOUT_S = 300.0  # for one document
# All that the command of OCR gets of the environment: no key or token of the flow.
_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "PATH", "TESSDATA_PREFIX", "TMPDIR")
NEEDS_EXTRA = " files need an extra: "

_SECTIONS: dict[str, Callable[[str], Iterator[Section]]] = {
    extension: module.sections
    for module in (
        asciidoc, html, manual_page, markdown, notebook, python_module, restructured_text,
        source_code, table,
    )
    for extension in module.EXTENSIONS
}  # fmt: skip
_PLAIN = frozenset({"", ".txt", ".text"})  # which may hold any light markup
_CONVERTERS: dict[str, tuple[str, str, str]] = words_of("document")["converters"]
_NOT_READ: dict[str, str] = words_of("document")["not_read"]


@dataclass(frozen=True)
class Remarks:
    """What a person reads of a file: why it has no chunks, an encoding that nothing declares, and
    what of it is not read."""

    skipped: str | None = None
    guessed: str | None = None
    unread: str | None = None


def extension_of(path: str, formats: Mapping[str, str] | None = None) -> str:
    """The extension by which the file is read: lower case, with its dot, of a compressed file that
    of what is in it. The first pattern of `formats` that fits counts."""
    path = path.removesuffix(".gz")
    fitting = (f".{to}" for each, to in (formats or {}).items() if PurePath(path).match(each))
    return next(fitting, PurePath(path).suffix.casefold())


def require_formats(formats: Mapping[str, str]) -> None:
    """Raises InputError for one that is not read here."""
    for extension in formats.values():
        own = f".{extension}"
        if not (own in _SECTIONS or own in _PLAIN or convertible(own)):
            raise InputError(
                f"{extension!r} is no format that is read here",
                field="documents.formats",
                hint="Name it by an extension, such as md, rst, adoc, man, py or openapi.",
            )


def refuse_unreadable(extension: str) -> None:
    """Raises UnusableError for a kind of file that cannot be read here, before any is read."""
    if kind := _NOT_READ.get(extension):
        raise UnusableError(f"{kind} files are not read")
    if convertible(extension) and (reason := missing_library(extension)):
        raise UnusableError(reason)


def can_be_read_now(path: str, skipped: str) -> bool:
    """Whether the library for want of which the file was `skipped` has been installed since."""
    return NEEDS_EXTRA in skipped and missing_library(extension_of(path)) is None


def convertible(extension: str) -> bool:
    return extension in _CONVERTERS


@cache
def missing_library(extension: str) -> str | None:
    """Why files of this kind are not read here, with what to type; None if they are."""
    _, name, library = _CONVERTERS[extension]
    if not library or find_spec(library) is not None:
        return None
    return f"{name}{NEEDS_EXTRA}{how_to_install('documents')}"


def converter_of(extension: str) -> str:
    """The function that converts it, as the sandbox takes one."""
    return f"{__package__}.{_CONVERTERS[extension][0]}"


def sections_of(extension: str, text: str) -> Iterator[Section]:
    """The sections of a text whose lines each end with a newline; without a format, one section."""
    if sections := _SECTIONS.get(extension):
        yield from sections(text)
    elif extension in _PLAIN and restructured_text.is_restructured(text):
        yield from restructured_text.sections(text)
    elif manual_page.is_manual_page(text):
        yield from manual_page.sections(text)
    else:
        yield Section((), text.split("\n"), line=1)


def parse(
    extension: str,
    data: bytes,
    converter: Converter,
    language: str,
    ocr: str | None = None,
) -> tuple[str, list[Chunk], Remarks]:
    """The document's language with its chunks; `language` is that of what is no running text, `ocr`
    the command that reads scanned pages. Raises UnusableError for what is no text and cannot be
    converted to it."""
    if openapi.is_openapi(extension, data) and missing_library(".openapi") is None:
        extension = ".openapi"
    if convertible(extension):
        sections, unread = converted(extension, data, converter, ocr)
        found = list(chunks(_placed(sections)))
        if not found and any(each.page for each in sections):
            raise UnusableError(unread or "no text in it")
        sample = "\n".join(line for each in sections[:50] for line in each.lines[:50])
        return language_of_document(sample, language), found, Remarks(unread=unread)
    decoded = decode(data)
    try:
        found = list(chunks(sections_of(extension, decoded.text)))
    except RecursionError:
        raise UnusableError("nested too deeply") from None
    remarks = Remarks(guessed=decoded.encoding if decoded.guessed else None)
    return language_of_document(decoded.text, language), found, remarks


def converted(
    extension: str, data: bytes, converter: Converter, ocr: str | None
) -> tuple[list[Section], str | None]:
    """The sections, and what of the document is not read. Raises UnusableError."""
    sections, trouble = converter.convert(converter_of(extension), data), ""
    if ocr is not None and any(each.is_picture for each in sections):
        try:
            pages, trouble = _ocr_pages(ocr, data, extension), " (OCR finds none)"
        except UnusableError as exc:
            pages, trouble = [], f" ({exc})"
        sections = [_with_text(each, pages) if each.is_picture else each for each in sections]
    unread = list(dict.fromkeys(each.unread for each in sections if each.unread))
    if pictures := sum(each.is_picture for each in sections):
        count = len({each.page for each in sections})
        unread.append(f"{pictures} of {count} pages hold no text: scanned?{trouble}")
    return sections, "; ".join(unread) or None


def _ocr_pages(command: str, data: bytes, extension: str) -> list[str]:
    """What the command prints, in UTF-8, divided at form feeds as OCR programs do between pages.
    `{file}` in it stands for a copy of the document; no shell reads it. Raises UnusableError."""
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    nothing = subprocess.DEVNULL
    with tempfile.TemporaryFile() as printed, tempfile.NamedTemporaryFile(suffix=extension) as copy:
        copy.write(data)
        copy.flush()
        try:
            words = [word.replace("{file}", copy.name) for word in shlex.split(command)]
            process = subprocess.Popen(
                words, stdin=nothing, stdout=printed, stderr=nothing, env=kept, process_group=0
            )
            try:
                status = process.wait(OCR_TIMEOUT_S)
            finally:
                with suppress(ProcessLookupError):  # what it started ends with it
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        except (OSError, ValueError) as exc:
            raise UnusableError(f"OCR cannot be started: {exc}") from exc
        except subprocess.TimeoutExpired as exc:
            raise UnusableError(f"OCR took more than {OCR_TIMEOUT_S:g} s") from exc
        if status:
            raise UnusableError(f"OCR ended with status {status}")
        printed.seek(0)
        return printed.read(OCR_MAX_BYTES).decode("utf-8", "replace").split("\f")


def _with_text(each: Section, pages: list[str]) -> Section:
    """A page, with the text that OCR has found on it."""
    text = "".join(pages[each.page - 1 : each.page]).strip() if each.page else ""
    return replace(each, lines=text.split("\n"), is_picture=not text)


def _placed(sections: list[Section]) -> Iterator[Section]:
    """The sections with their lines numbered as `lines_of` gives them."""
    line = 1
    for each in sections:
        line += len(each.lead)
        yield replace(each, line=each.line or line)
        line += len(each.lines) + 1


def lines_of(sections: list[Section]) -> list[str]:
    """The document as text: what `line` of a passage counts, and what `file.read` shows."""
    return [line for each in sections for line in (*each.lead, *each.lines, "")]


def page_lines(sections: list[Section]) -> dict[int, tuple[int, int]]:
    """Page to its (first line, last line) in `lines_of`, both from 1."""
    found: dict[int, tuple[int, int]] = {}
    for each in _placed(sections):
        if each.page is not None:
            first, _ = found.get(each.page, (each.line - len(each.lead), 0))
            found[each.page] = first, each.line + len(each.lines)
    return found
