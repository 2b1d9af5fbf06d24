"""Phase 6, by rules: what code can establish of a draft, and what it leaves unchecked.

Numbers, names and quotations that stand in no source are found, leniently: a name is only looked
for in a text of the sources' language, and not where that language writes every noun like a name;
what opens a sentence or a list item is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from unified_flow.models.embedded.excerpts import excerpts_of, found_passages, matching_terms
from unified_flow.models.embedded.intents import talk_of
from unified_flow.models.embedded.quotes import INTRODUCES, one_line
from unified_flow.models.embedded.statements import (
    CODE_BLOCK,
    code_of,
    is_verbatim,
    language_of_draft,
    language_of_sources,
    own_words,
    statements,
    texts_of,
)
from unified_flow.turns.results import Check, Checks, Draft, Verdict
from unified_flow.turns.sections import Sections

_TOKEN = re.compile(r"[^\W_]\w*(?:[-.,]\w+)*")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_INLINE_CODE = re.compile(r"`([^`\n]+)`")
_QUOTATION = re.compile(r"“([^“”\n]+)”|„([^“”\n]+)“|«([^»\n]+)»|(?<![\w`])\"([^\"\n]+)\"(?![\w`])")
_ELLIPSIS = re.compile(r"\s*(?:…|\.\.\.|\[…\]|\[\.\.\.\])\s*")
_LONG_ENOUGH = 4  # words of a quotation; fewer may be a term in quotation marks
_OPENS = ".:;!?–—•|-\n"  # noqa: RUF001 - what stands before the first word of a sentence or item
_BEFORE = " \t*_#\"“„«'‘([`"  # noqa: RUF001
_MID_SENTENCE = re.compile(r"(?<=[a-zà-ÿ,] )[^\W\d_]+")
_NOUNS_LIKE_NAMES = 0.2  # of the words inside sentences that begin with a capital
# From one unit to another: time, percent, metres, bytes.
_CONVERSIONS = (7, 24, 60, 100, 365, 1_000, 1_024, 1_440, 3_600, 86_400, 604_800, 1_024**2)
_QUANTITY = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?= ?[^\W\d])")
_LITERAL = re.compile(r"(?<!\w)(['\"]).*?\1|(?:#|//) .*")
_DEFINED = re.compile(
    r"\b(?:def|class|function|fn|for|as|let|const|var)\s+(\w+)(\([^)]*)?|(\w+)\s*(?::[^=\n]+)?=(?!=)"
)
_CALLED = re.compile(r"\b([^\W\d]\w*)\.(?:\w+\.)*([^\W\d]\w*)\s*\(")
_IMPORTED = re.compile(r"^\s*from\s+(\w+)[\w.]*\s+import\s+([\w, ]+)$", re.MULTILINE)
_SUBCOMMAND = re.compile(
    r"^\s*(?:\$ )?([a-z][\w-]*) ([a-z][a-z-]+)(?=\s|$)(?!\s*[=:(])", re.MULTILINE
)
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")
_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s", re.MULTILINE)
_LEFTOVERS = re.compile(r"^\s*[{\[]\s*\"|```json|<\|\w+\|>|\{\{\w+\}\}|</?mark>")
_KEEP_TO_SOURCES = "keep to what the sources say and leave out what the issues name"


def verify(query: str, sections: Sections) -> Verdict:
    """The same draft is sent back once at most: rules have no other words for it."""
    draft = sections.synthesis
    if draft is None:
        return _verdict("REVISE", ["there is no draft"], ["write an answer"], coherent=True)
    coherent = _is_coherent(draft)
    if talk_of(query) or draft.abstained:
        if draft.abstained and draft.citations:
            issue, hint = "an abstention with citations", "cite nothing when abstaining"
            return _verdict("REVISE", [issue], [hint], coherent=coherent)
        return _verdict("APPROVE", coherent=coherent, supported=True)
    found = findings(draft, query, sections)
    issues, hints = found.issues, found.hints
    if not coherent:
        issues, hints = [*issues, "leftovers of a format"], [*hints, "write plain text"]
    again = sections.validation is not None and sections.validation.decision == "REVISE"
    if issues and not again:
        return _verdict("REVISE", issues, hints, coherent=coherent, supported=found.check)
    return _verdict("APPROVE", issues, coherent=coherent, supported=found.check)


def _verdict(
    decision: Literal["APPROVE", "REVISE"],
    issues: Sequence[str] = (),
    hints: Sequence[str] = (),
    *,
    coherent: bool,
    supported: Check = "not checked",
) -> Verdict:
    checks = Checks(
        claims_supported=supported,
        no_hallucinations=supported,
        query_addressed="not checked",
        coherent_format=coherent,
    )
    confidence = 0.9 if supported is True else 0.7
    return Verdict(
        decision=decision,
        confidence=confidence,
        checks=checks,
        issues=list(issues),
        hints=list(hints),
    )


def _is_coherent(draft: Draft) -> bool:
    """Text without leftovers of a format, and no JSON; what it quotes may hold both."""
    own = own_words(draft)
    if not draft.response.strip() or _LEFTOVERS.search(own):
        return False
    if not own.lstrip().startswith("{"):
        return True
    try:
        return not isinstance(json.loads(own), dict)
    except ValueError:
        return True


@dataclass(frozen=True)
class Findings:
    """What is wrong with a draft beyond doubt (`issues`): quotations, names and numbers that stand
    in no source, and no source at all though documents were searched. `hints` say what to do about
    them, in words that a small model can follow. `check`: whether the sources support the draft, as
    far as code can tell; they do if each sentence of it is one of theirs, word for word."""

    issues: list[str]
    hints: list[str]
    check: Check


def findings(draft: Draft, query: str, sections: Sections) -> Findings:
    texts = texts_of(sections)
    if not texts:
        return Findings([], [], "not checked")
    all_said = statements(draft, texts, introductions=True)
    said = [statement for statement in all_said if not statement.endswith(INTRODUCES)]
    passages = found_passages(sections.coordinator)
    language = language_of_sources(passages, texts)
    same = language == language_of_draft(draft.response, query)
    code = code_of(draft)
    unknown = invented(draft, said, texts, query, language, same=same)
    issues = [f"not in the sources: {one_line(q)}" for q in misquoted(draft, texts, same=same)]
    issues += [f"stands in no source: {name}" for name in unknown]
    hints = [f"write it without “{name}”" for name in unknown]
    claims = bool(code) or any(not statement.rstrip().endswith("?") for statement in said)
    if same and passages and claims and not draft.citations:
        issues.append("no citation")
        hints.append("end each sentence with the number of the passage that states it, like [1]")
    if issues:
        return Findings(issues, [_KEEP_TO_SOURCES, *hints], False)
    if code or not all_said:
        return Findings([], [], "not checked" if code else True)
    excerpts = excerpts_of(passages, language)
    # What a draft can repeat without changing what it says: sentences, and whole short results.
    whole = [*texts, *(each.text for excerpt in excerpts for each in excerpt.sentences)]
    supported = set(map(plain_words, whole)).issuperset(map(plain_words, all_said))
    return Findings([], [], True if supported else "not checked")


def misquoted(draft: Draft, texts: Sequence[str], *, same: bool) -> list[str]:
    """Citations and quotations of the response that are not in a source word for word. `same` says
    that both are in one language."""
    found = [c.quote for c in draft.citations if not is_verbatim(one_line(c.quote), texts)]
    response = _INLINE_CODE.sub(" ", CODE_BLOCK.sub(" ", own_words(draft)))
    quotations = [next(filter(None, groups)) for groups in _QUOTATION.findall(response)]
    own = [each for each in quotations if not is_verbatim(one_line(each), texts)]
    if not own or not same:
        return found
    plain = [f" {plain_words(text)} " for text in texts]
    for quotation in own:
        parts = [plain_words(part) for part in _ELLIPSIS.split(quotation)]
        if len(" ".join(parts).split()) < _LONG_ENOUGH:
            continue
        if not all(any(f" {part} " in text for text in plain) for part in parts if part):
            found.append(quotation)
    return found


def invented(
    draft: Draft,
    statements: Sequence[str],
    texts: Sequence[str],
    query: str,
    language: str,
    *,
    same: bool,
) -> list[str]:
    """Names and numbers of the statements, and names of the code, that are no words of a source or
    of the question. `language` is that of the sources, `same` says that it is the draft's."""
    code = code_of(draft)
    if not statements and not code:
        return []
    sources = " ".join([*texts, query])
    folded = sources.casefold()
    stems = frozenset(matching_terms(folded, language))  # "nine" as 9
    known = frozenset(_WORD.findall(folded)) | stems
    numbers = {form for found in _NUMBER.findall(folded) for form in _forms(found)}
    values = {_value(number) for text in texts for number in _QUANTITY.findall(text)}
    quantities = {value for value in values if value > 1 and value.is_integer()}
    counted = {"00", str(len(_LIST_ITEM.findall(draft.response)))}
    numbers |= counted | {term for term in stems if term.isdigit()}
    mid = _MID_SENTENCE.findall(sources)
    capitals = sum(word[0].isupper() for word in mid)
    capitals_tell = capitals <= _NOUNS_LIKE_NAMES * max(1, len(mid))
    found = [name for name in _documented_names(code, known) if name.casefold() not in folded]
    for statement in statements:
        for inline in _INLINE_CODE.findall(statement):
            parts = _WORD.findall(inline.casefold())
            found += [p for p in parts if len(p) > 2 and not p.isdigit() and p not in folded]
        plain = _INLINE_CODE.sub(" ` ", statement)
        found += [
            number
            # Not the 8 of UTF-8 nor the 3 of py3, which are names.
            for number in _NUMBER.findall(re.sub(r"[^\W\d_][\w-]*", " ", plain))
            if not _forms(number) & numbers and not _is_converted(number, quantities)
        ]
        if same:
            found += [
                name
                for name in _names(plain, capitals_tell)
                if not _is_known(name, known, language) and not _is_capitals(name)
            ]
    return list(dict.fromkeys(found))


