"""Phase 5: the answer, in quotes from the documents with their sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from unified_flow.config import tool_names
from unified_flow.config.tool_names import SEARCHES
from unified_flow.lib.text import language_of
from unified_flow.lib.text.lexicon import Phrases, phrases_of
from unified_flow.models.embedded.excerpts import found_passages
from unified_flow.models.embedded.intents import (
    asks_for_memories,
    call_language,
    pages_to_read,
    question_about_pages,
    talk_of,
)
from unified_flow.models.embedded.planning import questions_in
from unified_flow.models.embedded.quotes import (
    LONGEST,
    MOST,
    likeliest,
    one_line,
    probability,
    quotes_for,
)
from unified_flow.models.embedded.sentence_ranking import FACTS, parse_question
from unified_flow.tools.builtin.memory_tools import text_to_remember
from unified_flow.tools.permission_gate import NOT_ALLOWED
from unified_flow.turns.passage import Passage, source_of, title_of
from unified_flow.turns.results import Citation, Draft, ToolResult
from unified_flow.turns.sections import Sections
from unified_flow.turns.sources import unread_in

_LINES_SHOWN = 20
_LISTED = 20
_NEAREST = 7  # sections that an abstention names, of the eight passages of a search
_LIKELY = 0.5


def extract(query: str, sections: Sections) -> Draft:
    phrases = _phrases(query)
    if (talk := talk_of(query)) is not None:
        kind, language = talk
        own = phrases_of(language)
        return _answer(own.greeting if kind == "greeting" else own.thanks)
    called = {result.tool for result in sections.coordinator}
    if text_to_remember(query) and tool_names.MEMORY_CREATE not in called:
        return _abstention(phrases.cannot_remember)
    if pages_to_read(query) and tool_names.INTERNET_RESEARCH not in called:
        return _abstention(phrases.cannot_read)
    if not called:
        return _abstention(phrases.no_documents)
    answered = [
        draft
        for result in sections.coordinator
        if (draft := _from_tool(result, phrases)) is not None
    ]
    if called & SEARCHES:
        found = _from_search(query, sections, phrases)
        if not (found.abstained and _memory_answers(sections)):
            answered.append(found)
    elif asks_for_memories(query):
        answered = answered or [_answer(phrases.nothing_remembered)]
    return _joined(answered) if answered else _abstention(phrases.nothing)


def _phrases(query: str) -> Phrases:
    return phrases_of(call_language(query) or language_of(query))


def _memory_answers(sections: Sections) -> bool:
    """Whether a memory answers, and no other part of the question is left open."""
    single = sections.planner is None or len(sections.planner.goals) < 2
    return single and any(
        r.tool == tool_names.MEMORY_QUERY and r.claims for r in sections.coordinator
    )


def _answer(text: str, citations: Sequence[Citation] = (), *, abstained: bool = False) -> Draft:
    return Draft(
        response=text,
        citations=list(citations),
        abstained=abstained,
        checklist={"answers_question": not abstained, "only_quotes": True},
    )


def _abstention(text: str) -> Draft:
    return _answer(text, abstained=True)


def _joined(drafts: Sequence[Draft]) -> Draft:
    """Answers first, then abstentions; the first abstention alone if there is no answer."""
    ordered = sorted(drafts, key=lambda draft: draft.abstained)
    if len(ordered) == 1 or ordered[0].abstained:
        return ordered[0]
    return _answer(
        "\n\n".join(draft.response for draft in ordered),
        [citation for draft in ordered for citation in draft.citations],
    )


def _from_search(query: str, sections: Sections, phrases: Phrases) -> Draft:
    """The quotes of all parts of the question, best first."""
    refused = _refused(sections)
    found = [
        (part, quotes_for(part, found_passages(results), most, refused))
        for part, results, most in _searches(query, sections)
    ]
    citations = list({c.quote: c for _, quotes in found for c in quotes}.values())
    if not citations:
        return no_answer(query, sections)
    said = [f"{title_of(each.heading, each.source)}\n\n{each.passage}" for each in citations]
    said += [phrases.nothing_for.format(question=part) for part, quotes in found if not quotes]
    return _answer("\n\n".join(said), citations)


def no_answer(query: str, sections: Sections) -> Draft:
    """That no passage clearly answers, with what comes nearest."""
    phrases = _phrases(query)
    nearest = _nearest(found_passages(sections.coordinator))
    lines = [phrases.nearest, *nearest] if nearest else []
    lines += unread_documents(sections, phrases)
    return _abstention("\n".join([_nothing(sections, phrases), *lines]))


def _searches(query: str, sections: Sections) -> Iterator[tuple[str, Sequence[ToolResult], int]]:
    """The parts of the question that were searched for, each with what was found for it, and how
    many quotes it gets."""
    resolved = sections.query_analyzer.resolved_query if sections.query_analyzer else query
    parts = questions_in(question_about_pages(resolved))
    for number, part in enumerate(parts, 1):
        own = [r for r in sections.coordinator if r.goal_id in (f"g{number}", "")]
        if any(r.tool in SEARCHES for r in own):  # else answered from a file
            results = own if len(parts) > 1 else sections.coordinator
            yield part, results, max(1, MOST // len(parts))


def _nothing(sections: Sections, phrases: Phrases) -> str:
    """That the documents hold no answer, or are in another language than the question."""
    for result in sections.coordinator:
        match result.tool, result.result:
            case tool_names.DOC_SEARCH, {"languages": list(languages)}:
                return phrases.other_language.format(languages=", ".join(map(str, languages)))
    return phrases.nothing


def unread_documents(sections: Sections, phrases: Phrases) -> list[str]:
    """Lines that name the documents that could not be read, where the answer may stand."""
    unread = unread_in(sections)
    return [phrases.unread, *(f"- {each}" for each in unread)] if unread else []


def _nearest(passages: Sequence[Passage]) -> list[str]:
    """The headings and places of what comes nearest, a line each."""
    found: dict[str, str] = {}
    for each in passages:
        title = title_of(each.heading, each.source())
        found.setdefault(each.heading or each.path, f"- {title}")
    return list(found.values())[:_NEAREST]


def _refused(sections: Sections) -> frozenset[str]:
    """Quotes of the last draft that a REVISE names in its issues or hints."""
    verdict, draft = sections.validation, sections.synthesis
    if verdict is None or verdict.decision != "REVISE" or draft is None:
        return frozenset()
    objections = one_line(" ".join([*verdict.issues, *verdict.hints]))
    return frozenset(c.quote for c in draft.citations if one_line(c.quote) in objections)


def _from_tool(result: ToolResult, phrases: Phrases) -> Draft | None:
    """What a tool claims, a line each; None for a search with a question and for no claims."""
    found = result.result if isinstance(result.result, dict) else {}
    # Pages that are read without a question answer with their beginnings.
    searched = result.tool in SEARCHES and isinstance(found.get("query"), str)
    if not result.success:
        said = phrases.not_allowed if result.result == NOT_ALLOWED else phrases.no_reply
        return _abstention(said.format(tool=result.tool))
    if searched or result.tool == tool_names.DOC_SEARCH:
        return None
    pattern = str(found.get("pattern", ""))
    introduction, nothing, shown = phrases.lines, "", "{quote}"
    match result.tool:
        case tool_names.FILE_READ:
            return _read(found, phrases)
        case tool_names.FILE_GREP:
            pattern = pattern.replace("\\", "")
            introduction, nothing, shown = phrases.matches, phrases.no_matches, "{source}: {quote}"
        case tool_names.FILE_GLOB:
            introduction, nothing, shown = phrases.files, phrases.no_files, "- {quote}"
        case tool_names.CALCULATE:
            introduction = ""
        case tool_names.MEMORY_CREATE | tool_names.MEMORY_UPDATE:
            # Without an id it is a secret, which was refused.
            introduction = "" if found.get("id") is None else phrases.remembered
    citations = [
        Citation(source=claim.source, quote=claim.claim.strip()[:LONGEST], score=claim.confidence)
        for claim in result.claims[:_LISTED]
        if claim.claim.strip()
    ]
    if not citations:
        return _abstention(nothing.format(pattern=pattern)) if nothing else None
    lines = [introduction.format(pattern=pattern, source=result.tool)] if introduction else []
    lines += [shown.format(source=each.source, quote=each.quote) for each in citations]
    if result.tool == tool_names.FILE_GLOB and found["total"] > len(citations):
        lines.append(f"… {found['total'] - len(citations)}")
    return _answer("\n".join(lines), citations)


def _read(found: dict[str, Any], phrases: Phrases) -> Draft:
    source = source_of(found["path"], found["start_line"], found.get("page"))
    text = "\n".join(str(found["text"]).split("\n")[:_LINES_SHOWN])[:LONGEST]
    lines = [phrases.lines.format(source=source), *(f"    {li}" for li in text.split("\n"))]
    quote = text.strip()
    citations = [Citation(source=source, quote=quote, score=1.0)] if quote else []
    return _answer("\n".join(lines), citations)


def found_nothing(sections: Sections) -> bool:
    """Whether everything that was looked up were searches, and none of them found anything."""
    results = sections.coordinator
    known = sections.context_gatherer
    remembered = known is not None and (known.prior_turns or known.memories)
    searched = bool(results) and all(result.tool in SEARCHES for result in results)
    return searched and not remembered and not any(result.claims for result in results)


def asks_for_facts(question: str, sections: Sections) -> bool:
    """Whether each part of it, searched for in documents, asks for a person, a time, a place, a
    number or a thing that it names ("which port")."""
    if any(result.tool not in SEARCHES for result in sections.coordinator):
        return False
    parts = [part for part, _, _ in _searches(question, sections)]
    return bool(parts) and all(
        (each.kind in FACTS or each.focus) and not each.lexicon.explanation.search(each.text)
        for each in map(parse_question, parts)
    )


def is_likely_answered(question: str, sections: Sections) -> bool:
    """Whether the documents hold an answer to each part of it more likely than not."""
    return all(
        probability(part, found_passages(results)) >= _LIKELY
        for part, results, _ in _searches(question, sections)
    )


def likely_sentences(question: str, sections: Sections) -> tuple[str, ...] | None:
    """What rules would quote, and what else most probably holds the answer; None if they would
    abstain. Of a passage they quote one sentence, which misleads a reader if it is not the one."""
    draft = extract(question, sections)
    if draft.abstained:
        return None
    found = [each.quote for each in draft.citations]
    for part, results, _ in _searches(question, sections):
        found += likeliest(part, found_passages(results))
    return tuple(dict.fromkeys(found))
