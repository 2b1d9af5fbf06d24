"""What a question is about: the words that a later "it" stands for."""

from __future__ import annotations

import re

from unified_flow.lib.text.language import stop_words
from unified_flow.lib.text.lexicon import Lexicon, any_language
from unified_flow.lib.text.words import UNSPACED

_MARKED = re.compile(r"`([^`]+)`|\"([^\"]{2,60})\"|“([^”]{2,60})”|«\s*([^»]{2,60}?)\s*»")
_TOKEN = re.compile(r"[^\W_][\w'’./:+#-]*")  # noqa: RUF001 -- typeset apostrophes
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_LONGEST_WORDS = 8


def topic_of(question: str, lexicon: Lexicon, language: str) -> str | None:
    """The phrase that names the subject, with its article; None if there is none."""
    marked = _MARKED.search(question)
    if marked:
        return next(group for group in marked.groups() if group)
    if _UNSPACED.search(question):
        return _unspaced(question, lexicon)
    text = re.sub(r"['’]", " ", question) if lexicon.elides else question  # noqa: RUF001
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
    articles = lexicon.articles
    linking = any_language().linking
    for start, token in enumerate(tokens):
        if token.casefold() not in articles:
            continue
        end = start + 1
        while end < len(tokens) and end - start < _LONGEST_WORDS:
            plain = tokens[end].casefold()
            joins = plain in linking or (
                plain in articles and tokens[end - 1].casefold() in linking
            )
            if not (joins or _is_content(tokens[end], lexicon, language)):
                break
            end += 1
        while end > start + 1 and tokens[end - 1].casefold() in linking | articles:
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
    if after in any_language().auxiliaries and len(run) > 1:
        run = run[:-1]
    elif after in any_language().inverting:
        run = run[1:] or (runs[1][1] if len(runs) > 1 else run)
    return " ".join(run)


def _unspaced(question: str, lexicon: Lexicon) -> str | None:
    rest = question
    for _, looked_for in lexicon.kinds:
        rest = looked_for.sub(" ", rest)
    particles = "".join(any_language().particles)
    pieces = re.split(rf"[{particles}？?。，,！!\s]+", rest)  # noqa: RUF001 -- Chinese marks
    return max(pieces, key=len) or None
