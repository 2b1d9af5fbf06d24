"""The turns of an entry that do not fit the queue file, which every put writes whole.

In the file an entry has its latest turns. The others are in a file of its own that only grows, and
is durable before the queue file is replaced. A turn may be in both: it failed again, or a writer
was killed between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from interventions.entry import Entry, MergedFailure
from interventions.home import sync_folder
from interventions.storage import jsonl
from interventions.storage.state import QueueState

# The turns that an entry of the queue file has at most, and those that stay when it has more.
MOST_IN_FILE, KEPT = 200, 100


class TurnOverflow:
    """Every method raises OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def move_out(self, state: QueueState) -> QueueState:
        """The state as it fits the file. The lock is held."""
        if not any(len(entry.get("turns") or ()) > MOST_IN_FILE for entry in state.entries):
            return state
        entries = tuple(
            self._shortened(entry) if len(entry.get("turns") or ()) > MOST_IN_FILE else entry
            for entry in state.entries
        )
        return replace(state, entries=entries)

    def _shortened(self, entry: Entry) -> Entry:
        turns = entry.get("turns") or []
        leaving, kept = turns[:-KEPT], frozenset(turns[-KEPT:])
        by_failure = {}
        rows: list[MergedFailure] = []
        for row in entry["merged"]:
            own = row.get("turns") or []
            if gone := [turn for turn in own if turn not in kept]:
                by_failure[row.get("fingerprint") or ""] = gone
                row = {**row, "turns": [turn for turn in own if turn in kept]}
            rows.append(row)
        path = self._file(entry["id"])
        is_new = not path.exists()
        jsonl.append(path, jsonl.encode({"turns": leaving, "merged": by_failure}), durable=True)
        if is_new:
            sync_folder(self._folder)
            sync_folder(self._folder.parent)
        return {**entry, "turns": turns[-KEPT:], "merged": rows}

    def complete(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """The entries with all their turns."""
        if not self._folder.is_dir():
            return tuple(entries)
        names = {path.name for path in self._folder.iterdir()}
        return tuple(
            self._completed(entry) if self._file(entry["id"]).name in names else entry
            for entry in entries
        )

    def _completed(self, entry: Entry) -> Entry:
        turns: list[int] = []
        by_failure: dict[str, list[int]] = {}
        for line in jsonl.read(self._file(entry["id"])):
            turns += line["turns"]
            for name, own in line["merged"].items():
                by_failure.setdefault(name, []).extend(own)
        rows: list[MergedFailure] = [
            {**row, "turns": _each_once([*by_failure[name], *(row.get("turns") or ())])}
            if (name := row.get("fingerprint") or "") in by_failure
            else row
            for row in entry["merged"]
        ]
        return {**entry, "turns": _each_once([*turns, *(entry.get("turns") or ())]), "merged": rows}

    def remove(self, entries: Iterable[Entry]) -> None:
        """Of entries that the archive has whole."""
        for entry in entries:
            self._file(entry["id"]).unlink(missing_ok=True)

    def _file(self, intervention_id: str) -> Path:
        """An id that was written by hand may be no file name."""
        plain = intervention_id.replace("_", "").replace("-", "")
        name = intervention_id
        if not (plain.isascii() and plain.isalnum() and len(name) <= 100):
            import hashlib  # late: hardly ever, and every command loads this module

            name = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
        return self._folder / f"{name}.jsonl"


def _each_once(turns: Iterable[int]) -> list[int]:
    """A turn that failed again stands where it failed last."""
    return list(dict.fromkeys(reversed(list(turns))))[::-1]
