"""Fetching pages from real servers on loopback, which do what hostile ones do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence

import httpx
import pytest
import trustme

from tests.servers import web_server as site
from tests.servers.web_server import WebServer
from unified_flow.config.tables import ResearchSettings
from unified_flow.errors import (
    AddressRefusedError,
    CaptchaError,
    PageError,
    PageRefusedError,
    PageTimeoutError,
    PageUnusableError,
)
from unified_flow.retrieval.web import Page
from unified_flow.retrieval.web.fetch import Network, fetch, system_resolver

Resolver = Callable[[str, int], Sequence[str]]

ARTICLE = "<main><h1>Robots</h1><p>" + "A topic is a named bus. " * 20 + "</p></main>"


def get(url: str, policy: ResearchSettings, resolve: Resolver = system_resolver) -> Page:
    return asyncio.run(fetch(url, policy, network=Network(resolve)))


def failure(url: str, policy: ResearchSettings, resolve: Resolver = system_resolver) -> PageError:
    with pytest.raises(PageError) as caught:
        get(url, policy, resolve)
    return caught.value


# What comes


def test_a_page_comes_as_text_with_its_title() -> None:
    pages = {"/robots": site.html("<nav>Home</nav>" + ARTICLE, title="On robots")}
    with WebServer(pages) as server:
        page = get(server.url("/robots#part"), server.policy())
    assert page.title == "On robots"
    assert page.text.startswith("# Robots\n\nA topic is a named bus.")
    assert "Home" not in page.text
    assert page.content_type == "text/html"
    assert page.url == server.url("/robots#part")
    assert page.final_url == server.url("/robots")
    assert page.bytes > 400


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"plain words", "text/plain", "plain words"),
        ("sm\xf6rg\xe5s".encode("latin-1"), "text/plain; charset=iso-8859-1", "smörgås"),
        ("smörgås".encode(), "text/plain", "smörgås"),
        ("smörgås".encode("utf-16"), "text/plain", "smörgås"),
        ("smörgås".encode("utf-16-le"), "text/plain; charset=utf-16-le", "smörgås"),
        (b'{"a": [1, 2]}', "application/json", '{"a": [1, 2]}'),
        (b'{"a": 1}\n{"a": 2}\n', "application/x-ndjson", '{"a": 2}'),
        (b"<?xml version='1.0'?><a>b</a>", "application/xml", "<a>b</a>"),
        (b"no type at all", "", "no type at all"),
    ],
)
def test_other_kinds_of_text(body: bytes, content_type: str, text: str) -> None:
    with WebServer({"/": site.reply(body, content_type)}) as server:
        assert text in get(server.url(), server.policy()).text


def test_a_charset_in_the_page_itself() -> None:
    body = "<html><head><meta charset=windows-1251></head><body><p>Привет, мир</p></body></html>"
    with WebServer({"/": site.reply(body.encode("cp1251"), "text/html")}) as server:
        assert get(server.url(), server.policy()).text == "Привет, мир\n"


@pytest.mark.parametrize("kind", ["image/png", "application/zip", "application/octet-stream"])
def test_what_holds_no_text(kind: str) -> None:
    with WebServer({"/": site.reply(b"\x00\x01\x02\x03", kind)}) as server:
        error = failure(server.url(), server.policy())
    assert isinstance(error, PageUnusableError)
    assert server.url() in str(error)


def test_a_page_that_only_scripts_fill() -> None:
    pages = {"/": site.html("<div id=root></div><script>render()</script>")}
    with WebServer(pages) as server:
        error = failure(server.url(), server.policy())
    assert "holds no text" in str(error)
    assert error.hint is not None


# Redirects


def test_redirects_are_followed_and_nothing_is_carried_along() -> None:
    pages = {
        "/a": site.redirect("/b", set_cookie="id=1; Path=/"),
        "/b": site.redirect("c?x=1", status=308),
        "/c?x=1": site.html(ARTICLE),
    }
    with WebServer(pages) as server:
        page = get(server.url("/a"), server.policy())
    assert server.asked == ["/a", "/b", "/c?x=1"]
    assert page.final_url == server.url("/c?x=1")
    sent = {name.lower() for request in server.requests for name in request.headers}
    assert not sent & {"cookie", "authorization", "referer", "proxy-authorization"}


def test_a_loop_of_redirects_ends() -> None:
    with WebServer({"/": site.redirect("/")}) as server:
        error = failure(server.url(), server.policy(max_redirects=3))
    assert "more than 3 times" in str(error)
    assert len(server.asked) == 4


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://host/x", "gopher://host/", "https:x"])
def test_a_redirect_to_what_is_no_web_page(to: str) -> None:
    with WebServer({"/": site.redirect(to)}) as server:
        assert isinstance(failure(server.url(), server.policy()), PageError)
    assert server.asked == ["/"]


def test_a_redirect_to_a_private_address_is_not_followed() -> None:
    with (
        WebServer({"/": site.html("secret")}, host="127.0.0.2") as private,
        WebServer({"/": site.redirect(private.url())}) as server,
    ):
        error = failure(server.url(), server.policy(ports=[80, private.port]))
    assert isinstance(error, AddressRefusedError)
    assert error.url == private.url()
    assert private.asked == []


# Where it may go


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "example.org/page",
        "//example.org/",
        "http://",
        "http://user:pass@example.org/",
        "http://token@example.org/",
        "http://example.org:22/",
        "http://example.org:99999/",
        "http://exa mple.org/",
        "http://example.org/\nHost: x",
        "http://" + "x" * 3000,
    ],
)
def test_no_address_for_a_page(url: str) -> None:
    def never(host: str, port: int) -> Sequence[str]:
        raise AssertionError("nothing is to be resolved")

    error = failure(url, ResearchSettings(), never)
    assert isinstance(error, AddressRefusedError)
    assert "pass@" not in f"{error} {error.hint} {error.url}"


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "0", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_no_way_to_write_it_reaches_loopback(host: str) -> None:
    with WebServer({"/": site.html("secret")}) as server:
        policy = ResearchSettings(ports=[server.port])
        with pytest.raises((AddressRefusedError, httpx.ConnectError)):
            get(f"http://{host}:{server.port}/", policy)
    assert server.asked == []


def test_a_private_address_says_how_it_can_be_allowed() -> None:
    with WebServer({"/": site.html(ARTICLE)}) as server:
        error = failure(server.url(), ResearchSettings(ports=[server.port]))
        assert "127.0.0.1 is loopback" in str(error)
        assert f'allow_private = ["127.0.0.1:{server.port}"]' in str(error.hint)
        allowed = ResearchSettings(allow_private=[f"127.0.0.1:{server.port}"])
        assert get(server.url(), allowed).text


class Changing:
    """DNS that gives another answer each time."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