def plain_words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _forms(number: str) -> set[str]:
    """3,500, 3500 and 3.500 are one number, and so are 1.5 and 1,5."""
    return {number.replace(",", ""), number.replace(".", ""), number.replace(",", ".")}


def _names(statement: str, capitals_tell: bool) -> Iterator[str]:
    """Words with a capital, a digit or _ inside the word; and, where `capitals_tell` names from
    nouns, words with a capital inside the statement."""
    is_heading = statement.rstrip("*_ ").endswith(":") or statement.startswith("#")
    for match in _TOKEN.finditer(statement):
        word = match.group()
        if word[0].isdigit():
            continue
        if any(c.isupper() or c.isdigit() or c == "_" for c in word[1:]):
            yield word
        elif capitals_tell and word[0].isupper() and len(word) > 1 and not is_heading:
            before = statement[: match.start()].rstrip(_BEFORE)
            if before and before[-1] not in _OPENS:
                yield word


def _is_known(name: str, known: frozenset[str], language: str) -> bool:
    """Whether each part of the name is known, in any form of the word."""
    for part in re.split(r"[-._,]", name.casefold()):
        plain = part.removeprefix("v") if part[1:2].isdigit() else part
        forms = {part, plain, f"{part}s", part.removesuffix("s")}
        stems = set(matching_terms(part, language))
        if not forms & known and not (stems and stems <= known):
            return False
    return True


