"""Indexing and search, measured on a folder of documents.

    python benchmarks/index.py PATH [--questions SQUAD_JSON] [--repeat N]

Prints the time to index PATH from nothing, to update it when nothing changed, and the time of
a search in a warm process for questions drawn from the headings. The floor is reading the same
files, without which no index can be made. With --questions (SQuAD v1.1 format), every paragraph
of that file is one document, and recall says how often the right one is among the first k.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from unified_flow.retrieval.discover import discover
from unified_flow.retrieval.index import Index


def milliseconds(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def floor_ms(path: Path) -> float:
    started = time.perf_counter()
    for file in discover(path).files:
        Path(file.path).read_bytes()
    return milliseconds(started)


def questions_from(index: Index) -> list[str]:
    """The last heading of every chunk, once each: what a reader would look for."""
    found = dict.fromkeys(heading.rpartition(" > ")[2] for heading in index.headings())
    return list(found) or ["what is this about"]


def search_times(index: Index, questions: list[str], repeat: int) -> list[float]:
    for question in questions:
        index.search(question)
    times = []
    for question in questions * repeat:
        started = time.perf_counter()
        index.search(question)
        times.append(milliseconds(started))
    return sorted(times)


def print_folder(path: Path, repeat: int) -> None:
    with tempfile.TemporaryDirectory() as folder, Index.open(Path(folder)) as index:
        floor_ms(path)
        floor = floor_ms(path)
        first = index.update([path])
        first.require_documents()
        again = statistics.median(index.update([path]).duration_ms for _ in range(5))
        times = search_times(index, questions_from(index), repeat)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    p50, p99 = statistics.median(times), times[int(len(times) * 0.99)]
    rows = (
        ("files, chunks", f"{first.files}, {first.chunks}", ""),
        ("skipped", f"{len(first.skipped)}", ""),
        ("read the files (floor)", f"{floor:.1f} ms", "1.0"),
        ("index from nothing", f"{first.duration_ms:.0f} ms", f"{first.duration_ms / floor:.1f}"),
        ("files a second", f"{first.files / first.duration_ms * 1000:.0f}", ""),
        ("update, nothing changed", f"{again:.1f} ms", f"{again / floor:.1f}"),
        ("search p50", f"{p50:.2f} ms", f"{p50 / floor:.2f}"),
        ("search p99", f"{p99:.2f} ms", f"{p99 / floor:.2f}"),
        ("index on disk", f"{size / 1024:.0f} KiB", ""),
    )
    print(f"{'':26}{path.name:>14}{'x floor':>10}")
    for name, value, ratio in rows:
        print(f"{name:26}{value:>14}{ratio:>10}")


def print_recall(file: Path) -> None:
    articles = json.loads(file.read_text(encoding="utf-8"))["data"]
    paragraphs = [each for article in articles for each in article["paragraphs"]]
    with tempfile.TemporaryDirectory() as folder:
        documents = Path(folder, "documents")
        documents.mkdir()
        for number, paragraph in enumerate(paragraphs):
            (documents / f"{number}.txt").write_text(paragraph["context"], encoding="utf-8")
        with Index.open(Path(folder, "index")) as index:
            report = index.update([documents])
            ranks = []
            for number, paragraph in enumerate(paragraphs):
                for each in paragraph["qas"]:
                    found = list(
                        dict.fromkeys(Path(p.path).stem for p in index.search(each["question"], 20))
                    )
                    wanted = str(number)
                    ranks.append(found.index(wanted) if wanted in found else len(found) + 100)
    print(f"\n{report.files} paragraphs, {len(ranks)} questions: the right paragraph is among the")
    for k in (1, 3, 5, 8, 20):
        print(f"  first {k:<3} {sum(rank < k for rank in ranks) / len(ranks):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--repeat", type=int, default=5, help="how often each question is asked")
    arguments = parser.parse_args()
    if not arguments.path.exists():
        print(f"skipped: there is no {arguments.path}")
        return
    print_folder(arguments.path, arguments.repeat)
    if arguments.questions is not None:
        if arguments.questions.exists():
            print_recall(arguments.questions)
        else:
            print(f"skipped: there is no {arguments.questions}")


if __name__ == "__main__":
    main()