def test_dns_that_changes_between_the_check_and_the_use() -> None:
    """The name is good when it is checked and leads to a private server ever after."""
    with (
        WebServer({"/": site.html(ARTICLE)}) as good,
        WebServer({"/": site.html("secret")}, host="127.0.0.2", port=good.port) as private,
    ):
        resolver = Changing([good.host], [private.host])
        page = get(good.url(host="rebinding.example"), good.policy(), resolver)
    assert page.text.startswith("# Robots")
    assert resolver.asked == ["rebinding.example"]
    assert good.requests[0].headers["Host"] == f"rebinding.example:{good.port}"
    assert private.asked == []


def test_dns_that_changes_between_two_hops() -> None:
    with (
        WebServer({"/": site.redirect("/secret")}) as good,
        WebServer({"/secret": site.html("x")}, host="127.0.0.2", port=good.port) as private,
    ):
        resolver = Changing([good.host], [private.host])
        error = failure(good.url(host="rebinding.example"), good.policy(), resolver)
    assert isinstance(error, AddressRefusedError)
    assert resolver.asked == ["rebinding.example"] * 2
    assert private.asked == []


def test_a_name_with_a_private_address_among_others_is_not_asked_at_all() -> None:
    with (
        WebServer({"/": site.html(ARTICLE)}) as good,
        WebServer({"/": site.html("x")}, host="127.0.0.2", port=good.port) as private,
    ):
        resolver = Changing([good.host, private.host])
        failure(good.url(host="trap.example"), good.policy(), resolver)
    assert good.asked == private.asked == []


