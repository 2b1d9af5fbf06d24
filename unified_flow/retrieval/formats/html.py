"""HTML: what a reader sees of it, each piece on the line of the file where it stands.

The standard library's parser is slower than others, and the one that knows its position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from unified_flow.retrieval.chunk import Section

EXTENSIONS = frozenset({".html", ".htm", ".xhtml"})

_UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "nav", "head", "iframe"})
_INLINE = frozenset(
    """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q rp rt
    ruby s samp small span strike strong sub sup time tt u var wbr
    """.split()  # noqa: SIM905
)
_VOID = frozenset(
    """
    area base br col embed hr img input link meta param source track wbr
    """.split()  # noqa: SIM905
)
_HEADING = re.compile(r"h[1-6]\Z")
_SPACE = re.compile(r"[ \t\f\v\xa0]+")


def sections(text: str) -> Iterator[Section]:
    reader = _Reader()
    reader.feed(_closed(text))
    reader.close()
    yield from reader.finished()


def _closed(text: str) -> str:
    """Without marks that nothing closes: for each one the parser reads the rest of the file."""
    for opening, closing in (("<!--", "-->"), ("<![", "]]>"), ("<", ">")):
        end = text.rfind(closing) + 1
        text = text[:end] + text[end:].replace(opening, "&lt;" + opening[1:])
    return text


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._found: list[Section] = []
        self._unseen: list[str] = []
        self._trail: list[tuple[int, str]] = []
        self._heading: list[str] | None = None
        self._title: list[str] | None = None
        self._page = ""
        self._pieces: list[tuple[int, str]] = []  # (line of the file, text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and "svg" not in self._unseen:
            self._title = []
        elif tag == "body":
            self._unseen.clear()  # a head that was never closed
        elif tag in _UNSEEN and tag not in _VOID:
            self._unseen.append(tag)
        if self._unseen:
            return
        if _HEADING.match(tag):
            self._close_heading(None)
            self._flush()
            self._heading = []
        elif tag not in _INLINE:
            self._break()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _INLINE and not self._unseen:
            self._break()

    def handle_endtag(self, tag: str) -> None:
        if tag == "title" and self._title is not None:
            self._page = self._page or " ".join("".join(self._title).split())
            self._title = None
        elif tag in self._unseen:
            while self._unseen.pop() != tag:
                pass
        elif self._unseen:
            return
        elif _HEADING.match(tag):
            self._close_heading(tag)
        elif tag not in _INLINE:
            self._break()

    def handle_data(self, data: str) -> None:
        if self._title is not None:
            self._title.append(data)
        elif self._unseen:
            return
        elif self._heading is not None:
            self._heading.append(data)
        else:
            self._add(data)

    def _add(self, data: str) -> None:
        self._pieces += enumerate(data.split("\n"), self.getpos()[0])

    def _break(self) -> None:
        if self._heading is not None:
            self._heading.append(" ")
        elif self._pieces:
            self._pieces.append((self._pieces[-1][0], " "))

    def _close_heading(self, tag: str | None) -> None:
        if self._heading is None:
            return
        title = " ".join("".join(self._heading).replace("¶", " ").split())
        self._heading = None
        level = int(tag[1]) if tag else 6
        while self._trail and self._trail[-1][0] >= level:
            self._trail.pop()
        if title:
            self._trail.append((level, title))

    def _flush(self) -> None:
        """Ends the section: what was read so far lies under the trail so far."""
        if not self._pieces:
            return
        trail = tuple(title for _, title in self._trail) or ((self._page,) if self._page else ())
        start, end = self._pieces[0][0], self._pieces[-1][0]
        lines: list[list[str]] = [[] for _ in range(end - start + 1)]
        for line, piece in self._pieces:
            lines[line - start].append(piece)
        seen = [_SPACE.sub(" ", "".join(line)).strip() for line in lines]
        self._found.append(Section(trail, start, seen))
        self._pieces = []

    def finished(self) -> Iterator[Section]:
        self._close_heading(None)
        self._flush()
        yield from self._found
