"""AsciiDoc: turned into Markdown line for line, and read as that."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats import markdown

EXTENSIONS = frozenset({".adoc", ".asciidoc"})
_UNDERLINES = "=-~^+"  # of titles, outermost first
_TITLE = re.compile(r"(={1,6})\s+(\S.*)")
_ATTRIBUTE = re.compile(r":([\w-]+):(?:\s+(.*))?\Z")
_FENCE = re.compile(r"(?:-{4,}|\.{4,}|\+{4,}|/{4,}|```.*)\Z")
_SOURCE = re.compile(r"\[(?:source)?[%\w]*,\s*(\w+)")
_ADMONITION = re.compile(r"\[(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\Z")
# Shows nothing: what encloses blocks, block attributes and anchors, comments, other files.
_SILENT = re.compile(
    r"(?:={4,}|\*{4,}|_{4,}|--|\+|\|===|'{3,}|<{3,}|\[.*\]|//.*"
    r"|(?:include|image|ifn?def|ifeval|endif|toc)::.*)\Z"
)
_CELL = re.compile(r"(?:\A|(?<=\s))[\d.+*<^>]*[adehlms]?\|")
_ITEM = re.compile(r"\s*(\*{1,5}|\.{1,5})\s+(?=\S)")
# Each alternative looks no further than it is worth: a line may be nothing but marks.
_INLINE = re.compile(
    r"<<[^,<>]{1,200},\s*(?P<title>[^<>]{1,500})>>|<<#?(?P<label>[^<>]{1,200})>>|\[\[[^\[\]]{0,200}\]\]"
    r"|(?:\b(?:link|xref|mailto):|\b(?=https?://))(?P<target>[^\s\[\]]{1,500})\[(?P<text>[^\[\]]{0,500})\]"
    r"|(?P<macro>footnote|kbd|btn|menu|image|icon|pass):[^\s\[]{0,200}\[(?P<said>[^\[\]]{0,2000})\]"
    r"|\{(?P<name>[\w-]{1,100})\}"
)


def sections(text: str) -> Iterator[Section]:
    yield from markdown.sections("\n".join(_as_markdown(text.split("\n"))))


def _as_markdown(lines: list[str]) -> list[str]:
    shown = [""] * len(lines)
    names: dict[str, str] = {}
    closing = language = before = ""
    row: int | None = None  # the line of a row whose cells stand below one another
    for number, line in enumerate(map(str.rstrip, lines)):
        after = lines[number + 1].rstrip() if number + 1 < len(lines) else ""
        row = row if line.startswith("|") else None
        if closing:
            if closing[0] != "/":
                shown[number] = "```" if line == closing else line
            closing = "" if line == closing else closing
        elif _is_underlined(before, line):
            pass
        elif _is_underlined(line, after):
            shown[number] = f"{'#' * (_UNDERLINES.index(after[0]) + 1)} {line}"
        elif _FENCE.match(line):
            shown[number] = f"```{language}" if line[0] != "/" else ""
            closing, language = (line if line[0] != "`" else "```"), ""
        elif found := _ATTRIBUTE.match(line):
            names[found[1]] = found[2] or ""
        elif found := _ADMONITION.match(line):
            shown[number] = f"{found[1].capitalize()}:"
        elif _SILENT.match(line):
            language = found[1] if (found := _SOURCE.match(line)) else ""
        else:
            said = _INLINE.sub(lambda match: _said(match, names), line)
            if title := _TITLE.match(said):
                said = f"{'#' * len(title[1])} {title[2]}"
            elif line.startswith("|"):
                _, *cells = map(str.strip, _CELL.split(said))
                at = number if row is None or len(cells) > 1 else row
                row = at if len(cells) == 1 else None
                said = f"{shown[at]} {cells[0]} |" if at < number else f"| {' | '.join(cells)} |"
                shown[at], said = said, (said if at == number else "")
            elif item := _ITEM.match(said):
                mark = "*" if item[1][0] == "*" else "1."
                said = f"{'  ' * (len(item[1]) - 1)}{mark} {said[item.end() :]}"
            elif said.startswith(".") and said[1:2].isalnum():
                said = f"{said[1:]}:"  # the title of a block
            shown[number] = said
        before = line if not closing else ""
    return shown


def _is_underlined(title: str, line: str) -> bool:
    """Whether it is a title with a line of marks below, as AsciiDoc took them at first."""
    return (
        title[:1].isalnum()
        and len(line) > 2
        and line[0] in _UNDERLINES
        and not line.strip(line[0])
        and abs(len(line) - len(title)) <= 2
    )


def _said(match: re.Match[str], names: dict[str, str]) -> str:
    """What a reader sees of a reference, a link, a macro or an attribute."""
    if match["name"]:
        return names.get(match["name"], match[0])
    if match["macro"]:
        return f" ({match['said']})" if match["macro"] == "footnote" else match["said"]
    text = (match["text"] or "").split(",")[0].rstrip("^")
    return match["title"] or match["label"] or text or match["target"] or ""
