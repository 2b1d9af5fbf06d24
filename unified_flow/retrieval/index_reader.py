"""A connection that searches: which roots it sees, and what it has learnt of the index."""

from __future__ import annotations

import hashlib
import os
import shlex
import sqlite3
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from unified_flow.config.document_roots import Root, folders_of, is_address, root_from
from unified_flow.errors import RetrievalError
from unified_flow.lib.printable import printable
from unified_flow.lib.text import language_of, query_terms, share_in_question
from unified_flow.lib.text.conversation import LOOKED_AT, heed, with_conversation
from unified_flow.retrieval.bm25 import (
    DEMANDS,
    REACHED,
    TRAIL_WEIGHT,
    CandidateChunk,
    Corpus,
    Question,
    Score,
    WeighedTerms,
    holding,
    quoted,
    score,
    shares,
)
from unified_flow.turns.passage import Passage

_CANDIDATES = 48  # chunks that FTS5 proposes each time that it is asked
# FTS5's. A term in the heading weighs more here than in a score: the heading may say what is asked.
_BM25 = f"bm25(term, 5.0, {TRAIL_WEIGHT}, 1.0)"
_NEAR = 0.5  # of the best score, for a passage that goes before others of a file
_SEVERAL = 5  # passages, of which the last may go on where the first ends
_REMEMBERED = 50_000  # document frequencies, about 5 MB


@dataclass(frozen=True)
class Scope:
    """Which roots of an index a search sees: `roots` are their ids for SQL, `restriction` is a
    condition on file.id, empty if every file satisfies it; `clash` says that two roots have one
    name, so that only absolute paths tell files apart."""

    roots: str = ""
    restriction: str = ""
    clash: bool = False

    @property
    def joins(self) -> str:
        """What a query of `term` needs for the restriction."""
        joins = "CROSS JOIN chunk ON chunk.id = term.rowid CROSS JOIN file ON file.id = file_id"
        return joins if self.restriction else ""


@dataclass(frozen=True)
class Search:
    """The steps of a search: the question, the candidates in the order in which FTS5 proposed them,
    and (score, id), best first. With [vectors] `meaning` says how near each candidate's meaning is,
    0 to 1."""

    question: Question
    proposed: list[CandidateChunk]
    ordered: list[tuple[float, int]]
    meaning: Mapping[int, float] | None = None


