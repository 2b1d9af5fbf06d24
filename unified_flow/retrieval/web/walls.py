"""Pages that a site sends instead of the page: a captcha or a login.

The word "captcha" proves nothing: articles are written about it, and ordinary pages carry the
widgets in their forms. What counts is a header that only a challenge has, or a widget (or a field
for a password) on a page that says nothing else, or under a status of refusal.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
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

_CHALLENGES = ("cf-mitigated", "x-amzn-waf-action")  # headers that nobody sends with a page
_WIDGET = re.compile(r"captcha|turnstile|challenge-(?:error|form|platform)")
_PROOF = re.compile(
    r"\bnot a (?:ro)?bot\b|\byou(?:'re| are) (?:a )?human\b|\bunusual traffic\b", re.IGNORECASE
)
_LOGIN = re.compile(
    r"(?<![a-z])(?:log[_-]?[io]n|sign[_-]?in|sso|o?auth2?|saml2?)(?![a-z])", re.IGNORECASE
)


def wall_of(
    url: str, final: str, status: int, headers: Mapping[str, str], page: str
) -> CaptchaError | PageRefusedError | None:
    """What was sent instead of the page, if anything was, as the error to raise. `headers` has
    names in lower case, or takes them in any; `page` is HTML, or empty for anything else; `final`
    is where redirects ended."""
    where = url if url == final else f"{url} (at {final})"

    def captcha(why: str) -> CaptchaError:
        return CaptchaError(f"{where} wants to see a person: {why}", url=final, hint=OPEN_IT)

    def login(why: str) -> PageRefusedError:
        return PageRefusedError(f"{where} wants a login: {why}", url=final, hint=OPEN_IT)

    for name in _CHALLENGES:
        if headers.get(name, "").strip().lower() in ("captcha", "challenge"):
            return captcha(f"the header {name} says so")
    shape = shape_of(page)
    says_little = len(shape.text.split()) < LITTLE
    asks_for_password = any(map(_PASSWORD.match, shape.tags))
    if says_little or status in REFUSING:
        # A short page with a widget and a field for a password is a login.
        is_login = status == 200 and asks_for_password
        if (widget := _WIDGET.search("\n".join(shape.tags))) and not is_login:
            return captcha(f"{widget[0]!r} in a tag marks a captcha")
        if proof := _PROOF.search(f"{shape.title} {shape.text}"):
            return captcha(f"the words {proof[0]!r}")
    if status < 400 and _leads_to_login(url, final) and (asks_for_password or says_little):
        return login("a redirect to a page for logging in")
    if asks_for_password and says_little:
        return login("a form for a password and nothing else")
    return None


def _leads_to_login(url: str, final: str) -> bool:
    before, after = (f"{parts.hostname}{parts.path}" for parts in map(urlsplit, (url, final)))
    return _LOGIN.search(after) is not None and _LOGIN.search(before) is None


@dataclass(frozen=True)
class Shape:
    """`text` is what a reader sees, on one line; `tags` are the opening tags in lower case."""

    title: str
    text: str
    tags: tuple[str, ...]


def shape_of(page: str) -> Shape:
    page = _COMMENT.sub("", page[:MOST_CHARS])
    titles = (each[2] for each in _CODE.finditer(page) if each[1].lower() == "title")
    bare = _CODE.sub(lambda match: match[0][: match.start(2) - match.start()], page)
    return Shape(
        title=_words(next(titles, "")),
        text=_words(_TAG.sub(" ", _UNSEEN.sub(" ", bare))),
        tags=tuple(tag.lower() for tag in _TAG.findall(bare) if tag[1] != "/"),
    )


def _words(text: str) -> str:
    return " ".join(html.unescape(text).split())
