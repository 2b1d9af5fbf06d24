"""Which of several things a question means that says "the hurricane" where documents tell of four.

Asking back costs a turn, so it takes plain signs: the question names nothing else, the conversation
has not spoken of it, at least three documents name one each, and fewer speak of "the hurricane"
themselves ("the admin" is one thing, whatever it is called with).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from unified_flow.lib.text import language_of, terms
from unified_flow.lib.text.language import stop_words
from unified_flow.lib.text.lexicon import Lexicon, lexicon_of
from unified_flow.models.embedded.references import names_of, noun_phrase
from unified_flow.turns.passage import Passage

_LEAST = 3  # things with a name, of as many documents
_SHOWN = 4
_OWN_NAME = re.compile(r"[`\"“”«»\d/_]|\w[.:]\w")


def things_meant(
    question: str, passages: Sequence[Passage], earlier: Iterable[str]
) -> tuple[str, list[str]] | None:
    """(the noun, names of what it may mean), best first; None if it is clear enough. `earlier` are
    words of the conversation."""
    lexicon = lexicon_of(language_of(question))
    if _OWN_NAME.search(question) or names_of(question):
        return None
    narrowed = re.compile(rf"\W*(?:{lexicon.narrows})\b", re.IGNORECASE)
    known = set(terms(" ".join(earlier), lexicon.language))
    for match in lexicon.the_noun.finditer(question):
        noun = " ".join(noun_phrase(match["noun"], lexicon))
        own = known.intersection(terms(noun, lexicon.language))
        if not noun or own or narrowed.match(match["noun"], len(noun)):
            continue
        if len(named := _named(noun, passages, lexicon)) >= _LEAST:
            return noun, named[:_SHOWN]
    return None


def _named(noun: str, passages: Sequence[Passage], lexicon: Lexicon) -> list[str]:
    """ "Hurricane Isaac", "VA home loan": one of each document, none twice."""
    kind = rf"(?i:{re.escape(noun)})"
    name = re.compile(rf"\b(?:(?:[A-Z][\w'-]*[ ]){{1,3}}{kind}|{kind}[ ][A-Z][\w'-]*)\b")
    alone = re.compile(rf"\b{lexicon.definite}\s+{kind}\b", re.IGNORECASE)
    found: dict[str, str] = {}
    as_one = {p.path for p in passages if alone.search(p.text)}
    for passage in passages:
        for match in name.finditer(f"{passage.heading}\n{passage.text}"):
            first = match.group().partition(" ")[0].casefold()
            if first not in stop_words(lexicon.language) | lexicon.shell | lexicon.operators:
                found.setdefault(passage.path, match.group())
                break
    distinct = {each.casefold().replace("'s", ""): each for each in found.values()}
    return list(distinct.values()) if len(as_one) < len(found) else []
