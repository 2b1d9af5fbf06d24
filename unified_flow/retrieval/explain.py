"""What a search saw: which words counted, what each passage got for them, who was not proposed."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from unified_flow.lib.text import terms_of_word, words
from unified_flow.retrieval.ranking import HEADING_WEIGHT, gains
from unified_flow.retrieval.reader import Candidate, Reader, Search, Weights, matching
from unified_flow.retrieval.scope import restricting
from unified_flow.turns.passage import Passage

_FILES = 5  # that a path given to `why` may stand for


@dataclass(frozen=True)
class Word:
    """A word of the question; `terms` is empty for a stop word. `frequency` counts the chunks that
    hold the commonest of its terms, `weight` is that term's inverse document frequency."""

    word: str
    terms: tuple[str, ...]
    frequency: int
    weight: float


@dataclass(frozen=True)
class Ranks:
    """Places in the two rankings that a search by meaning joins; None in one that lacks it."""

    words: int | None
    meaning: int | None


@dataclass(frozen=True)
class Hit:
    """`parts` say what each term adds to the score, which is their sum; `proposed` is the place
    among the candidates that FTS5 chose by its own `bm25` (the lower the better), None for a chunk
    that it did not choose."""

    passage: Passage
    parts: dict[str, float]
    proposed: int | None
    bm25: float | None
    ranks: Ranks | None = None  # with [vectors]: then the passage's score is that of their fusion


@dataclass(frozen=True)
class Why:
    """Where the best chunk of a file stands; `reason` says in words why it is not shown."""

    path: str
    hit: Hit | None
    rank: int | None
    reason: str


@dataclass(frozen=True)
class Explanation:
    words: tuple[Word, ...]
    hits: tuple[Hit, ...]
    chunks: int  # that could have been found
    candidates: int  # that FTS5 proposed
    languages: tuple[str, ...]
    why: tuple[Why, ...] = ()


def explain(reader: Reader, query: str, limit: int, why: str | None = None) -> Explanation:
    """Finds what Reader.search finds, by the same steps."""
    search = reader.found(query, limit)
    by_id = {each.id: (place, each) for place, each in enumerate(search.proposed, 1)}
    hits = []
    for passage, id in reader.passages(search.ordered, limit):
        place, candidate = by_id[id]
        parts = _parts(reader, candidate, search.weights)
        hits.append(Hit(passage, parts, place, candidate.rank))
    told = () if why is None else _why(reader, why, search, hits)
    return _explanation(reader, query, search, hits, told)


def explain_fused(
    reader: Reader,
    query: str,
    limit: int,
    ranked: list[tuple[float, int]],
    rankings: tuple[list[int], list[int]],
) -> Explanation:
    """Of a ranking that joins two: chunks by words and by meaning."""
    search = reader.found(query, limit)
    words_at, meaning_at = ({id: at for at, id in enumerate(each, 1)} for each in rankings)
    hits = []
    for passage, id in reader.passages(ranked, limit):
        hit = _hit(reader, (passage.score, id), search)
        hits.append(replace(hit, ranks=Ranks(words_at.get(id), meaning_at.get(id))))
    return _explanation(reader, query, search, hits)


def _explanation(
    reader: Reader, query: str, search: Search, hits: list[Hit], why: tuple[Why, ...] = ()
) -> Explanation:
    return Explanation(
        words=tuple(_word(reader, word) for word in dict.fromkeys(words(query))),
        hits=tuple(hits),
        chunks=reader.corpus.size,
        candidates=len(search.proposed),
        languages=reader.languages,
        why=why,
    )


def _word(reader: Reader, word: str) -> Word:
    found = dict.fromkeys(
        term for language in reader.languages for term in terms_of_word(word, language)
    )
    frequency, best = max(((reader.frequency(term), term) for term in found), default=(0, ""))
    return Word(word, tuple(found), frequency, reader.corpus.weight(frequency) if best else 0.0)


def _parts(reader: Reader, chunk: Candidate, weights: Weights) -> dict[str, float]:
    own = weights.get(chunk.language, {})
    total = sum(own.values())
    gained = gains(own, chunk.heading, chunk.body, reader.corpus)
    return {term: gain / total for term, gain in gained.items()} if total > 0 else {}


