"""Indexing and search, measured on a folder of documents.

    python benchmarks/index.py PATH [--questions SQUAD_JSON] [--repeat N]
    python benchmarks/index.py --tree FILES      a generated tree of Markdown, and its memory
    python benchmarks/index.py PATH --copies N   PATH N times over, beside other engines

Prints the time to index PATH from nothing, to update it when nothing changed, and the time of
a search in a warm process for questions drawn from the headings. Beside each stands the same done
in the plainest way: whole files into an FTS5 table with its own stemmer, and its own bm25 order.
With --questions (SQuAD v1.1 format), every paragraph of that file is one document, and recall says
how often the right one is among the first k.
With --tree the files hold sections, lists and code of words drawn by Zipf's law, 4.5 KB each, and
the peak of memory stands beside that of a tenth of them: flat means that it does not follow. "of
CPU" is files for each second of CPU time of all its processes: what one core does. With --copies
the same chunks are searched by FTS5's own bm25 for any term, tantivy and bm25s (engines.py) in the
same run; "CPU" is the median of a search's CPU time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.engines import each_engine, multiply
from unified_flow.retrieval.discovery import discover
from unified_flow.retrieval.index import Index


def milliseconds(started: float) -> float:
    return (time.perf_counter() - started) * 1000


class Plain:
    """What the figures are compared with."""

    def __init__(self, file: Path) -> None:
        self.connection = sqlite3.connect(file)
        self.connection.execute("CREATE VIRTUAL TABLE page USING fts5(text, tokenize = porter)")

    def update(self, path: Path) -> float:
        started = time.perf_counter()
        for file in discover(path).files:
            text = Path(file.path).read_bytes().decode("utf-8", "replace")
            self.connection.execute("INSERT INTO page VALUES (?)", (text,))
        self.connection.commit()
        return milliseconds(started)

    def search(self, question: str) -> object:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question)) or '""'
        sql = "SELECT text FROM page WHERE page MATCH ? ORDER BY rank LIMIT 8"
        return self.connection.execute(sql, (words,)).fetchall()


def questions_from(index: Index) -> list[str]:
    """The last heading of every chunk, once each: what a reader would look for."""
    with index.reading() as reader:
        rows = reader.connection.execute(
            "SELECT heading FROM chunk WHERE heading <> '' ORDER BY id"
        )
        found = dict.fromkeys(heading.rpartition(" > ")[2] for (heading,) in rows)
    return list(found) or ["what is this about"]


def search_times(search: Callable[[str], object], questions: list[str], repeat: int) -> list[float]:
    for question in questions:
        search(question)
    times = []
    for question in questions * repeat:
        started = time.perf_counter()
        search(question)
        times.append(milliseconds(started))
    return sorted(times)


def print_folder(path: Path, repeat: int) -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        Index.open(Path(place, "index")) as index,
    ):
        first = index.update([path])
        first.require_documents()
        again = statistics.median(index.update([path]).duration_ms for _ in range(5))
        questions = questions_from(index)
        times = search_times(index.search, questions, repeat)
        size = sum(file.stat().st_size for file in Path(place, "index").iterdir())
        plain = Plain(Path(place, "plain.sqlite3"))
        plain_ms = plain.update(path)
        plain_times = search_times(plain.search, questions, repeat)
        plain_size = Path(place, "plain.sqlite3").stat().st_size
        plain.connection.close()

    print(f"{path.name}: {first.files} files, {first.chunks} chunks, {len(first.skipped)} skipped")
    print(f"{'':26}{'':>12}{'plain FTS5':>12}{'ratio':>8}")
    for name, value, other, unit in (
        ("index from nothing", first.duration_ms, plain_ms, "ms"),
        ("files a second", each_second(first.files, first.duration_ms),
         each_second(first.files, plain_ms), "/s"),
        ("update, nothing changed", again, plain_ms, "ms"),
        ("search p50", statistics.median(times), statistics.median(plain_times), "ms"),
        ("search p99", percentile(times, 0.99), percentile(plain_times, 0.99), "ms"),
        ("on disk", size / 1024, plain_size / 1024, "KiB"),
    ):  # fmt: skip
        print(f"{name:26}{value:>8.2f} {unit:3}{other:>8.2f} {unit:3}{value / other:>8.2f}")


def each_second(files: int, duration_ms: float) -> float:
    return files / duration_ms * 1000


def percentile(ordered: list[float], share: float) -> float:
    return ordered[int(len(ordered) * share)]


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


SMALL_WORDS = """the of and to a in is that for it as was with be by on not he his but at are this
have had from or which an were they you their been has one all will there can if more when so no
what about them some could into only other time these two then do first any like my now over such
""".split()  # noqa: SIM905


def write_tree(folder: Path, files: int) -> None:
    """The same tree every time: 30,000 words, English by its small ones, 100 files a folder."""
    chance = random.Random(7)
    onsets, vowels = "bcdfghlmnprstvw", "aeiou"
    endings = ["", "", "", "s", "ed", "ing", "er", "tion", "ly", "ment"]
    stems = [
        "".join(chance.choice(onsets) + chance.choice(vowels) for _ in range(chance.randint(2, 4)))
        for _ in range(30_000)
    ]
    vocabulary = SMALL_WORDS + [f"{stem}n{chance.choice(endings)}" for stem in stems]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(vocabulary) + 1)))

    def words(count: int) -> str:
        return " ".join(chance.choices(vocabulary, cum_weights=weights, k=count))

    for number in range(files):
        page = [f"# {words(3)}\n"]
        for _ in range(4):
            page.append(f"## {words(4)}\n")
            page += [f"{words(60).capitalize()}.\n" for _ in range(2)]
            page.append("".join(f"- {words(8)}\n" for _ in range(3)))
        page.append(f"```\n{words(20)}\n```\n")
        place = folder / f"{number // 100:03}"
        place.mkdir(exist_ok=True)
        (place / f"{number:05}.md").write_text("\n".join(page), encoding="utf-8")


def print_tree(files: int) -> None:
    """Each measured in a process of its own, whose peak of memory is then that of indexing."""
    heads = f"{'Markdown files':>15}{'files/s':>9}{'of CPU':>8}{'unchanged ms':>14}"
    print(f"{heads}{'one changed ms':>16}{'peak MB':>9}")
    for count in (files // 10, files):
        with tempfile.TemporaryDirectory() as place:
            docs = Path(place, "docs")
            docs.mkdir()
            write_tree(docs, count)
            command = [sys.executable, __file__, "--measure", place]
            subprocess.run(command, check=True)


def cpu_ms() -> float:
    """Of this process and of those that it has ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) * 1000


