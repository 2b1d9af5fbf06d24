"""The documents of a question set as files: a folder for each group, so that it can be left out."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from filelock import FileLock

from interventions.home import make_private_folder
from unified_flow.errors import InputError
from unified_flow.evaluation.datasets import Dataset

Corpus = dict[str, list[Path]]
"""The roots of each group."""


def corpus_of(dataset: Dataset, folder: Path) -> Corpus:
    """Files that the set names stay where they are; its texts are written under `folder`, once.

    Raises InputError for a file that is not there.
    """
    own = folder / dataset.digest[:12]
    if any(group.texts for group in dataset.groups) and not own.is_dir():
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
    """All of it or nothing: a folder that is there is complete. One process at a time, so that what
    is half built when it begins was left by one that was killed."""
    make_private_folder(folder.parent)
    with FileLock(f"{folder.parent}.lock", mode=0o600):
        for left in folder.parent.glob("building-*"):
            shutil.rmtree(left, ignore_errors=True)
        if not folder.is_dir():
            _build(dataset, folder)


def _build(dataset: Dataset, folder: Path) -> None:
    building = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        for group in dataset.groups:
            (building / group.name).mkdir()
            for number, text in enumerate(group.texts):
                file = building / group.name / f"{number:04d}.txt"
                file.write_text(text.rstrip() + "\n", encoding="utf-8")
        building.rename(folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
