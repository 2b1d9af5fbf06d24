"""Web pages in an index: fetched from a real server, kept, and cited by their address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.web_server import WebServer, html
from unified_flow.errors import InputError
from unified_flow.retrieval import store
from unified_flow.retrieval.index import Index
from unified_flow.retrieval.index_update import UpdateOptions
from unified_flow.retrieval.web_pages import Fetch, page_fetcher


def pump(season: str) -> str:
    return f"<nav>menu</nav><h1>Fountains</h1><p>The pump of the fountain is oiled in {season}.</p>"


@pytest.fixture
def site() -> Iterator[WebServer]:
    with WebServer({"/pump": html(pump("spring"))}) as server:
        yield server


@pytest.fixture
def fetch(site: WebServer) -> Fetch:
    return page_fetcher(site.policy())


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.open(tmp_path / "state" / "index") as opened:
        yield opened


def test_a_page_stands_beside_files_and_is_cited_by_its_address(
    index: Index, site: WebServer, fetch: Fetch, docs: Path
) -> None:
    report = index.update([docs, site.url("/pump")], UpdateOptions(fetch=fetch))
    assert (report.files, report.added) == (3, 3)
    (passage,) = index.search("When is the pump oiled?", limit=1)
    assert passage.source() == site.url("/pump") + "#L3"
    assert passage.heading == "Fountains"
    assert index.search("topics")[0].path == "docs/robots.md"


def test_it_is_fetched_once_and_again_when_that_is_asked_for(
    index: Index, site: WebServer, fetch: Fetch
) -> None:
    address = site.url("/pump")
    for _ in range(3):
        assert index.update([address], UpdateOptions(fetch=fetch)).files == 1
    assert site.asked == ["/pump"]
    site.pages["/pump"] = html(pump("autumn"))
    assert index.update([address], UpdateOptions(fetch=fetch, fetch_again=True)).changed == 1
    assert "autumn" in index.search("pump")[0].text
    assert index.update([address], UpdateOptions(fetch=fetch, fetch_again=True)).unchanged == 1


def test_a_page_that_has_gone_stays_as_it_was_and_that_is_said(
    index: Index, site: WebServer, fetch: Fetch
) -> None:
    address = site.url("/pump")
    index.update([address], UpdateOptions(fetch=fetch))
    site.pages["/pump"] = html("gone", status=404)
    report = index.update([address], UpdateOptions(fetch=fetch, fetch_again=True))
    ((path, reason),) = report.skipped
    assert path == address
    assert reason.startswith("not fetched: ")
    assert "404" in reason
    assert "spring" in index.search("pump")[0].text


def test_a_page_that_never_came_is_skipped(
    index: Index, site: WebServer, fetch: Fetch, docs: Path
) -> None:
    site.pages["/no"] = html("gone", status=404)
    report = index.update([docs, site.url("/no")], UpdateOptions(fetch=fetch))
    assert report.files == 2
    assert "404" in dict(report.skipped)[site.url("/no")]
    assert index.update([docs, site.url("/pump")]).skipped == (
        (site.url("/pump"), "web pages are not fetched here"),
    )


def test_an_address_keeps_no_password_and_no_fragment(
    index: Index, site: WebServer, fetch: Fetch
) -> None:
    with pytest.raises(InputError, match="holds a name or a password") as caught:
        index.update(["https://me:secret@host.example/page"], UpdateOptions(fetch=fetch))
    assert "secret" not in str(caught.value)
    report = index.update([site.url("/pump#oil"), site.url("/pump")], UpdateOptions(fetch=fetch))
    assert (report.files, site.asked) == (1, ["/pump"])


def test_an_index_of_another_version_needs_no_network(
    index: Index, site: WebServer, fetch: Fetch, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.update([docs, site.url("/pump")], UpdateOptions(fetch=fetch))
    monkeypatch.setattr(store, "version", lambda: "another")
    index.update([docs])
    with index.within([site.url("/pump")]) as page:
        assert "spring" in page.search("pump")[0].text
    index.update([docs, site.url("/pump")], UpdateOptions(rebuild=True))
    assert "spring" in index.search("pump")[0].text
    assert site.asked == ["/pump"]
