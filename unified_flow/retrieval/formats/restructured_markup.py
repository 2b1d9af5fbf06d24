"""reStructuredText as a reader sees it, line for line.

Every line stays where it is, so that a place in the text is a place in the file. What shows nothing
(comments, targets, options, diagrams) is emptied; the body of a directive moves out to the margin;
code is put between Markdown's fences, which the blank lines around it make room for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from unified_flow.retrieval.formats.chunk import Heading

ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*\Z")
_EXPLICIT = re.compile(r"\.\.(?:\s+|\Z)(?P<rest>.*)")
_DIRECTIVE = re.compile(r"(?P<defines>\|[^|]+\|\s+)?(?P<name>\w[\w:.+-]*)::(?:\s+|\Z)(?P<said>.*)")
_REPLACEMENT = re.compile(r"\.\. \|(?P<name>[^|]+)\|\s+replace::\s*(?P<text>.*)")
_NOTE = re.compile(r"\[(?:\d+|#?[\w.-]+|\*)\]\s+(?=\S)")
_TARGET = re.compile(r"_(?P<name>`[^`]+`|(?:\\:|[^:`])+):")
_OPTION = re.compile(r":[\w-][\w -]*:(?:\s|\Z)")
_FIELD = re.compile(r"(\s*):(?:param |type )?([^:`\s][^:`]*):(?=\s|\Z)")
_BULLET = re.compile(r"\s*(?:[-*+•]|\(?(?:\d{1,3}|[a-zA-Z#])[.)])\s+")
_GRID = re.compile(r"\s*\+[-=+]{2,}\+\s*\Z")
_SIMPLE = re.compile(r"\s*={2,}(?: +={2,})+\s*\Z")
_SIMPLE_SPAN = re.compile(r"\s*-{2,}(?: +-{2,})*\s*\Z")

# Directives that show nothing of what they hold, or nothing that can be read.
_HIDDEN = frozenset(
    """
    contents toctree meta index highlight include raw image default-role role sectnum
    currentmodule module title target-notes header footer literalinclude graphviz digraph graph uml
    plantuml mermaid inheritance-diagram blockdiag seqdiag tikz plot tabularcolumns py:module
    py:currentmodule
    """.split()  # noqa: SIM905
)
_CODE = re.compile(
    r"(?:.*code.*|.*literal|console|.*example|.*:run|doctest|test.*|ipython.*|prompt|shell.*|math)\Z"
)
# Directives whose argument is a setting, and shows nothing.
_SILENT = frozenset({"container", "figure", "ifconfig", "only", "rst-class", "tab-set", "tabs"})
_CAPTIONS = frozenset({"admonition", "group-tab", "rubric", "sidebar", "tab", "tab-item", "topic"})
_VERSIONS = {
    "versionadded": "Added in version", "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version", "versionremoved": "Removed in version",
}  # fmt: skip
_LABELS = {
    each: each.capitalize()
    for each in ("note", "warning", "tip", "hint", "important", "caution", "danger", "attention",
                 "error")
} | {"seealso": "See also", "todo": "To do"}  # fmt: skip
# Directives with an argument that are no entries of a reference.
_NO_ENTRIES = {*_SILENT, *_CAPTIONS, *_VERSIONS, *_LABELS, "list-table", "csv-table", "table"}
_ENTRY_LEVEL = 100  # below all headings; what is indented more is deeper
_NUMBERED = {"pep": "PEP ", "rfc": "RFC ", "ticket": "#", "issue": "#", "gh": "#", "bpo": "bpo-"}
_CALLED = frozenset(("func", "meth"))

# Each alternative begins with its mark, which makes the search four times as fast.
_INLINE = re.compile(
    r"``(?<!```)(?P<literal>[^\s`](?:.*?\S)?)``"
    r"|:(?P<role>[A-Za-z][\w:.+-]*):`(?P<said>[^`]+)`"
    r"|`(?<![\w`]`)(?P<phrase>[^`\s](?:[^`]*[^`\s])?)`(?P<link>__?)?"
    r"|_`(?P<defined>[^`]+)`"
    r"|\*\*(?<![\w*]\*\*)(?P<bold>[^\s*](?:.*?\S)?)\*\*"
    r"|\*(?<![\w*]\*)(?P<emphasis>[^\s*](?:[^*]*[^\s*])?)\*(?!\w)"
    r"|\|(?<![\w|]\|)(?P<replaced>[^\s|](?:[^|]*[^\s|])?)\|(?:__?)?(?!\w)"
    r"|(?P<note>\[(?:\d+|#[\w-]*|\*|[A-Za-z][\w.-]*)\])_"
    r"|\\(?P<escaped>[\s\S])",
    re.DOTALL,
)
_MARKS = re.compile(r"[`*|\\]|_(?!\w)")
_NAME = re.compile(r"(?<![\w`])([A-Za-z0-9](?:[\w.+-]*[A-Za-z0-9])?)(__?)(?![\w`])")
_ALIAS = re.compile(r"_\w+\.(?=\w)")  # of a module, not shown
_TEXT_AND_TARGET = re.compile(r"(?P<text>.*?)\s*<(?P<target>[^<>]*)>\Z", re.DOTALL)
# Punctuation that a link's target pushed to a line of its own.
_STRAY = re.compile(r"\n([ \t]*)([.,;:!?)]+)")


class _Names:
    """What a document says of its own names: replacements, link targets, the titles of labels."""

    def __init__(self, lines: Sequence[str], headings: Iterable[Heading]) -> None:
        self._replacements: dict[str, str] = {}
        self._targets: set[str] = set()
        self._labels: dict[str, str] = {}
        titles = {heading.start: heading.title for heading in headings}
        waiting: list[str] = []  # labels right above a title
        for number, line in enumerate(lines):
            if number in titles:
                self._labels |= dict.fromkeys(waiting, titles[number])
            elif not line.strip():
                continue
            elif ".. _" in line and (target := _TARGET.match(line.lstrip()[3:])):
                waiting.append(target["name"].strip("`").casefold())
                self._targets.add(waiting[-1])
                continue
            elif line.startswith("__ "):
                self._targets.add("_")
            elif found := _REPLACEMENT.match(line.strip()):
                self._replacements[found["name"]] = found["text"]
            waiting = []

    def inline(self, text: str) -> str:
        """Running text without its marks, with as many lines."""
        if not _MARKS.search(text):
            return text
        shown = _INLINE.sub(self._shown, text)
        if self._targets and "_" in shown:
            shown = _NAME.sub(self._named, shown)
        return _STRAY.sub(r"\2\n\1", shown)

    def _shown(self, match: re.Match[str]) -> str:
        if match["literal"]:
            return f"`{match['literal']}`"
        if match["role"]:
            return self.role_text(match["role"].rpartition(":")[2], match["said"])
        if match["phrase"]:
            return _linked(match["phrase"]) if match["link"] else match["phrase"]
        if match["bold"]:
            return self.inline(match["bold"])
        if match["replaced"]:
            return self._replacements.get(match["replaced"], match["replaced"])
        if match["note"]:
            return match["note"] if match["note"][1:-1].isalnum() else ""
        if match["escaped"]:
            return match["escaped"].lstrip(" ")
        return match["emphasis"] or match["defined"]

    def _named(self, match: re.Match[str]) -> str:
        """The name of a link whose target stands elsewhere in the document."""
        target = "_" if match[2] == "__" else match[1].casefold()
        return match[1] if target in self._targets else match[0]

    def role_text(self, role: str, said: str) -> str:
        if said.endswith(">"):
            return _linked(said)
        if role in _NUMBERED and said[:1].isdigit():
            return _NUMBERED[role] + said
        if role == "ref":
            return self._labels.get(said.casefold()) or re.sub(r"[-_:]+", " ", said)
        if role == "doc":
            return said.strip("/")
        said = said.removeprefix("!")
        if said.startswith("~"):
            said = said.rpartition(".")[2].removeprefix("~")
        said = _ALIAS.sub("", said, 1) if said[0] == "_" else said.lstrip(".")
        return said + ("()" if role in _CALLED and not said.endswith(")") else "")


def _linked(said: str) -> str:
    """The text of `text <target>`, on as many lines."""
    found = _TEXT_AND_TARGET.match(said)
    return linked(said, (found["text"] or found["target"]) if found else said)


def linked(source: str, shown: str) -> str:
    """What a link shows, on as many lines as its source."""
    missing = source.count("\n") - shown.count("\n")
    if missing <= 0:
        return shown
    *first, last = shown.rsplit(" ", 1)  # a line that is left empty would end the paragraph
    return "".join(first) + "\n" * missing + last if first else shown + "\n" * missing


_NO_NAMES = _Names((), ())


def role_text(role: str, said: str) -> str:
    """What a role shows, in a document of which nothing else is known."""
    return _NO_NAMES.role_text(role.rpartition(":")[2], said)


def is_code(directive: str) -> bool:
    """Whether what it holds is code."""
    return _CODE.match(directive) is not None


def plain_title(title: str) -> str:
    return _NO_NAMES.inline(title).replace("`", "").strip()


def rendered(lines: Sequence[str], headings: Sequence[Heading]) -> list[str]:
    """The lines as a reader sees them, as many as there are."""
    return read(lines, headings)[0]


def read(lines: Sequence[str], headings: Sequence[Heading]) -> tuple[list[str], list[Heading]]:
    """The same, and the headings with those of reference entries (`.. method:: name(...)`): each is
    a section, which ends where a heading without a title stands."""
    page = _Page(lines, _Names(lines, headings))
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

    def __init__(self, lines: Sequence[str], names: _Names) -> None:
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
                number = self._grid_table(number, end, moved)
            elif _SIMPLE.match(line):
                number = self._simple_table(number, end, moved)
            else:
                number = self._paragraph(number, end, moved)

    def _paragraph(self, start: int, end: int, moved: int) -> int:
        """Lines up to a blank one, and the literal block that they announce."""
        stop = start + 1
        while stop < end and self.lines[stop].strip() and not self._begins_other(stop):
            stop += 1
        own = [line[min(moved, _indent(line)) :] for line in self.lines[start:stop]]
        if len(own) == 1 and ADORNMENT.match(own[0]) and len(own[0].strip()) >= 4:
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
        if plain in _HIDDEN or name in _HIDDEN or plain.startswith("auto"):
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
            self.headings.append(Heading("", level, end, end))
            return
        self._inner(body, end, margin)
        if plain == "list-table":  # the first cell of a row stands at its bullet
            for number in range(start, end):
                self.shown[number] = re.sub(r"\A(\s*)\* - ", r"\1- ", self.shown[number])

    def _announced(self, name: str, said: str, has_body: bool) -> str:
        """What a directive says in its first line."""
        said = self._names.inline(said)
        if name in _SILENT:
            return ""
        if name in _VERSIONS:
            version, _, more = said.partition(" ")
            end = f": {more}" if more else ":" if has_body else "."
            return f"{_VERSIONS[name]} {version}{end}"
        if name in _LABELS:
            return f"{_LABELS[name]}: {said}".rstrip()
        if name in _CAPTIONS:
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
        over = number = start
        first: int | None = None
        while number < end:
            line = self.lines[number]
            if line.strip():
                if _indent(line) <= indent:
                    break
                first = number if first is None else first
                over = number + 1
            number += 1
        return (over if first is None else first), over

    def _code(self, start: int, end: int, margin: int, language: str = "") -> None:
        """Between fences where blank lines make room for them, its own indentation kept."""
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
        over = start
        while over < end and self.lines[over].strip():
            over += 1
        self._code(start, over, _indent(self.lines[start]) - moved)
        return over

    def _grid_table(self, start: int, end: int, moved: int) -> int:
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

    def _simple_table(self, start: int, end: int, moved: int) -> int:
        """Up to its last rule: the one that a blank line follows, after the first row."""
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
