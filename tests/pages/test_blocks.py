"""Every command and code block of the README and of the pages for users does what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.answers import COMPLETE, DRAFT, SEARCH, script
from tests.pages.blocks import ROOT, Project, blocks_of
from tests.servers.fixtures import VARIABLE
from tests.servers.model_server import ModelServer, status
from unified_flow.turns.results import ToolRequest

PAGES = [
    ROOT / "README.md",
    ROOT / "docs/tutorial.md",
    *(
        pytest.param(each, marks=pytest.mark.pages)
        for each in sorted(ROOT.glob("docs/how-to/*.md"))
    ),
]
WORDS_AT_MOST = 900
SAID = DRAFT.model_copy(
    update={"response": "A failure waits in the queue for a person [1].", "citations": []}
)
LOOKED_UP = ToolRequest(tool="doc.search", args={"query": "failure waits person"}, goal_id="g1")
OUT_OF_MEMORY = status(500, "the model ran out of memory")


def good_answers(**over: object) -> dict[str, object]:
    search = SEARCH.model_copy(update={"tool_requests": [LOOKED_UP]})
    return script(**{"planner": [search, *[COMPLETE] * 9], "synthesis": SAID, **over})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_does_what_the_page_says(
    page: Path, tmp_path: Path, model_server: ModelServer, request: pytest.FixtureRequest
) -> None:
    first_fails = page.name == "README.md"
    model_server.script = good_answers(synthesis=[OUT_OF_MEMORY, SAID] if first_fails else SAID)
    variables = {}
    if page.stem == "many-machines":
        variables = {VARIABLE: request.getfixturevalue("postgres_url")}
    project = Project(tmp_path, model_server.url, **variables)
    try:
        for block in blocks_of(page):
            project.run(block)
            if "unified-flow serve " in block.text:
                project.wait_for_service()
    finally:
        project.close()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= WORDS_AT_MOST
