"""A place inside a document as a source names it: `notes.md:12`, `report.pdf:p3`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from unified_flow.errors import FileUnusableError
from unified_flow.lib.sandbox import SandboxLimits, UnusableError
from unified_flow.lib.sandbox.parent import Converter
from unified_flow.retrieval.formats.document import (
    INSTALL,
    converter_of,
    convertible,
    extension_of,
    lines_of,
    missing_library,
    page_lines,
)
from unified_flow.tools.builtin.roots import Located, Roots

_PLACE = re.compile(r"(.+):(p?)([1-9]\d{0,8})\Z", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """At most one of `page` and `line` is given, both from 1."""

    located: Located
    page: int | None = None
    line: int | None = None


@dataclass(frozen=True)
class Converted:
    """`pages` has the (first, last) line of each page or slide, if there are any."""

    lines: list[str]
    pages: dict[int, tuple[int, int]]

    def page_of(self, line: int) -> int | None:
        return next((p for p, (first, last) in self.pages.items() if first <= line <= last), None)


def locate(roots: Roots, path: str) -> Place:
    """The path as it is, or else without the place at its end. Raises as Roots.locate."""
    try:
        return Place(roots.locate(path))
    except FileUnusableError:
        match = _PLACE.match(path)
        if match is None:
            raise
        located = roots.locate(match[1])
        number = int(match[3])
        return Place(located, page=number) if match[2] else Place(located, line=number)


def is_converted(located: Located) -> bool:
    """Whether its text is made by a converter."""
    return convertible(extension_of(located.real.name))


def converted(roots: Roots, located: Located) -> Converted:
    """The text that the index has of it too. Raises FileUnusableError, and as Roots.read."""
    extension = extension_of(located.real.name)
    if reason := missing_library(extension):
        raise FileUnusableError(f"{located.shown} cannot be read: {reason}", hint=INSTALL)
    bounds = SandboxLimits()
    data = roots.read(located, bounds.file_bytes)
    if len(data) > bounds.file_bytes:
        raise FileUnusableError(
            f"{located.shown} is larger than {bounds.file_bytes // 1024 // 1024} MiB",
            hint="Name a smaller file.",
        )
    try:
        with Converter(bounds) as converter:
            parts = converter.convert(converter_of(extension), data)
    except UnusableError as exc:
        raise FileUnusableError(
            f"{located.shown} cannot be read: {exc}", hint="Mend the file, or name another."
        ) from exc
    return Converted(lines_of(parts), page_lines(parts))
