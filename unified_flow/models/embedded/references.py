"""Words that refer back ("it", "the second one", "and what about X?") and what they refer to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from unified_flow.lib.text import language_of, terms
from unified_flow.lib.text.language import stop_words
from unified_flow.lib.text.lexicon import Lexicon, any_language, lexicon_of
from unified_flow.lib.text.segmentation import UNSPACED
from unified_flow.turns.results import PriorTurn

_TOKEN = re.compile(r"\w+")
_JOINT = re.compile(r"-(?:t-)?\Z")  # "parle-t-il"
_SOURCE = re.compile(r"\s*\([^()]*:\d+\)\Z")
_LAST_WORD = re.compile(r"\s+\S+\s*\Z")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_ITEM = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s+(.+?)\s*$", re.MULTILINE)
_MOST_REFERENCES = 4
_LONGEST_ITEM = 200  # characters
_ENOUGH_OF_ITS_OWN = 3  # content words before a pronoun: its antecedent is among them
_MARKED = re.compile(r"`([^`]+)`|\"([^\"]{2,60})\"|“([^”]{2,60})”|«\s*([^»]{2,60}?)\s*»")
_NAME_OR_WORD = re.compile(r"[^\W_][\w'’./:+#-]*")  # noqa: RUF001 -- typeset apostrophes
_LONGEST_WORDS = 8
_LONGEST_NOUN = 3  # words
_EARLIER_CLAUSE = re.compile(r"[,;:.?!]\s")


@dataclass(frozen=True)
class Resolution:
    status: Literal["not_needed", "resolved", "failed"]
    query: str
    references: tuple[str, ...] = ()
    stands_for: str | None = None


def resolve(query: str, history: Sequence[PriorTurn]) -> Resolution:
    lexicon = lexicon_of(language_of(query))
    return (
        _more_of_the_same(query, history, lexicon)
        or _same_of_another(query, history, lexicon)
        or _item_of_a_list(query, history, lexicon)
        or _pronouns_resolved(query, history, lexicon)
        or _unnamed(query, history, lexicon)
        or Resolution("not_needed", query)
    )


def _more_of_the_same(
    query: str, history: Sequence[PriorTurn], lexicon: Lexicon
) -> Resolution | None:
    """ "Why?", "tell me more": the earlier question once more, with this to it."""
    if not lexicon.more.match(query):
        return None
    wish = query.strip().rstrip("?？!. ")  # noqa: RUF001 -- Chinese question mark
    if not history:
        return Resolution("failed", query, (wish,))
    earlier = _standing_alone(history)
    return Resolution("resolved", f"{wish}: {earlier}", (wish,), earlier)


def _standing_alone(history: Sequence[PriorTurn]) -> str:
    """The last question, itself resolved against those before it."""
    last = history[-1]
    return resolve(last.question, history[:-1]).query


def _same_of_another(
    query: str, history: Sequence[PriorTurn], lexicon: Lexicon
) -> Resolution | None:
    """ "And what about X?": the earlier question about X."""
    match = lexicon.instead.match(query) if history else None
    if match is None:
        return None
    topic = next(value for value in match.groupdict().values() if value)
    if {word.casefold() for word in _TOKEN.findall(topic)} & lexicon.pronouns:
        return None
    earlier = _standing_alone(history)
    replaced = topic_of(earlier, lexicon)
    if replaced and (joined := _phrase_before_last_noun(replaced)):
        # "the reliability of a publisher": what about a subscription's? And the durability?
        whole, part = replaced[: joined.end()], replaced[joined.end() :]
        of_whole = _opening(topic) == _opening(whole) != _opening(part)
        replaced = _LAST_WORD.sub("", whole) if of_whole else part or replaced
    asked = earlier.replace(replaced, topic, 1) if replaced else f"{earlier} {topic}"
    return Resolution("resolved", asked, (query.strip(),), asked)


def _phrase_before_last_noun(phrase: str) -> re.Match[str] | None:
    """ "the reliability of" a publisher."""
    return re.match(rf".*\b{any_language().linked}", phrase, re.IGNORECASE)


def _opening(phrase: str) -> str:
    """Its first word, mostly an article."""
    return phrase.strip().partition(" ")[0].casefold()


def _item_of_a_list(
    query: str, history: Sequence[PriorTurn], lexicon: Lexicon
) -> Resolution | None:
    """ "The second one": an item of what was listed last."""
    match = lexicon.ordinal_reference.search(query)
    if match is None:
        return None
    reference = match.group("reference")
    groups = match.groupdict()
    place = lexicon.ordinals.get((groups.get("ordinal") or groups.get("pair") or "").casefold(), 0)
    for turn in reversed(history):
        for items in (_listed(turn.answer), _alternatives(turn.question)):
            if len(items) > 1 and -len(items) <= place < len(items):
                return _replaced(query, [match.span("reference")], items[place])
    return Resolution("failed", query, (reference,))


def _listed(text: str) -> list[str]:
    items = (_SOURCE.sub("", item) for item in _ITEM.findall(text))
    return [item.strip("“”\"' ")[:_LONGEST_ITEM] for item in items]


def _alternatives(text: str) -> list[str]:
    """A, B and C of "which is better, A, B or C?"."""
    every = any_language()
    item = r"[\w'’ -]{2,60}"  # noqa: RUF001
    choice = rf"({item}?(?:,\s*{item}?)*),?\s+{every.choice}\s+({item})"
    match = re.search(choice, text.rpartition(":")[2])
    if match is None:
        return []
    copula = re.compile(rf"\b{every.copulas}\b", re.IGNORECASE)
    listed = re.split(rf"\b{every.between}\b", match.group(1))[-1].split(",")
    if len(listed) > 1 and copula.search(listed[0]):
        listed = listed[1:]  # "Which is faster, A or B?"
    first = copula.split(listed[0])[-1]
    return [part.strip(" ,") for part in [first, *listed[1:], match.group(2)] if part.strip(" ,")]


def _pronouns_resolved(
    query: str, history: Sequence[PriorTurn], lexicon: Lexicon
) -> Resolution | None:
    """Pronouns and "that" without an antecedent in the question itself."""
    spans = _pronouns(query, lexicon)[:_MOST_REFERENCES]
    spans += [m.span("reference") for m in lexicon.demonstratives.finditer(query)]
    spans = sorted(spans)[:_MOST_REFERENCES]
    if not spans:
        return None
    references = tuple(query[start:end] for start, end in spans)
    topic = _topic(history, references)
    if topic is None:
        return Resolution("failed", query, references)
    return _replaced(query, spans, topic[:_LONGEST_ITEM], lexicon)


def _unnamed(query: str, history: Sequence[PriorTurn], lexicon: Lexicon) -> Resolution | None:
    """ "This burger", if neither the question nor an earlier turn has named one."""
    match = lexicon.this_noun.search(query)
    if match is None or _MARKED.search(query):
        return None
    before = query[: match.start()]
    noun = noun_phrase(match["noun"], lexicon)
    verb_first = any_language().auxiliaries | lexicon.verbs
    if len(noun) > 1 and set(_TOKEN.findall(before.casefold())[-1:]) & verb_first:
        noun = noun[:-1]  # "does this court publish"
    if not noun or names_of(before) or not lexicon.at_hand.isdisjoint(map(str.casefold, noun)):
        return None
    if (clause := _EARLIER_CLAUSE.search(before)) and terms(before[: clause.start()]):
        return None
    told = " ".join([before, *(f"{turn.question} {turn.answer}" for turn in history)])
    if not set(terms(told)).isdisjoint(terms(" ".join(noun), lexicon.language)):
        return None
    reference = query[match.start("reference") : match.start("noun")] + " ".join(noun)
    return Resolution("failed", query, (reference,))


def noun_phrase(text: str, lexicon: Lexicon) -> list[str]:
    """The content words that it opens with, at most a few."""
    found: list[str] = []
    for word in _TOKEN.findall(text):
        if not _names_something(word, lexicon) or len(found) == _LONGEST_NOUN:
            break
        found.append(word)
    return found


def _replaced(
    query: str, spans: list[tuple[int, int]], topic: str, lexicon: Lexicon | None = None
) -> Resolution:
    references = tuple(query[start:end] for start, end in spans)
    resolved = query
    for start, end in reversed(spans):
        owned = lexicon is not None and query[start:end].casefold() in lexicon.possessives
        words = lexicon.genitive.format(topic) if lexicon and owned else topic
        joint = _JOINT.search(resolved, max(0, start - 3), start)
        before = f"{resolved[: joint.start()]} " if joint else resolved[:start]
        resolved = before + words + resolved[end:]
    return Resolution("resolved", resolved, references, topic)


def _pronouns(query: str, lexicon: Lexicon) -> list[tuple[int, int]]:
    if _UNSPACED.search(query):
        listed = "|".join(sorted(lexicon.pronouns, key=len, reverse=True))
        found = re.search(listed, query) if listed else None
        # In Chinese, what precedes the pronoun is its antecedent more often than not.
        return [found.span()] if found and not terms(query[: found.start()]) else []
    expletive = [m.span() for m in lexicon.expletives.finditer(query)]
    tokens = list(_TOKEN.finditer(query))
    content = [t for t in tokens if _is_content(t.group(), lexicon)]
    if not lexicon.distinct_pronouns and len(content) > _ENOUGH_OF_ITS_OWN:
        return []  # articles and pronouns look alike: only a short question needs one
    found_spans = []
    for place, token in enumerate(tokens):
        if token.group().casefold() not in lexicon.pronouns:
            continue
        inside = any(start <= token.start() < end for start, end in expletive)
        before = _without_what_it_belongs_to(tokens[:place], lexicon)
        if not inside and not _has_antecedent(before, lexicon):
            found_spans.append(token.span())
    return found_spans


def _without_what_it_belongs_to(
    before: list[re.Match[str]], lexicon: Lexicon
) -> list[re.Match[str]]:
    """ "The default of it": not the default, but what it is a default of."""
    if not before or before[-1].group().casefold() not in lexicon.belonging:
        return before
    end = len(before) - 1
    while end and _is_content(before[end - 1].group(), lexicon):
        end -= 1
    return before[:end]


def _is_content(word: str, lexicon: Lexicon) -> bool:
    plain = word.casefold()
    return not (
        plain in stop_words(lexicon.language) or plain in lexicon.verbs or plain in lexicon.pronouns
    )


def _has_antecedent(before: Sequence[re.Match[str]], lexicon: Lexicon) -> bool:
    """Whether a noun precedes the pronoun, as far as its surroundings tell."""
    content = 0
    for place, token in enumerate(before):
        word = token.group()
        if not _is_content(word, lexicon):
            continue
        content += 1
        previous = before[place - 1].group().casefold() if place else ""
        if (
            (place and word[0].isupper())
            or previous in lexicon.determiners | lexicon.verbs | lexicon.shell
            or content >= _ENOUGH_OF_ITS_OWN
        ):
            return True
    return False


def _topic(history: Sequence[PriorTurn], references: Sequence[str]) -> str | None:
    """What the latest question that names anything is about; for he and she, a name."""
    persons = any_language().persons
    wants_person = any(reference.casefold() in persons for reference in references)
    for turn in reversed(history):
        lexicon = lexicon_of(language_of(turn.question))
        if wants_person and (names := names_of(turn.question)):
            return max(names, key=len)
        if _pronouns(turn.question, lexicon):
            continue
        topic = topic_of(turn.question, lexicon)
        if topic is not None:
            return topic
    return None


def topic_of(question: str, lexicon: Lexicon) -> str | None:
    """The phrase that names the subject, with its article; None if there is none."""
    marked = _MARKED.search(question)
    if marked:
        return next(group for group in marked.groups() if group)
    if _UNSPACED.search(question):
        return _unspaced(question, lexicon)
    text = re.sub(r"['’]", " ", question) if lexicon.elides else question  # noqa: RUF001
    tokens = [m.group().rstrip("'’./:-") for m in _NAME_OR_WORD.finditer(text)]  # noqa: RUF001
    return _determined(tokens, lexicon) or _named(tokens) or _bare(tokens, lexicon)


def names_of(text: str) -> list[str]:
    """Runs of capitalised words that do not open a sentence alone."""
    runs = re.findall(r"(?:[A-ZÅÄÖÉÈ][\w'’-]*\s+)*[A-ZÅÄÖÉÈ][\w'’-]*", text)  # noqa: RUF001
    opening = re.match(r"\W*(\w+)", text)
    first = opening.group(1) if opening else ""
    return [run for run in runs if run not in (first, "I")]


def _names_something(word: str, lexicon: Lexicon) -> bool:
    return _is_content(word, lexicon) and word.casefold() not in lexicon.shell


def _determined(tokens: list[str], lexicon: Lexicon) -> str | None:
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
            if not (joins or _names_something(tokens[end], lexicon)):
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


def _bare(tokens: list[str], lexicon: Lexicon) -> str | None:
    """The first run of content words that is not the verb."""
    runs: list[tuple[str, list[str]]] = []  # each after the word before it
    before = ""
    open_run = False
    for token in tokens:
        if _names_something(token, lexicon):
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
