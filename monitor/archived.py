"""What health asks of closed entries, read on from where it was: the archive only ever grows."""

from __future__ import annotations

from pathlib import Path

from interventions.entry import Entry
from interventions.jsonl import parse_line

_ASKED = ("id", "created_at", "resolved_at", "regression_of")


class Archived:
    """Keeps a few fields of each entry, so that neither time nor memory grows with its size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self._offset = 0
        self._entries: dict[str, Entry] = {}

    def read(self) -> list[Entry]:
        """Raises OSError."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return []
        if found.st_ino != self._inode or found.st_size < self._offset:
            self._inode, self._offset, self._entries = found.st_ino, 0, {}
        if found.st_size > self._offset:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
            # A line without its end is still being written.
            whole = data[: data.rfind(b"\n") + 1]
            self._offset += len(whole)
            for line in whole.split(b"\n"):
                self._keep(parse_line(line))
        return list(self._entries.values())

    def _keep(self, record: Entry | None) -> None:
        if record and record.get("id") and record.get("created_at"):
            self._entries[record["id"]] = {name: record.get(name) for name in _ASKED}
