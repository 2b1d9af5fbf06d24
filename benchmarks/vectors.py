"""Whether search by meaning helps: words alone, vectors alone, and ways to join them.

    python benchmarks/vectors.py DATA --lsa [K]
    python benchmarks/vectors.py DATA --path MODEL.gguf
    python benchmarks/vectors.py DATA --sentence-transformers FOLDER
    python benchmarks/vectors.py DATA --base-url http://127.0.0.1:11434/v1 --model NAME
    python benchmarks/vectors.py DOCS --faq 'faq/*.rst' --path MODEL.gguf [--keep]
    python benchmarks/vectors.py DOCS --time

DATA is of SQuAD form; each of its paragraphs is a document, all of them are searched, and the
one that a question was written for is the right one.

With --faq, DOCS is a folder of documentation, and what its files that match ask in headings is
asked, as in documentation.py. The headings are taken out of the documents, since every search finds
what it is asked word by word; --keep leaves them in.

"Words" is the search without [vectors], "both" the search with it. The other ways are put together
from the scores that `unified-flow search` shows. Of each the first eight count, which is what a
search returns. Also for the quarter of SQuAD's questions that share the fewest words with their
paragraph. It is chosen by words, so words alone must be worse there: only its difference to both
says something.

--lsa serves latent semantic analysis (Deerwester et al. 1990) of the paragraphs themselves, TF-IDF
reduced to K numbers, as an embeddings endpoint on loopback: what a search by meaning gets from no
model at all. --sentence-transformers serves a model of that library (which has to be installed) in
the same way. --time serves vectors that mean nothing, which cost nothing to make: what remains is
the search. Intervals are of 95 %, over the questions; differences are of pairs.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import log
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

from benchmarks.documentation import Asked, prepared, right_at
from unified_flow.evaluation.answers import bootstrap, interval
from unified_flow.lib.text import terms
from unified_flow.retrieval.documents import Documents, open_documents
from unified_flow.retrieval.embedding import Embedder
from unified_flow.retrieval.explanation import Hit

LIMIT = 8
WHOLE = 200  # all candidates
SIZE = 384  # numbers of a vector that means nothing
LAST_LINE = 10**9  # of a paragraph
MEASURES: dict[str, Callable[[int | None], float]] = {
    "recall@1": lambda rank: float(rank == 1),
    "recall@3": lambda rank: float(rank is not None and rank <= 3),
    "recall@5": lambda rank: float(rank is not None and rank <= 5),
    "MRR@8": lambda rank: 1 / rank if rank else 0.0,
}
Ranks = dict[str, list[int | None]]
Embed = Callable[[list[str]], list[list[float]]]


# Latent semantic analysis, and what serves it as embeddings


class Lsa:
    """Weighs terms by log(1 + tf) * idf, and projects on the K largest singular vectors."""

    def __init__(self, texts: list[str], size: int) -> None:
        import numpy as np

        counted = [Counter(terms(text)) for text in texts]
        held = Counter(term for each in counted for term in each)
        self._places = {term: place for place, term in enumerate(held)}
        self._idf = np.array([log(len(texts) / n) + 1 for n in held.values()])
        _, _, rows = np.linalg.svd(
            np.stack([self._weighed(each) for each in counted]), full_matrices=False
        )
        self._projection = rows[:size].T

    def _weighed(self, counted: Counter[str]) -> Any:
        import numpy as np

        found = np.zeros(len(self._places))
        for term, count in counted.items():
            if term in self._places:
                found[self._places[term]] = log(1 + count)
        found *= self._idf
        return found / (np.linalg.norm(found) or 1.0)

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [(self._weighed(Counter(terms(text))) @ self._projection).tolist() for text in texts]


def sentence_transformer(folder: Path) -> Embed:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return lambda texts: model.encode(texts, show_progress_bar=False).tolist()


@contextmanager
def served(embed: Embed) -> Iterator[str]:
    """Its address, with /v1."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # else head and body go apart, and the client waits 40 ms for the second

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            rows = [
                {"index": number, "embedding": vector}
                for number, vector in enumerate(embed(asked["input"]))
            ]
            body = json.dumps({"data": rows}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


# What is asked


def write_corpus(file: Path, folder: Path) -> tuple[list[str], list[Asked]]:
    """The paragraphs; and each question with its paragraph."""
    folder.mkdir()
    texts: list[str] = []
    asked: list[Asked] = []
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            name = f"{len(texts):05}.txt"
            texts.append(paragraph["context"])
            (folder / name).write_text(texts[-1] + "\n", encoding="utf-8")
            asked += [
                Asked(each["question"], name, 1, LAST_LINE)
                for each in paragraph["qas"]
                if not each.get("is_impossible")
            ]
    return texts, asked


# Searching


def opened(home: Path, docs: Path, settings: str) -> tuple[Documents, float]:
    """Indexed, and the seconds that took."""
    home.mkdir()
    (home / "unified_flow.toml").write_text(settings)
    documents = open_documents(home, [docs])
    started = perf_counter()
    documents.refresh()
    return documents, perf_counter() - started


def by_words(hit: Hit) -> float:
    return hit.words.value


def by_meaning(hit: Hit) -> float:
    return hit.meaning or 0.0


def weighed(weight: float) -> Callable[[list[Hit]], list[Hit]]:
    return lambda hits: sorted(hits, key=lambda hit: -by_words(hit) - weight * by_meaning(hit))


def rank_fusion(k: int) -> Callable[[list[Hit]], list[Hit]]:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""

    def join(hits: list[Hit]) -> list[Hit]:
        shares: dict[str, float] = {}
        for score in (by_words, by_meaning):
            ordered = sorted((hit for hit in hits if score(hit)), key=lambda hit: -score(hit))
            for rank, hit in enumerate(ordered, 1):
                id = hit.passage.chunk_id
                shares[id] = shares.get(id, 0.0) + 1 / (k + rank)
        return sorted(hits, key=lambda hit: -shares.get(hit.passage.chunk_id, 0.0))

    return join


METHODS: dict[str, Callable[[list[Hit]], list[Hit]]] = {
    "words": weighed(0),
    "vectors": lambda hits: sorted(hits, key=lambda hit: -by_meaning(hit)),
    "ranks, k = 60": rank_fusion(60),
    "ranks, k = 5": rank_fusion(5),
    "words + meaning": weighed(1),
    "words + 1.5 meaning": weighed(1.5),
    "both": lambda hits: hits,
}


def ranks_of(
    words: Documents, both: Documents, asked: list[Asked]
) -> tuple[Ranks, dict[str, list[float]]]:
    """The rank of the right place in each, and the milliseconds of each search."""
    ranks: Ranks = {name: [] for name in METHODS}
    times: dict[str, list[float]] = {"words": [], "both": []}
    for each in asked:
        for method, documents in (("words", words), ("both", both)):
            started = perf_counter()
            documents.search(each.question, LIMIT)
            times[method].append((perf_counter() - started) * 1000)
        hits = list(both.explain(each.question, WHOLE).hits)
        for method, order in METHODS.items():
            right = right_at(each, [hit.passage for hit in order(hits)[:LIMIT]])
            ranks[method].append(right.index(True) + 1 if True in right else None)
    return ranks, times


# What is printed


def least_alike(texts: list[str], asked: list[Asked]) -> tuple[list[int], float]:
    """The quarter of the questions whose terms stand least in their paragraph, and the largest
    share of its terms that one of them has there."""
    held = [set(terms(text)) for text in texts]
    shares = []
    for each in asked:
        own = set(terms(each.question))
        shares.append(len(own & held[int(Path(each.path).stem)]) / len(own) if own else 0.0)
    chosen = sorted(range(len(asked)), key=lambda number: shares[number])[: len(asked) // 4]
    return chosen, shares[chosen[-1]]


def print_table(title: str, ranks: Ranks, chosen: list[int]) -> None:
    print(f"\n{title}")
    print(f"{'':22}" + "".join(f"{name:>24}" for name in MEASURES))
    valued = {
        method: {
            name: [value(ranks[method][number]) for number in chosen]
            for name, value in MEASURES.items()
        }
        for method in METHODS
    }
    for method in METHODS:
        row = [shown(values, interval(values)) for values in valued[method].values()]
        print(f"{method:22}" + "".join(f"{each:>24}" for each in row))
    row = []
    for name, values in valued["both"].items():
        pairs = zip(values, valued["words"][name], strict=True)
        gained = [ours - theirs for ours, theirs in pairs]
        row.append(shown(gained, bootstrap(gained), "+"))
    print(f"{'both - words':22}" + "".join(f"{each:>24}" for each in row))
    firsts = [(ranks["words"][n] == 1, ranks["both"][n] == 1) for n in chosen]
    lost, gained_firsts = firsts.count((True, False)), firsts.count((False, True))
    print(f"first places of the words that both loses: {lost}; that it gains: {gained_firsts}")


def shown(values: list[float], bounds: tuple[float, float], sign: str = "") -> str:
    mean, low, high = (format(each, f"{sign}.3f") for each in (fmean(values), *bounds))
    return f"{mean} [{low}, {high}]"


def measure(texts: list[str], asked: list[Asked], folder: Path, settings: str) -> None:
    """`texts` are SQuAD's paragraphs, none for documentation."""
    words, words_s = opened(folder / "words", folder / "docs", "")
    both, both_s = opened(folder / "both", folder / "docs", settings)
    try:
        ranks, times = ranks_of(words, both, asked)
        chunks = both.index.counts()[1]
    finally:
        words.close()
        both.close()
    print(f"{chunks} chunks, {len(asked)} questions")
    print(f"index from nothing: words {words_s:.2f} s, with vectors {both_s:.2f} s")
    print(f"search p50: words {median(times['words']):.1f} ms, both {median(times['both']):.1f} ms")
    print_table("all questions", ranks, list(range(len(asked))))
    if texts:
        few, most = least_alike(texts, asked)
        title = f"the {len(few)} questions with the fewest words of their paragraph"
        print_table(f"{title} (at most {most:.2f} of their words)", ranks, few)


def measure_time(docs: Path, folder: Path) -> None:
    with served(meaningless) as url:
        words, _ = opened(folder / "words", docs, "")
        both, both_s = opened(folder / "both", docs, endpoint(url, "meaningless"))
        both.close()
        again = open_documents(folder / "both", [docs])  # as another process
        again.ensure_fresh()
        with again.index.reading() as reader:
            rows = reader.connection.execute("SELECT DISTINCT heading FROM chunk").fetchall()
        headings = [heading.rpartition(" > ")[2] for (heading,) in rows if heading]
        asked = random.Random(0).sample(headings, min(200, len(headings)))
        started = perf_counter()
        again.search(asked[0], LIMIT)
        first_ms = (perf_counter() - started) * 1000
        embedder = Embedder.at(url, "meaningless", None, 10.0)
        cases: dict[str, Callable[[str], object]] = {
            "words": lambda heading: words.search(heading, LIMIT),
            "both": lambda heading: again.search(heading, LIMIT),
            "request for a vector": lambda heading: embedder.embed([heading]),
        }
        print(f"{again.index.counts()[1]} chunks, {len(asked)} of their headings asked")
        print(f"index from nothing, with vectors that cost nothing: {both_s:.1f} s")
        print(f"first search of a process, which reads the vectors: {first_ms:.0f} ms")
        for name, search in cases.items():
            times = []
            for heading in asked:
                started = perf_counter()
                search(heading)
                times.append((perf_counter() - started) * 1000)
            slow = sorted(times)[int(len(times) * 0.95)]
            print(f"{name}: p50 {median(times):.1f} ms, p95 {slow:.1f} ms")
        for each in (words, again, embedder):
            each.close()


def meaningless(texts: list[str]) -> list[list[float]]:
    """The same for the same text."""
    chances = map(random.Random, texts)
    return [[chance.gauss(0, 1) for _ in range(SIZE)] for chance in chances]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--lsa", type=int, nargs="?", const=100, metavar="K")
    kind.add_argument("--path", type=Path, help="an embedding model as a .gguf file")
    kind.add_argument("--sentence-transformers", type=Path, metavar="FOLDER")
    kind.add_argument("--model", help="an embedding model of --base-url")
    kind.add_argument("--time", action="store_true")
    parser.add_argument("--base-url")
    parser.add_argument("--faq", metavar="PATTERN")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    if (given.model is None) != (given.base_url is None):
        parser.error("--model and --base-url belong together")
    if not given.data.exists():
        print(f"skipped: there is no {given.data}")
        return

    with tempfile.TemporaryDirectory(prefix="vectors-") as place:
        folder = Path(place)
        if given.time:
            measure_time(given.data.resolve(), folder)
            return
        texts: list[str] = []
        if given.faq:
            asked = prepared(given.data, folder / "docs", given.faq, hide=not given.keep)
        else:
            texts, asked = write_corpus(given.data, folder / "docs")
        if given.path is not None:
            path = json.dumps(str(given.path.resolve()))
            settings = f"[vectors]\ntimeout_s = 600\nmodel = {path}\n"
            measure(texts, asked, folder, settings)
        elif given.model is not None:
            measure(texts, asked, folder, endpoint(given.base_url, given.model))
        else:
            library = given.sentence_transformers
            embed = sentence_transformer(library) if library else Lsa(texts, given.lsa).embed
            with served(embed) as url:
                measure(texts, asked, folder, endpoint(url, "measured"))


def endpoint(url: str, model: str) -> str:
    return f"[vectors]\nmodel = {json.dumps(model)}\nbase_url = {json.dumps(url)}\n"


if __name__ == "__main__":
    main()