def _why(reader: Reader, path: str, search: Search, hits: list[Hit]) -> tuple[Why, ...]:
    files = _files(reader, path)
    if not files:
        return (Why(path, None, None, "no file of this name is in the collection"),)
    places = {id: place for place, (_, id) in enumerate(search.ordered, 1)}
    answers = []
    for id, shown, skipped in files:
        if skipped is not None:
            answers.append(Why(shown, None, None, f"it was skipped: {skipped}"))
            continue
        best = reader.ordered(_chunks_of(reader, id), search.weights)[:1]
        if not best or best[0][0] <= 0:
            answers.append(Why(shown, None, None, "no chunk of it holds a word of the question"))
            continue
        hit = _hit(reader, best[0], search)
        rank = places.get(best[0][1])
        answers.append(Why(shown, hit, rank, _reason(hit, rank, len(search.proposed), hits)))
    return tuple(answers)


def _files(reader: Reader, path: str) -> list[tuple[int, str, str | None]]:
    """(id, path as shown, why it was skipped) of what ends like `path`."""
    rows = reader.connection.execute(
        "SELECT file.id, min(shown), skipped FROM file JOIN member ON file_id = file.id "
        "WHERE (shown = ?1 OR shown LIKE '%/' || ?2 ESCAPE '!' OR path = ?3) "
        f"{restricting(reader.scope)} GROUP BY file.id ORDER BY length(shown) LIMIT ?4",
        (path, _literal(path.removeprefix("./")), os.fsencode(os.path.abspath(path)), _FILES),  # noqa: PTH100
    )
    return [(id, shown, skipped) for id, shown, skipped in rows]


def _literal(text: str) -> str:
    for mark in "!%_":
        text = text.replace(mark, f"!{mark}")
    return text


def _chunks_of(reader: Reader, file_id: int) -> list[Candidate]:
    rows = reader.connection.execute(
        "SELECT term.rowid, term.heading, term.body, file.language FROM chunk "
        "CROSS JOIN term ON term.rowid = chunk.id CROSS JOIN file ON file.id = chunk.file_id "
        "WHERE chunk.file_id = ?",
        (file_id,),
    )
    return [
        Candidate(id, heading.split(), body.split(), language, 0.0)
        for id, heading, body, language in rows
    ]


def _hit(reader: Reader, best: tuple[float, int], search: Search) -> Hit:
    (chunk,) = (c for c in _chunks_of(reader, _file_of(reader, best[1])) if c.id == best[1])
    proposed = {each.id: (place, each.rank) for place, each in enumerate(search.proposed, 1)}
    place, rank = proposed.get(best[1], (None, None))
    if rank is None and search.selecting:
        row = reader.connection.execute(
            f"SELECT bm25(term, {HEADING_WEIGHT}, 1.0) FROM term WHERE term MATCH ? AND rowid = ?",
            (matching(search.selecting), best[1]),
        ).fetchone()
        rank = row[0] if row else None
    ((passage, _),) = reader.passages([best], 1)
    return Hit(passage, _parts(reader, chunk, search.weights), place, rank)


def _file_of(reader: Reader, chunk_id: int) -> int:
    row = reader.connection.execute("SELECT file_id FROM chunk WHERE id = ?", (chunk_id,))
    return int(row.fetchone()[0])


def _reason(hit: Hit, rank: int | None, candidates: int, hits: list[Hit]) -> str:
    if any(hit.passage.chunk_id == each.passage.chunk_id for each in hits):
        return "it is among the passages shown"
    if rank is None and hit.bm25 is None:
        return "it holds none of the rarest words of the question, which choose the candidates"
    if rank is None:
        return f"it is not among the {candidates} candidates that FTS5 proposes by its own bm25"
    if hits and hit.passage.score >= hits[-1].passage.score:
        return "its text is the same as that of a passage shown"
    last = hits[-1].passage.score if hits else 0.0
    return f"its score is below that of the last passage shown ({last:.3f}): raise --limit"