@dataclass
class IndexReader:
    connection: sqlite3.Connection
    state: tuple[int, ...]
    data_version: int = -1
    corpus: Corpus = field(default_factory=Corpus)
    languages: dict[str, int] = field(default_factory=dict)  # to files, the commonest first
    main_languages: tuple[str, ...] = ()  # commonest first; none of less than 1/20 of the files
    unread: tuple[str, ...] = ()  # documents not read as a whole, each with what of it is not
    scope: Scope = field(default_factory=Scope)

    def learn(self, roots: Sequence[Root] | None) -> None:
        """Statistics of the roots that a search is to see; RetrievalError for an unknown one."""
        self.scope = scope_of(self.connection, roots)
        chunks, length = totals(self.connection, self.scope)
        rows = self.connection.execute(
            f"SELECT DISTINCT versions FROM file WHERE versions != '' {self.scope.restriction}"
        )
        versions = {version for (named,) in rows for version in named.split()}
        self.corpus = Corpus(chunks, length / chunks if chunks else 0.0, len(versions))
        self.languages = dict(
            self.connection.execute(
                "SELECT language, count(*) FROM file "
                f"WHERE chunks > 0 {self.scope.restriction} "
                "GROUP BY language ORDER BY count(*) DESC, language"
            ).fetchall()
        )
        files = sum(self.languages.values())
        self.main_languages = tuple(
            each for each, own in self.languages.items() if own * 20 >= files
        )
        rows = self.connection.execute(
            "SELECT DISTINCT shown, unread FROM file JOIN member ON file_id = file.id "
            f"WHERE unread IS NOT NULL {self.scope.restriction} ORDER BY shown"
        )
        self.unread = tuple(f"{shown}: {unread}" for shown, unread in rows)
        self.frequency = lru_cache(_REMEMBERED)(self._document_frequency)

    def found(
        self, query: str, limit: int, conversation: Mapping[str, float] | None = None
    ) -> Search:
        """Enough to choose `limit` passages from. `conversation` weighs words of earlier turns."""
        asked = self._question({query: 1.0})
        plain = self._candidates(asked, limit)
        if not conversation or limit < 1:
            return plain
        spoken = self._question(conversation)
        best = {rowid for _, rowid in plain.ordered[:LOOKED_AT]}
        looked_at = [chunk for chunk in plain.proposed if chunk.id in best]
        held = [share for share, _ in self.ordered(looked_at, spoken)]
        heeded = heed([value for value, _ in plain.ordered], held)
        if not heeded:
            return plain
        both = {
            language: WeighedTerms(
                *with_conversation(each.weights, spoken[language].weights, heeded)
            )
            for language, each in asked.items()
        }
        return self._candidates(both, limit)

    def _candidates(self, question: Question, limit: int) -> Search:
        """Look at chunks until none that is left out could be among the `limit` best."""
        proposed: list[CandidateChunk] = []
        ordered: list[tuple[float, int]] = []
        own, match = shares(question, self.frequency), ""
        chosen = min(1.0, sum(own.values()))
        for demand in DEMANDS if own and limit > 0 else ():
            before, match = match, holding(own, demand * chosen)
            if match != before:
                more = self._proposed(match, limit, {chunk.id for chunk in proposed})
                proposed += more
                ordered = sorted(ordered + self.ordered(more, question), key=_best_first)
            left_out = demand * chosen + 1 - chosen
            if len(ordered) >= limit and ordered[limit - 1][0] >= REACHED * left_out:
                break
        part = self.next_part(ordered[0][1]) if ordered else None
        if part is not None and part not in {chunk.id for chunk in proposed}:
            ordered = sorted(ordered + self.ordered(self.chunks([part]), question), key=_best_first)
        return Search(question, proposed, ordered)

    def _question(self, texts: Mapping[str, float]) -> Question:
        """The question that the terms of `texts` ask, each text with its weight."""
        asked_in = language_of(" ".join(texts))
        question: Question = {}
        for language in self.languages:
            weights: dict[str, float] = {}
            for text, weight in texts.items():
                for term in query_terms(text, language, asked_in):
                    known = self.frequency(term) > 0
                    if share := share_in_question(term, language, known=known):
                        weights[term] = self._weight(term) * share * weight
            question[language] = WeighedTerms(weights, sum(weights.values()))
        return question

    def _proposed(self, match: str, limit: int, known: Container[int]) -> list[CandidateChunk]:
        """The chunks that FTS5 thinks best, best first, without the known ones among them."""
        rows = self.connection.execute(
            f"SELECT term.rowid FROM term {self.scope.joins} "
            f"WHERE term MATCH ? {self.scope.restriction} ORDER BY {_BM25} LIMIT ?",
            (match, max(_CANDIDATES, 3 * limit)),
        )
        places = {id: place for place, (id,) in enumerate(rows) if id not in known}
        return sorted(self.chunks(places), key=lambda chunk: places[chunk.id])

    def chunks(self, ids: Iterable[int]) -> list[CandidateChunk]:
        """The chunks with these ids, whether or not FTS5 proposes them."""
        # One parameter, in JSON: the statement stays the same, and SQLite compiles it once.
        rows = self.connection.execute(
            "SELECT term.rowid, language, term.heading, trail, body, version FROM chunk "
            "CROSS JOIN term ON term.rowid = chunk.id CROSS JOIN file ON file.id = chunk.file_id "
            "WHERE chunk.id IN (SELECT value FROM json_each(?))",
            (str([*ids]),),
        )
        return [CandidateChunk(*row) for row in rows]

    def ordered(self, found: list[CandidateChunk], question: Question) -> list[tuple[float, int]]:
        """(score, id of the chunk), best first."""
        scored = [(self.score(chunk, question).value, chunk.id) for chunk in found]
        return sorted(scored, key=_best_first)

    def score(self, chunk: CandidateChunk, question: Question) -> Score:
        return score(question, chunk, self.corpus, self._weight)

    def passages(self, scored: list[tuple[float, int]], limit: int) -> list[tuple[Passage, int]]:
        """Passages with the ids of their chunks; a text that was there already is left out. Behind
        the first half, one that comes near the best and whose file has none yet goes before the
        others: else a long page crowds out the rest. Of five or more the last is the next part of
        the best one's section, if there is one."""
        found: list[tuple[Passage, int]] = []
        others: list[tuple[Passage, int]] = []
        files: set[str] = set()
        near = _NEAR * scored[0][0] if scored else 0.0
        for passage, rowid in self._distinct(scored):
            spreads = passage.path not in files and passage.score >= near
            if len(found) < limit // 2 or spreads:
                found.append((passage, rowid))
            else:
                others.append((passage, rowid))
            files.add(passage.path)
            enough = limit if passage.score >= near else limit - len(others)
            if len(found) >= enough:
                break
        found = (found + others)[:limit]
        if limit >= _SEVERAL and len(found) == limit:
            part = self.next_part(scored[0][1])
            if part not in {rowid for _, rowid in found}:
                own = [each for each in scored if each[1] == part]
                found[-1:] = [*self._distinct(own)] or found[-1:]
        return found

    def _distinct(self, scored: list[tuple[float, int]]) -> Iterator[tuple[Passage, int]]:
        """Passages in the order of `scored`, each text once: files have copies."""
        texts: set[str] = set()
        for value, rowid in scored:
            # Of roots within one another the outer one gives the longer path.
            row = self.connection.execute(
                "SELECT line, end_line, page, heading, text, checksum, continues, path, "
                "(SELECT shown FROM member WHERE file_id = file.id "
                f"AND root_id IN ({self.scope.roots}) ORDER BY length(shown) DESC, shown LIMIT 1) "
                "FROM chunk JOIN file ON file.id = file_id WHERE chunk.id = ?",
                (rowid,),
            ).fetchone()
            line, end_line, page, heading, text, checksum, continues, path, shown = row
            if text in texts:
                continue
            texts.add(verified(text, checksum))
            if self.scope.clash:
                shown = printable(os.fsdecode(path))
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
                continues=continues,
            )
            yield passage, rowid

    def next_part(self, rowid: int) -> int | None:
        """The chunk in which the section of this one goes on."""
        row = self.connection.execute(
            "SELECT after.id FROM chunk JOIN chunk AS after ON after.id = chunk.id + 1 "
            "AND after.file_id = chunk.file_id AND after.continues WHERE chunk.id = ?",
            (rowid,),
        ).fetchone()
        return None if row is None else int(row[0])

    def _weight(self, term: str) -> float:
        return self.corpus.weight(self.frequency(term))

    def _document_frequency(self, term: str) -> int:
        row = self.connection.execute(
            f"SELECT count(*) FROM term {self.scope.joins} "
            f"WHERE term MATCH ? {self.scope.restriction}",
            (quoted(term),),
        )
        return int(row.fetchone()[0])


