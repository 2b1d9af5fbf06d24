"""One connection that searches, with what it has learnt of the index at its present state."""

from __future__ import annotations

import hashlib
import itertools
import os
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from unified_flow.config.document_roots import Root
from unified_flow.lib.text import terms
from unified_flow.lib.text.printable import printable
from unified_flow.retrieval.ranking import HEADING_WEIGHT, Corpus, score
from unified_flow.retrieval.scope import Scope, joining, restricting, scope_of, totals
from unified_flow.turns.passage import Passage

_CANDIDATES = 48  # chunks that FTS5 proposes for each question
_QUERY_TERMS = 32  # of a long question only the rarest select candidates
_POSTINGS = 30_000  # chunks that FTS5 is made to weigh for a question, about 15 ms
_REMEMBERED = 50_000  # document frequencies, about 5 MB


Weights = dict[str, dict[str, float]]
"""Language to the terms of a question in it, each with its inverse document frequency."""


class Candidate(NamedTuple):
    """A chunk that FTS5 proposes; `rank` is its bm25(), the lower the better."""

    id: int
    heading: list[str]
    body: list[str]
    language: str
    rank: float


@dataclass(frozen=True)
class Search:
    """The steps of one: what the question's terms weigh, which of them chose candidates, the
    candidates best first as FTS5 has them, and (score, id) best first as ranking.py has them."""

    weights: Weights
    selecting: list[str]
    proposed: list[Candidate]
    ordered: list[tuple[float, int]]


@dataclass
class Reader:
    connection: sqlite3.Connection
    state: tuple[int, ...]
    data_version: int = -1
    corpus: Corpus = field(default_factory=Corpus)
    languages: tuple[str, ...] = ()
    scope: Scope = field(default_factory=Scope)
    frequencies: dict[str, int] = field(default_factory=dict)

    def learn(self, roots: Sequence[Root] | None) -> None:
        """Statistics of the roots that a search is to see; RetrievalError for an unknown one."""
        self.scope = scope_of(self.connection, roots)
        chunks, length = totals(self.connection, self.scope)
        self.corpus = Corpus(chunks, length / chunks if chunks else 0.0)
        self.languages = tuple(
            row[0]
            for row in self.connection.execute(
                f"SELECT language FROM file WHERE chunks > 0 {restricting(self.scope)} "
                "GROUP BY language ORDER BY count(*) DESC, language"
            )
        )
        self.frequencies.clear()

    def search(self, query: str, limit: int) -> list[Passage]:
        return [passage for passage, _ in self.passages(self.found(query, limit).ordered, limit)]

    def found(self, query: str, limit: int) -> Search:
        """Enough to choose `limit` passages from."""
        weights = self._weights_of(query)
        selecting = self._selective(weights)
        proposed = self._proposed(selecting, limit) if selecting and limit > 0 else []
        return Search(weights, selecting, proposed, self.ordered(proposed, weights))

    def _weights_of(self, query: str) -> Weights:
        if len(self.frequencies) > _REMEMBERED:
            self.frequencies.clear()
        return {language: self._weights(terms(query, language)) for language in self.languages}

    def _proposed(self, selecting: list[str], limit: int) -> list[Candidate]:
        """The chunks that FTS5 thinks best, best first."""
        rows = self.connection.execute(
            "SELECT term.rowid, term.heading, term.body, file.language, best.rank FROM "
            f"(SELECT term.rowid AS id, bm25(term, {HEADING_WEIGHT}, 1.0) AS rank "
            f"FROM term {joining(self.scope)} WHERE term MATCH ? {restricting(self.scope)} "
            "ORDER BY rank LIMIT ?) AS best "
            "CROSS JOIN term ON term.rowid = best.id CROSS JOIN chunk ON chunk.id = best.id "
            "CROSS JOIN file ON file.id = chunk.file_id",
            (matching(selecting), max(_CANDIDATES, 3 * limit)),
        )
        return [
            Candidate(rowid, heading.split(), body.split(), language, rank)
            for rowid, heading, body, language, rank in rows
        ]

    def ordered(self, found: list[Candidate], weights: Weights) -> list[tuple[float, int]]:
        """(score, id of the chunk), best first."""
        scored = [
            (score(weights[each.language], each.heading, each.body, self.corpus), each.id)
            for each in found
        ]
        return sorted(scored, key=lambda each: (-each[0], each[1]))

    def passages(self, scored: list[tuple[float, int]], limit: int) -> list[tuple[Passage, int]]:
        """Each with the id of its chunk; a text that was there already is left out."""
        found: list[tuple[Passage, int]] = []
        texts: set[str] = set()
        for value, rowid in scored:
            line, end_line, page, heading, text, checksum, file_id, path = self.connection.execute(
                "SELECT line, end_line, page, heading, text, checksum, file_id, path "
                "FROM chunk JOIN file ON file.id = file_id WHERE chunk.id = ?",
                (rowid,),
            ).fetchone()
            if text in texts:  # the same passage in a copy of the file
                continue
            texts.add(checked(text, checksum))
            shown = printable(os.fsdecode(path))
            if not self.scope.clash:
                # Of roots within one another the outer one gives the longer path.
                shown = self.connection.execute(
                    "SELECT shown FROM member "
                    f"WHERE file_id = ? AND root_id IN ({self.scope.roots}) "
                    "ORDER BY length(shown) DESC, shown LIMIT 1",
                    (file_id,),
                ).fetchone()[0]
            name = f"{shown}\0{line}\0{text}".encode()
            passage = Passage(
                chunk_id=hashlib.blake2b(name, digest_size=8).hexdigest(),
                path=shown,
                line=line,
                end_line=end_line,
                heading=heading,
                text=text,
                score=round(value, 6),
                page=page,
            )
            found.append((passage, rowid))
            if len(found) == limit:
                break
        return found

    def _weights(self, wanted: list[str]) -> dict[str, float]:
        return {term: self.corpus.weight(self.frequency(term)) for term in dict.fromkeys(wanted)}

    def frequency(self, term: str) -> int:
        known = self.frequencies.get(term)
        if known is None:
            known = self.frequencies[term] = self._document_frequency(term)
        return known

    def _document_frequency(self, term: str) -> int:
        if not self.scope.condition:
            row = self.connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,))
            return int((row.fetchone() or (0,))[0])
        row = self.connection.execute(
            f"SELECT count(*) FROM term {joining(self.scope)} "
            f"WHERE term MATCH ? {restricting(self.scope)}",
            (_quoted(term),),
        )
        return int(row.fetchone()[0])

    def _selective(self, weights: Weights) -> list[str]:
        """The terms that are to select candidates: the rarest, up to a bound on the work.

        The commoner ones still count when the candidates are put in order.
        """
        wanted = {term for each in weights.values() for term in each}
        known = sorted((self.frequencies[term], term) for term in wanted if self.frequencies[term])
        work = itertools.accumulate(frequency for frequency, _ in known)
        enough = sum(each <= _POSTINGS for each in work)
        return [term for _, term in known[: max(2, min(enough, _QUERY_TERMS))]]


def matching(selecting: list[str]) -> str:
    """A question to FTS5 for any of the terms."""
    return " OR ".join(map(_quoted, selecting))


def _quoted(term: str) -> str:
    """A term as FTS5 takes it, whatever it holds."""
    return '"' + term.replace('"', '""') + '"'


def checked(text: str, checksum: int) -> str:
    if zlib.crc32(text.encode()) != checksum:
        raise sqlite3.DatabaseError("a passage is not as it was written")
    return text
