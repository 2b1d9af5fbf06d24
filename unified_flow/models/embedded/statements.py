"""What a draft says in words of its own, sentence by sentence; and what it may be founded on: what
tools found, earlier answers and memories, as quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from unified_flow.config.tool_names import SEARCHES
from unified_flow.lib.text import language_of, sentences
from unified_flow.lib.text.lexicon import any_language, lexicons
from unified_flow.lib.text.segmentation import UNSPACED
from unified_flow.models.embedded.excerpts import (
    excerpts_of,
    found_passages,
    language_of_passages,
    term_set,
)
from unified_flow.models.embedded.quotes import INTRODUCES, LONGEST, citation_of, one_line
from unified_flow.turns.passage import Passage, path_of, title_of
from unified_flow.turns.results import Citation, Draft, ToolResult
from unified_flow.turns.sections import Sections

CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_PASSAGE = r"(?:passage|document|doc|source)s?\s*"
PLACE_IN_PASSAGE = r",\s*(?:pp?|lines?|ll?)\.?\s*\d+(?:\s*[-–]\s*\d+)?"  # noqa: RUF001
_PLACE = rf"\d{{1,3}}(?:{PLACE_IN_PASSAGE})?"
_PLACES = rf"{_PLACE}(?:\s*(?:,|;|-|–|and|&)\s*{_PLACE})*"  # noqa: RUF001
_ONE_MARK = (
    rf"(?:[\[【]\^?(?:{_PASSAGE})?{_PLACES}[\]】](?!\()"
    rf"|\((?:see\s+|cf\.?\s+)?{_PASSAGE}{_PLACES}\))"
)
MARK = re.compile(rf"(?<!\s)\s*{_ONE_MARK}(?:[\s,;]*{_ONE_MARK})*", re.IGNORECASE)
"""One or more numbers of passages: `[1]`, `[2, 3]`, `[1][4]`, `[^1]`, `[1, p. 3]`, or in words."""
# The marks of a list; "308" and "3.5 million" are none.
_LISTED = re.compile(r"\A(?:[-*•. ]+|\d{1,3}[.)](?:\s+|\Z))+")
_LETTER = rf"[^\W{UNSPACED}]"  # or digit, of a script that writes its words apart
_WORD_BEFORE = re.compile(rf"(?:{_LETTER}|\d[.,])\Z")
_WORD_AFTER = re.compile(rf"[.,]?{_LETTER}")
_QUOTED = re.compile(r"“([^“”]+)”")
_SOURCE = re.compile(r"(?<![^\s()])\(?[^\s()]+(?::p?|#L)\d+\b\)?:?")


def own_words(draft: Draft) -> str:
    """The response without the passages that it quotes whole, and what stands above each."""
    rest = draft.response
    for citation in draft.citations:
        if citation.passage and citation.passage in rest:
            rest = _without(rest, citation.passage)
            rest = _without(rest, title_of(citation.heading, citation.source))
    return rest


def _without(text: str, quoted: str) -> str:
    """Where it is part of a word or number, as "10" of "100", it stays. No pattern is made of the
    quotation: to compile one takes longer than all else that is done with it."""
    parts, done, at = [], 0, text.find(quoted)
    while at >= 0 and quoted:
        end = at + len(quoted)
        if _WORD_BEFORE.search(text, max(0, at - 2), at) or _WORD_AFTER.match(text, end):
            at = text.find(quoted, at + 1)
            continue
        parts.append(text[done:at])
        done, at = end, text.find(quoted, end)
    return " ".join([*parts, text[done:]])


def code_of(draft: Draft) -> str:
    """The draft's blocks of code, without the lines that fence them."""
    blocks = CODE_BLOCK.findall(own_words(draft))
    return "\n".join(re.sub(r"\A```.*|```\Z", "", block) for block in blocks)


def language_of_draft(response: str, query: str) -> str:
    """The language of its words; the question's where they do not tell, as in "8090 [1]"."""
    return language_of(CODE.sub(" ", MARK.sub("", response)), language_of(query))