def _best_first(scored: tuple[float, int]) -> tuple[float, int]:
    return -scored[0], scored[1]


def verified(text: str, checksum: int) -> str:
    if zlib.crc32(text.encode()) != checksum:
        raise sqlite3.DatabaseError("a passage is not as it was written")
    return text


def remembered(connection: sqlite3.Connection) -> list[Root]:
    rows = connection.execute("SELECT path FROM root ORDER BY id")
    return [root_from(path) for (path,) in rows]


def scope_of(connection: sqlite3.Connection, roots: Sequence[Root] | None) -> Scope:
    """The scope of these roots (None: all), with the files below them that are roots, too.
    RetrievalError for one that the index does not have."""
    known = {root_from(path): id for id, path in connection.execute("SELECT * FROM root")}
    if roots is None:
        roots = list(known)
    for root in roots:
        if root not in known:
            shown = printable(str(root))
            there = is_address(root) or Path(root).exists()
            add = f"; to add it: unified-flow index {shlex.quote(shown)}" if there else ""
            raise RetrievalError(
                f"{shown} is not in the document index",
                hint=f"what is in it: unified-flow collections show{add}",
            )
    files = connection.execute("SELECT root.path FROM root JOIN file USING (path)")
    folders = folders_of(roots)
    below = [each for each in map(Path, (os.fsdecode(path) for (path,) in files))
             if any(map(each.is_relative_to, folders))]  # fmt: skip
    roots = list(dict.fromkeys([*roots, *below]))
    names = [root.name if isinstance(root, Path) else root for root in roots]
    clash = len(set(names)) < len(names)
    ids = ", ".join(str(known[root]) for root in roots)
    if set(roots) == known.keys():
        return Scope(ids, "", clash)
    members = f"SELECT file_id FROM member WHERE root_id IN ({ids})"
    return Scope(ids, f"AND file.id IN ({members})", clash)


def totals(connection: sqlite3.Connection, scope: Scope) -> tuple[int, int]:
    """(chunks, terms) that are in scope."""
    chunks, length = connection.execute(
        f"SELECT total(chunks), total(terms) FROM file WHERE 1 {scope.restriction}"
    ).fetchone()
    return int(chunks), int(length)
