"""What a question is about: the words that a later "it" stands for."""

from __future__ import annotations

import re

from unified_flow.lib.text.languages import stop_words
from unified_flow.lib.text.words import UNSPACED
from unified_flow.models.embedded.lexicon import Lexicon

_MARKED = re.compile(r"`([^`]+)`|\"([^\"]{2,60})\"|“([^”]{2,60})”|«\s*([^»]{2,60}?)\s*»")
_TOKEN = re.compile(r"[^\W_][\w'’./:+#-]*")  # noqa: RUF001 -- typeset apostrophes
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_PARTICLES = re.compile(r"[的了吗呢吧啊是？?。，,！!\s]+")  # noqa: RUF001 -- Chinese punctuation
_JOINING = frozenset({"of", "de", "du", "des", "d", "av"})
_LONGEST_WORDS = 8
# "How do nodes *communicate*", "Who *wrote* the page", "När *börjar* vintern"
_VERB_LAST = frozenset({"do", "does", "did", "can", "could", "should", "will", "would"})
_VERB_FIRST = frozenset(
    {"who", "hur", "när", "var", "varför", "vem", "qui", "comment", "quand", "où", "pourquoi"}
)


def topic_of(question: str, lexicon: Lexicon, language: str) -> str | None:
    """The phrase that names the subject, with its article; None if there is none."""
    marked = _MARKED.search(question)
    if marked:
        return next(group for group in marked.groups() if group)
    if _UNSPACED.search(question):
        return _unspaced(question, lexicon)
    # In French an apostrophe parts two words, elsewhere it belongs to one.
    text = re.sub(r"['’]", " ", question) if language == "fr" else question  # noqa: RUF001
    tokens = [m.group().rstrip("'’./:-") for m in _TOKEN.finditer(text)]  # noqa: RUF001
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
    """The first run of content words that is not the verb."""
    runs: list[tuple[str, list[str]]] = []  # each after the word before it
    before = ""
    open_run = False
    for token in tokens:
        if _is_content(token, lexicon, language):
            if not open_run:
                runs.append((before, []))
            runs[-1][1].append(token)
            open_run = True
        else:
            before, open_run = token.casefold(), False
    if not runs:
        return None
    after, run = runs[0]
    if after in _VERB_LAST and len(run) > 1:
        run = run[:-1]
    elif after in _VERB_FIRST:
        run = run[1:] or (runs[1][1] if len(runs) > 1 else run)
    return " ".join(run)


def _unspaced(question: str, lexicon: Lexicon) -> str | None:
    rest = question
    for _, looked_for in lexicon.kinds:
        rest = looked_for.sub(" ", rest)
    pieces = [piece for piece in _PARTICLES.split(rest) if piece]
    return max(pieces, key=len, default=None)
