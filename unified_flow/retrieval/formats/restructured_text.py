"""reStructuredText: titles by their underlines and overlines, the text as a reader sees it.

Every line stays where it is, so that a place in the text is a place in the file. What shows nothing
(comments, targets, options, diagrams) is emptied; the body of a directive moves out to the margin;
code is put between Markdown's fences, which the blank lines around it make room for.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence

from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats import words_of
from unified_flow.retrieval.formats.chunk import Heading, outlined
from unified_flow.retrieval.formats.restructured_inline import Names, plain_title

EXTENSIONS = frozenset({".rst", ".rest"})
_MARKS = frozenset(string.punctuation)

_EVIDENCE = re.compile(
    r"^[ \t]*\.\. (?:_[^:\n]+:|[\w:.+-]+::)|:[a-z][\w:-]{0,60}:`[^`\n]+`|``[^`\n]+``", re.MULTILINE
)


def sections(text: str) -> Iterator[Section]:
    lines = text.split("\n")
    found = list(headings(lines))
    before = lines[: found[0].start] if found else []
    # What stands before the title and is nothing but explicit markup is about the page.
    written = filter(str.strip, before)
    if all(line[0].isspace() or line.startswith(("..", ":")) for line in written):
        lines[: len(before)] = [""] * len(before)
    yield from outlined(*read(lines, found))


def is_restructured(text: str) -> bool:
    """Whether plain text is written in it: two titles underlined to the letter, or one title that
    is overlined as well or stands with a directive, a role or a literal."""
    lines = text.split("\n")
    titles = [
        each
        for each in headings(lines)
        if _width(lines[each.end - 2].strip()) == len(lines[each.end - 1].rstrip())
    ]
    overlined = any(each.end - each.start > 2 for each in titles)
    return len(titles) > 1 or overlined or (bool(titles) and _EVIDENCE.search(text) is not None)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def headings(lines: list[str]) -> Iterator[Heading]:
    ruled = [number for number, line in enumerate(lines) if line[:1] in _MARKS and _adornment(line)]
    styles: list[tuple[str, bool]] = []  # in order of appearance, which is the order of depth
    after = 0
    for number in sorted({each - 1 for each in ruled if each} | set(ruled)):
        found = _title_at(lines, number) if number >= after else None
        if found is None:
            continue
        title, style, after = found
        if style not in styles:
            styles.append(style)
        yield Heading(plain_title(title), styles.index(style) + 1, number, after)


def _title_at(lines: list[str], at: int) -> tuple[str, tuple[str, bool], int] | None:
    """(title, (character, overlined), line after it) of a title that begins at `at`."""
    if at + 1 >= len(lines) or not lines[at].strip():
        return None
    after_text = at > 0 and bool(lines[at - 1].strip())
    over = _adornment(lines[at])
    if over:
        if at + 2 >= len(lines) or not lines[at + 1].strip() or after_text:
            return None
        title, under = lines[at + 1].strip(), lines[at + 2].rstrip()
        if under == over and _width(title) <= len(over) and not _adornment(lines[at + 1]):
            return title, (over[0], True), at + 3
        return None
    title, under = lines[at], _adornment(lines[at + 1])
    if not under or title[0].isspace() or after_text:
        return None
    # docutils warns of an underline that is too short, and takes it from four characters on.
    if len(under) < min(_width(title.rstrip()), 4):
        return None
    return title.strip(), (under[0], False), at + 2


def _adornment(line: str) -> str:
    bare = line.rstrip()
    return bare if _ADORNMENT.match(bare) and bare not in ("..", "::") else ""


_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*\Z")
_EXPLICIT = re.compile(r"\.\.(?:\s+|\Z)(?P<rest>.*)")
_DIRECTIVE = re.compile(r"(?P<defines>\|[^|]+\|\s+)?(?P<name>\w[\w:.+-]*)::(?:\s+|\Z)(?P<said>.*)")
_NOTE = re.compile(r"\[(?:\d+|#?[\w.-]+|\*)\]\s+(?=\S)")
_OPTION = re.compile(r":[\w-][\w -]*:(?:\s|\Z)")
_FIELD = re.compile(r"\A(\s*):(?:param |type )?([^:`\s][^:`]*):(?=\s|\Z)")
_BULLET = re.compile(r"\s*(?:[-*+•]|\(?(?:\d{1,3}|[a-zA-Z#])[.)])\s+")
_GRID = re.compile(r"\s*\+[-=+]{2,}\+\s*\Z")
_SIMPLE = re.compile(r"\s*={2,}(?: +={2,})+\s*\Z")
_SIMPLE_SPAN = re.compile(r"\s*-{2,}(?: +-{2,})*\s*\Z")

_CODE = re.compile(
    r"(?:.*code.*|.*literal|console|.*example|.*:run|doctest|test.*|ipython.*|prompt|shell.*|math)\Z"
)
_WORDS = words_of("restructured_text")
# Directives with an argument that are no entries of a reference.
_NO_ENTRIES = frozenset[str]().union(
    *(_WORDS[each] for each in ("silent", "captions", "versions", "labels", "tables"))
)
_ENTRY_LEVEL = 100  # below all headings; what is indented more is deeper


def is_code(directive: str) -> bool:
    """Whether what it holds is code."""
    return _CODE.match(directive) is not None


def read(lines: Sequence[str], headings: Sequence[Heading]) -> tuple[list[str], list[Heading]]:
    """The lines as a reader sees them, as many as there are, and the headings with those of
    reference entries (`.. method:: name(...)`): each is a section, which ends where a heading
    without a title stands."""
    page = _Page(lines, Names(lines, headings))
    start = 0
    for heading in headings:
        page.block(start, heading.start, 0)
        page.headings.append(heading)
        page.shown[heading.end - 2] = heading.title
        start = heading.end
    page.block(start, len(lines), 0)
    return page.shown, page.headings


class _Page:
    """`shown` is what `lines` become, `headings` are those met so far."""

    def __init__(self, lines: Sequence[str], names: Names) -> None:
        self.lines = lines
        self.shown = [""] * len(lines)
        self.headings: list[Heading] = []
        self._names = names

    def block(self, start: int, end: int, moved: int) -> None:
        """Lines that stand `moved` columns further to the right than they are shown."""
        number = start
        while number < end:
            line = self.lines[number]
            stripped = line.lstrip()
            if not stripped:
                number += 1
            elif explicit := _EXPLICIT.match(stripped):
                number = self._explicit(number, end, explicit["rest"], moved)
            elif stripped.startswith("__ "):
                number += 1
            elif stripped.startswith(">>> "):
                number = self._doctest(number, end, moved)
            elif _GRID.match(line):
                number = self._grid_table(number, end)
            elif _SIMPLE.match(line):
                number = self._simple_table(number, end)
            else:
                number = self._paragraph(number, end, moved)

    def _paragraph(self, start: int, end: int, moved: int) -> int:
        """Lines up to a blank one, and the literal block that they announce."""
        stop = start + 1
        while stop < end and self.lines[stop].strip() and not self._begins_other(stop):
            stop += 1
        own = [line[min(moved, _indent(line)) :] for line in self.lines[start:stop]]
        if len(own) == 1 and _ADORNMENT.match(own[0]) and len(own[0].strip()) >= 4:
            return stop  # a transition
        literal = own[-1].rstrip().endswith("::")
        if literal:
            said = own[-1].rstrip()[:-2]
            own[-1] = said.rstrip() if not said.strip() or said[-1:].isspace() else f"{said}:"
        own = [_FIELD.sub(r"\1\2:", line) if line.lstrip()[:1] == ":" else line for line in own]
        own = [line.replace("| ", "", 1) if line.lstrip()[:2] == "| " else line for line in own]
        self.shown[start:stop] = self._names.inline("\n".join(own)).split("\n")
        if not literal:
            return stop
        bullet = _BULLET.match(self.lines[stop - 1])
        edge = bullet.end() if bullet else _indent(self.lines[stop - 1])
        body, over = self._body(stop, end, edge)
        if body < over:
            self._code(body, over, edge - moved)
        return over

    def _begins_other(self, number: int) -> bool:
        line = self.lines[number]
        return line.lstrip().startswith(".. ") and _EXPLICIT.match(line.lstrip()) is not None

    def _explicit(self, start: int, end: int, rest: str, moved: int) -> int:
        """A directive, footnote, target or comment, with its body; returns the line after it."""
        indent = _indent(self.lines[start])
        body, over = self._body(start + 1, end, indent)
        margin = max(0, indent - moved)
        if not rest.strip() and body > start + 1:
            return start + 1  # an empty comment takes nothing with it
        if found := _DIRECTIVE.match(rest):
            if not found["defines"]:
                self._directive(
                    start, over, found["name"].casefold(), found["said"].strip(), margin
                )
        elif _NOTE.match(rest):
            self.shown[start] = " " * margin + self._names.inline(rest)
            self._inner(start + 1, over, margin)
        return over

    def _directive(self, start: int, end: int, name: str, said: str, margin: int) -> None:
        plain = name.rpartition(":")[2]
        if plain in _WORDS["hidden"] or name in _WORDS["hidden"] or plain.startswith("auto"):
            return
        body = start + 1
        while body < end and _OPTION.match(self.lines[body].lstrip()):
            body += 1
        if is_code(name):
            first, over = self._body(body, end, -1)
            if first < over:
                self._code(first, over, margin, "" if " " in said else said)
            return
        first, _ = self._body(body, end, -1)
        announced = self._announced(plain, said, first < end)
        beside = not said and first < end  # "Note:" belongs to the line that follows
        self.shown[first - 1 if beside else start] = " " * margin + announced
        entry = "" if plain in _NO_ENTRIES or first >= end else said.partition("(")[0].strip()
        if entry and not (self.headings and self.headings[-1].title.startswith(entry)):
            level = _ENTRY_LEVEL + _indent(self.lines[start])
            title = self._names.inline(entry) + ("()" if "(" in said and plain != "class" else "")
            self.headings.append(Heading(title, level, start, start))
            self._inner(body, end, margin)
            # The fence that closes a block of code at its end stands on the blank line after it.
            fenced = end < len(self.shown) and self.shown[end].lstrip().startswith("```")
            after = end + fenced
            self.headings.append(Heading("", level, after, after))
            return
        self._inner(body, end, margin)
        if plain == "list-table":  # the first cell of a row stands at its bullet
            for number in range(start, end):
                self.shown[number] = re.sub(r"\A(\s*)\* - ", r"\1- ", self.shown[number])

    def _announced(self, name: str, said: str, has_body: bool) -> str:
        """What a directive says in its first line."""
        said = self._names.inline(said)
        if name in _WORDS["silent"]:
            return ""
        if name in _WORDS["versions"]:
            version, _, more = said.partition(" ")
            end = f": {more}" if more else ":" if has_body else "."
            return f"{_WORDS['versions'][name]} {version}{end}"
        if name in _WORDS["labels"]:
            return f"{_WORDS['labels'][name]}: {said}".rstrip() if said or has_body else ""
        if name in _WORDS["captions"]:
            return said if not said or said[-1] in ".:?!" else f"{said}:"
        # The name of an object; one that is only made known here stands in the title that follows.
        return said if has_body or "(" in said else ""

    def _inner(self, start: int, end: int, margin: int) -> None:
        """The body of a directive, shown at its margin."""
        indents = [_indent(line) for line in self.lines[start:end] if line.strip()]
        if indents:
            self.block(start, end, min(indents) - margin)

    def _body(self, start: int, end: int, indent: int) -> tuple[int, int]:
        """(first written line, line after the last) of what is indented by more than `indent`."""
        written: list[int] = []
        for number in range(start, end):
            if not self.lines[number].strip():
                continue
            if _indent(self.lines[number]) <= indent:
                break
            written.append(number)
        return (written[0], written[-1] + 1) if written else (start, start)

    def _code(self, start: int, end: int, margin: int, language: str = "") -> None:
        """Fence the code where blank lines make room for it; its own indentation is kept."""
        least = min(_indent(line) for line in self.lines[start:end] if line.strip())
        edge = " " * max(0, margin)
        self.shown[start:end] = [
            edge + line[least:] if line.strip() else "" for line in self.lines[start:end]
        ]
        closed = end < len(self.lines) and not self.lines[end].strip()
        if closed and start > 0 and not self.shown[start - 1].strip():
            self.shown[start - 1] = f"{edge}```{language}"
            self.shown[end] = f"{edge}```"

    def _doctest(self, start: int, end: int, moved: int) -> int:
        over = next((n for n in range(start, end) if not self.lines[n].strip()), end)
        self._code(start, over, _indent(self.lines[start]) - moved)
        return over

    def _grid_table(self, start: int, end: int) -> int:
        number = start
        while number < end and self.lines[number].lstrip()[:1] in ("+", "|"):
            line = self.lines[number]
            if "=" in line and _GRID.match(line):
                self.shown[number] = self._row(["---"] * (line.count("+") - 1))
            elif not _GRID.match(line):
                row = re.sub(r"\+(?:[-=]+\+)+|\+", "|", line.strip())
                self.shown[number] = self._row(re.sub(r"\s{2,}", " ", row).strip("|").split(" | "))
            number += 1
        return number

    def _simple_table(self, start: int, end: int) -> int:
        """Ends at its last rule: the one that a blank line follows, after the first row."""
        starts = [match.start() for match in re.finditer(r"=+", self.lines[start])]
        number = start + 1
        while number < end:
            line = self.lines[number]
            if _SIMPLE.match(line):
                if number + 1 >= end or not self.lines[number + 1].strip():
                    return number + 1
                self.shown[number] = self._row(["---"] * len(starts))
            elif line.strip() and _indent(line) < starts[0]:
                return number
            elif line.strip() and not _SIMPLE_SPAN.match(line):
                cells = [
                    line[at:until] for at, until in zip(starts, [*starts[1:], None], strict=True)
                ]
                self.shown[number] = self._row(cells)
            number += 1
        return number

    def _row(self, cells: Sequence[str]) -> str:
        return "| " + " | ".join(self._names.inline(cell.strip()) for cell in cells) + " |"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
