"""`unified-flow search`: what retrieval sees for a question, and why."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from interventions.cli.terminal import paint, say, say_painted
from interventions.home import find_home
from interventions.plaintext import clean, one_line
from interventions.secrets.redaction import redact_for_asker
from unified_flow.cli import options
from unified_flow.cli.documents import note_unasked
from unified_flow.cli.terminal import say_object

if TYPE_CHECKING:
    from unified_flow.retrieval.explanation import Explanation, Hit

EXCERPT = 320  # characters of a passage that are shown


def search(
    query: Annotated[str, Argument(help="What you would ask.")],
    limit: Annotated[int, Option(min=1, max=200, help="How many passages.")] = 8,
    why: Annotated[
        str | None, Option(metavar="PATH", help="Say where this file's best passage stands.")
    ] = None,
    docs: options.Docs = None,
    collection: options.CollectionName = None,
    as_json: options.AsJson = False,
    home: options.Home = None,
) -> None:
    """Show the passages that a question finds, and why.

    \b
    unified-flow search "How do topics differ from services?"
    unified-flow search "battery life" --docs report.pdf --limit 3
    unified-flow search "battery life" --why manual/power.md     why is it not there?

    A score is the share of the question's weight that a passage holds (0 to 1); a rare word
    weighs more. With [vectors] it is joined with how near the meanings are. `ask` answers from
    the same passages, in the same order.
    """
    from unified_flow.cli.documents import bring_up_to_date
    from unified_flow.errors import InputError
    from unified_flow.retrieval.documents import open_documents
    from unified_flow.stores import shared_database
    from unified_flow.turns.input_checks import checked_question

    question = checked_question(query)
    database = None if docs else shared_database(find_home(home))
    documents = open_documents(home, docs, collection, database)
    try:
        bring_up_to_date(documents, show=sys.stderr.isatty())
        found = documents.explain(question, limit, why)
    finally:
        documents.close()
    if not docs:
        note_unasked(home, collection)
    if not found.chunks:
        raise InputError(
            "there is nothing in the index to search",
            field="docs",
            hint="unified-flow index FOLDER; unified-flow collections show says what was skipped",
        )
    if as_json:
        say_object(of_explanation(question, found))
    else:
        _show(found)


def of_explanation(question: str, found: Explanation) -> dict[str, Any]:
    return {
        "query": question,
        "chunks": found.chunks,
        "candidates": found.candidates,
        "languages": found.languages,
        "words": [asdict(each) for each in found.words],
        "passages": [
            {"rank": rank, **_of_hit(hit)} for rank, hit in enumerate(found.hits, start=1)
        ],
        "why": [
            {
                "path": each.path,
                "rank": each.rank,
                "reason": each.reason,
                "best": None if each.hit is None else _of_hit(each.hit),
            }
            for each in found.why
        ],
    }


def _of_hit(hit: Hit) -> dict[str, Any]:
    return {
        **hit.passage.model_dump(mode="json"),
        "text": redact_for_asker(hit.passage.text),
        "source": hit.passage.source(),
        "parts": {term: round(part, 6) for term, part in hit.words.terms.items()},
        "heading_adds": round(hit.words.heading, 6),
        "version_takes": round(hit.words.version, 6),
        "proposed": hit.proposed,
        "meaning": None if hit.meaning is None else round(hit.meaning, 6),
    }


def _show(found: Explanation) -> None:
    _show_words(found)
    if not found.hits:
        say("nothing found: no passage holds any of these words")
    for place, hit in enumerate(found.hits, start=1):
        _show_hit(place, hit, found.languages)
    for each in found.why:
        rank = f", rank {each.rank}" if each.rank else ""
        say(f"\nwhy {one_line(each.path)}: {each.reason}{rank}")
        if each.hit is not None:
            _show_hit(each.rank or 0, each.hit, found.languages)


def _show_words(found: Explanation) -> None:
    """How the question was read; what matches nothing stands out."""
    for each in found.words:
        if not each.terms:
            continue
        named = one_line(each.word)
        as_terms = f" ({', '.join(each.terms)})" if each.terms != (each.word,) else ""
        if each.frequency:
            where = f"in {each.frequency} of {found.chunks} chunks, weight {each.weight:.2f}"
            say(f"  {named}{as_terms}: {where}")
        else:
            say_painted(paint(f"  {named}{as_terms}: in no document", "bad"))
    ignored = [one_line(each.word) for each in found.words if not each.terms]
    if ignored:
        say_painted(paint(f"  not searched for, too common: {', '.join(ignored)}", "dim"))


def _show_hit(rank: int, hit: Hit, languages: Collection[str]) -> None:
    passage = hit.passage
    text = redact_for_asker(passage.text)
    source = paint(one_line(passage.source()), "bold")
    heading = paint(one_line(passage.heading), "dim") if passage.heading else ""
    say_painted(f"\n{rank:2}  {passage.score:.3f}  {source}  {heading}".rstrip())
    terms = hit.words.terms
    largest = sorted(terms.items(), key=lambda part: -part[1])
    parts = ", ".join(f"{term} {part:.3f}" for term, part in largest)
    if hit.words.heading:
        parts += f", the heading says it {hit.words.heading:.3f}"
    if hit.words.version:
        parts += f", about one version -{hit.words.version:.3f}"
    proposed = f"no. {hit.proposed} of FTS5" if hit.proposed else "not proposed by FTS5"
    if hit.meaning is not None:
        say_painted(
            paint(f"    by words {hit.words.value:.3f}, by meaning {hit.meaning:.3f}", "dim")
        )
    say_painted(paint(f"    {parts}  ({proposed})", "dim"))
    for line in _excerpt(text, terms, languages):
        say_painted(f"    {line}")


def _excerpt(text: str, wanted: Collection[str], languages: Collection[str]) -> list[str]:
    """The text from the first line with a word that gave the passage its score, each in bold."""
    from unified_flow.lib.text import terms_of_word

    def counted(word: str) -> bool:
        terms = {term for each in languages for term in terms_of_word(word, each)}
        return not terms.isdisjoint(wanted)

    first = next((each.start() for each in re.finditer(r"\w+", text) if counted(each[0])), 0)
    begin = max(text.rfind("\n", 0, first) + 1, first - EXCERPT // 4)
    shown = clean(text[begin : begin + EXCERPT]) + ("…" if begin + EXCERPT < len(text) else "")
    painted = re.sub(
        r"\w+", lambda each: paint(each[0], "bold") if counted(each[0]) else each[0], shown
    )
    return [line for line in painted.split("\n") if line.strip()]
