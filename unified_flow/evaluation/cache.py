"""Model replies by the content of the call, so that a second evaluation is cheap.

For evaluation alone: an answer to a user is never taken from here. What counts as the same call
is all that the model sees, and which model it is; an answer drawn by chance is drawn once. The same
call again within one turn is another draw, as when a revision is asked for twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from unified_flow.config.settings import EMBEDDED, Settings
from unified_flow.errors import ConfigError, RetrievalError
from unified_flow.evaluation.line_file import LineFile, read_lines
from unified_flow.lib.clock import elapsed_ms
from unified_flow.models import Model, ModelCall, ModelReply
from unified_flow.models.prompt import prompt
from unified_flow.retrieval.documents import Documents
from unified_flow.servers.llama_server import NO_FILE_HINT
from unified_flow.turns.journal import digest

FILE = "model_replies.jsonl"
KEPT = {"key", "text", "prompt_tokens", "completion_tokens", "duration_ms"}
"""What a line holds; one that was damaged counts for nothing, and its call is made again."""


@dataclass(frozen=True)
class CachedReply:
    """One reply: what it cost when it was made, and whether that was just now."""

    phase: str
    model: str
    duration_ms: float
    cached: bool


class ReplyCache:
    """The replies of a home, on disk and in memory. `log` holds what was answered, in order."""

    def __init__(self, folder: Path) -> None:
        path = folder / FILE
        self._file = LineFile(path)
        whole = (line for line in read_lines(path) if line.keys() >= KEPT)
        self._known = {line["key"]: line for line in whole}
        self.log: list[CachedReply] = []
        self._draws: Counter[str] = Counter()

    def draw_of(self, digest: str) -> str:
        """The key of this call, which counts the same ones before it in the turn."""
        number = self._draws[digest]
        self._draws[digest] += 1
        return f"{digest}#{number}" if number else digest

    def get(self, key: str) -> dict[str, Any] | None:
        return self._known.get(key)

    def put(self, line: dict[str, Any]) -> None:
        self._known[line["key"]] = line
        self._file.add(line)

    def taken(self) -> list[CachedReply]:
        """The log of the turn that has ended; another begins."""
        self._draws.clear()
        log, self.log = self.log, []
        return log

    def close(self) -> None:
        self._file.close()


class CachedModel:
    """A Model that asks `model` only what has never been asked of `identity`."""

    def __init__(self, model: Model, identity: str, cache: ReplyCache) -> None:
        self._model = model
        self._identity = identity
        self._cache = cache

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, call: ModelCall) -> ModelReply:
        made = prompt(call)
        key = self._cache.draw_of(call_digest(call, made.messages, self._identity))
        known = self._cache.get(key)
        if known is None:
            started = perf_counter()
            reply = await self._model.complete(call)
            known = {
                "key": key,
                "text": reply.text,
                "prompt_tokens": reply.prompt_tokens,
                "completion_tokens": reply.completion_tokens,
                "duration_ms": elapsed_ms(started),
            }
            self._cache.put(known)
            cached = False
        else:
            cached = True
        self._cache.log.append(CachedReply(call.phase, self.name, known["duration_ms"], cached))
        tokens = known["prompt_tokens"], known["completion_tokens"]
        return ModelReply(known["text"], *tokens, left_out=made.left_out)

    async def aclose(self) -> None:
        await self._model.aclose()


def call_digest(call: ModelCall, messages: list[dict[str, str]], identity: str) -> str:
    """Of what the model is sent: how long a tool took, say, is no part of it."""
    sent: list[Any] = [messages, call.output.__name__]
    sent += [call.temperature, call.top_p, call.max_tokens]
    return digest([identity, sent])


def caching(settings: Settings, cache: ReplyCache) -> Callable[[Model], Model]:
    """For ModelRegistry. The embedded model is as quick as a cache would be."""

    def wrapped(model: Model) -> Model:
        if model.name == EMBEDDED:
            return model
        return CachedModel(model, identity_of(settings, model.name), cache)

    return wrapped


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
    except FileNotFoundError as exc:
        raise ConfigError(f"there is no model file {path}", hint=NO_FILE_HINT) from exc
    except OSError as exc:
        raise ConfigError(f"the model file {path} cannot be read: {exc.strerror}") from exc
    return f"{path.name} {found.st_size} {found.st_mtime_ns}"
