"""Markdown (CommonMark): ATX and setext headings, outside fences, comments and front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unified_flow.lib.text.blocks import fence_after
from unified_flow.retrieval.formats.chunk import Heading, Section, outlined
from unified_flow.retrieval.formats.markdown_markup import inline, rendered

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
    yield from outlined(rendered(lines, found), found, root=title)


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