def statements(draft: Draft, texts: list[str], *, introductions: bool = False) -> list[str]:
    """What the response says besides quotes, code, sources and the model's own set phrases."""
    rest = CODE_BLOCK.sub("\n", own_words(draft))
    if not rest.strip():
        return []
    for match in _QUOTED.finditer(rest):
        if is_verbatim(one_line(match.group(1)), texts):
            rest = rest.replace(match.group(), " ")
    for citation in draft.citations:
        rest = _without(rest, citation.quote)
        # Also one with spaces or parentheses in it.
        if citation.source in rest and path_of(citation.source) in texts:
            rest = re.sub(rf"{re.escape(citation.source)}(?!\d)", " ", rest)
    rest = _courtesy().sub(" ", MARK.sub("", _SOURCE.sub(" ", rest)))
    return [
        statement
        for start, end in sentences(rest)
        if (statement := _LISTED.sub("", rest[start:end]))
        and any(c.isalnum() for c in statement)
        and not statement.startswith(_set_phrases())
        and (introductions or not statement.endswith(INTRODUCES))
    ]


@cache
def _courtesy() -> re.Pattern[str]:
    """ "Let me know …" """
    every = any_language()
    return re.compile(rf"(?:{every.please}\s+)?{every.closing}\b[^.!?]*[.!?]?", re.IGNORECASE)


@cache
def _set_phrases() -> tuple[str, ...]:
    """Beginnings of the sentences that are the model's own and claim nothing."""
    phrases = (text for each in lexicons() if each.phrases for _, text in each.phrases)
    return tuple(start for text in phrases if (start := text.partition("{")[0].strip()))


@cache
def terms_of_the_answer(language: str) -> frozenset[str]:
    """The terms of words with which an answer speaks of itself and of its sources."""
    return term_set(" ".join(any_language().of_the_answer), language)


def is_refusal(response: str) -> bool:
    """Whether it says in plain words that the sources do not say."""
    return any(each.refusal.search(response) for each in lexicons())


def is_verbatim(quote: str, texts: Iterable[str]) -> bool:
    return bool(quote) and any(quote in text for text in texts)


@dataclass(frozen=True)
class CitableSentence:
    """A sentence of a source that could be cited; `known` are its terms and its heading's."""

    cite: Callable[[], Citation]
    known: frozenset[str]


def texts_of(sections: Sections) -> list[str]:
    """Every text that the draft may rest on, each on one line."""
    texts = source_texts(sections.coordinator)
    texts += [text for _, text, _ in _remembered(sections)]
    return [one_line(text) for text in dict.fromkeys(texts)]


def language_of_sources(passages: Sequence[Passage], texts: list[str]) -> str:
    return language_of_passages(passages) if passages else language_of(" ".join(texts[:3]))


def citable_sentences(sections: Sections, language: str) -> list[CitableSentence]:
    """Best passage first, each with its sentences in order."""
    found = [
        CitableSentence(
            partial(citation_of, excerpt.passage, each.start, min(each.end, each.start + LONGEST)),
            each.terms | excerpt.heading,
        )
        for excerpt in excerpts_of(found_passages(sections.coordinator), language)
        for each in excerpt.sentences
    ]
    said = [
        (claim.source, claim.claim, claim.confidence)
        for result in sections.coordinator
        if result.tool not in SEARCHES
        for claim in result.claims
    ]
    for source, text, score in [*said, *_remembered(sections)]:
        if quote := text.strip()[:LONGEST]:
            own = partial(Citation, source=source, quote=quote, score=score)
            found.append(CitableSentence(own, term_set(quote, language)))
    return found


def _remembered(sections: Sections) -> list[tuple[str, str, float]]:
    """(source, text, score), by the names that the context gatherer gives them."""
    known = sections.context_gatherer
    if known is None:
        return []
    turns = [(f"turn:{turn.turn_id}", turn.answer, turn.score) for turn in known.prior_turns]
    return turns + [(f"memory:{each.id}", each.text, each.score) for each in known.memories]


def source_texts(results: Iterable[ToolResult]) -> list[str]:
    """Every string in the results, but for what the tool was asked for."""
    found: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for each in value.values():
                collect(each)
        elif isinstance(value, list):
            for each in value:
                collect(each)

    for result in results:
        if isinstance(result.result, dict):
            collect({k: v for k, v in result.result.items() if k not in ("query", "pattern")})
        else:
            collect(result.result)
        found += [claim.claim for claim in result.claims]
    return found
