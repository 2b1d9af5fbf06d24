"""Pages that a site sends instead of the page: a captcha, a login, a refusal of programs.

The word "captcha" proves nothing: articles are written about it, and ordinary pages carry the
widgets in their forms. What counts is a mark that only a challenge has, or a widget (or a form
for a password) on a page that says nothing else, or under a status of refusal.
"""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from unified_flow.errors import CaptchaError, PageRefusedError

OPEN_IT = "Open it in a browser, save the page, and add the file to the documents."
MOST_CHARS = 512 * 1024  # characters that are looked at
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"<[a-zA-Z][^<>]{0,2000}>|</[^<>]{0,2000}>")
# What is code, or shows nothing. One that nothing closes goes on to the end, so that time grows
# with the text and no faster.
_CODE = re.compile(
    r"<(script|style|title|textarea)\b[^<>]{0,2000}>(.*?)(?:</\1[^<>]{0,2000}>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_UNSEEN = re.compile(
    r"<(template|svg|head)\b[^<>]{0,2000}>.*?(?:</\1[^<>]{0,2000}>|(?=<body\b)|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_PASSWORD = re.compile(r"<input\b[^>]*\btype=[\"']?password\b")
REFUSING = frozenset({202, 401, 403, 405, 406, 418, 429, 503})
LITTLE = 120  # words: a challenge has fewer, a page that is worth reading more

Kind = Literal["captcha", "login", "blocked"]


@dataclass(frozen=True)
class Wall:
    """`why` names what was recognised, in a few words."""

    kind: Kind
    why: str


_MARKS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_PATTERNS = {
    name: re.compile(pattern.replace("\n", ""), re.IGNORECASE)
    for name, pattern in _MARKS["patterns"].items()
}


def wall_of(
    url: str, final: str, status: int, headers: Mapping[str, str], page: str
) -> Wall | None:
    """What was sent instead of the page, if anything was. `headers` has lower-case names; `page`
    is HTML, or empty for anything else; `final` is where redirects ended."""
    for name, values in _MARKS["headers"].items():
        if headers.get(name, "").strip().lower() in values:
            return Wall("captcha", f"the header {name} says so")
    shape = shape_of(page)
    if (why_captcha := _captcha(status, shape)) is not None:
        return Wall("captcha", why_captcha)
    if (why_login := _login(url, final, status, headers, shape)) is not None:
        return Wall("login", why_login)
    if status in REFUSING and (match := _PATTERNS["blocked"].search(f"{shape.title} {shape.text}")):
        return Wall("blocked", f"status {status} and the words {match[0]!r}")
    return None


def _captcha(status: int, shape: Shape) -> str | None:
    if status not in REFUSING and shape.words >= LITTLE:
        return None
    if mark := _PATTERNS["scripts"].search(shape.scripts):
        return f"{mark[0]!r} in its scripts marks a challenge"
    # A short page with a widget and a form for a password is a login, not a challenge.
    is_login = status == 200 and shape.asks_for_password
    if (widget := _PATTERNS["widgets"].search("\n".join(shape.tags))) and not is_login:
        return f"{widget[0]!r} in a tag marks a captcha"
    match = _PATTERNS["challenge"].search(f"{shape.title} {shape.text}")
    return f"the words {match[0]!r}" if match else None


def _login(
    url: str, final: str, status: int, headers: Mapping[str, str], shape: Shape
) -> str | None:
    if status == 401 or (status == 403 and "www-authenticate" in headers):
        return f"status {status}"
    password = shape.asks_for_password
    if status < 400 and _leads_to_login(url, final) and (password or shape.words < LITTLE):
        return "a redirect to a page for logging in"
    if password and shape.words < LITTLE:
        return "a form for a password and nothing else"
    return None


def _leads_to_login(url: str, final: str) -> bool:
    before, after = (f"{parts.hostname}{parts.path}" for parts in map(urlsplit, (url, final)))
    login = _PATTERNS["login"]
    return login.search(after) is not None and login.search(before) is None


@dataclass(frozen=True)
class Shape:
    """`text` is what a reader sees, on one line; `tags` are the opening tags, lower case, as they
    are in the page; `scripts` is the content of script elements."""

    title: str
    text: str
    tags: tuple[str, ...]
    scripts: str

    @property
    def words(self) -> int:
        return len(self.text.split())

    @property
    def asks_for_password(self) -> bool:
        return any(_PASSWORD.match(tag) for tag in self.tags)


def shape_of(page: str) -> Shape:
    page = _COMMENT.sub("", page[:MOST_CHARS])
    code = [(match[1].lower(), match[2]) for match in _CODE.finditer(page)]
    bare = _CODE.sub(lambda match: match[0][: match.start(2) - match.start()], page)
    seen = _TAG.sub(" ", _UNSEEN.sub(" ", bare))
    return Shape(
        title=_words(next((text for name, text in code if name == "title"), "")),
        text=_words(seen),
        tags=tuple(tag.lower() for tag in _TAG.findall(bare) if tag[1] != "/"),
        scripts="\n".join(text for name, text in code if name == "script"),
    )


def _words(text: str) -> str:
    return " ".join(html.unescape(text).split())


def raise_for_wall(
    url: str, final: str, status: int, headers: Mapping[str, str], page: str
) -> None:
    """Raises CaptchaError or PageRefusedError for what was sent instead of the page."""
    lower = {name.lower(): value for name, value in headers.items()}
    wall = wall_of(url, final, status, lower, page)
    if wall is None:
        return
    where = url if url == final else f"{url} (at {final})"
    wants = {"captcha": "wants to see a person", "login": "wants a login"}
    message = f"{where} {wants.get(wall.kind, 'lets no program in')}: {wall.why}"
    error = CaptchaError if wall.kind == "captcha" else PageRefusedError
    raise error(message, url=final, hint=OPEN_IT)
