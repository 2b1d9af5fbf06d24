"""`internet.research` over real servers on loopback."""

from __future__ import annotations

import json

import pytest

from tests.servers import web_server as site
from tests.servers.web_server import WebServer
from tests.unit.tools.running import run
from unified_flow.config.tables import ResearchSettings
from unified_flow.errors import AddressRefusedError, CaptchaError, ToolArgumentError
from unified_flow.tools import Access, ToolOutput
from unified_flow.tools.builtin.internet_research import internet_research
from unified_flow.tools.toolbox import Toolbox

ROBOTS = "<h1>Robots</h1><h2>Topics</h2><p>A topic is a named bus over which nodes talk.</p>" + (
    "<h2>Services</h2><p>A service is a remote procedure call between two nodes.</p>"
    "<h2>History</h2><p>The project was begun in 2007 at Stanford.</p>"
)
BREAD = "<h1>Bread</h1><p>Bread needs flour, water, salt and yeast.</p>"


def research(server: WebServer, *paths: str, question: str | None = None) -> ToolOutput:
    args: dict[str, object] = {"urls": [server.url(path) for path in paths]}
    box = Toolbox([internet_research(server.policy())])
    return run(box, "internet.research", **args, **({"question": question} if question else {}))


def test_claims_are_what_the_pages_say_about_the_question() -> None:
    with WebServer({"/robots": site.html(ROBOTS), "/bread": site.html(BREAD)}) as server:
        output = research(server, "/bread", "/robots", question="What is a service?")
    best = output.claims[0]
    assert "remote procedure call" in best.claim
    assert best.source.startswith(f"{server.url('/robots')}#L")
    assert 0 < best.confidence <= 1
    assert [page["url"] for page in output.result["pages"]] == [
        server.url("/bread"),
        server.url("/robots"),
    ]
    assert output.result["passages"][0]["path"] == server.url("/robots")
    json.dumps(output.result)


def test_without_a_question_the_beginnings_of_all() -> None:
    with WebServer({"/robots": site.html(ROBOTS), "/bread": site.html(BREAD)}) as server:
        output = research(server, "/robots", "/bread")
    assert {claim.source.partition("#")[0] for claim in output.claims} == {
        server.url("/robots"),
        server.url("/bread"),
    }


def test_one_that_fails_is_a_failure_of_all_and_nobody_is_asked_after_it() -> None:
    pages = {
        "/robots": site.html(ROBOTS),
        "/wall": site.html("", status=403, cf_mitigated="challenge"),
    }
    with WebServer(pages) as server, pytest.raises(CaptchaError):
        research(server, "/wall", "/robots")
    assert server.asked == ["/wall"]


def test_the_same_page_is_fetched_once() -> None:
    with WebServer({"/robots": site.html(ROBOTS)}) as server:
        research(server, "/robots", "/robots")
    assert server.asked == ["/robots"]


@pytest.mark.parametrize("urls", [[], ["http://x/"] * 6, "http://x/", [""], ["http://x/" * 400]])
def test_bad_arguments(urls: object) -> None:
    with pytest.raises(ToolArgumentError):
        run(Toolbox([internet_research(ResearchSettings())]), "internet.research", urls=urls)


def test_it_uses_the_network_and_no_private_address() -> None:
    tool = internet_research(ResearchSettings())
    assert tool.access == {Access.NETWORK}
    with WebServer({"/": site.html(BREAD)}) as server, pytest.raises(AddressRefusedError):
        run(Toolbox([tool]), "internet.research", urls=[server.url()])
    assert server.asked == []
