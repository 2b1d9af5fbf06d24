"""The embedded model as a user meets it: whole turns over small documents, four languages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pytest
from pydantic import BaseModel

from unified_flow.errors import ConfigError
from unified_flow.models import ModelCall
from unified_flow.models.embedded.model import EmbeddedModel
from unified_flow.models.embedded.sentence_ranking import parse_question
from unified_flow.retrieval.documents import Documents
from unified_flow.retrieval.index import Index
from unified_flow.tools.builtin.doc_search import doc_search
from unified_flow.tools.builtin.file_read import file_read
from unified_flow.tools.builtin.file_search import file_glob, file_grep
from unified_flow.tools.builtin.roots import Roots
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.results import (
    Draft,
    Plan,
    PriorTurn,
    QueryAnalysis,
    Reflection,
    ToolRequest,
    ToolResult,
    Verdict,
)
from unified_flow.turns.sections import Sections, ToolDescription

T = TypeVar("T", bound=BaseModel)

PAGES = {
    "lighthouse.md": """# The lighthouse

The lighthouse on the northern cape was built in 1871 by the engineer Clara Voss.
It is 34 metres tall and painted in red and white stripes.
She also designed the harbour wall, which protects the boats from winter storms.

## Keepers

Three keepers lived there with their families until the lamp was automated.
They rowed to the village once a week because the road was often flooded.
""",
    "bees.md": """# Keeping bees

A hive is a box in which a colony of bees lives.
Worker bees gather nectar and turn it into honey.
The queen lays about 1,500 eggs a day in early summer.
""",
    "laviner.md": """# Lavinprognoser

Lavinprognoserna ges ut av Naturvårdsverket varje dag under vintern.
Skalan har fem nivåer, från låg till mycket stor.
Anna Lindqvist upptäckte det svaga skiktet år 1987.
""",
    "pont.md": """# Le pont

Le pont a été construit en 1932 par l'ingénieur Paul Séjourné.
Il mesure trois cents mètres de long.
""",
    "mühle.md": """# Die Mühle

Die Mühle wurde 1764 von dem Zimmermann Jakob Reuter gebaut.
Sie steht am Ufer der Lahn und hat zwei Mahlwerke.
""",
    "节点.md": """# 节点

