"""Citations of a draft: by the passage numbers that it gives, else by overlap of words; and what
code can establish of the draft, which counts for more than the verdict that a model gives on it.

A model ends its sentences with the numbers of the passages that it was shown. Numbers of other
passages are dropped. A sentence without one gets the sentences of the sources that have enough of
its terms, and every number of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from unified_flow.lib.text import language_of, sentences
from unified_flow.lib.text.lexicon import phrases_of
from unified_flow.models.embedded.excerpts import (
    best_kinship,
    excerpts_of,
    found_passages,
    term_set,
)
from unified_flow.models.embedded.extraction import unread_documents
from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.quotes import LONGEST, citation_of, one_line
from unified_flow.models.embedded.statements import (
    CODE,
    MARK,
    PLACE_IN_PASSAGE,
    CitableSentence,
    citable_sentences,
    code_of,
    is_refusal,
    is_verbatim,
    language_of_draft,
    language_of_sources,
    own_words,
    statements,
    terms_of_the_answer,
    texts_of,
)
from unified_flow.models.embedded.verification import findings
from unified_flow.models.prompt import ShownPassage, shown_passages
from unified_flow.turns.passage import Passage, path_of
from unified_flow.turns.results import Check, Citation, Draft, Verdict
from unified_flow.turns.sections import Sections

REMOVED = "citations_supported"  # in the draft's checklist: false once one was removed
_SHARED = 0.3  # of a sentence's terms, for a quote that supports it with others
_SUPPORTED = 0.6  # of a sentence's terms, for quotes that support it
_FEW = 3  # terms, of which one may be the writer's own word
_RANGE = 9  # passages in `[2-4]`, at most
_TOGETHER = 4  # quotes for one sentence at most: a summary draws on several
_DOUBT = 0.8  # what is left of the confidence when a citation had to be removed


def cited(draft: Draft, query: str, sections: Sections, budget: int | None = None) -> Draft:
    """The draft with citations that support it, and with no other; its marks are their numbers,
    from 1. `budget` is that of the passages in its prompt, in tokens.

    An abstention and small talk have nothing to cite. One that cites passages and does not say that
    they say nothing is an answer, whatever it calls itself.
    """
    texts = texts_of(sections)
    if not texts or talk_of(query):
        return draft.model_copy(update={"response": MARK.sub("", draft.response)})
    found = found_passages(sections.coordinator)
    language = language_of_sources(found, texts)
    reader = _Reader(query, language, draft.response)
    passages, _ = shown_passages(sections.coordinator, budget)
    marked = _Marked(draft.response, passages, reader)
    if _abstains(draft, marked):
        unread = unread_documents(sections, phrases_of(language_of(query)))
        bare = "\n".join([MARK.sub("", draft.response), *unread])
        return draft.model_copy(update={"response": bare, "abstained": True, "citations": []})
    said = _said(draft, texts, reader)
    kept = [_placed(c, found) for c in draft.citations if _holds(c, said, texts, reader)]
    removed = marked.dropped or len(kept) < len(draft.citations)
    citations = list(dict.fromkeys([*marked.citations, *kept]))
    if marked.unmarked != draft.response:
        plain = draft.model_copy(update={"response": marked.unmarked})
        said = _said(plain, texts, reader)
    for terms in said:
        if not reader.supports(terms, [reader.known(c.quote) for c in citations]):
            sources = citable_sentences(sections, language)
            citations += [c for c in _found(terms, sources, reader) if c not in citations]
    checklist = {**draft.checklist, REMOVED: False} if removed else draft.checklist
    return draft.model_copy(
        update={
            "response": marked.response,
            "abstained": False,
            "citations": citations,
            "checklist": checklist,
        }
    )


def _abstains(draft: Draft, marked: _Marked) -> bool:
    """Whether the response only says that the sources do not say, also with a mark; or it opens so,
    or the model says that it abstains, and nothing is cited."""
    spans = sentences(draft.response)
    bare = (_without_last_mark(draft.response[start:end]) for start, end in spans)
    said = [each for each in bare if each]
    opens = bool(said) and is_refusal(said[0])
    if opens and all(map(is_refusal, said[1:])):
        return True
    uncited = not marked.citations
    return (draft.abstained and uncited) or (opens and (draft.abstained or uncited))


def _without_last_mark(sentence: str) -> str:
    marks = list(MARK.finditer(sentence))
    if marks and not re.search(r"\w", sentence[marks[-1].end() :]):
        return sentence[: marks[-1].start()]
    return sentence


def _holds(
    citation: Citation, said: Sequence[frozenset[str]], texts: list[str], reader: _Reader
) -> bool:
    """Whether one that the model gave itself stands in the sources and is of a sentence."""
    known = reader.known(citation.quote)
    of_one = any(reader.share(terms, known) >= _SHARED for terms in said)
    return is_verbatim(one_line(citation.quote), texts) and (of_one or not said)


class _Marked:
    """A response whose marks name passages. `citations` are what they stand for, `response` has
    the places of those, `unmarked` the sentences without one; `dropped`: a number was of none."""

    def __init__(self, response: str, passages: Sequence[ShownPassage], reader: _Reader) -> None:
        self.citations: list[Citation] = []
        self.dropped = False
        shown = {each.number: each for each in passages}
        code = [match.span() for match in CODE.finditer(response)]
        parts, unmarked, done = [], [], 0
        for mark in MARK.finditer(response):
            if any(start < mark.end() and mark.start() < end for start, end in code):
                continue
            before = response[done : mark.start()]
            spans = sentences(before)
            last = spans[-1][0] if spans else 0
            statement = before[last:]
            numbers = [self._cite(n, statement, shown, reader) for n in _numbers_of(mark.group())]
            places = dict.fromkeys(number for number in numbers if number)
            unmarked.append(before[:last] if places else before)
            space = " " if mark.group()[0].isspace() and places else ""
            parts += [before, space, *(f"[{place}]" for place in places)]
            done = mark.end()
        self.response = "".join([*parts, response[done:]])
        self.unmarked = "\n".join([*unmarked, response[done:]])

    def _cite(
        self, number: int, statement: str, shown: Mapping[int, ShownPassage], reader: _Reader
    ) -> int | None:
        """The place of its citation, from 1; None for a passage that was not shown."""
        if number not in shown:
            self.dropped = True
            return None
        citation = _decisive(statement, shown[number], reader)
        if citation not in self.citations:
            self.citations.append(citation)
        return self.citations.index(citation) + 1


def _numbers_of(mark: str) -> list[int]:
    """`[1, 3]` and `[2-4]`, each number once; the page of `[1, p. 3]` is none."""
    found: list[int] = []
    mark = re.sub(PLACE_IN_PASSAGE, "", mark, flags=re.IGNORECASE)
    for first, last in re.findall(r"(\d+)(?:\s*[-–]\s*(\d+))?", mark):  # noqa: RUF001
        found += range(int(first), min(int(last or first), int(first) + _RANGE) + 1)
    return list(dict.fromkeys(found))


def _decisive(statement: str, shown: ShownPassage, reader: _Reader) -> Citation:
    """The sentence of the passage that has most of the statement; the first of equals."""
    said = reader.said(statement)
    whole = reader.known(statement)
    for excerpt in excerpts_of([shown.passage] if shown.passage else [], reader.language):
        if excerpt.sentences:
            best = max(
                excerpt.sentences,
                key=lambda each: (
                    len(said & each.terms),
                    reader.share(said, each.terms),
                    len(whole & each.terms),
                ),
            )
            return citation_of(excerpt.passage, best.start, best.end)
    quote = shown.text.strip()[:LONGEST]
    return Citation(source=shown.source, quote=quote, heading=shown.heading, score=shown.score)


def _placed(citation: Citation, passages: Sequence[Passage]) -> Citation:
    """A model's own citation, with all that its passage holds."""
    for passage in passages:
        start = passage.text.find(citation.quote)
        if start >= 0 and path_of(citation.source) == passage.path:
            return citation_of(passage, start, start + len(citation.quote))
    return citation


