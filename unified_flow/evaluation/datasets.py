"""Question sets: SQuAD 1.1 and 2.0 (also XQuAD), and JSONL; and what is drawn from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Annotated

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interventions.home import make_private_folder
from unified_flow.errors import InputError
from unified_flow.turns.input_checks import first_mistake, read_text

WITHOUT = ":without"
_WRITTEN = "complete"  # the file that says so of a corpus


@dataclass(frozen=True)
class DatasetQuestion:
    """`group` names the documents that hold the answer ("" if that is not known). `left_out`: it
    is asked without them, which makes it `unanswerable`."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    unanswerable: bool = False
    group: str = ""
    left_out: bool = False


@dataclass(frozen=True)
class Group:
    """Documents that are left out together: `texts` of the set itself, or `paths` of files."""

    name: str
    texts: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """`groups` is empty where the set brings no documents; `digest` is that of its bytes."""

    name: str
    digest: str
    questions: tuple[DatasetQuestion, ...]
    groups: tuple[Group, ...] = ()


def read_dataset(path: Path) -> Dataset:
    """A `.jsonl` file is read line by line, any other as SQuAD. Raises InputError."""
    text = read_text(path, "dataset")
    read = _jsonl if path.suffix in {".jsonl", ".ndjson"} else _squad
    questions, groups = read(text, path)
    if not questions:
        raise InputError(f"{path} holds no questions", field="dataset")
    (most, count), *_ = Counter(each.id for each in questions).most_common(1)
    if count > 1:
        raise InputError(f"{path}: two questions have the id {most}", field="dataset")
    return Dataset(
        path.stem, sha256(path.read_bytes()).hexdigest(), tuple(questions), tuple(groups)
    )


def draw(
    dataset: Dataset, sample: int | None, seed: int, unanswerable: float
) -> list[DatasetQuestion]:
    """`sample` questions (None: all), and as many more as `unanswerable` times that, asked without
    the documents that hold their answer. A larger sample of one seed holds the smaller ones.

    Raises InputError where no documents can be left out.
    """
    drawn = _shuffled(dataset.questions, seed)[:sample]
    wanted = round(unanswerable * len(drawn))
    fit = [q for q in dataset.questions if q.group and not q.unanswerable]
    if wanted > len(fit):
        raise InputError(
            f"{dataset.name} has {len(fit)} questions whose documents can be left out,"
            f" and {wanted} are wanted",
            field="unanswerable",
            hint="a smaller share; in JSONL, `docs` names the files that hold an answer",
        )
    absent = [
        replace(q, id=q.id + WITHOUT, unanswerable=True, left_out=True)
        for q in _shuffled(fit, seed + 1)[:wanted]
    ]
    # Those of one group after one another: each group left out is an index of its own.
    return drawn + sorted(absent, key=lambda question: question.group)


def _shuffled(questions: Iterable[DatasetQuestion], seed: int) -> list[DatasetQuestion]:
    shuffled = list(questions)
    Random(seed).shuffle(shuffled)
    return shuffled


Stated = Annotated[str, Field(pattern=r"\S")]


class _Gold(BaseModel):
    text: Stated


class _Asked(BaseModel):
    id: str | int
    question: Stated
    answers: list[_Gold] = []
    is_impossible: bool = False


class _Paragraph(BaseModel):
    context: str
    qas: list[_Asked]


class _Article(BaseModel):
    title: str = ""
    paragraphs: list[_Paragraph]


class _Squad(BaseModel):
    data: list[_Article]


def _squad(text: str, path: Path) -> tuple[list[DatasetQuestion], list[Group]]:
    try:
        articles = _Squad.model_validate_json(text).data
    except ValidationError as exc:
        raise InputError(
            f"{path} is not of SQuAD form: {first_mistake(exc)}",
            field="dataset",
            hint="JSON with data[].paragraphs[].qas[], or lines of JSON in a .jsonl file",
        ) from exc
    questions, groups = [], []
    for number, article in enumerate(articles):
        name = f"{number:04d}-{_plain(article.title)}"
        groups.append(Group(name, tuple(each.context for each in article.paragraphs)))
        for paragraph in article.paragraphs:
            questions += [_asked(asked, name) for asked in paragraph.qas]
    return questions, groups


def _asked(asked: _Asked, group: str) -> DatasetQuestion:
    answers = tuple(dict.fromkeys(answer.text for answer in asked.answers))
    absent = asked.is_impossible or not answers
    return DatasetQuestion(str(asked.id), asked.question, answers, absent, group)


def _plain(title: str) -> str:
    kept = "".join(c if c.isalnum() else "-" for c in title)
    return kept.encode("ascii", "ignore").decode()[:40]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: Stated
    id: str | int | None = None
    answer: Stated | None = None
    answers: list[Stated] = []
    unanswerable: bool = False
    docs: list[str] = []


def _jsonl(text: str, path: Path) -> tuple[list[DatasetQuestion], list[Group]]:
    questions, groups = [], {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        asked = _line(line, path, number)
        answers = tuple([asked.answer] if asked.answer is not None else asked.answers)
        if not answers and not asked.unanswerable:
            raise InputError(
                f"{path}:{number}: neither an answer nor unanswerable",
                field="dataset",
                hint='{"question", "answer" or "answers"}, or {"question", "unanswerable": true}',
            )
        group = "\n".join(asked.docs)
        if group:
            files = tuple((path.parent / each).absolute() for each in asked.docs)
            groups[group] = Group(group, paths=files)
        own = str(number if asked.id is None else asked.id)
        questions.append(DatasetQuestion(own, asked.question, answers, asked.unanswerable, group))
    return questions, list(groups.values())


def _line(line: str, path: Path, number: int) -> _Line:
    try:
        return _Line.model_validate_json(line)
    except ValidationError as exc:
        raise InputError(
            f"{path}:{number}: {first_mistake(exc)}",
            field="dataset",
            hint='{"id"?, "question", "answers" or "answer", "unanswerable"?, "docs"?}',
        ) from exc


Corpus = dict[str, list[Path]]
"""The roots of each group."""


def corpus_of(dataset: Dataset, folder: Path) -> Corpus:
    """Files that the set names stay where they are; its texts are written under `folder`, once.

    Raises InputError for a file that is not there.
    """
    own = folder / dataset.digest[:12]
    if any(group.texts for group in dataset.groups) and not (own / _WRITTEN).exists():
        _write(dataset, own)
    corpus: Corpus = {}
    for group in dataset.groups:
        for path in group.paths:
            if not path.exists():
                raise InputError(f"{path} is not there, and the set names it", field="dataset")
        corpus[group.name] = list(group.paths) or [own / group.name]
    return corpus


def without(corpus: Corpus, group: str) -> list[Path]:
    """All roots but those of the group; a file that it shares with another is left out too."""
    gone = set(corpus.get(group, ()))
    kept = (root for roots in corpus.values() for root in roots)
    return [root for root in dict.fromkeys(kept) if root not in gone]


def _write(dataset: Dataset, folder: Path) -> None:
    """One process at a time; what somebody who was killed left half written is written again."""
    texts = {
        folder / group.name / f"{number:04d}.txt": f"{text.rstrip()}\n".encode()
        for group in dataset.groups
        for number, text in enumerate(group.texts)
    }
    make_private_folder(folder.parent)
    with FileLock(f"{folder.parent}.lock", mode=0o600):
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        (folder / _WRITTEN).touch()
