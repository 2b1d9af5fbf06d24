"""A run on disk: `evaluations/RUN/run.json` says what is asked of what, `results.jsonl` what came.

It grows by one line a question, so that a run that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from interventions.home import PRIVATE_FILE_MODE, make_private_folder, replace_private
from interventions.storage import jsonl
from unified_flow import __version__
from unified_flow.engine.services import Services
from unified_flow.errors import InputError, RetrievalError
from unified_flow.evaluation.answers import EvaluatedAnswer
from unified_flow.evaluation.datasets import Dataset
from unified_flow.phases import NAMES
from unified_flow.retrieval.documents import Documents
from unified_flow.turns.lines import digest

SPEC = "run.json"
RESULTS = "results.jsonl"
LOCK = "run.lock"


class Spec(BaseModel):
    """What decides a run's results. `model` is the one that answers, `phases` holds each phase's
    model and recipe, `documents` the digest of what was indexed."""

    model_config = ConfigDict(frozen=True)

    dataset: str
    dataset_digest: str
    sample: int | None
    seed: int
    unanswerable: float
    model: str
    phases: dict[str, dict[str, str | None]]
    documents: str = ""
    config_digest: str
    version: str = __version__

    @property
    def name(self) -> str:
        """The same for the same run: `xquad-local-1f9c0a3e`."""
        model = "".join(c if c.isalnum() else "-" for c in Path(self.model).stem)
        digest = sha256(self.model_dump_json().encode()).hexdigest()
        return f"{self.dataset.replace('.', '-')}-{model[:30]}-{digest[:8]}"


def spec_of(
    dataset: Dataset, services: Services, sample: int | None, seed: int, unanswerable: float
) -> Spec:
    """Of documents that are indexed; the last three as `draw` takes them. Raises RecipeError."""
    recipes = {phase: services.recipe(phase) for phase in NAMES}
    phases = {
        phase: {"model": services.models.name_of(recipe.head), "recipe": recipe.digest[:16]}
        for phase, recipe in recipes.items()
    }
    return Spec(
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        sample=sample,
        seed=seed,
        unanswerable=unanswerable,
        model=phases["synthesis"]["model"] or services.settings.model,
        phases=phases,
        documents=documents_digest(services.documents),
        config_digest=services.config_digest,
    )


class Run:
    """An open run; of each question the last answer counts."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        self.folder = folder
        self.spec = spec
        self.answers = _answers(folder)

    @classmethod
    @contextmanager
    def open(
        cls, root: Path, name: str | None, spec: Spec, *, again: bool = False
    ) -> Iterator[Self]:
        """Nobody else may go on with it meanwhile. Raises InputError for a name that another run
        has, or that somebody runs now."""
        folder = _folder(root, name or spec.name)
        make_private_folder(folder)
        before = dict(_spec(folder)) if (folder / SPEC).is_file() else {}
        if differs := [name for name, value in before.items() if value != getattr(spec, name)]:
            raise InputError(
                f"the run {folder.name} is another one: {', '.join(differs)} differ",
                field="name",
                hint="choose another --name",
            )
        replace_private(folder / SPEC, spec.model_dump_json(indent=2) + "\n")
        lock = FileLock(folder / LOCK, timeout=0, mode=PRIVATE_FILE_MODE)
        try:
            lock.acquire()
        except Timeout as exc:
            raise InputError(f"somebody runs {folder.name} now", hint="wait for it") from exc
        try:
            if again:
                (folder / RESULTS).unlink(missing_ok=True)
            yield cls(folder, spec)
        finally:
            lock.release()

    def add(self, answer: EvaluatedAnswer) -> None:
        self.answers[answer.id] = answer
        line = jsonl.encode(answer.model_dump(mode="json"))
        jsonl.append(self.folder / RESULTS, line, durable=True)


def load(root: Path, name: str) -> tuple[Spec, dict[str, EvaluatedAnswer]]:
    """What a run has brought so far. Raises InputError if there is none of that name."""
    folder = _folder(root, name)
    if not (folder / SPEC).is_file():
        known = ", ".join(names(root)) or "none"
        raise InputError(f"there is no run {name} (known: {known})", field="run")
    return _spec(folder), _answers(folder)


def names(root: Path) -> list[str]:
    """The runs, the oldest first."""
    if not root.is_dir():
        return []
    found = [spec for spec in root.glob(f"*/{SPEC}")]
    return [spec.parent.name for spec in sorted(found, key=lambda path: path.stat().st_mtime)]


def _folder(root: Path, name: str) -> Path:
    if not name or name != Path(name).name or name.startswith("."):
        raise InputError(f"a run cannot be called {name!r}", field="name")
    return root / name


def _spec(folder: Path) -> Spec:
    try:
        return Spec.model_validate_json((folder / SPEC).read_bytes())
    except ValidationError as exc:
        raise InputError(
            f"{folder / SPEC} is damaged", hint="remove the folder, or choose another --name"
        ) from exc


def _answers(folder: Path) -> dict[str, EvaluatedAnswer]:
    """A line that was damaged is none: its question is asked again."""
    found: dict[str, EvaluatedAnswer] = {}
    for line in jsonl.read(folder / RESULTS):
        try:
            answer = EvaluatedAnswer.model_validate(line)
        except ValidationError:
            continue
        found[answer.id] = answer
    return found


def documents_digest(documents: Documents | None) -> str:
    """A digest of the files that a search sees: of paths below their roots, and of contents.

    "" without documents, and for an index that cannot be read, which is each turn's failure.
    """
    if documents is None:
        return ""
    try:
        with documents.index.reading() as reader:
            rows = reader.connection.execute(
                "SELECT shown, digest FROM file JOIN member ON file_id = file.id"
                f" WHERE root_id IN ({reader.scope.roots}) ORDER BY shown, digest"
            )
            return digest([[shown, content.hex()] for shown, content in rows])[:16]
    except RetrievalError:
        return ""
