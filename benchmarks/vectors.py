"""Whether search by meaning helps: words alone, vectors alone, and both as the product joins them.

    python benchmarks/vectors.py DATASET --lsa [K]
    python benchmarks/vectors.py DATASET --path MODEL.gguf
    python benchmarks/vectors.py DATASET --sentence-transformers FOLDER
    python benchmarks/vectors.py DATASET --base-url http://127.0.0.1:11434/v1 --model NAME

DATASET is of SQuAD form; each of its paragraphs is a document, all of them are searched, and the
one that a question was written for is the right one. Words alone is the search without [vectors],
both is the search with it, and vectors alone is the ranking by meaning that `unified-flow search`
shows. Of each the first eight count, which is what a search returns.

Also for the quarter of the questions that share the fewest words with their paragraph. It is
chosen by words, so words alone must be worse there: only its difference to both says something.

--lsa serves latent semantic analysis (Deerwester et al. 1990) of the paragraphs themselves, TF-IDF
reduced to K numbers, as an embeddings endpoint on loopback: what a search by meaning gets from no
model at all. --sentence-transformers serves a model of that library (which has to be installed) in
the same way. Intervals are of 95 %, over the questions; differences are of pairs.
"""

from __future__ import annotations

import argparse
import json
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

from unified_flow.evaluation.summary import bootstrap, interval
from unified_flow.lib.text import terms
from unified_flow.retrieval.documents import Documents, open_documents
from unified_flow.turns.passage import Passage

LIMIT = 8
WHOLE = 200  # deep enough to see the whole ranking by meaning as far as LIMIT
METHODS = ("words alone", "vectors alone", "both")
MEASURES: dict[str, Callable[[int | None], float]] = {
    "recall@1": lambda rank: float(rank == 1),
    "recall@3": lambda rank: float(rank is not None and rank <= 3),
    "recall@5": lambda rank: float(rank is not None and rank <= 5),
    "MRR@8": lambda rank: 1 / rank if rank else 0.0,
}
Asked = list[tuple[str, str]]
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


# Searching


def write_corpus(file: Path, folder: Path) -> tuple[list[str], Asked]:
    """The paragraphs; and each question with the file name of its paragraph."""
    folder.mkdir()
    texts: list[str] = []
    asked: Asked = []
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            name = f"{len(texts):05}.txt"
            texts.append(paragraph["context"])
            (folder / name).write_text(texts[-1] + "\n", encoding="utf-8")
            asked += [
                (each["question"], name)
                for each in paragraph["qas"]
                if not each.get("is_impossible")
            ]
    return texts, asked


def opened(home: Path, docs: Path, settings: str) -> tuple[Documents, float]:
    """Indexed, and the seconds that took."""
    home.mkdir()
    (home / "unified_flow.toml").write_text(settings)
    documents = open_documents(home, [docs])
    started = perf_counter()
    documents.refresh()
    return documents, perf_counter() - started


def rank_of(name: str, found: list[Passage]) -> int | None:
    files = list(dict.fromkeys(Path(passage.path).name for passage in found))
    return files.index(name) + 1 if name in files else None


def by_meaning(documents: Documents, question: str) -> list[Passage]:
    hits = documents.explain(question, WHOLE).hits
    return [hit.passage for hit in sorted(hits, key=lambda hit: -(hit.meaning or 0.0))][:LIMIT]


def ranks_of(
    words: Documents, both: Documents, asked: Asked
) -> tuple[Ranks, dict[str, list[float]]]:
    """The rank of the right paragraph in each, and the milliseconds of each search."""
    ranks: Ranks = {name: [] for name in METHODS}
    times: dict[str, list[float]] = {"words alone": [], "both": []}
    for question, name in asked:
        for method, documents in (("words alone", words), ("both", both)):
            started = perf_counter()
            found = documents.search(question, LIMIT)
            times[method].append((perf_counter() - started) * 1000)
            ranks[method].append(rank_of(name, found))
        ranks["vectors alone"].append(rank_of(name, by_meaning(both, question)))
    return ranks, times


# What is printed


def least_alike(texts: list[str], asked: Asked) -> tuple[list[int], float]:
    """The quarter of the questions whose terms stand least in their paragraph, and the largest
    share of its terms that one of them has there."""
    held = [set(terms(text)) for text in texts]
    shares = []
    for question, name in asked:
        own = set(terms(question))
        shares.append(len(own & held[int(Path(name).stem)]) / len(own) if own else 0.0)
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
    for method in METHODS[1:]:
        row = []
        for name, values in valued[method].items():
            pairs = zip(values, valued["words alone"][name], strict=True)
            gained = [ours - theirs for ours, theirs in pairs]
            row.append(shown(gained, bootstrap(gained), "+"))
        print(f"{method + ' - words':22}" + "".join(f"{each:>24}" for each in row))


def shown(values: list[float], bounds: tuple[float, float], sign: str = "") -> str:
    mean, low, high = (format(each, f"{sign}.3f") for each in (fmean(values), *bounds))
    return f"{mean} [{low}, {high}]"


def measure(texts: list[str], asked: Asked, folder: Path, settings: str) -> None:
    words, words_s = opened(folder / "words", folder / "docs", "")
    both, both_s = opened(folder / "both", folder / "docs", settings)
    try:
        ranks, times = ranks_of(words, both, asked)
    finally:
        words.close()
        both.close()
    print(f"{len(texts)} paragraphs, {len(asked)} questions")
    print(f"index from nothing: words {words_s:.2f} s, with vectors {both_s:.2f} s")
    print(
        f"search p50: words {median(times['words alone']):.1f} ms,"
        f" both {median(times['both']):.1f} ms"
    )
    print_table("all questions", ranks, list(range(len(asked))))
    few, most = least_alike(texts, asked)
    title = f"the {len(few)} questions with the fewest words of their paragraph (at most {most:.2f}"
    print_table(f"{title} of their words)", ranks, few)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--lsa", type=int, nargs="?", const=100, metavar="K")
    kind.add_argument("--path", type=Path, help="an embedding model as a .gguf file")
    kind.add_argument("--sentence-transformers", type=Path, metavar="FOLDER")
    kind.add_argument("--model", help="an embedding model of --base-url")
    parser.add_argument("--base-url")
    given = parser.parse_args()
    if (given.model is None) != (given.base_url is None):
        parser.error("--model and --base-url belong together")
    if not given.dataset.exists():
        print(f"skipped: there is no {given.dataset}")
        return

    with tempfile.TemporaryDirectory(prefix="vectors-") as place:
        folder = Path(place)
        texts, asked = write_corpus(given.dataset, folder / "docs")
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