def rests_on(draft: Draft, quote: str) -> bool:
    """Whether the draft cites this quote, a part of it, or more around it."""
    wanted = one_line(quote)
    cited = [one_line(each.quote) for each in draft.citations]
    return any(each in wanted or wanted in each for each in cited)


def supported_sentences(draft: Draft, query: str, sections: Sections) -> list[bool]:
    """For each sentence of the draft's own, whether a passage that it cites has most of its terms;
    what it quotes counts as one that does."""
    texts = texts_of(sections)
    passages = found_passages(sections.coordinator)
    reader = _Reader(query, language_of_sources(passages, texts))
    known = [reader.known(f"{c.passage or c.quote} {c.heading}") for c in draft.citations]
    own = [reader.supports(reader.said(part), known) for part in statements(draft, texts)]
    return own or [bool(known)]


class _Reader:
    """Terms of statements and quotes, and what one owes the other."""

    def __init__(self, query: str, language: str, response: str = "") -> None:
        self.language = language
        self.foreign = bool(response) and language_of_draft(response, query) != language
        self.asked = term_set(query, language)
        self._not_said = self.asked | terms_of_the_answer(language)

    def known(self, quote: str) -> frozenset[str]:
        return term_set(quote, self.language)

    def said(self, statement: str) -> frozenset[str]:
        """What it adds to the question; all of it, if it only repeats the question's words."""
        terms = self.known(statement)
        return terms - self._not_said or terms

    def share(self, said: frozenset[str], known: frozenset[str]) -> float:
        return sum(has_match(term, known) for term in said) / len(said) if said else 1.0

    def supports(self, said: frozenset[str], quotes: Sequence[frozenset[str]]) -> bool:
        """Whether one quote has enough of what was said, or several have it between them."""
        if not quotes:
            return False
        numbers = {term for term in said if term[0].isdigit()}
        several = [known for known in quotes if self.share(said, known) >= _SHARED]
        for known in [*quotes, frozenset[str]().union(*several)]:
            have = sum(has_match(term, known) for term in said)
            # Of a few terms all but one, for there are synonyms.
            enough = len(said) - 1 if 1 < len(said) <= _FEW else _SUPPORTED * len(said)
            if numbers <= known and have >= enough:
                return True
        return False


