"""What a search saw: which words counted, how each passage scored, why a file is not found."""

from __future__ import annotations

import os
from dataclasses import dataclass

from unified_flow.lib.text import language_of, query_terms, words
from unified_flow.retrieval.bm25 import Score
from unified_flow.retrieval.index_reader import IndexReader, Search
from unified_flow.turns.passage import Passage

_FILES = 5  # that the end of a path may match


@dataclass(frozen=True)
class QueryWord:
    """A word of the question; `terms` is empty for a stop word. `frequency` counts the chunks that
    hold the commonest of its terms, `weight` is that term's inverse document frequency."""

    word: str
    terms: tuple[str, ...]
    frequency: int
    weight: float


@dataclass(frozen=True)
class Hit:
    """`words` says what each term, the heading and the version add to the score; `proposed` is
    the place among the candidates, in the order in which FTS5 proposed them, None for another
    chunk. `meaning` is the score by meaning, None without [vectors]:
    the passage's score is then the weighted mean of both."""

    passage: Passage
    words: Score
    proposed: int | None
    meaning: float | None = None


@dataclass(frozen=True)
class FileStanding:
    """Where the best chunk of a file stands; `reason` says in words why it is not shown."""

    path: str
    hit: Hit | None
    rank: int | None
    reason: str


@dataclass(frozen=True)
class Explanation:
    words: tuple[QueryWord, ...]
    hits: tuple[Hit, ...]
    chunks: int  # that could have been found
    candidates: int  # that FTS5 proposed
    languages: tuple[str, ...]
    why: tuple[FileStanding, ...] = ()


def explain(
    reader: IndexReader, search: Search, query: str, limit: int, why: str | None = None
) -> Explanation:
    """Explain what `IndexReader.found` has found, with [vectors] or without."""
    asked_in = language_of(query)
    hits = [_hit(reader, each, search) for each in reader.passages(search.ordered, limit)]
    files = () if why is None else _file_standings(reader, why, search, hits)
    return Explanation(
        words=tuple(_word(reader, word, asked_in) for word in dict.fromkeys(words(query))),
        hits=tuple(hits),
        chunks=reader.corpus.size,
        candidates=len(search.proposed),
        languages=tuple(reader.languages),
        why=files,
    )


def _word(reader: IndexReader, word: str, asked_in: str) -> QueryWord:
    found = dict.fromkeys(
        term for language in reader.languages for term in query_terms(word, language, asked_in)
    )
    frequency = max(map(reader.frequency, found), default=0)
    weight = reader.corpus.weight(frequency) if found else 0.0
    return QueryWord(word, tuple(found), frequency, weight)


def _file_standings(
    reader: IndexReader, path: str, search: Search, hits: list[Hit]
) -> tuple[FileStanding, ...]:
    files = _files(reader, path)
    if not files:
        return (FileStanding(path, None, None, "no file of this name is in the collection"),)
    places = {id: place for place, (_, id) in enumerate(search.ordered, 1)}
    scores = {id: (score, id) for score, id in search.ordered}
    found = []
    for file_id, shown, skipped in files:
        if skipped is not None:
            found.append(FileStanding(shown, None, None, f"it was skipped: {skipped}"))
            continue
        rows = reader.connection.execute("SELECT id FROM chunk WHERE file_id = ?", (file_id,))
        ids = [id for (id,) in rows]
        best = sorted((scores[id] for id in ids if id in scores), reverse=True)[:1]
        best = best or reader.ordered(reader.chunks(ids), search.question)[:1]
        if not best or best[0][0] <= 0:
            reason = "no chunk of it holds a word of the question"
            found.append(FileStanding(shown, None, None, reason))
            continue
        hit = _hit(reader, reader.passages(best, 1)[0], search)
        rank = places.get(best[0][1])
        found.append(FileStanding(shown, hit, rank, _reason(hit, rank, search, hits)))
    return tuple(found)


def _files(reader: IndexReader, path: str) -> list[tuple[int, str, str | None]]:
    """(id, path as shown, why it was skipped) of what ends like `path`."""
    rows = reader.connection.execute(
        "SELECT file.id, min(shown), skipped FROM file JOIN member ON file_id = file.id "
        "WHERE (shown = ?1 OR substr(shown, -length('/' || ?2)) = '/' || ?2 OR path = ?3) "
        f"{reader.scope.restriction} GROUP BY file.id ORDER BY length(shown) LIMIT ?4",
        (path, path.removeprefix("./"), os.fsencode(os.path.abspath(path)), _FILES),  # noqa: PTH100
    )
    return rows.fetchall()


def _hit(reader: IndexReader, found: tuple[Passage, int], search: Search) -> Hit:
    passage, id = found
    (chunk,) = reader.chunks([id])
    proposed = [each.id for each in search.proposed]
    place = proposed.index(id) + 1 if id in proposed else None
    meaning = None if search.meaning is None else search.meaning.get(id, 0.0)
    return Hit(passage, reader.score(chunk, search.question), place, meaning)


def _reason(hit: Hit, rank: int | None, search: Search, hits: list[Hit]) -> str:
    if any(hit.passage.chunk_id == each.passage.chunk_id for each in hits):
        return "it is among the passages shown"
    if rank is None:
        return f"it holds less of the question than the {len(search.proposed)} candidates do"
    if any(hit.passage.text == each.passage.text for each in hits):
        return "its text is the same as that of a passage shown"
    least = min((each.passage.score for each in hits), default=0.0)
    if hit.passage.score >= least:
        return "it made room for another file or for the next part of a section: raise --limit"
    return f"its score is below that of every passage shown ({least:.3f}): raise --limit"
