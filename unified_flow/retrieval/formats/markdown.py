"""Markdown (CommonMark): ATX and setext headings outside fences, comments and front matter; and the
text as a reader sees it, line for line: links, emphasis, anchors, admonitions.

Code stays between its fences. Read too: MyST's roles and directives, which are those of
reStructuredText, admonitions of MkDocs (`!!! note`), Docusaurus (`:::note`) and GitHub (`[!NOTE]`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from unified_flow.lib.blocks import fence_after
from unified_flow.lib.sandbox import Section
from unified_flow.retrieval.formats.chunk import Heading, Trail, outlined
from unified_flow.retrieval.formats.restructured_inline import linked, role_text
from unified_flow.retrieval.formats.restructured_text import is_code, read

EXTENSIONS = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"})

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*\Z")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_COMMENT = re.compile(r" {0,3}<!--")
_BREAK = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*\Z")
_INDENTED = re.compile(r" {0,3}\t| {4}")
# What a setext underline cannot make a heading of.
_NOT_PARAGRAPH = re.compile(r" {0,3}(>|[-+*](?:[ \t]|\Z)|\d{1,9}[.)](?:[ \t]|\Z))")
_INTERRUPTS = re.compile(r" {0,3}(>|[-+*][ \t]+\S|1[.)][ \t]+\S)")
_TITLE = re.compile(r"title\s*:\s*(?P<quote>[\"']?)(?P<title>.+?)(?P=quote)\s*\Z")
_ATTRIBUTES = re.compile(r"\s*\{#[^}]*\}\s*\Z")


def sections(text: str) -> Iterator[Section]:
    lines = text.split("\n")
    title = _take_front_matter(lines)
    _blank_comments(lines)
    found = list(headings(lines))
    yield from outlined(rendered(lines, found), found, Trail(title))


def _take_front_matter(lines: list[str]) -> str | None:
    """Blanks a YAML or TOML head and returns the title that it gives."""
    fence = lines[0].rstrip()
    if fence not in ("---", "+++"):
        return None
    closing = ("---", "...") if fence == "---" else ("+++",)
    end = next((i for i in range(1, len(lines)) if lines[i].rstrip() in closing), None)
    if end is None:
        return None
    head = lines[1:end]
    if not any(re.match(r"[\w-]+\s*[:=]", line) for line in head):
        return None  # a thematic break
    lines[: end + 1] = [""] * (end + 1)
    found = (_TITLE.match(line.replace("=", ":", 1) if fence == "+++" else line) for line in head)
    return next((match["title"] for match in found if match), None)


def _blank_comments(lines: list[str]) -> None:
    """Empties HTML comments that are blocks of their own and are closed; the lines stay."""
    fence = ""
    begun: int | None = None
    for number, line in enumerate(lines):
        if begun is not None or (not fence and _COMMENT.match(line)):
            begun = number if begun is None else begun
            if "-->" in line:
                rest = line.partition("-->")[2]
                lines[begun : number + 1] = [""] * (number - begun) + [rest]
                begun = None
        else:
            fence = fence_after(line, fence)


def headings(lines: list[str]) -> Iterator[Heading]:
    fence = ""
    paragraph: int | None = None  # the first line of what a setext underline would make a title
    other = False  # inside a list item or quotation, up to the next blank line
    for number, line in enumerate(lines):
        before, fence = fence, fence_after(line, fence)
        if before or fence or not line.strip():
            paragraph, other = None, False
        elif atx := _ATX.match(line):
            yield Heading(_plain(atx[2] or ""), len(atx[1]), number, number + 1)
            paragraph, other = None, False
        elif paragraph is not None and (under := _SETEXT.match(line)):
            title = " ".join(each.strip() for each in lines[paragraph:number])
            yield Heading(_plain(title), 1 if under[1][0] == "=" else 2, paragraph, number + 1)
            paragraph = None
        elif paragraph is None and not other:
            if _BREAK.match(line) or _INDENTED.match(line):
                continue
            other = _NOT_PARAGRAPH.match(line) is not None
            paragraph = None if other else number
        elif paragraph is not None and _INTERRUPTS.match(line):
            paragraph, other = None, True


def _plain(title: str) -> str:
    """A heading without its links, code marks, emphasis and anchor."""
    return inline(_ATTRIBUTES.sub("", title)).replace("`", "").strip()


_FENCE = re.compile(r"(?P<indent>\s*)(?P<mark>`{3,}|~{3,}|:{3,}(?=\{))(?P<info>[^`]*)\Z")
_MYST = re.compile(r"\{(?P<name>[\w:.-]+)\}\s*(?P<said>.*)")
_ADMONITION = re.compile(r'(?P<indent>\s*)(?:!!!|\?\?\?\+?|===\+?!?)\s+(?P<said>[\w"].*)\Z')
_CONTAINER = re.compile(r"\s*:::+\s*(?P<said>.*)\Z")
_TITLED = re.compile(
    r"""[\w-]*(?:\[(?P<named>[^\]]*)\]|[^"]*"(?P<quoted>[^"]*)"|\s+(?P<rest>\S.*))"""
)
_ALERT = re.compile(r"(\s*>\s*)\[!(\w+)\]\s*\Z")
# Nothing to read in a line: a link's target, an anchor of MyST, attributes.
_SILENT = re.compile(r"\s*(?:\[[^\]^]+\]:\s*\S+.*|\([\w.:-]+\)=|\{:?\s*[#.][^}]*\})\s*\Z")
_TAGS = (
    "a|abbr|b|big|br|center|cite|code|del|details|div|dl|dt|dd|em|figcaption|figure|font|h[1-6]|hr|i"
    "|img|ins|kbd|li|mark|ol|p|picture|pre|q|s|samp|small|source|span|strong|sub|summary|sup|table"
    "|tbody|td|th|thead|tr|tt|u|ul|var|video"
)
_INLINE = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`++).{1,1000}?(?<!`)(?P=ticks)(?!`))"
    r"|\{(?P<role>[\w:.+-]+)\}`(?P<said>[^`]+)`"
    r"|!?\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*+)\]"
    r"(?:\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])(?:\{[^{}\n]*\})?"
    r"|(?P<note>\[\^[^\]\s]+\](?!:))"
    r"|<(?P<url>(?:https?|ftp|mailto):[^<>\s]+)>"
    rf"|(?P<tag></?(?:{_TAGS})(?:\s[^<>]*)?/?>|<!--.{{0,1000}}?-->)"
    r"|\*\*(?P<bold>[^\s*](?:.{0,1000}?\S)??)\*\*"
    r"|\*(?P<emphasis>[^\s*](?:[^*]*[^\s*])?)\*"
    r"|__(?<!\w__)(?P<strong>[^\s_](?:.{0,1000}?\S)??)__(?![\w(]|\.\w)"
    r"|_(?<!\w_)(?P<italic>[^\s_](?:[^_]*[^\s_])?)_(?!\w)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])",
    re.DOTALL | re.IGNORECASE,
)
_CODE_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_MARKS = re.compile(r"[*_\[<\\{]")


def inline(text: str) -> str:
    """Running text without its marks, on as many lines."""
    return _INLINE.sub(_shown, text) if _MARKS.search(text) else text


def _shown(match: re.Match[str]) -> str:
    if match["code"]:
        return match["code"]
    if match["role"]:
        return role_text(match["role"], match["said"])
    said = match["text"]
    if said is None:
        said = next(
            (match[name] for name in ("url", "bold", "emphasis", "strong", "italic", "escaped")
             if match[name] is not None), ""
        )  # fmt: skip
    return linked(match[0], said if match["url"] or match["escaped"] else inline(said))


def rendered(lines: Sequence[str], headings: Sequence[Heading]) -> list[str]:
    """The lines as a reader sees them, as many as there are."""
    shown = list(lines)
    titles = {number for each in headings for number in range(each.start, each.end)}
    paragraph: list[int] = []
    moved: list[int] = []  # the columns by which the open admonitions move their bodies out
    number = 0

    def close() -> None:
        if paragraph:
            first, last = paragraph[0], paragraph[-1] + 1
            shown[first:last] = inline("\n".join(shown[first:last])).split("\n")
            paragraph.clear()

    while number < len(lines):
        line = shown[number]
        indent = len(line) - len(line.lstrip())
        while line.strip() and moved and indent < moved[-1]:
            moved.pop()
        if moved:
            line = shown[number] = line[min(moved[-1], indent) :]
        fence = _FENCE.match(line)
        if number in titles or not line.strip() or _SILENT.match(line):
            close()
            if number not in titles:
                shown[number] = ""
        elif fence:
            close()
            end = _end_of_fence(shown, number, fence["indent"] + fence["mark"])
            if moved:
                shown[number + 1 : end] = [
                    _out(each, moved[-1]) for each in shown[number + 1 : end]
                ]
            if directive := _MYST.match(fence["info"].strip()):
                _directive(shown, number, end, directive)
            number = end
            continue
        elif said := _ADMONITION.match(line) or _CONTAINER.match(line):
            close()
            indent = len(line) - len(line.lstrip())
            nested = said.re is _ADMONITION
            shown[number] = line[:indent] + _label(said["said"], not nested)
            if nested:
                moved.append(indent + 4)
        elif alert := _ALERT.match(line):
            close()
            shown[number] = f"{alert[1]}{alert[2].capitalize()}:"
        else:
            paragraph.append(number)
        number += 1
    close()
    return shown


def _out(line: str, columns: int) -> str:
    return line[min(columns, len(line) - len(line.lstrip())) :]


def _label(said: str, words_are_title: bool) -> str:
    """The label of an admonition: its title, else its kind, with a colon."""
    found = _TITLED.match(said)
    kind = said.split()[0].strip('"').capitalize() if said.split() else ""
    title = found and (found["named"] or found["quoted"] or (words_are_title and found["rest"]))
    shown = inline(title or kind)
    return f"{shown}:" if shown and shown[-1] not in ".:?!" else shown


def _end_of_fence(lines: Sequence[str], start: int, fence: str) -> int:
    """The line after the one that closes it; else the end."""
    ends = (n + 1 for n in range(start + 1, len(lines)) if not fence_after(lines[n], fence))
    return next(ends, len(lines))


def _directive(lines: list[str], start: int, end: int, found: re.Match[str]) -> None:
    """A fence of MyST that is a directive, rendered as reStructuredText's of the same name."""
    last = end - 1 if end - 1 > start else end
    body = lines[start + 1 : last]
    if body and body[0].strip() == "---" and "---" in [each.strip() for each in body[1:]]:
        options = [each.strip() for each in body].index("---", 1) + 1
        body[:options] = [""] * options
    if found["name"] == "eval-rst":
        source = ["", *body, ""]
    else:
        if not is_code(found["name"]):
            body = [_CODE_SPAN.sub(r"``\1``", each) for each in rendered(body, ())]
        source = [f".. {found['name']}:: {found['said']}", *(f"   {each}" for each in body), ""]
    shown, _ = read(source, ())
    lines[start:end] = shown[: end - start] + [""] * (end - start - len(shown))
