"""Web pages as documents of a turn: `docs = ["https://…"]` and `unified-flow index URL`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_ask import run
from tests.servers.web_server import WebServer, html


@pytest.fixture
def site(home: Path) -> Iterator[WebServer]:
    page = html("<h1>Fountains</h1><p>The pump of the fountain is oiled in spring.</p>")
    with WebServer({"/pump": page}) as server:
        (home / "unified_flow.toml").write_text(
            f'docs = ["{server.url("/pump")}"]\n'
            f'[research]\nallow_private = ["{server.host}:{server.port}"]\n'
        )
        yield server


def test_a_configured_page_is_fetched_once_and_answered_from(home: Path, site: WebServer) -> None:
    for _ in range(2):
        done = run("ask", "When is the pump oiled?", "--json", home=home)
        answer = json.loads(done.stdout)
        assert answer["citations"][0]["source"] == site.url("/pump") + "#L3"
    assert site.asked == ["/pump"]
    run("index", home=home)
    assert site.asked == ["/pump", "/pump"]
    stats = json.loads(run("collections", "show", "--json", home=home).stdout)
    assert stats["formats"] == {"web page": 1}
    assert stats["roots"] == [site.url("/pump")]


def test_a_private_address_is_no_document_unless_it_is_allowed(home: Path, site: WebServer) -> None:
    (home / "unified_flow.toml").unlink()
    done = run("index", site.url("/pump"), home=home)
    assert done.returncode == 2
    assert "not fetched" in done.stderr
    assert site.asked == []
