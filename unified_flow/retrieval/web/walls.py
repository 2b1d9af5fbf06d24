"""Pages that a site sends instead of the page: a captcha, a login, a refusal of programs.

The word "captcha" proves nothing: articles are written about it, and ordinary pages carry the
widgets in their forms. What counts is a mark that only a challenge has, or a widget (or a form
for a password) on a page that says nothing else, or under a status of refusal.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from unified_flow.errors import CaptchaError, PageRefusedError

OPEN_IT = "Open it in a browser, save the page, and add the file to the documents."
MOST_CHARS = 512 * 1024  # characters that are looked at
_TAG = re.compile(r"<(/?[a-zA-Z][\w:-]{0,30})([^<>]{0,2000})>")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}  # keeps every place
_UNSEEN = frozenset({"style", "template", "svg", "head", "textarea"})
_CODE = frozenset({"script", "style", "title", "textarea"})
REFUSING = frozenset({401, 403, 405, 406, 418, 429, 503})
LITTLE = 120  # words: a challenge has fewer, a page that is worth reading more
SHORT = 300  # words of a page whose title says that it is a challenge

Kind = Literal["captcha", "login", "blocked"]


@dataclass(frozen=True)
class Wall:
    """`why` names what was recognised, in a few words."""

    kind: Kind
    why: str


# In a response header: nobody sends these with a page.
_HEADERS = {"cf-mitigated": ("challenge",), "x-amzn-waf-action": ("captcha", "challenge")}
# In the scripts of a challenge, and of nothing else.
_SCRIPTS = re.compile(r"_cf_chl_opt|gokuProps|_pxUuid|captcha-delivery\.com")
# In a tag: widgets that ordinary pages have too.
_WIDGETS = re.compile(
    r"\b(?:g-re|h-|px-)captcha\b|\bcf-turnstile\b|/recaptcha/(?:api|enterprise)\.js"
    r"|\b(?:hcaptcha\.com|captcha-delivery\.com|challenges\.cloudflare\.com/turnstile)\b"
    r"|\b(?:captcha|token)\.awswaf\.com\b|\b_incapsula_resource\b"
    r"|\b(?:arkoselabs|funcaptcha|geetest)\.com\b"
)
_CHALLENGE_TITLE = re.compile(
    r"just a moment|attention required|are you (?:a )?(?:human|robot)|robot check|bot verification"
    r"|verify(?:ing)? (?:that )?you(?:'re| are) (?:a )?human|human verification|security check"
    r"|pardon our interruption|captcha|ddos-guard|checking your browser|one more step",
    re.IGNORECASE,
)
_UNUSUAL_TRAFFIC = re.compile(
    r"unusual traffic from your (?:computer )?network|verify (?:that )?you(?:'re| are) (?:a )?human"
    r"|(?:prove|confirm) (?:that )?you(?:'re| are) (?:not a (?:robot|bot)|(?:a )?human)"
    r"|checking your browser before accessing|press (?:&|and) hold to confirm"
    r"|enter the characters you see|complete the (?:security check|captcha)",
    re.IGNORECASE,
)
_BLOCKED = re.compile(
    r"\bautomated (?:access|requests?|queries|traffic|tools?)\b|\bbots? (?:are|is) not allowed\b"
    r"|\b(?:bot|crawler|scraper|scraping) (?:activity|traffic|detected|detection)\b"
    r"|\byou have been blocked\b|\byour (?:ip|request|access) (?:address )?(?:has been|was|is) "
    r"(?:temporarily )?(?:blocked|banned|denied)\b|\baccess denied\b",
    re.IGNORECASE,
)
_PASSWORD = re.compile(r"<input\b[^>]*\btype=[\"']?password\b")
_LOGIN_PATH = re.compile(
    r"(?:^|[/._-])(?:log[_-]?[io]n|sign[_-]?in|auth(?:orize|enticate)?|oauth2?|sso|saml2?|session/new"
    r"|wp-login|accounts?/login|adfs)(?:$|[/._?-])",
    re.IGNORECASE,
)
_LOGIN_HOST = re.compile(
    r"^(?:login|signin|sso|auth|idp|accounts|adfs)\.|\.okta\.com$|\.auth0\.com$|\.onelogin\.com$",
    re.IGNORECASE,
)


def wall_of(
    url: str, final: str, status: int, headers: Mapping[str, str], page: str
) -> Wall | None:
    """What was sent instead of the page, if anything was. `headers` has lower-case names; `page`
    is HTML, or empty for anything else; `final` is where redirects ended."""
    for name, values in _HEADERS.items():
        if headers.get(name, "").strip().lower() in values:
            return Wall("captcha", f"the header {name} says so")
    shape = shape_of(page)
    if (why_captcha := _captcha(status, shape)) is not None:
        return Wall("captcha", why_captcha)
    if (why_login := _login(url, final, status, headers, shape)) is not None:
        return Wall("login", why_login)
    if status in REFUSING and (match := _BLOCKED.search(f"{shape.title} {shape.text}")):
        return Wall("blocked", f"status {status} and the words {match[0]!r}")
    return None


def _captcha(status: int, shape: Shape) -> str | None:
    refusing = status in REFUSING or status == 202
    if refusing or shape.words < SHORT:
        if mark := _SCRIPTS.search(shape.scripts):
            return f"{mark[0]!r} in its scripts marks a challenge"
        if _CHALLENGE_TITLE.search(shape.title) and _UNUSUAL_TRAFFIC.search(
            f"{shape.title} {shape.text}"
        ):
            return f"a page called {shape.title[:60]!r}"
    if refusing or shape.words < LITTLE:
        # A short page with a widget and a form for a password is a login, not a challenge.
        is_login = status == 200 and shape.asks_for_password
        if (widget := _WIDGETS.search("\n".join(shape.tags))) and not is_login:
            return f"{widget[0]!r} in a tag marks a captcha"
        if match := _UNUSUAL_TRAFFIC.search(shape.text):
            return f"the words {match[0]!r}"
    return None


def _login(
    url: str, final: str, status: int, headers: Mapping[str, str], shape: Shape
) -> str | None:
    if status == 401 or (status == 403 and "www-authenticate" in headers):
        return f"status {status}"
    password = shape.asks_for_password
    if status < 400 and _leads_to_login(url, final) and (password or shape.words < SHORT):
        return "a redirect to a page for logging in"
    if password and shape.words < LITTLE:
        return "a form for a password and nothing else"
    return None


def _leads_to_login(url: str, final: str) -> bool:
    before, after = urlsplit(url), urlsplit(final)
    if (before.hostname, before.path) == (after.hostname, after.path):
        return False
    to_login = bool(_LOGIN_PATH.search(after.path) or _LOGIN_HOST.search(after.hostname or ""))
    from_login = bool(_LOGIN_PATH.search(before.path) or _LOGIN_HOST.search(before.hostname or ""))
    return to_login and not from_login


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