def has_match(term: str, known: frozenset[str]) -> bool:
    return term in known or best_kinship(term, known) > 0


def _said(draft: Draft, texts: list[str], reader: _Reader) -> list[frozenset[str]]:
    """What each part of the response says in its own words, without regard to what it cites; the
    names of its code, if it says nothing else."""
    bare = draft.model_copy(update={"response": own_words(draft), "citations": []})
    parts = statements(bare, texts) or [" ".join(re.findall(r"[^\W\d]\w*", code_of(bare)))]
    return [reader.said(part) for part in parts if part]


def _found(
    said: frozenset[str], sources: Sequence[CitableSentence], reader: _Reader
) -> list[Citation]:
    """The fewest quotes that support it, [] if no two do. Ties go to what has more of the question,
    then to the better passage."""
    if reader.foreign:
        # Names and numbers are all that two languages share.
        best = max(sources, key=lambda each: len(said & each.known), default=None)
        return [best.cite()] if best is not None and said & best.known else []
    chosen: list[CitableSentence] = []
    known: frozenset[str] = frozenset()
    while len(chosen) < _TOGETHER:
        left = [
            each
            for each in sources
            if each not in chosen and reader.share(said, each.known) >= _SHARED
        ]
        if not left:
            return []
        chosen.append(max(left, key=partial(_worth, said, known, reader)))
        known |= chosen[-1].known
        if reader.supports(said, [known]):
            return [each.cite() for each in chosen]
    return []


def _worth(
    said: frozenset[str], known: frozenset[str], reader: _Reader, each: CitableSentence
) -> tuple[float, float]:
    return (
        round(reader.share(said, known | each.known), 3),
        round(reader.share(reader.asked, each.known), 3),
    )


def weighed(verdict: Verdict, query: str, sections: Sections) -> Verdict:
    """The verdict, with what code knows in its checks and issues.

    APPROVE becomes REVISE for a quotation, a name or a number that stands in no source, for an
    answer without a source though documents were searched, and for an abstention that cites. A
    verdict that approves nothing stays what it is. What the model takes for supported and code
    cannot tell is not checked.
    """
    draft = sections.synthesis
    if draft is None or talk_of(query):
        return verdict
    if draft.abstained:
        return _sent_back(verdict, ["an abstention with citations"]) if draft.citations else verdict
    found = findings(draft, query, sections)
    if found.issues:
        verdict = _sent_back(verdict, found.issues, found.hints)
    checks = verdict.checks
    supported = _together(checks.claims_supported, found.check)
    honest = _together(checks.no_hallucinations, found.check)
    known = {"claims_supported": supported, "no_hallucinations": honest}
    changes: dict[str, object] = {"checks": checks.model_copy(update=known)}
    if draft.checklist.get(REMOVED) is False:
        issue = "a citation that did not support its sentence was removed"
        changes["issues"] = [*verdict.issues, issue]
        changes["confidence"] = round(verdict.confidence * _DOUBT, 4)
    return verdict.model_copy(update=changes)


def _sent_back(verdict: Verdict, issues: list[str], hints: list[str] | None = None) -> Verdict:
    return verdict.model_copy(
        update={
            "decision": "REVISE" if verdict.decision == "APPROVE" else verdict.decision,
            "issues": list(dict.fromkeys([*verdict.issues, *issues])),
            "hints": list(dict.fromkeys([*verdict.hints, *(hints or [])])),
        }
    )


def _together(said: Check, known: Check) -> Check:
    """What code has established, unless the model sees a fault."""
    return False if said is False else known
