"""Other engines over the chunks of an index, each in its plainest form: its own BM25 over the terms
of heading, headings above and text as one field, the eight best chunks for any term of a question.

tantivy and bm25s are measured where they are installed (pip install tantivy bm25s).
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from unified_flow.lib.text import language_of, query_terms
from unified_flow.retrieval.index import Index

Search = Callable[[str], object]
K = 8


def question_terms(question: str) -> list[str]:
    return query_terms(question, "en", language_of(question))


def chunks_of(index: Index) -> Iterator[str]:
    with index.reading() as reader:
        rows = reader.connection.execute("SELECT heading, trail, body FROM term ORDER BY rowid")
        yield from (" ".join(row) for row in rows)


def plain_fts5(index: Index, folder: Path) -> Search:
    connection = sqlite3.connect(folder / "plain.sqlite3")
    connection.execute(
        "CREATE VIRTUAL TABLE page USING fts5(text, tokenize = \"ascii tokenchars '_.'\")"
    )
    connection.executemany("INSERT INTO page VALUES (?)", ((text,) for text in chunks_of(index)))
    connection.commit()

    def search(question: str) -> object:
        match = " OR ".join(f'"{term}"' for term in question_terms(question)) or '""'
        sql = f"SELECT rowid, text FROM page WHERE page MATCH ? ORDER BY rank LIMIT {K}"
        return connection.execute(sql, (match,)).fetchall()

    return search


def tantivy(index: Index, folder: Path) -> Search:
    import tantivy as engine

    (folder / "tantivy").mkdir()
    schema = engine.SchemaBuilder().add_text_field("text", stored=True, tokenizer_name="whitespace")
    made = engine.Index(schema.build(), str(folder / "tantivy"))
    writer = made.writer(heap_size=128 * 1024 * 1024, num_threads=1)
    for text in chunks_of(index):
        writer.add_document(engine.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    made.reload()
    searcher = made.searcher()

    def search(question: str) -> object:
        asked = [
            (engine.Occur.Should, engine.Query.term_query(made.schema, "text", term))
            for term in question_terms(question)
        ]
        found = searcher.search(engine.Query.boolean_query(asked), K).hits
        return [(score, searcher.doc(place)["text"]) for score, place in found]

    return search


def bm25s(index: Index, folder: Path) -> Search:
    import bm25s as engine

    numbers: dict[str, int] = {}
    ids = [
        [numbers.setdefault(term, len(numbers)) for term in text.split()]
        for text in chunks_of(index)
    ]
    made = engine.BM25()
    made.index((ids, numbers), show_progress=False)

    def search(question: str) -> object:
        known = [numbers[term] for term in question_terms(question) if term in numbers]
        return made.retrieve([known or [0]], k=K, show_progress=False, n_threads=1)

    return search


ENGINES = {"plain FTS5": plain_fts5, "tantivy": tantivy, "bm25s": bm25s}


def each_engine(index: Index, folder: Path) -> Iterator[tuple[str, float, Search]]:
    """(name, seconds to index, search) of what is installed."""
    for name, make in ENGINES.items():
        with suppress(ImportError):
            started = time.perf_counter()
            search = make(index, folder)
            yield name, time.perf_counter() - started, search


def multiply(tree: Path, folder: Path, copies: int) -> None:
    """Text files of a tree, under other names; a word that few of them have is another one in each
    copy, as it would be in another documentation."""
    word = re.compile(r"(?<![:\w./`])[A-Za-z]{4,}(?![:\w])")
    files = [file for file in sorted(tree.rglob("*")) if file.suffix in {".txt", ".rst", ".md"}]
    texts = {file: file.read_text(encoding="utf-8", errors="replace") for file in files}
    frequency: dict[str, int] = {}
    for text in texts.values():
        for each in set(word.findall(text)):
            frequency[each] = frequency.get(each, 0) + 1
    for number in range(copies):
        own = f"q{chr(97 + number % 26)}{chr(97 + number // 26)}" if number else ""
        for file, text in texts.items():
            copy = folder / f"{tree.name}-{number:03}" / file.relative_to(tree)
            copy.parent.mkdir(parents=True, exist_ok=True)
            renamed = word.sub(lambda m, own=own: m[0] + own * (frequency[m[0]] <= 8), text)  # type: ignore[misc]
            copy.write_text(renamed, encoding="utf-8")
