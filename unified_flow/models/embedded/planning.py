"""Phase 3: which way? Search, read a file, or go straight to the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from unified_flow.config.tool_names import (
    CALCULATE,
    DOC_SEARCH,
    INTERNET_RESEARCH,
    MEMORY_CREATE,
    MEMORY_QUERY,
)
from unified_flow.lib.text import language_of, terms, words
from unified_flow.lib.text.lexicon import any_language, lexicon_of, phrases_of
from unified_flow.models.embedded.intents import (
    arithmetic,
    asks_for_memories,
    file_request,
    is_about_user,
    pages_to_read,
    talk_of,
    tool_call,
    without_addresses,
)
from unified_flow.models.embedded.references import things_meant
from unified_flow.tools.builtin.memory_tools import ALL, text_to_remember
from unified_flow.turns.results import Goal, Plan, ToolRequest, ToolResult
from unified_flow.turns.sections import Sections

_LIMIT = 8
_BLANKS = re.compile(r"(\s)\s+")
_BEARS = 0.5  # the share of the question's terms that a memory holds
_BROAD_LIMIT = 24
_MOST_GOALS = 3
_MOST_CHARACTERS = 2_000


def plan(query: str, sections: Sections) -> Plan:
    asked = sections.query_analyzer.resolved_query if sections.query_analyzer else query
    if talk_of(query):
        return _complete("nothing needs to be looked up")
    tools = {tool.name for tool in sections.tools}
    if INTERNET_RESEARCH not in tools and pages_to_read(asked) is not None:
        return _complete("web pages may not be read here")
    call = tool_call(asked, sections.tools) or _in_plain_words(query, tools)
    parts = (asked,) if call is not None else questions_in(asked)
    goals = [Goal(id=f"g{n}", description=part) for n, part in enumerate(parts, 1)]
    requests = [r for goal in goals if (r := call or _request(goal, tools)) is not None]
    if call is None and _is_remembered(asked, sections) and MEMORY_QUERY in tools:
        requests.insert(0, ToolRequest(tool=MEMORY_QUERY, args={"query": asked}, goal_id="g1"))
    verdict = sections.validation
    if verdict is not None and verdict.decision == "RETRY" and DOC_SEARCH in tools:
        requests += _broader(asked, verdict.hints)
    missing = [request for request in requests if not _is_done(request, sections.coordinator)]
    if missing:
        return Plan(
            decision="EXECUTE",
            route="coordinator",
            goals=goals,
            tool_requests=missing,
            reasoning=f"{len(missing)} of {len(requests)} look-ups are still to be done",
        )
    if not requests:
        return _complete("there is no tool that could look this up")
    if (unclear := _unclear(asked, sections)) is not None:
        return unclear
    done = [goal.model_copy(update={"status": "done"}) for goal in goals]
    return _complete("everything that the question needs was looked up", done)


def _complete(reasoning: str, goals: Sequence[Goal] = ()) -> Plan:
    return Plan(decision="COMPLETE", route="synthesis", goals=list(goals), reasoning=reasoning)


def _unclear(asked: str, sections: Sections) -> Plan | None:
    """Ask back which of several things is meant; a question about its conversation is clear."""
    analysis = sections.query_analyzer
    if analysis is not None and analysis.reference_resolution.status != "not_needed":
        return None
    earlier = analysis.conversation if analysis is not None else {}
    meant = things_meant(asked, sections.coordinator, earlier)
    if meant is None:
        return None
    noun, names = meant
    question = phrases_of(language_of(asked)).which_one
    return Plan(
        decision="COMPLETE",
        route="clarify",
        reasoning=f"the documents name several that could be “{noun}”",
        clarification_question=question.format(noun=noun, names=", ".join(names)),
    )


@lru_cache(maxsize=32)  # for the goals, and for the quotes
def questions_in(text: str) -> tuple[str, ...]:
    """The parts of a compound question, if each stands by itself, else the whole. A statement
    behind a question is one: with it the question would seem to be about more than it is."""
    language = language_of(text)
    lexicon = lexicon_of(language)
    text = _BLANKS.sub(r"\1", text)  # else the pattern takes time that grows with their cube
    parts = [part for each in lexicon.compound.split(text) if (part := each.strip())]
    if not 1 < len(parts) <= _MOST_GOALS:
        return (text,)
    for part in parts:
        # "… and when was it built": the second part leans on the first.
        leans = {word.casefold() for word in words(part)} & lexicon.pronouns
        if leans or not terms(part, language):
            return (text,)
    return tuple(parts)


@lru_cache(maxsize=32)  # for a search before the plan, and for each plan
def search_query(question: str) -> str:
    """The question without addresses and "could you please tell me", which no document says."""
    bare = _courtesy().sub("", without_addresses(question))
    query = lexicon_of(language_of(question)).unsaid.sub(" ", bare).strip()
    return (query or question)[:_MOST_CHARACTERS]


@cache
def _courtesy() -> re.Pattern[str]:
    every = any_language()
    return re.compile(
        rf"^\W*{every.salutation}?\W*{every.tell_me}\b[\s,:]*(?=\w+\s+\w+)", re.IGNORECASE
    )


def _request(goal: Goal, tools: set[str]) -> ToolRequest | None:
    if CALCULATE in tools and (expression := arithmetic(goal.description)) is not None:
        args: dict[str, Any] = {"expression": expression}
        return ToolRequest(tool=CALCULATE, args=args, goal_id=goal.id)
    request = file_request(goal.description)
    if request is not None and request.tool in tools:
        return request.model_copy(update={"goal_id": goal.id})
    if DOC_SEARCH not in tools:
        return None
    args = {"query": search_query(goal.description), "limit": _LIMIT}
    return ToolRequest(tool=DOC_SEARCH, args=args, goal_id=goal.id)


def _is_remembered(asked: str, sections: Sections) -> bool:
    """Whether it is about the person who asks, and something that is remembered bears on it."""
    gathered = sections.context_gatherer
    memories = gathered.memories if gathered is not None else []
    bears = any(memory.score >= _BEARS for memory in memories)
    return bears and is_about_user(asked)


def _in_plain_words(query: str, tools: set[str]) -> ToolRequest | None:
    if MEMORY_CREATE in tools and (text := text_to_remember(query)) is not None:
        return ToolRequest(tool=MEMORY_CREATE, args={"text": text}, goal_id="g1")
    if MEMORY_QUERY in tools and asks_for_memories(query):
        return ToolRequest(tool=MEMORY_QUERY, args={"query": ALL}, goal_id="g1")
    if INTERNET_RESEARCH in tools and (found := pages_to_read(query)) is not None:
        urls, question = found
        args: dict[str, object] = {"urls": urls}
        if question:
            args["question"] = search_query(question)
        return ToolRequest(tool=INTERNET_RESEARCH, args=args, goal_id="g1")
    return None


def _broader(question: str, hints: Sequence[str]) -> list[ToolRequest]:
    """What the verdict asked for, word by word, and more passages than before."""
    language = language_of(question)
    shell = lexicon_of(language).shell
    content = [
        word
        for word in words(" ".join([search_query(question), *hints]))
        if word.casefold() not in shell and terms(word, language)
    ]
    query = " ".join(dict.fromkeys(content))[:_MOST_CHARACTERS]
    if not query:
        return []
    return [
        ToolRequest(tool=DOC_SEARCH, args={"query": query, "limit": _BROAD_LIMIT}, goal_id="g1")
    ]


def _is_done(request: ToolRequest, results: Sequence[ToolResult]) -> bool:
    """A search is known by its query; a file tool is asked once a turn for each goal."""
    same = [result for result in results if result.tool == request.tool]
    if request.tool != DOC_SEARCH:
        return any(result.goal_id == request.goal_id for result in same)
    searched = [result.result for result in same if isinstance(result.result, dict)]
    return any(result.get("query") == request.args["query"] for result in searched)
