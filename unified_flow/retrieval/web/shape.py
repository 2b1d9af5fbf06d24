"""An HTML page taken apart, roughly and in linear time: enough to tell what kind of page it is."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

MOST = 512 * 1024  # characters that are looked at
_TAG = re.compile(r"<(/?[a-zA-Z][\w:-]{0,30})([^<>]{0,2000})>")
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}  # keeps every place
_UNSEEN = frozenset({"style", "template", "svg", "head", "textarea"})
_CODE = frozenset({"script", "style", "title", "textarea"})


@dataclass(frozen=True)
class Shape:
    """`text` is what a reader sees, on one line; `tags` are the opening tags, lower case, as they
    stand; `scripts` is what stands inside of script elements."""

    title: str
    text: str
    tags: tuple[str, ...]
    scripts: str

    @property
    def words(self) -> int:
        return len(self.text.split())


def shape_of(page: str) -> Shape:
    page = _without_comments(page[:MOST])
    lower = page.translate(_LOWER)
    seen: list[str] = []
    tags: list[str] = []
    inside: dict[str, list[str]] = {name: [] for name in _CODE}
    at = 0
    hidden = ""
    while (tag := _TAG.search(page, at)) is not None:
        name = tag[1].lower()
        if not hidden:
            seen.append(page[at : tag.start()])
        at = tag.end()
        if name == f"/{hidden}" or name == "body":
            hidden = ""
        if name.startswith("/"):
            continue
        tags.append(lower[tag.start() : tag.end()])
        if name in _CODE:
            end = lower.find(f"</{name}", at)
            end = len(page) if end < 0 else end
            inside[name].append(page[at:end])
            at = end
        elif name in _UNSEEN and not hidden:
            hidden = name
    if not hidden:
        seen.append(page[at:])
    return Shape(
        title=_words("".join(inside["title"][:1])),
        text=_words(" ".join(seen)),
        tags=tuple(tags),
        scripts="\n".join(inside["script"]),
    )


def _words(text: str) -> str:
    return " ".join(html.unescape(text).split())


def _without_comments(page: str) -> str:
    pieces: list[str] = []
    at = 0
    while (start := page.find("<!--", at)) >= 0:
        pieces.append(page[at:start])
        end = page.find("-->", start + 4)
        if end < 0:
            return "".join(pieces)
        at = end + 3
    return "".join([*pieces, page[at:]])