def test_the_next_address_is_tried_when_nobody_listens() -> None:
    with WebServer({"/": site.html(ARTICLE)}) as server:
        resolver = Changing(["127.0.0.3", server.host])
        policy = server.policy(allow_private=[f"127.0.0.3:{server.port}"])
        assert get(server.url(host="two.example"), policy, resolver).text


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with WebServer() as proxy, WebServer({"/": site.html(ARTICLE)}) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        assert get(server.url(), server.policy()).text
    assert proxy.asked == []


def test_a_name_that_nobody_knows() -> None:
    def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(httpx.ConnectError, match=r"nowhere\.example is not known"):
        get("http://nowhere.example/", ResearchSettings(), unknown)


# How much and how long


def test_a_bomb_is_not_unpacked() -> None:
    with WebServer({"/": site.bomb(20)}) as server:
        error = failure(server.url(), server.policy(max_bytes=1024 * 1024))
    assert "larger than 1 MiB" in str(error)


def test_a_body_without_end_is_left() -> None:
    with WebServer({"/": site.endless()}) as server:
        error = failure(server.url(), server.policy(max_bytes=256 * 1024))
    assert "larger than 0.25 MiB" in str(error)


def test_a_size_that_is_announced_is_believed_before_it_is_read() -> None:
    with WebServer({"/": site.cut()}) as server:  # announces 1,000 bytes, and sends a few
        error = failure(server.url(), server.policy(max_bytes=999))
    assert isinstance(error, PageUnusableError)
    assert "larger than" in str(error)


@pytest.mark.parametrize("slow", [site.trickle(), site.silence()])
def test_the_deadline_is_for_everything_together(slow: site.Behaviour) -> None:
    with WebServer({"/": slow}) as server:
        error = failure(server.url(), server.policy(timeout_s=0.3))
    assert isinstance(error, PageTimeoutError)
    assert server.url() in str(error)


def test_a_resolver_that_hangs_is_not_waited_for() -> None:
    with WebServer() as server:

        def hangs(host: str, port: int) -> Sequence[str]:
            server.closing.wait()
            return []

        error = failure("http://slow.example/", ResearchSettings(timeout_s=0.2), hangs)
    assert isinstance(error, PageTimeoutError)


def test_elements_nested_without_end() -> None:
    with WebServer({"/": site.html("<div>" * 20_000 + "x")}) as server:
        assert get(server.url(), server.policy()).text.strip().endswith("x")


def test_a_connection_that_breaks_names_the_page() -> None:
    with (
        WebServer({"/": site.cut()}) as server,
        pytest.raises(httpx.RemoteProtocolError) as caught,
    ):
        get(server.url(), server.policy())
    assert server.url() in str(caught.value)


def test_an_encoding_that_nobody_asked_for() -> None:
    pages = {"/": site.reply(b"\x1b\x00", headers={"Content-Encoding": "br"})}
    with WebServer(pages) as server:
        assert "'br'" in str(failure(server.url(), server.policy()))


# What the site says


@pytest.mark.parametrize("status", [404, 410, 429, 500, 503])
def test_a_status_is_an_error_with_the_name_that_was_asked(status: int) -> None:
    with WebServer({"/": site.html("<p>sorry</p>", status=status)}) as server:
        url = server.url(host="shop.example")
        with pytest.raises(httpx.HTTPStatusError) as caught:
            get(url, server.policy(), Changing([server.host]))
    assert caught.value.response.status_code == status
    assert url in str(caught.value)


