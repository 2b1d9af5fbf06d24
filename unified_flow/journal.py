"""The journal of a turn on disk: `turns/turn_000123/journal.jsonl` and the files beside it.

One line an event. A line is written at once, so it survives the death of the process; it is
fsync'd when a phase completes or fails and before a tool that writes starts, so it survives the
death of the machine. A last line that is torn was never acknowledged and is dropped on reading.
A value too large for a line lies whole in a file named by its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from interventions.home import make_private_folder, open_private
from unified_flow.errors import RetrievalError
from unified_flow.events import (
    READER,
    VERSION,
    AnyEvent,
    PhaseCompleted,
    PhaseFailed,
    ToolStarted,
    TurnCompleted,
    TurnInterrupted,
    TurnStarted,
)

MAX_INLINE_BYTES = 64 * 1024
POINTER = "$file"
POINTER_BYTES = b'{"$file":'
NAME = "journal.jsonl"


def encode(value: Any) -> bytes:
    """Compact JSON, pure ASCII: anything a model or a tool said comes back the same."""
    return json.dumps(value, default=_plain, separators=(",", ":")).encode("ascii")


def digest(value: Any) -> str:
    return hashlib.sha256(encode(value)).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {own.name: getattr(value, own.name) for own in fields(value)}
    raise TypeError(f"a {type(value).__name__} cannot be journalled")


class TurnFolders:
    """`turns/turn_000123` under a home. An id is taken by creating its folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._last = 0

    def path(self, turn_id: int) -> Path:
        return self.root / f"turn_{turn_id:06d}"

    def ids(self) -> list[int]:
        """All turns on disk, oldest first."""
        if not self.root.exists():
            return []
        names = (entry.name for entry in os.scandir(self.root))
        return sorted(int(n[5:]) for n in names if n.startswith("turn_") and n[5:].isdecimal())

    def create(self) -> tuple[int, Path]:
        """A new folder with the next free id; safe among threads and processes."""
        make_private_folder(self.root)
        turn_id = self._last or max(self.ids(), default=0)
        while True:
            turn_id += 1
            try:
                self.path(turn_id).mkdir(mode=0o700)
            except FileExistsError:
                continue
            self._last = turn_id
            return turn_id, self.path(turn_id)


class Journal:
    """Appends events to one turn's journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = open_private(folder / NAME, os.O_WRONLY | os.O_APPEND)
        self._named = False

    def close(self) -> None:
        os.close(self._file)

    def append(self, event: AnyEvent) -> None:
        """Raises OSError if the line cannot be written, and then leaves no part of it."""
        line = encode(event)
        if len(line) > MAX_INLINE_BYTES or POINTER_BYTES in line:
            line = encode(self._shorten(event))
        end = os.lseek(self._file, 0, os.SEEK_END)
        try:
            _write_all(self._file, line + b"\n")
        except OSError:
            os.ftruncate(self._file, end)
            raise
        if _durable(event):
            os.fsync(self._file)
            if not self._named:
                self._name()

    def _shorten(self, event: AnyEvent) -> dict[str, Any]:
        """The event with its large values, and what looks like a pointer, in files of their own."""
        short = event.model_dump(mode="json")
        for key, value in short.items():
            content = encode(value)
            if len(content) > MAX_INLINE_BYTES // 4 or content.startswith(POINTER_BYTES):
                short[key] = {POINTER: _store(self.folder, content)}
        return short

    def _name(self) -> None:
        """Make the new folder itself durable, once: its entry and the journal's."""
        for folder in (self.folder, self.folder.parent):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self._named = True


def _durable(event: AnyEvent) -> bool:
    match event:
        case PhaseCompleted() | PhaseFailed() | TurnInterrupted():
            return True
        case TurnCompleted():
            return False  # follows from the last phase, which is durable already
        case ToolStarted():
            return "writes" in event.access
        case _:
            return False


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _store(folder: Path, content: bytes) -> str:
    name = hashlib.sha256(content).hexdigest()
    path = folder / name
    if not path.exists():
        descriptor = open_private(path, os.O_WRONLY | os.O_TRUNC)
        try:
            _write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return name


def read(folder: Path) -> Iterator[AnyEvent]:
    """The events of the turn in `folder`, oldest first.

    Raises FileNotFoundError without a journal, and RetrievalError (with file and line) for a
    line that is damaged; only the last line may be torn.
    """
    path = folder / NAME
    *lines, _torn = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            event = READER.validate_python(_whole(folder, json.loads(line)))
        except (ValueError, ValidationError, OSError) as exc:
            raise RetrievalError(
                f"{path}:{number}: the journal is damaged: {str(exc).splitlines()[0]}",
                hint="the turn cannot be read; ask its question again",
            ) from exc
        if isinstance(event, TurnStarted) and event.version > VERSION:
            raise RetrievalError(
                f"{path} is journal version {event.version}; this program reads up to {VERSION}",
                hint="update unified-flow",
            )
        yield event


def _whole(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    for key, value in record.items():
        if isinstance(value, dict) and set(value) == {POINTER}:
            name = Path(value[POINTER]).name  # never another folder, whoever wrote the line
            record[key] = json.loads((folder / name).read_bytes())
    return record
