"""Pages for the document index, and the policy that the settings make."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.office import write_pdf
from tests.servers import web_server as site
from tests.servers.web_server import WebServer
from unified_flow.config.allowed_addresses import parse_allowed
from unified_flow.config.settings import load
from unified_flow.errors import ConfigError, PageError
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_update import UpdateOptions
from unified_flow.retrieval.web.fetch import fetch
from unified_flow.retrieval.web_pages import page_fetcher

ROBOTS = "<h1>Robots</h1><h2>Topics</h2><p>A topic is a named bus over which nodes talk.</p>"


def test_pages_lie_in_the_index_beside_files(docs: Path, tmp_path: Path) -> None:
    with WebServer({"/robots": site.html(ROBOTS, title="On robots")}) as server:
        url = server.url("/robots")
        with Index.open(tmp_path / "index") as index:
            report = index.update([docs, url], UpdateOptions(fetch=page_fetcher(server.policy())))
            assert not report.skipped
            found = index.search("named bus over which nodes talk")
    assert url in {passage.path for passage in found}


@pytest.mark.parametrize("what", ["gone", "slow", "private"])
def test_a_page_that_cannot_be_had_says_which_and_why(what: str) -> None:
    with WebServer({"/slow": site.silence()}) as server:
        url = server.url(f"/{what}", host="127.0.0.2" if what == "private" else None)
        with pytest.raises(PageError) as caught:
            page_fetcher(server.policy(timeout_s=0.3))(url)
    assert url in str(caught.value)


def test_nobody_listens() -> None:
    with WebServer() as server:
        policy, url = server.policy(), server.url()
    with pytest.raises(PageError) as caught:
        page_fetcher(policy)(url)
    assert url in str(caught.value)


def test_a_pdf_is_read_by_the_documents_converter(tmp_path: Path) -> None:
    pdf = write_pdf(tmp_path / "a.pdf", [["A topic is a named bus."], ["A service is a call."]])
    with WebServer({"/a": site.reply(pdf.read_bytes(), "application/pdf")}) as server:
        page = asyncio.run(fetch(server.url("/a"), server.policy()))
    assert "A topic is a named bus." in page.text
    assert "A service is a call." in page.text
    assert page.content_type == "application/pdf"


def test_a_pdf_that_is_none() -> None:
    pages = {"/a": site.reply(b"%PDF-1.4 nonsense", "application/pdf")}
    with WebServer(pages) as server, pytest.raises(PageError, match="cannot be read"):
        asyncio.run(fetch(server.url("/a"), server.policy()))


def test_the_settings(home: Path) -> None:
    (home / "unified_flow.toml").write_text(
        '[research]\nallow_private = ["10.0.0.5", "intranet.example:8080"]\n'
        "ports = [443]\ntimeout_s = 3\nmax_bytes = 1000\nmax_redirects = 0\n"
    )
    policy = load(home).research
    assert (policy.timeout_s, policy.max_bytes, policy.max_redirects) == (3.0, 1000, 0)
    assert policy.ports == [443]
    allowed = map(parse_allowed, policy.allow_private)
    assert [(entry.network, entry.host, entry.port) for entry in allowed] == [
        ("10.0.0.5/32", None, None),
        (None, "intranet.example", 8080),
    ]


@pytest.mark.parametrize("entry", ["http://10.0.0.5", "10.0.0.999", "*", "host:port"])
def test_a_setting_that_allows_nothing_is_an_error(home: Path, entry: str) -> None:
    (home / "unified_flow.toml").write_text(f'[research]\nallow_private = ["{entry}"]\n')
    with pytest.raises(ConfigError, match=r"research\.allow_private"):
        load(home)