def test_a_captcha_a_login_and_a_refusal_say_where_they_stand() -> None:
    pages = {
        "/captcha": site.html("<p>Wait</p>", status=403, cf_mitigated="challenge"),
        "/private": site.redirect("/login?next=/private"),
        "/login?next=/private": site.html("<form><input name=u><input type=password></form>"),
        "/no": site.html("<p>Forbidden</p>", status=403),
        "/who": site.html("", status=401, www_authenticate="Basic realm=x"),
    }
    with WebServer(pages) as server:
        captcha = failure(server.url("/captcha"), server.policy())
        login = failure(server.url("/private"), server.policy())
        refusal = failure(server.url("/no"), server.policy())
        unknown = failure(server.url("/who"), server.policy())
    assert isinstance(captcha, CaptchaError)
    assert captcha.url == server.url("/captcha")
    assert isinstance(login, PageRefusedError)
    assert server.url("/private") in str(login)
    assert login.url == server.url("/login?next=/private")
    assert isinstance(refusal, PageRefusedError)
    assert isinstance(unknown, PageRefusedError)
    assert "401 Unauthorized" in str(unknown)
    for error in (captcha, login, refusal, unknown):
        assert error.url in str(error)
        assert error.hint is not None


@pytest.mark.parametrize("body", [b'{"a": 1}\n{"b": 2}\n', b"[" * 100_000, b"no JSON"])
def test_json_stays_as_it_came(body: bytes) -> None:
    with WebServer({"/": site.reply(body, "application/json")}) as server:
        assert get(server.url(), server.policy()).text == body.decode()


def test_the_deadline_holds_while_html_is_read() -> None:
    # The comment is all that is looked at for a wall, which is quick.
    body = b"<!--" + b"x" * 600_000 + b"-->" + b"<p>words " * 400_000

    async def ticks_while_fetched(url: str, policy: ResearchSettings) -> int:
        fetching = asyncio.ensure_future(fetch(url, policy))
        ticks = 0
        while not fetching.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert isinstance(fetching.exception(), PageTimeoutError)
        return ticks

    with WebServer({"/": site.reply(body, "text/html")}) as server:
        ticks = asyncio.run(ticks_while_fetched(server.url(), server.policy(timeout_s=2.0)))
    assert ticks > 3, "other turns go on meanwhile"


def test_more_text_than_any_page_holds() -> None:
    body = b"words " * 3_000_000
    with WebServer({"/": site.reply(body, "application/json")}) as server:
        error = failure(server.url(), server.policy(max_bytes=50_000_000))
    assert isinstance(error, PageUnusableError)
    assert "more text than any page holds" in str(error)


# https


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def _speaks_for(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def _trusts(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_https_is_spoken_with_the_name_to_the_checked_address(authority: trustme.CA) -> None:
    tls = _speaks_for(authority, "good.example")
    with WebServer({"/": site.html(ARTICLE)}, tls=tls) as server:
        network = Network(Changing([server.host]), lambda: _trusts(authority))
        good, other = (
            fetch(server.url(host=host), server.policy(), network=network)
            for host in ("good.example", "other.example")
        )
        assert asyncio.run(good).text.startswith("# Robots")
        with pytest.raises(httpx.ConnectError, match=r"certificate verify failed.*other\.example"):
            asyncio.run(other)
    assert server.asked == ["/"]


def test_a_certificate_that_nobody_vouches_for(authority: trustme.CA) -> None:
    tls = _speaks_for(authority, "good.example")
    with (
        WebServer({"/": site.html(ARTICLE)}, tls=tls) as server,
        pytest.raises(httpx.ConnectError, match="certificate verify failed"),
    ):
        get(server.url(host="good.example"), server.policy(), Changing([server.host]))
    assert server.asked == []
