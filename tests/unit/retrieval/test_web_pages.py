"""Web pages in an index: fetched from a real server, kept, and kept apart from what they cite."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError

import pytest

from unified_flow.errors import PageUnusableError
from unified_flow.retrieval import store
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.web_pages import Page


class Site(ThreadingHTTPServer):
    """`pages` maps a path to its text; `asked` counts the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages = {"/pump": "The pump of the fountain is oiled in spring."}
        self.asked: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"

    def fetch(self, url: str) -> Page:
        try:
            with urllib.request.urlopen(url) as reply:
                text = reply.read().decode()
        except HTTPError as exc:
            raise PageUnusableError(f"{exc.code} from {url}", url=url) from exc
        return Page(url, "Fountains", text, datetime.now(UTC))


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        text = self.server.pages.get(self.path)
        self.send_response(404 if text is None else 200)
        self.end_headers()
        self.wfile.write((text or "gone").encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.open(tmp_path / "state" / "index") as opened:
        yield opened


def test_a_page_stands_beside_files_and_is_cited_by_its_address(
    index: Index, site: Site, docs: Path
) -> None:
    report = index.update([docs, site.url("/pump")], fetch=site.fetch)
    assert (report.files, report.added) == (3, 3)
    (passage,) = index.search("When is the pump oiled?", limit=1)
    assert passage.source() == site.url("/pump") + "#L3"
    assert passage.heading == "Fountains"
    assert index.search("topics")[0].path == "docs/robots.md"


def test_it_is_fetched_once_and_again_when_that_is_asked_for(index: Index, site: Site) -> None:
    address = site.url("/pump")
    for _ in range(3):
        assert index.update([address], fetch=site.fetch).files == 1
    assert site.asked == ["/pump"]
    site.pages["/pump"] = "The pump of the fountain is oiled in autumn."
    report = index.update([address], fetch=site.fetch, fetch_again=True)
    assert report.changed == 1
    assert "autumn" in index.search("pump")[0].text
    assert index.update([address], fetch=site.fetch, fetch_again=True).unchanged == 1


def test_a_page_that_has_gone_stays_as_it_was_and_that_is_said(index: Index, site: Site) -> None:
    address = site.url("/pump")
    index.update([address], fetch=site.fetch)
    site.pages.clear()
    report = index.update([address], fetch=site.fetch, fetch_again=True)
    assert report.skipped == ((address, f"not fetched: 404 from {address}"),)
    assert "spring" in index.search("pump")[0].text


def test_a_page_that_never_came_is_skipped(index: Index, site: Site, docs: Path) -> None:
    report = index.update([docs, site.url("/no")], fetch=site.fetch)
    assert report.files == 2
    assert dict(report.skipped)[site.url("/no")].startswith("not fetched: 404")
    assert index.update([docs, site.url("/pump")]).skipped == (
        (site.url("/pump"), "web pages are not fetched here"),
    )


def test_an_index_of_another_version_needs_no_network(
    index: Index, site: Site, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.update([docs, site.url("/pump")], fetch=site.fetch)
    monkeypatch.setattr(store, "version", lambda: "another")
    index.update([docs])
    with index.within([site.url("/pump")]) as page:
        assert "spring" in page.search("pump")[0].text
    index.update([docs, site.url("/pump")], rebuild=True)
    assert "spring" in index.search("pump")[0].text
    assert site.asked == ["/pump"]
