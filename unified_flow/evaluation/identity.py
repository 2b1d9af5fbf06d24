"""Which models and documents a run is about: another file or server makes another run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from unified_flow.config.settings import EMBEDDED, Settings
from unified_flow.errors import RetrievalError
from unified_flow.retrieval.documents import Documents
from unified_flow.servers.llama_server import model_file_error
from unified_flow.turns.journal import digest

VECTORS = "vectors"


def identity_of(settings: Settings, name: str) -> str:
    """Which model it is: a file by its size and time, a server's by address and name there.

    Raises ConfigError for a file that is not there.
    """
    if name == EMBEDDED:
        return name
    path = settings.local_path(name)
    if path is not None:
        return _file(path)
    own = settings.endpoint(name)
    return f"{own.model} {own.base_url}"


def identities_of(settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """Of each of these models, and of the file that makes vectors."""
    found = {name: identity_of(settings, name) for name in sorted(set(names))}
    if settings.vectors.path is not None:
        found[VECTORS] = _file(settings.vectors.path)
    return found


def documents_digest(documents: Documents | None) -> str:
    """Of every file that a search sees, its path below its root and its content, as indexed.

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


def _file(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as exc:
        raise model_file_error(path, exc) from exc
    return f"{path.name} {found.st_size} {found.st_mtime_ns}"
