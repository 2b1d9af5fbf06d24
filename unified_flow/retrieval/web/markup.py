"""HTML as text, in the sandbox: what a reader sees of a page, without what stands around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from unified_flow.lib.sandbox import Part
from unified_flow.retrieval.formats.html import is_visible

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_AROUND = ("header", "footer", "aside")
_ENOUGH = 200  # characters: less in a <main> means that the page is elsewhere
_BLANK = re.compile(r"\n{3,}")
_PERMALINK = re.compile(r"[¶#🔗]")


def html_parts(data: bytes) -> Iterator[Part]:
    """One part, with the title as its trail."""
    title, text = html_to_markdown(data.decode())
    yield Part((title,), text.split("\n"))


def html_to_markdown(page: str) -> tuple[str, str]:
    """(title, text). Raises RecursionError for elements that lie too deep in one another."""
    from bs4 import BeautifulSoup
    from markdownify import ATX, MarkdownConverter

    soup = BeautifulSoup(page, "lxml")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    for element in soup.find_all(_is_invisible):
        if not element.decomposed:
            element.decompose()
    for link in soup.find_all("a"):
        if _PERMALINK.fullmatch(link.get_text().strip()):
            link.decompose()
    converter = MarkdownConverter(
        heading_style=ATX,
        bullets="-",
        strip=["a", "img", "b", "strong", "em", "i"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    text = converter.convert_soup(_body_of(soup))
    lines = [line.rstrip() for line in text.replace("\xa0", " ").splitlines()]
    return title, _BLANK.sub("\n\n", "\n".join(lines)).strip() + "\n"


def _is_invisible(element: Any) -> bool:
    return not is_visible(element.name, element.attrs)


def _body_of(soup: BeautifulSoup) -> Tag:
    """The element that holds the page itself, else all of it without what stands around."""
    for found in (soup.find_all("main"), soup.find_all(role="main"), soup.find_all("article")):
        if len(found) == 1 and len(found[0].get_text(strip=True)) >= _ENOUGH:
            return found[0]
    body = soup.body or soup
    for element in body.find_all(_AROUND):
        if not element.decomposed and element.find("h1") is None:
            element.decompose()
    return body
