"""What a question is about: the words that a later "it" stands for."""

from __future__ import annotations

import re

from unified_flow.models.embedded.lexicon import Lexicon
from unified_flow.text.languages import stop_words
from unified_flow.text.words import UNSPACED

_MARKED = re.compile(r"`([^`]+)`|\"([^\"]{2,60})\"|“([^”]{2,60})”|«\s*([^»]{2,60}?)\s*»")
_TOKEN = re.compile(r"[^\W_][\w'’./:+#-]*")  # noqa: RUF001 -- typeset apostrophes
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_PARTICLES = re.compile(r"[的了吗呢吧啊是？?。，,！!\s]+")  # noqa: RUF001 -- Chinese punctuation
_JOINING = frozenset({"of", "de", "du", "des", "d", "av"})
_LONGEST_WORDS = 8


def topic_of(question: str, lexicon: Lexicon, language: str) -> str | None:
    """The phrase that names the subject, with its article; None if there is none."""
    marked = _MARKED.search(question)
    if marked:
        return next(group for group in marked.groups() if group)
    if _UNSPACED.search(question):
        return _unspaced(question, lexicon)
    tokens = [m.group().rstrip("'’./:-") for m in _TOKEN.finditer(question)]  # noqa: RUF001
    return (
        _determined(tokens, lexicon, language) or _named(tokens) or _bare(tokens, lexicon, language)
    )


def names_of(text: str) -> list[str]:
    """Runs of capitalised words that do not open a sentence alone."""
    runs = re.findall(r"(?:[A-ZÅÄÖÉÈ][\w'’-]*\s+)*[A-ZÅÄÖÉÈ][\w'’-]*", text)  # noqa: RUF001
    opening = re.match(r"\W*(\w+)", text)
    first = opening.group(1) if opening else ""
    return [run for run in runs if run != first]


def _is_content(token: str, lexicon: Lexicon, language: str) -> bool:
    plain = token.casefold()
    return not (
        plain in stop_words(language)
        or plain in lexicon.verbs
        or plain in lexicon.shell
        or plain in lexicon.pronouns
    )


def _determined(tokens: list[str], lexicon: Lexicon, language: str) -> str | None:
    """From an article to the end of its phrase: "the default value of a parameter"."""
    articles = lexicon.determiners & {
        "the",
        "a",
        "an",
        "le",
        "la",
        "les",
        "l",
        "un",
        "une",
        "des",
    } | (lexicon.determiners & {"en", "ett", "den", "det", "de"})
    for start, token in enumerate(tokens):
        if token.casefold() not in articles:
            continue
        end = start + 1
        while end < len(tokens) and end - start < _LONGEST_WORDS:
            plain = tokens[end].casefold()
            joins = plain in _JOINING or (
                plain in articles and tokens[end - 1].casefold() in _JOINING
            )
            if not (joins or _is_content(tokens[end], lexicon, language)):
                break
            end += 1
        while end > start + 1 and tokens[end - 1].casefold() in _JOINING | articles:
            end -= 1
        if end > start + 1:
            return " ".join(tokens[start:end])
    return None


def _named(tokens: list[str]) -> str | None:
    run: list[str] = []
    best: list[str] = []
    for place, token in enumerate(tokens):
        if place and (token[0].isupper() or (run and token[0].isdigit())):
            run.append(token)
            best = max(best, run, key=len)
        else:
            run = []
    return " ".join(best) or None


def _bare(tokens: list[str], lexicon: Lexicon, language: str) -> str | None:
    """The first run of content words; beside an auxiliary it ends in the verb."""
    run: list[str] = []
    after = ""
    for token in tokens:
        if _is_content(token, lexicon, language):
            run.append(token)
        elif run:
            break
        else:
            after = token.casefold()
    if len(run) > 1 and after in {"do", "does", "did", "can", "could", "should", "will", "would"}:
        run = run[:-1]
    elif len(run) > 1 and after in {"hur", "när", "var", "varför", "comment", "quand", "où"}:
        run = run[1:]
    return " ".join(run) or None


def _unspaced(question: str, lexicon: Lexicon) -> str | None:
    rest = question
    for _, looked_for in lexicon.kinds:
        rest = looked_for.sub(" ", rest)
    pieces = [piece for piece in _PARTICLES.split(rest) if piece]
    return max(pieces, key=len, default=None)
