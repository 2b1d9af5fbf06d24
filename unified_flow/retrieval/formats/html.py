"""HTML: what a reader sees of it, each piece on the line of the file where it stands.

The standard library's parser is slower than others, and the one that knows its position.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser

from unified_flow.retrieval.formats.chunk import Section, Trail

EXTENSIONS = frozenset({".html", ".htm", ".xhtml"})

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
_INVISIBLE = frozenset(
    """
    audio button canvas dialog embed iframe input nav noscript object script select style svg
    template textarea video
    """.split()  # noqa: SIM905
)
_AROUND = frozenset({"navigation", "contentinfo"})  # roles of what is not the page itself
_HIDING = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_WHOLE = frozenset({"html", "body"})  # hidden until a script has run
_CELLS = frozenset({"td", "th", "tr", "tbody", "tfoot"})
# What need not be closed before these; a paragraph before anything that is not inline.
_ENDED_BY = {
    "li": frozenset({"li"}),
    "dt": frozenset({"dt", "dd"}),
    "dd": frozenset({"dt", "dd"}),
    "td": _CELLS,
    "th": _CELLS,
    "tr": _CELLS - {"td", "th"},
}
_HEADING = re.compile(r"h[1-6]\Z")
_SPACE = re.compile(r"[ \t\f\v\xa0]+")


def is_visible(name: str, attributes: Mapping[str, object]) -> bool:
    """Whether a reader sees an element of this `name` (in lower case); children of an invisible one
    are invisible too. What no reader sees is shown to no model: instructions hide there. The same
    holds for files, books and pages of the web.
    """
    if name in _INVISIBLE:
        return False
    if name in _WHOLE:
        return True
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return False
    if attributes.get("role") in _AROUND:
        return False
    return not _HIDING.search(str(attributes.get("style") or ""))


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


class _Open:
    """The elements that are open, as a browser takes them: an end that was never begun is passed
    over, since it would otherwise show what is invisible."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._blocks: list[str] = []  # those of them that are not inline
        self._count: Counter[str] = Counter()
        self._hidden_from: int | None = None  # the place of the first invisible one

    @property
    def is_visible(self) -> bool:
        return self._hidden_from is None

    @property
    def is_in_page(self) -> bool:
        """Of a part of the page itself a footer or an aside says something: notes stand there."""
        return any(self._count[name] for name in ("main", "article", "section"))

    def __contains__(self, name: str) -> bool:
        return self._count[name] > 0

    def begin(self, name: str, shown: bool) -> None:
        if name == "body" and "head" in self:
            self.end("head")
        while self._blocks and _is_ended_by(self._blocks[-1], name):
            self.end(self._blocks[-1])
        if not shown and self._hidden_from is None:
            self._hidden_from = len(self._names)
        if name not in _INLINE:
            self._blocks.append(name)
        self._names.append(name)
        self._count[name] += 1

    def end(self, name: str) -> None:
        if name not in self:
            return
        last = None
        while last != name:
            last = self._names.pop()
            self._count[last] -= 1
            if last not in _INLINE:
                self._blocks.pop()
        if self._hidden_from is not None and len(self._names) <= self._hidden_from:
            self._hidden_from = None


def _is_ended_by(name: str, following: str) -> bool:
    if name == "p":
        return following not in _INLINE
    return following in _ENDED_BY.get(name, ())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._found: list[Section] = []
        self._open = _Open()
        self._trail = Trail()
        self._heading: list[str] | None = None
        self._title: list[str] | None = None
        self._page = ""
        self._pieces: list[tuple[int, str]] = []  # (line of the file, text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and "svg" not in self._open:
            self._title = []
        elif tag not in _VOID:
            is_around = tag in ("head", "footer", "aside") and not self._open.is_in_page
            self._open.begin(tag, not is_around and is_visible(tag, dict(attrs)))
        if not self._open.is_visible:
            return
        if _HEADING.match(tag):
            self._close_heading(None)
            self._flush()
            self._heading = []
        elif tag not in _INLINE:
            self._break()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _INLINE and self._open.is_visible:
            self._break()

    def handle_endtag(self, tag: str) -> None:
        if tag == "title" and self._title is not None:
            self._page = self._page or " ".join("".join(self._title).split())
            self._title = None
            return
        was_visible = self._open.is_visible
        self._open.end(tag)
        if not was_visible:
            return
        if _HEADING.match(tag):
            self._close_heading(tag)
        elif tag not in _INLINE:
            self._break()

    def handle_data(self, data: str) -> None:
        if self._title is not None:
            self._title.append(data)
        elif not self._open.is_visible:
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
        self._trail.enter(level, title)

    def _flush(self) -> None:
        """Ends the section: what was read so far lies under the trail so far."""
        if not self._pieces:
            return
        trail = self._trail.titles or ((self._page,) if self._page else ())
        start, end = self._pieces[0][0], self._pieces[-1][0]
        lines: list[list[str]] = [[] for _ in range(end - start + 1)]
        for line, piece in self._pieces:
            lines[line - start].append(piece)
        shown = [_SPACE.sub(" ", "".join(line)).strip() for line in lines]
        self._found.append(Section(trail, start, shown))
        self._pieces = []

    def finished(self) -> Iterator[Section]:
        self._close_heading(None)
        self._flush()
        yield from self._found
