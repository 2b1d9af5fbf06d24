"""Citations of a draft: attached by overlap, removed where they support nothing, counted."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from unified_flow.models.embedded.extraction import extract
from unified_flow.models.embedded.statements import statements
from unified_flow.phases.grounding.citations import REMOVED, cited, supported_sentences, weighed
from unified_flow.turns.results import (
    Checks,
    Citation,
    Claim,
    Draft,
    GatheredContext,
    Memory,
    ToolResult,
    Verdict,
)
from unified_flow.turns.sections import Sections

QUESTION = "When does the ferry to the island leave?"
FERRY = (
    "The ferry to the island leaves at nine. It takes forty minutes to cross the strait.\n"
    "Tickets are sold on board by the crew. The kiosk on the quay closed in 2014."
)
BRIDGE = "The bridge was opened by Queen Sonja in 1998 and carries 3,500 cars a day."
LEAVES = "The ferry to the island leaves at nine."
KIOSK = "The kiosk on the quay closed in 2014."


def passage(text: str, path: str) -> dict[str, object]:
    return {
        "chunk_id": path, "path": path, "line": 3, "end_line": 4,
        "heading": "", "text": text, "score": 0.7,
    }  # fmt: skip


def searched(*drafts: Draft) -> Sections:
    found = [passage(FERRY, "docs/ferry.md"), passage(BRIDGE, "docs/bridge.md")]
    result = ToolResult(
        tool="doc.search", goal_id="g1", success=True,
        result={"query": QUESTION, "passages": found},
    )  # fmt: skip
    return Sections(coordinator=(result,), synthesis=drafts[0] if drafts else None)


def answer(text: str, *citations: Citation, question: str = QUESTION) -> Draft:
    return cited(Draft(response=text, citations=list(citations)), question, searched())


def quotes(draft: Draft) -> list[tuple[str, str]]:
    return [(citation.source, citation.quote) for citation in draft.citations]


APPROVED = Verdict(
    decision="APPROVE",
    confidence=1.0,
    checks=Checks(
        claims_supported=True, no_hallucinations=True, query_addressed=True, coherent_format=True
    ),
)


def approved(draft: Draft, question: str = QUESTION) -> Verdict:
    return weighed(APPROVED, question, searched(draft))


@pytest.mark.parametrize("text", ["At nine.", "It leaves at 9.", "The ferry leaves at nine."])
def test_a_sentence_without_a_citation_gets_the_one_that_has_its_words(text: str) -> None:
    assert quotes(answer(text)) == [("docs/ferry.md:3", LEAVES)]
    assert approved(answer(text)).decision == "APPROVE"


def test_a_bare_number_is_found_where_it_stands() -> None:
    asked = "How many cars does the bridge carry?"
    assert quotes(answer("3,500", question=asked)) == [("docs/bridge.md:3", BRIDGE)]


def test_each_sentence_gets_its_own_and_the_place_is_that_of_the_sentence() -> None:
    draft = answer("The ferry leaves at nine. The crew sells tickets on board.")
    assert [source for source, _ in quotes(draft)] == ["docs/ferry.md:3", "docs/ferry.md:4"]


def test_what_is_found_has_the_passage_that_it_stands_in() -> None:
    (found,) = answer("At nine.").citations
    assert found.passage == FERRY


def test_a_number_that_is_quoted_is_not_taken_out_of_another() -> None:
    quoted = Citation(source="docs/bridge.md:3", quote="3", score=0.7)
    draft = Draft(response="It carries 3,500 cars, from 3 to 1.3 a second.", citations=[quoted])
    assert statements(draft, []) == ["It carries 3,500 cars, from   to 1.3 a second."]


@pytest.mark.parametrize("text", ["x" * 30_000, "a:" * 15_000, " " * 30_000])
def test_a_long_response_is_read_in_no_time(text: str) -> None:
    started = process_time()
    statements(Draft(response=f"So.{text}."), [])
    assert process_time() - started < 1


def test_one_sentence_may_need_two_quotes() -> None:
    draft = answer("Tickets are sold by the crew, since the kiosk on the quay closed in 2014.")
    assert {quote for _, quote in quotes(draft)} == {
        "Tickets are sold on board by the crew.",
        KIOSK,
    }
    assert supported_sentences(draft, QUESTION, searched()) == [True]


def test_a_citation_that_says_something_else_is_replaced_and_counts() -> None:
    wrong = Citation(source="docs/ferry.md:4", quote=KIOSK)
    draft = answer("The ferry leaves at nine.", wrong)
    assert quotes(draft) == [("docs/ferry.md:3", LEAVES)]
    assert draft.checklist[REMOVED] is False
    verdict = approved(draft)
    assert verdict.decision == "APPROVE"
    assert verdict.confidence == 0.8
    assert verdict.issues == ["a citation that did not support its sentence was removed"]


def test_a_quote_that_stands_nowhere_is_removed() -> None:
    draft = answer("It is blue.", Citation(source="docs/ferry.md:3", quote="The ferry is blue."))
    assert draft.citations == []
    verdict = approved(draft)
    assert verdict.decision == "REVISE"
    assert not verdict.checks.claims_supported
    assert "no citation" in verdict.issues


@pytest.mark.parametrize(
    ("text", "issue"),
    [
        ("The ferry to the island leaves at nine from Bergen.", "stands in no source: Bergen"),
        ("The ferry to the island leaves at nine, 17 times.", "stands in no source: 17"),
    ],
)
def test_an_invented_name_or_number_is_not_approved(text: str, issue: str) -> None:
    verdict = approved(answer(text))
    assert (verdict.decision, verdict.checks.no_hallucinations) == ("REVISE", False)
    assert issue in verdict.issues
    assert f"write it without “{issue.rpartition(' ')[2]}”" in verdict.hints


PROMPT = (
    "This is useful for password input. Call click.prompt() and hide what is typed. It is "
    "replaced with the password_option() decorator. A session lasts 1209600 seconds, 2 weeks."
)


def prompt_draft(response: str) -> tuple[Draft, Verdict]:
    question = "How do I prompt for a password?"
    found = {"query": question, "passages": [passage(PROMPT, "docs/prompts.md")]}
    result = ToolResult(
        tool="doc.search", goal_id="g1", success=True, result=found,
        claims=[Claim(claim=PROMPT, source="docs/prompts.md:3", confidence=0.7)],
    )  # fmt: skip
    sections = Sections(coordinator=(result,))
    draft = cited(Draft(response=response), question, sections)
    return draft, weighed(APPROVED, question, replace(sections, synthesis=draft))


@pytest.mark.parametrize(
    ("response", "issues"),
    [
        ("```python\nclick.secure_prompt(99)\n```", ["secure_prompt"]),
        ("It is hidden [1].\n```python\n@click.super_option(level=42)\n```", ["super_option"]),
        ("Hide it [1].\n```python\nfrom click import vault_prompt\n```", ["vault_prompt"]),
        ("Hide it [1].\n```sh\n$ click obliterate --hide-all\n```", ["obliterate", "--hide-all"]),
    ],
)
def test_what_code_takes_from_the_documented_stands_in_them(
    response: str, issues: list[str]
) -> None:
    _, verdict = prompt_draft(response)
    assert verdict.decision == "REVISE"
    assert {f"stands in no source: {name}" for name in issues} <= set(verdict.issues)
    assert verdict.checks.claims_supported is False


def test_code_alone_needs_a_source_and_is_not_checked_with_one() -> None:
    draft, verdict = prompt_draft("```python\nimport click\nclick.prompt()\n```")
    assert (verdict.decision, verdict.checks.claims_supported) == ("APPROVE", "not checked")
    assert [citation.quote for citation in draft.citations] == [
        "Call click.prompt() and hide what is typed."
    ]
    _, verdict = prompt_draft("```python\nsend(everything)\n```")
    assert verdict.issues == ["no citation"]


@pytest.mark.parametrize(
    "response",
    [
        "Verwende den Decorator password_option(), der die Eingabe verbirgt [1].",
        "Password prompts in CLI apps are hidden [1]. UNIX users are asked (OK on a TTY) [1].",
        "A session lasts 1,209,600 seconds, i.e. 14 days [1].",
        "It deletes what is typed:\n\nCall click.prompt() and hide what is typed [1].",
        "Call it [1]:\n```python\nname = ask()\nname.to_upper(3)\nclick.prompt(text='N 7')\n```",
    ],
)
def test_what_code_cannot_establish_is_not_checked(response: str) -> None:
    _, verdict = prompt_draft(response)
    assert (verdict.decision, verdict.issues) == ("APPROVE", [])
    assert verdict.checks.claims_supported == "not checked"


@pytest.mark.parametrize("mark", ["[1]", "[^1]", "[1, p. 3]", "(see document 1)"])
def test_a_numbered_citation_quotes_what_its_sentence_names(mark: str) -> None:
    draft, _ = prompt_draft(f"Use password_option() {mark}.")
    assert draft.response == "Use password_option() [1]."
    assert [c.quote for c in draft.citations] == [
        "It is replaced with the password_option() decorator."
    ]


def test_a_sentence_whose_number_is_another_is_not_supported() -> None:
    assert answer("The kiosk on the quay closed in 1998.").citations == []


def test_a_good_citation_stays_as_it_is() -> None:
    own = Citation(source="docs/ferry.md:3", quote="leaves at nine", score=0.3)
    (kept,) = answer("At nine.", own).citations
    assert (kept.source, kept.quote) == (own.source, own.quote)
    assert "leaves at nine" in kept.passage


def test_what_a_tool_claims_and_what_is_remembered_can_be_cited() -> None:
    claim = Claim(claim="17% of 2300 is 391", confidence=1.0, source="calculate")
    told = ToolResult(tool="calculate", success=True, result={"value": 391}, claims=[claim])
    known = GatheredContext(memories=[Memory(id="m1", text="Per takes the morning ferry")])
    sections = Sections(coordinator=(told,), context_gatherer=known)
    draft = cited(Draft(response="It is 391."), "What is 17% of 2300?", sections)
    assert quotes(draft) == [("calculate", "17% of 2300 is 391")]
    draft = cited(Draft(response="The morning ferry."), "Which one does Per take?", sections)
    assert quotes(draft) == [("memory:m1", "Per takes the morning ferry")]


@pytest.mark.parametrize("question", [QUESTION, "Who opened the bridge?", "What does it cost?"])
def test_the_embedded_models_draft_is_left_alone(question: str) -> None:
    draft = extract(question, searched())
    assert cited(draft, question, searched()) == draft
    assert approved(draft, question).issues == []


def test_an_abstention_cites_nothing_and_is_weighed_by_nobody() -> None:
    draft = Draft(response="The documents do not say.", abstained=True)
    assert cited(draft, QUESTION, searched()) == draft
    assert approved(draft).decision == "APPROVE"


def test_a_verdict_that_approves_nothing_stays() -> None:
    bad = answer("It is blue.")
    refused = approved(bad).model_copy(update={"decision": "FAIL"})
    assert weighed(refused, QUESTION, searched(bad)).decision == "FAIL"


HARBOUR = "The harbour of Vik was built in 1890 and is owned by the town."
LIGHT = "The lighthouse of Vik was lit for the first time in 1902."


@pytest.mark.parametrize(
    ("question", "said", "approves"),
    [
        ("When was the harbour of Vik built?", "The harbour of Vik was constructed in 1890.", True),
        ("Who owns the harbour of Vik?", "The harbour's owner is the town.", True),
        ("När byggdes hamnen i Vik?", "Hamnen i Vik byggdes 1890.", True),
        ("När byggdes hamnen i Vik?", "Hamnen i Vik byggdes 1891.", False),
        (
            "How old is Vik?",
            "The harbour was built in 1890, and the lighthouse was first lit in 1902.",
            True,
        ),
        ("Wann wurde der Hafen von Vik gebaut?", "Der Hafen wurde im Jahr 1890 gebaut.", True),
        ("Wann wurde der Hafen von Vik gebaut?", "Der Hafen wurde im Jahr 1891 gebaut.", False),
        ("When was the harbour of Vik built?", "It was built in 1,890.", True),
        ("When was the harbour of Vik built?", "It was built in 890.", False),
        ("Who owns the harbour of Vik?", "The harbour is owned by the Count of Oslo.", False),
        ("Who owns the harbour of Vik?", "According to the documents, the town owns it [1].", True),
        ("Who owns the harbour of Vik?", "The town. Let me know if you want more!", True),
        ("What colour is the harbour of Vik?", "It is purple.", False),
    ],
)
def test_other_words_are_no_fault_and_other_facts_are(
    question: str, said: str, approves: bool
) -> None:
    found = [passage(HARBOUR, "docs/vik.md"), passage(LIGHT, "docs/light.md")]
    result = ToolResult(
        tool="doc.search", goal_id="g1", success=True,
        result={"query": question, "passages": found},
    )  # fmt: skip
    sections = Sections(coordinator=(result,))
    draft = cited(Draft(response=said), question, sections)
    verdict = weighed(APPROVED, question, replace(sections, synthesis=draft))
    assert (verdict.decision == "APPROVE") is approves, verdict.issues


def test_an_abstention_names_what_could_not_be_read() -> None:
    (result,) = searched().coordinator
    left = "docs/scan.pdf: 5 of 5 pages hold no text: scanned?"
    unread = result.model_copy(update={"result": {**result.result, "unread": [left]}})
    draft = Draft(response="The documents do not say.", abstained=True)
    assert cited(draft, QUESTION, searched()).response == draft.response
    told = cited(draft, QUESTION, Sections(coordinator=(unread,))).response
    assert told.startswith(draft.response)
    assert left in told
    assert (
        left
        not in cited(Draft(response=LEAVES), QUESTION, Sections(coordinator=(unread,))).response
    )