def print_copies(path: Path, copies: int) -> None:
    with tempfile.TemporaryDirectory() as place, Index.open(Path(place, "index")) as index:
        docs = Path(place, "docs")
        multiply(path, docs, copies)
        before = cpu_ms()
        first = index.update([docs])
        used = cpu_ms() - before
        speed = each_second(first.files, first.duration_ms)
        print(f"{first.files:,} files, {first.chunks:,} chunks: {speed:.0f} files/s", end="")
        print(f", {each_second(first.files, used):.0f} for each second of CPU")
        questions = questions_from(index)
        questions = random.Random(1).sample(questions, min(300, len(questions)))
        print(f"{'':14}{'index s':>9}{'p50 ms':>9}{'p90':>8}{'p99':>8}{'CPU':>8}")
        print_search("unified-flow", first.duration_ms / 1000, index.search, questions)
        for name, seconds, search in each_engine(index, Path(place)):
            print_search(name, seconds, search, questions)


def print_search(
    name: str, seconds: float, search: Callable[[str], object], questions: list[str]
) -> None:
    times = search_times(search, questions, 1)
    cpu = []
    for question in questions:
        started = time.process_time()
        search(question)
        cpu.append((time.process_time() - started) * 1000)
    shown = "".join(f"{percentile(times, share):>8.2f}" for share in (0.5, 0.9, 0.99))
    print(f"{name:14}{seconds:>9.1f} {shown}{statistics.median(cpu):>8.2f}", flush=True)


def print_measured(place: Path) -> None:
    docs = place / "docs"
    with Index.open(place / "index") as index:
        before = cpu_ms()
        first = index.update([docs])
        used = cpu_ms() - before
        again = statistics.median(index.update([docs]).duration_ms for _ in range(3))
        changed = next(docs.glob("*/*.md"))
        changed.write_text("# Changed\n\nAll of it.\n", encoding="utf-8")
        one = index.update([docs]).duration_ms
    peaks = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    peak = max(each.ru_maxrss for each in peaks) / 1024  # of one process
    speed = each_second(first.files, first.duration_ms)
    of_cpu = each_second(first.files, used)
    print(f"{first.files:>15,}{speed:>9.0f}{of_cpu:>8.0f}{again:>14.0f}{one:>16.0f}{peak:>9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--tree", type=int, metavar="FILES", help="measure a generated tree")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "--copies", type=int, metavar="N", help="PATH N times, beside other engines"
    )
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--repeat", type=int, default=5, help="how often each question is asked")
    arguments = parser.parse_args()
    if arguments.measure is not None:
        print_measured(arguments.measure)
        return
    if arguments.tree is not None:
        print_tree(arguments.tree)
    if arguments.path is None:
        return
    if not arguments.path.exists():
        print(f"skipped: there is no {arguments.path}")
        return
    if arguments.copies is not None:
        print_copies(arguments.path, arguments.copies)
        return
    print_folder(arguments.path, arguments.repeat)
    if arguments.questions is not None:
        if arguments.questions.exists():
            print_recall(arguments.questions)
        else:
            print(f"skipped: there is no {arguments.questions}")


if __name__ == "__main__":
    main()