节点是机器人系统中的一个进程。节点之间通过话题交换消息。
默认的域编号是零。该项目由李明于2015年创立。
""",
    "notes.txt": "first line\nsecond line with a MARKER in it\nthird line\n",
}


@dataclass
class Desk:
    """A turn without journal or queue: the phases' calls and the tools, in the flow's order."""

    toolbox: Toolbox

    async def ask(self, question: str, history: tuple[PriorTurn, ...] = ()) -> Sections:
        model = EmbeddedModel()

        async def call(output: type[T], sections: Sections) -> T:
            reply = await model.complete(
                ModelCall("phase", output, "", question, sections, temperature=0.0, max_tokens=0)
            )
            return output.model_validate_json(reply.text)

        analysis = await call(QueryAnalysis, Sections(history=history))
        sections = Sections(tools=self.toolbox.describe(), query_analyzer=analysis)
        reflection = await call(Reflection, sections)
        sections = replace(sections, reflection=reflection)
        if reflection.decision == "CLARIFY":
            return sections
        for _ in range(5):
            plan = await call(Plan, sections)
            sections = replace(sections, planner=plan)
            if plan.decision == "COMPLETE":
                break
            done = tuple([await self.run(request) for request in plan.tool_requests])
            sections = replace(sections, coordinator=sections.coordinator + done)
        draft = await call(Draft, sections)
        sections = replace(sections, synthesis=draft)
        return replace(sections, validation=await call(Verdict, sections))

    async def run(self, request: ToolRequest) -> ToolResult:
        tool, args = self.toolbox.check(request)
        output = await self.toolbox.call(tool, args)
        return ToolResult(
            tool=request.tool,
            goal_id=request.goal_id,
            success=True,
            result=output.result,
            claims=output.claims,
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embedded") / "docs"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def desk(folder: Path) -> Iterator[Desk]:
    documents = Documents(Index.open(folder.parent / "index"), [folder])
    roots = Roots([folder])
    files = [file_read(roots), file_grep(roots), file_glob(roots)]
    yield Desk(Toolbox([doc_search(documents), *files]))
    documents.close()


def ask(desk: Desk, question: str, *history: str) -> Sections:
    turns = tuple(
        PriorTurn(turn_id=n, question=asked, answer="") for n, asked in enumerate(history, 1)
    )
    return asyncio.run(desk.ask(question, turns))


def draft_of(sections: Sections) -> Draft:
    assert sections.synthesis is not None, sections.reflection
    return sections.synthesis


@pytest.mark.parametrize(
    ("question", "quoted", "source"),
    [
        ("Who built the lighthouse?", "by the engineer Clara Voss", "lighthouse.md:3"),
        ("When was the lighthouse on the cape built?", "built in 1871", "lighthouse.md:3"),
        ("Why did the keepers row to the village?", "because the road", "lighthouse.md:9"),
        ("How many eggs does the queen lay?", "1,500 eggs a day", "bees.md:5"),
        ("What is a hive?", "A hive is a box", "bees.md:3"),
        ("Could you please tell me what bees turn into honey?", "gather nectar", "bees.md:4"),
        ("Vem ger ut lavinprognoserna?", "Naturvårdsverket", "laviner.md:3"),
        ("Hur många nivåer har skalan?", "fem nivåer", "laviner.md:4"),
        ("När upptäcktes det svaga skiktet?", "år 1987", "laviner.md:5"),
        ("Qui a construit le pont ?", "Paul Séjourné", "pont.md:3"),
        ("Quand a été construit le pont ?", "en 1932", "pont.md:3"),
        ("Wer baute die Mühle?", "Jakob Reuter", "mühle.md:3"),
        ("Wie viele Mahlwerke hat die Mühle?", "zwei Mahlwerke", "mühle.md:4"),
        ("节点之间如何交换消息？", "通过话题交换消息", "节点.md:3"),
        ("谁创立了该项目？", "李明", "节点.md:4"),
    ],
)
def test_the_first_quote_answers(desk: Desk, question: str, quoted: str, source: str) -> None:
    sections = ask(desk, question)
    draft = draft_of(sections)
    assert quoted in draft.citations[0].quote
    path, _, line = source.partition(":")
    text = PAGES[path].splitlines()
    first, last = draft.citations[0].quote.splitlines()[0], int(line)
    cited_path, _, cited_line = draft.citations[0].source.rpartition(":")
    assert cited_path.endswith(path)
    assert first in text[int(cited_line) - 1]
    assert int(cited_line) <= last
    assert quoted in draft.response
    assert draft.citations[0].source in draft.response
    assert not draft.abstained
    assert sections.validation is not None
    assert sections.validation.decision == "APPROVE"


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("Who won the football world cup in 1998?", "clearly answers this"),
        ("What is the melting point of tungsten?", "clearly answers this"),
        ("Where do the glorbian snarfs hibernate?", "clearly answers this"),
        ("Vad är huvudstaden i Peru?", "svarar tydligt"),
        ("Quelle est la capitale du Pérou ?", "ne répond clairement"),
        ("Wie heißt die Hauptstadt von Peru?", "beantwortet das klar"),
        ("秘鲁的首都是哪里？", "没有明确回答"),
    ],
)
def test_what_the_documents_do_not_hold_is_said(desk: Desk, question: str, says: str) -> None:
    sections = ask(desk, question)
    draft = draft_of(sections)
    assert draft.abstained
    assert draft.citations == []
    assert says in draft.response
    assert sections.validation is not None
    assert sections.validation.decision == "APPROVE"


def test_a_quote_that_opens_with_a_pronoun_brings_the_sentence_before_it(desk: Desk) -> None:
    draft = draft_of(ask(desk, "Who designed the harbour wall against winter storms?"))
    assert "She also designed the harbour wall" in draft.citations[0].quote
    assert draft.citations[0].quote.startswith("It is 34 metres tall")


@pytest.mark.parametrize(
    ("earlier", "question", "resolved", "quoted"),
    [
        ("Who built the lighthouse?", "How tall is it?", "lighthouse", "34 metres"),
        ("What is a hive?", "What lives in that?", "hive", "colony of bees"),
        ("Vem ger ut lavinprognoserna?", "När ges de ut?", "lavinprognoserna", "varje dag"),
        ("Qui a construit le pont ?", "Quand a-t-il été construit ?", "pont", "1932"),
        ("什么是节点？", "它如何交换消息？", "节点", "话题"),
    ],
)
def test_a_follow_up_is_answered_about_what_it_refers_to(
    desk: Desk, earlier: str, question: str, resolved: str, quoted: str
) -> None:
    sections = ask(desk, question, earlier)
    assert sections.query_analyzer is not None
    assert sections.query_analyzer.reference_resolution.status == "resolved"
    assert sections.query_analyzer.query_type == "followup"
    assert resolved in sections.query_analyzer.resolved_query
    assert any(quoted in citation.quote for citation in draft_of(sections).citations)


def test_a_compound_question_is_answered_in_both_parts(desk: Desk) -> None:
    draft = draft_of(ask(desk, "How many eggs does the queen lay and who built the lighthouse?"))
    assert any("1,500 eggs" in citation.quote for citation in draft.citations)
    assert any("Clara Voss" in citation.quote for citation in draft.citations)


def test_the_half_that_cannot_be_answered_is_said(desk: Desk) -> None:
    draft = draft_of(ask(desk, "How many eggs does the queen lay and who is the mayor of Lima?"))
    assert "1,500 eggs" in draft.citations[0].quote
    assert "clearly answers: who is the mayor of Lima?" in draft.response


def test_lines_of_a_file(desk: Desk) -> None:
    draft = draft_of(ask(desk, "What is in notes.txt line 2?"))
    assert "second line with a MARKER in it" in draft.response
    assert draft.citations[0].source.endswith("notes.txt:2")


def test_where_a_string_occurs(desk: Desk) -> None:
    draft = draft_of(ask(desk, "Where does the string 'MARKER' occur?"))
    assert draft.citations[0].source.endswith("notes.txt:2")
    assert draft_of(ask(desk, "Where does the string 'NOWHERE' occur?")).abstained


def test_which_files_there_are(desk: Desk) -> None:
    draft = draft_of(ask(desk, "List all *.txt files"))
    assert "notes.txt" in draft.response
    assert "bees.md" not in draft.response


@pytest.mark.parametrize(("said", "answer"), [("hello", "Hello"), ("Tack!", "Varsågod")])
def test_a_greeting_needs_no_documents(desk: Desk, said: str, answer: str) -> None:
    sections = ask(desk, said)
    assert sections.coordinator == ()
    assert answer in draft_of(sections).response
    assert not draft_of(sections).abstained


@pytest.mark.parametrize(
    "question",
    ["why?", "How does it work?", "???", "What is the second one?", "它是什么？"],
)
def test_what_cannot_be_looked_up_is_asked_back(desk: Desk, question: str) -> None:
    sections = ask(desk, question)
    assert sections.reflection is not None
    assert sections.reflection.decision == "CLARIFY"
    assert sections.reflection.clarification_question


@pytest.mark.parametrize(
    "question",
    [
        "rclcpp",
        "asdfghjkl",
        "hives",
        "Is it possible to keep bees in a city?",
        "The queen lays no eggs in winter. Is this expected behaviour?",
        "queen lays no eggs Is this normal?",
        "Does a worker bee know its queen?",
        "Hur stor är den största kupan?",
        "Comment les abeilles parlent-elles ?",
        "x" * 2_000,
        "\ud800 bees",
        "bees\x00hive",
    ],
)
def test_a_clear_or_strange_question_is_looked_up(desk: Desk, question: str) -> None:
    reflection = ask(desk, question.encode("utf-8", "replace").decode()).reflection
    assert reflection is not None
    if question != "x" * 2_000:
        assert reflection.decision == "PROCEED", reflection


def test_without_a_search_tool_it_says_that_it_cannot_look(folder: Path) -> None:
    sections = ask(Desk(Toolbox([])), "Who built the lighthouse?")
    assert draft_of(sections).abstained
    assert "no documents" in draft_of(sections).response


def test_an_output_of_no_phase_is_a_config_error() -> None:
    class Other(BaseModel):
        pass

    call = ModelCall("phase", Other, "", "?", Sections(), temperature=0.0, max_tokens=0)
    with pytest.raises(ConfigError, match="Other"):
        asyncio.run(EmbeddedModel().complete(call))


def test_the_same_question_gets_the_same_reply(desk: Desk) -> None:
    assert ask(desk, "What is a hive?").synthesis == ask(desk, "What is a hive?").synthesis


def test_a_search_tool_is_enough() -> None:
    described = ToolDescription("doc.search", "", {})
    plan = asyncio.run(
        EmbeddedModel().complete(
            ModelCall("planner", Plan, "", "What is in notes.txt line 2?",
                      Sections(tools=(described,)), temperature=0.0, max_tokens=0)
        )
    )  # fmt: skip
    requests = Plan.model_validate_json(plan.text).tool_requests
    assert [request.tool for request in requests] == ["doc.search"]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was the pier built?", "time"),
        ("The pier was built when?", "time"),
        ("How do I name the column when receiving AmbiguousForeignKeysError?", "manner"),
        ("A read times out when using a proxy", "thing"),
        ("Where is the index?", "place"),
        ("Select rows where the name is empty", "thing"),
        ("In 1520, who did Luther write to?", "person"),
        ("Mail to users who never logged in", "thing"),
        ("What is the last name of the player who scored?", "person"),
        ("Can you tell me when the pier was built?", "time"),
        ("When exactly was it built?", "time"),
        ("When's the next release?", "time"),
        ("When do I need a second index?", "thing"),
        ("When do we close?", "time"),
        ("When will you open?", "time"),
        ("When can we expect the next release?", "time"),
        ("When did I ask about bread?", "time"),
        ("Do you know who built the pier?", "person"),
        ("Where's the log file?", "place"),
        ("Where on disk is the queue kept?", "place"),
        ("I want to know where the index is stored", "place"),
    ],
)
def test_a_clause_does_not_tell_what_an_english_question_asks_for(question: str, kind: str) -> None:
    assert parse_question(question).kind == kind