def _is_capitals(name: str) -> bool:
    """CLI, UNIX, OK: more often a common word than a name, and so left unchecked."""
    return name.removesuffix("s").replace("-", "").isalpha() and name.removesuffix("s").isupper()


def _is_converted(number: str, quantities: Set[float]) -> bool:
    """Whether it may be one of the sources in another unit: 14 days for 2 weeks."""
    own = _value(number)
    return any(own * ratio in quantities or own / ratio in quantities for ratio in _CONVERSIONS)


def _value(number: str) -> float:
    plain = re.sub(r"[.,](?=\d{3}(?!\d))", "", number).replace(",", ".")
    return float(plain) if plain.count(".") < 2 else 0.0


def _documented_names(code: str, known: frozenset[str]) -> Iterator[str]:
    """What code takes from something that the sources know: what it calls or imports of it, a
    subcommand, an option. Names and numbers of an example may be its own."""
    plain = _LITERAL.sub('""', code)
    own = {name for names in _DEFINED.findall(plain) for name in _WORD.findall(" ".join(names))}
    for pattern in (_CALLED, _IMPORTED, _SUBCOMMAND):
        for base, names in pattern.findall(plain):
            if base.casefold() in known and base not in own:
                yield from (name for name in re.findall(r"[\w-]+", names) if name not in own)
    yield from _OPTION.findall(plain)
