"""HTML: what a reader sees of a page, each piece on the line of the file where it stands; EPUB,
whose pages it reads in the order of the book's spine.

The standard library's parser is slower than others, and the one that knows its position. What has
no lines that anyone knows (the web, books, mail) is laid out first.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree

from unified_flow.lib.sandbox import Section, UnusableError
from unified_flow.retrieval.formats import words_of
from unified_flow.retrieval.formats.chunk import Trail
from unified_flow.retrieval.formats.encoding import decode
from unified_flow.retrieval.formats.office import whole_file

EXTENSIONS = frozenset({".html", ".htm", ".xhtml"})

_WORDS = words_of("html")
_INLINE, _VOID, _INVISIBLE = (_WORDS[each] for each in ("inline", "void", "invisible"))
_AROUND = frozenset({"navigation", "contentinfo"})  # roles of what is not the page itself
_HIDING = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_WHOLE = frozenset({"html", "body"})  # hidden until a script has run
_HEADING = re.compile(r"h[1-6]\Z")
_SPACE = re.compile(r"[ \t\f\v\xa0]+")
_BLANK = re.compile(r"\n{3,}")
_PERMALINK = re.compile(r"\s*[¶#🔗]\s*")
_TOKEN = re.compile(r"\n| +|<(/?\w+)[^<>]{0,2000}>")
_KEPT = "\0"  # a space of code, which no text that is decoded holds
_PAGE = ("main", "role", "article")  # what holds the page itself, if there is one alone
_ENOUGH = 200  # characters: less in it means that the page is elsewhere
_CONTAINER = "META-INF/container.xml"
_PROTECTED = "META-INF/rights.xml"


def _is_visible(name: str, attributes: Mapping[str, object]) -> bool:
    """Whether a reader sees an element of this `name` (in lower case); children of an invisible one
    are invisible too. What no reader sees is shown to no model: instructions hide there."""
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


def html_sections(data: bytes) -> Iterator[Section]:
    """Runs in the sandbox. Headings, lists, rows and code become Markdown."""
    for section in sections(_laid_out(decode(data).text)):
        text = "\n".join(section.lines).strip("\n")
        lead = (f"{'#' * len(section.trail)} {section.trail[-1]}", "") if section.trail else ()
        yield Section(section.trail, _BLANK.sub("\n\n", text).split("\n"), lead)


def _laid_out(text: str) -> str:
    """The text with each block in lines of its own, with its marks."""
    code = cell = False

    def shown(match: re.Match[str]) -> str:
        nonlocal code, cell
        tag = (match[1] or "").lower()
        if not tag:
            return match[0].replace(" ", _KEPT) if code else " "
        if tag.strip("/") in _INLINE and tag != "br":
            return match[0]
        code = tag == "pre" or (code and tag != "/pre")
        cell = tag in ("td", "th") or (cell and tag in ("p", "/p"))
        else_before = "" if cell else "\n" if tag[0] == "/" else "\n\n"
        before, after = _WORDS["layout"].get(tag, (else_before, ""))
        return f"{before}{match[0]}{after}"

    return _TOKEN.sub(shown, text)


def _closed(text: str) -> str:
    """Drop marks that nothing closes: for each the parser reads the rest of the file."""
    for opening, closing in (("<!--", "-->"), ("<![", "]]>"), ("<", ">")):
        end = text.rfind(closing) + 1
        text = text[:end] + text[end:].replace(opening, "&lt;" + opening[1:])
    return text


def _is_page(found: list[Section]) -> bool:
    return sum(len(line) for section in found for line in section.lines) >= _ENOUGH


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
    def depth(self) -> int:
        return len(self._names)

    @property
    def is_in_page(self) -> bool:
        """Of a part of the page itself a footer or an aside says something: notes stand there."""
        return any(self._count[name] for name in ("main", "article", "section"))

    def __contains__(self, name: str) -> bool:
        return self._count[name] > 0

    def begin(self, name: str, shown: bool) -> None:
        if name == "body" and "head" in self:
            self.end("head")
        ended_by = _WORDS["ended_by"]
        while self._blocks and (  # a paragraph is ended by anything that is not inline
            name in ended_by.get(self._blocks[-1], ())
            or (self._blocks[-1] == "p" and name not in _INLINE)
        ):
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


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._found: list[Section] = []
        self._open = _Open()
        self._trail = Trail()
        self._heading: list[str] | None = None
        self._title: list[str] | None = None
        self._pieces: list[tuple[int, str]] = []  # (line of the file, text)
        self._page = ""
        self._begun: list[tuple[str, int, int]] = []  # which of _PAGE, its depth, its place
        self._regions: dict[str, list[list[Section]]] = {name: [] for name in _PAGE}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and "svg" not in self._open:
            self._title = []
        elif tag not in _VOID:
            is_around = tag in ("head", "footer", "aside") and not self._open.is_in_page
            self._open.begin(tag, not is_around and _is_visible(tag, dict(attrs)))
        if not self._open.is_visible:
            return
        if tag in _PAGE or ("role", "main") in attrs:
            self._flush()
            kind = tag if tag in _PAGE else "role"
            self._begun.append((kind, self._open.depth, len(self._found)))
        elif _HEADING.match(tag):
            self._close_heading(None)
            self._flush()
            self._heading = []
        elif tag not in _INLINE:
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
        self._end_regions(self._open.depth)
        if _HEADING.match(tag):
            self._close_heading(tag)
        elif tag not in _INLINE:
            self._break()

    def handle_data(self, data: str) -> None:
        if self._title is not None:
            self._title.append(data)
        elif not self._open.is_visible or ("a" in self._open and _PERMALINK.fullmatch(data)):
            return
        elif self._heading is not None:
            self._heading.append(data)
        else:
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
        shown = [_SPACE.sub(" ", "".join(line)).strip().replace(_KEPT, " ") for line in lines]
        if any(shown) or self._trail.titles:
            self._found.append(Section(trail, shown, line=start))
        self._pieces = []

    def _end_regions(self, depth: int) -> None:
        while self._begun and self._begun[-1][1] > depth:
            kind, _, start = self._begun.pop()
            self._flush()
            self._regions[kind].append(self._found[start:])

    def finished(self) -> Iterator[Section]:
        """What stands around the page is left out, if one element holds it."""
        self._close_heading(None)
        self._flush()
        self._end_regions(0)
        alone = (found[0] for found in self._regions.values() if len(found) == 1)
        yield from next(filter(_is_page, alone), self._found)


def epub_sections(data: bytes) -> Iterator[Section]:
    with whole_file(data, "book") as file, zipfile.ZipFile(file) as archive:
        if _PROTECTED in archive.namelist():
            raise UnusableError("encrypted: its pages are protected")
        for name in _spine(archive):
            yield from html_sections(archive.read(name))


def _spine(archive: zipfile.ZipFile) -> list[str]:
    root = ElementTree.fromstring(archive.read(_CONTAINER)).find(".//{*}rootfile")
    package = root.get("full-path", "") if root is not None else ""
    tree = ElementTree.fromstring(archive.read(package))
    pages = {
        item.get("id"): item.get("href", "")
        for item in tree.iterfind(".//{*}manifest/{*}item")
        if "html" in item.get("media-type", "")
    }
    folder = posixpath.dirname(package)
    order = [item.get("idref") for item in tree.iterfind(".//{*}spine/{*}itemref")]
    return [
        posixpath.normpath(posixpath.join(folder, unquote(pages[each])))
        for each in order
        if each in pages
    ]
