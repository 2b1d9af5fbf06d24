"""What stands before a page: recognised when it is one, and not when it is only spoken of.

The pages are cut down from what the services send; the names of their marks are as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import process_time
from types import MappingProxyType
from typing import Literal, NamedTuple

import pytest

from unified_flow.errors import CaptchaError, PageRefusedError
from unified_flow.retrieval.web.walls import shape_of, wall_of

URL = "https://shop.example/page"
LONG = "<p>" + "This page says a good deal about its subject and is worth reading. " * 40 + "</p>"


def page(body: str, title: str = "", head: str = "") -> str:
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"
    )


class Case(NamedTuple):
    name: str
    kind: Literal["captcha", "login"] | None
    page: str
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    final: str = URL


CLOUDFLARE = page(
    '<noscript>Enable JavaScript and cookies to continue</noscript><div id="challenge-error-text">'
    "</div><script>(function(){window._cf_chl_opt={cvId:'3',cZone:'shop.example'};var a=document"
    ".createElement('script');a.src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1';"
    "}());</script>",
    "Just a moment...",
)
WIDGET_SCRIPT = '<script src="https://www.google.com/recaptcha/api.js" async defer></script>'

WALLS = [
    Case("cloudflare", "captcha", CLOUDFLARE, 403),
    Case("cloudflare by its header", "captcha", "", 403, {"cf-mitigated": "challenge"}),
    Case("cloudflare with 503", "captcha", CLOUDFLARE, 503),
    Case(
        "turnstile alone",
        "captcha",
        page('<h1>One more step</h1><div class="cf-turnstile" data-sitekey="0x4"></div>'),
    ),
    Case(
        "recaptcha alone",
        "captcha",
        page(
            '<form><p>Please continue</p><div class="g-recaptcha" data-sitekey="6L"></div></form>'
        ),
    ),
    Case("recaptcha under 429", "captcha", page(LONG, head=WIDGET_SCRIPT), 429),
    Case(
        "hcaptcha under 403",
        "captcha",
        page('<script src="https://hcaptcha.com/1/api.js"></script><div class=h-captcha></div>'),
        403,
    ),
    Case(
        "unusual traffic",
        "captcha",
        page(
            "<p>Our systems have detected unusual traffic from your computer network. This page "
            "checks to see if it's really you sending the requests, and not a robot.</p>",
            "https://www.google.com/search?q=x",
        ),
        429,
        {},
        "https://www.google.com/sorry/index?continue=x",
    ),
    Case(
        "datadome",
        "captcha",
        page(
            "<p>Please enable JS and disable any ad blocker</p><script>var dd={'rt':'c','cid':'A',"
            "'hsh':'5','t':'bv','host':'geo.captcha-delivery.com'}</script>"
            '<script src="https://ct.captcha-delivery.com/c.js"></script>',
            "shop.example",
        ),
        403,
        {"x-datadome": "protected"},
    ),
    Case(
        "perimeterx",
        "captcha",
        page(
            "<p>Press &amp; Hold to confirm you are a human (and not a bot).</p>"
            "<script>window._pxVid='';window._pxUuid='a';window._pxAppId='PX1';</script>"
            '<script src="https://captcha.px-cdn.net/PX1/captcha.js"></script>',
            "Access to this page has been denied",
        ),
        403,
    ),
    Case(
        "aws waf",
        "captcha",
        page(
            "<script>window.gokuProps={'key':'A','iv':'B','context':'C'}</script>"
            '<script src="https://1.2.captcha.awswaf.com/1/2/captcha.js"></script>'
            '<div id="captcha-container"></div>',
            "Human Verification",
        ),
        405,
        {"x-amzn-waf-action": "captcha"},
    ),
    Case("aws waf, silent", "captcha", "", 202, {"x-amzn-waf-action": "challenge"}),
    Case(
        "amazon",
        "captcha",
        page(
            "<h4>Enter the characters you see below</h4><p>Sorry, we just need to make sure you're "
            "not a robot.</p>",
            "Robot Check",
        ),
    ),
    Case(
        "a redirect to a login",
        "login",
        page("<form><input type=email><input type='password'></form>" + LONG),
        final="https://shop.example/login?next=%2Fpage",
    ),
    Case(
        "a redirect to somebody's sign-in",
        "login",
        page("<p>Sign in to continue</p><input name=email>"),
        final="https://accounts.example.com/v3/signin/identifier?continue=x",
    ),
    Case(
        "a form and nothing else",
        "login",
        page('<h1>Intranet</h1><form><input name=u><input TYPE="password" name=p></form>'),
    ),
    Case(
        "a login with a widget",
        "login",
        page('<form><input type=password><div class="g-recaptcha"></div></form>'),
    ),
]

ORDINARY = [
    Case("an article", None, page(LONG, "Robots")),
    Case("a short page", None, page("<p>It works!</p>", "Welcome")),
    Case("an article on captchas", None, page("<h1>reCAPTCHA and hCaptcha</h1>" + LONG, "CAPTCHA")),
    Case(
        "code about a challenge",
        None,
        page(
            "<h1>Bypassing</h1><pre><code>if '_cf_chl_opt' in html or 'g-recaptcha' in html:"
            '\n  &lt;div class="g-recaptcha"&gt;</code></pre>' + LONG,
        ),
    ),
    Case(
        "a short note on challenges",
        None,
        page("<p>Cloudflare says _cf_chl_opt and <b>Just a moment</b>.</p>", "Notes"),
    ),
    Case("a comment form with a widget", None, page(LONG + '<div class="g-recaptcha"></div>')),
    Case("a widget for every page", None, page(LONG, head=WIDGET_SCRIPT)),
    Case(
        "cloudflare's script on an ordinary page",
        None,
        page(
            "<p>Short.</p><script>a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'</script>"
        ),
        headers={"server": "cloudflare", "cf-ray": "8a"},
    ),
    Case("datadome's header on an ordinary page", None, page(LONG), headers={"x-datadome": "x"}),
    Case(
        "perimeterx's script on an ordinary page",
        None,
        page("<p>Short.</p><script>window._pxAppId='PX1'</script>"),
    ),
    Case("a page with a login in its corner", None, page("<input type=password>" + LONG)),
    Case("a page about logging in", None, page(LONG, "Login"), final="https://shop.example/page"),
    Case("a film called so", None, page(LONG, "Just a moment, a film of 1979")),
    Case("a marked comment", None, page("<!-- <div class=g-recaptcha> --><p>Hello there</p>")),
    Case(
        "a redirect to another page",
        None,
        page("<p>Moved here</p>"),
        final="https://shop.example/blog/post",
    ),
    Case("not found", None, page("<h1>Not Found</h1>"), 404),
    Case("down for a while", None, page("<h1>Down for maintenance</h1>"), 503),
    Case("too many", None, page("<h1>Too Many Requests</h1>"), 429),
    Case("forbidden", None, page("<h1>Forbidden</h1>"), 403),
    Case("a ban", None, page("<h1>Access Denied</h1>You have been blocked."), 403),
    Case("a list of challenges", None, page("<ul id='challenge-list'><li>Chess</li></ul>")),
    Case("no page at all", None, ""),
]


def test_walls() -> None:
    kinds = {"captcha": CaptchaError, "login": PageRefusedError, None: type(None)}
    for case in (*WALLS, *ORDINARY):
        wall = wall_of(URL, case.final, case.status, case.headers, case.page)
        assert type(wall) is kinds[case.kind], case.name


def test_asking_for_the_login_page_itself_is_no_redirect_to_one() -> None:
    login = "https://shop.example/login"
    assert wall_of(login, login, 200, {}, page(LONG)) is None
    assert wall_of(login, "https://shop.example/login/", 200, {}, page("<p>Hello</p>")) is None


@pytest.mark.parametrize(
    "hostile",
    [
        "<" * 600_000,
        "<script>" * 70_000,
        "<!--" * 100_000,
        "<a " + "class=" * 100_000,
        ('<a class="' + "g-" * 990 + '">') * 300,
        "<svg>" * 100_000 + "</svg",
        "<title>" * 70_000,
        "İ" * 10_000 + "<p>text</p>",
        "unusual traffic from your computer " * 15_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_hostile_page_is_read_to_its_end(hostile: str) -> None:
    """What grows with the square of its size would take minutes or hours."""
    started = process_time()
    wall_of(URL, URL, 403, {}, hostile)
    assert process_time() - started < 2


def test_the_shape_of_a_page() -> None:
    shape = shape_of(
        "<html><head><title>A &amp; B</title><style>p {}</style><meta charset=utf-8></head>"
        "<BODY CLASS=X><p>One<b> two</b></p><script>three</script><!-- four --><svg><p>5</svg>six"
    )
    assert shape.title == "A & B"
    assert shape.text == "One two six"
    assert "<body class=x>" in shape.tags
