"""Group commit: failures of writers that wait for the lock, left for its holder.

A letter is a file in `intervention_queue.letters/`. The holder of the lock claims every letter and
admits its failure in its own transaction; the line of the error log, which names the letter, is
committed with it. Once the line is in the log the letter is taken away, by this holder or the next
one: so its writer knows that the log says what became of the failure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import cast

from interventions.entry import Entry, complete
from interventions.errors import StorageError
from interventions.home import error_logs, letters_folder, open_private, queue_file
from interventions.settings import Limits
from interventions.storage import jsonl
from interventions.storage.error_log import ADDED
from interventions.storage.queue_file import LogLine, read_state
from interventions.storage.store import Admission, AdmissionKind, PutResult
from interventions.times import utc_now

# A writer that was killed leaves its letter behind; no writer waits for the lock this long.
FORGOTTEN_AFTER_S = 600
# Put by the holder of the lock, with its next write.
_CLAIMED = ".claimed"
_GRACE_S = 1.0
_POLL_S = 0.002


class Letter:
    """The failure of a writer that waits, left for whoever holds the lock."""

    answer: PutResult

    def __init__(self, home: Path, failure: Entry, limits: Limits) -> None:
        self._home, self._failure, self._limits = home, failure, limits
        self._path: Path | None = None
        self._since = ""  # the day on which it was left, or could not be

    def poll(self) -> bool:
        """`is_answered`; asked for the first time, it leaves the letter."""
        if not self._since:
            self.post()
        return self.is_answered()

    def is_answered(self, lines: Iterable[LogLine] = ()) -> bool:
        """Whether a holder of the lock has put the failure; `answer` says what became of it.
        `lines` are those that could not be written into the log."""
        if self._path is None:
            return False
        name = self._path.name
        line = next((line.data for line in lines if line.letter == name), None)
        if line is None and not (self._path.exists() or _claimed(self._path).exists()):
            line = self._logged(b'"letter":"%s"}' % name.encode())
        if line is not None:
            self.answer = self._result(line)
        return line is not None

    def _logged(self, ending: bytes) -> bytes | None:
        """The line of a day's log; the names of the emergency logs come after all days."""
        with suppress(OSError):
            for path in error_logs(self._home):
                if self._since <= path.stem < "e" and (line := jsonl.last_line(path, ending)):
                    return line
        return None

    def _result(self, line: bytes) -> PutResult:
        record = jsonl.parse_line(line) or {}
        failure = cast(Entry, {name: record[name] for name in record if name not in ADDED})
        kind, holder = AdmissionKind(record["admission"]), record["intervention_id"]
        entry, event = None, record.get("event", "")
        if event:
            with suppress(StorageError):  # the put is committed; only the notification goes without
                state = read_state(queue_file(self._home))
                entries = state.entries if state else ()
                entry = next((entry for entry in entries if entry["id"] == holder), None)
        admission = Admission(kind, holder, record["reason"], record["detail"])
        return PutResult(failure, admission, entry, event)

    def post(self) -> None:
        """A letter that cannot be written is none: its writer simply waits for the lock."""
        self._path = letters_folder(self._home) / os.urandom(8).hex()
        self._since = utc_now().date().isoformat()
        data = jsonl.encode({"failure": self._failure, "limits": asdict(self._limits)})
        try:
            fd = open_private(self._path, os.O_WRONLY | os.O_EXCL | os.O_NOFOLLOW)
            try:
                whole = os.write(fd, data) == len(data)
            finally:
                os.close(fd)
        except OSError:
            whole = False
        if not whole:
            self.withdraw()

    def withdraw(self) -> None:
        if self._path is not None:
            _remove(self._path)
            self._path = None

    def answer_or_withdraw(self) -> PutResult | None:
        """For a writer whose time is up: a letter is either put or withdrawn, never both."""
        if self._path is None:
            return None
        with suppress(FileNotFoundError):
            self._path.unlink()
            return None
        # The holder of the lock has claimed it, and may be about to commit it.
        deadline = time.monotonic() + _GRACE_S
        while not self.is_answered():
            if time.monotonic() >= deadline:
                return None
            time.sleep(_POLL_S)
        return self.answer


def claim_letters(home: Path, answered: Collection[str]) -> Iterator[tuple[str, Entry, Limits]]:
    """(name, failure, limits) of each letter but those that are `answered`. The lock is held."""
    folder = letters_folder(home)
    try:
        found = os.listdir(folder)  # noqa: PTH208 - in every put
    except OSError:
        return
    # A holder of the lock may have got as far as a claim and no further.
    for name in sorted({name.removesuffix(_CLAIMED) for name in found}.difference(answered)):
        path = folder / name
        with suppress(OSError):
            path.rename(_claimed(path))
        if letter := _open(_claimed(path)):
            yield name, *letter


def remove_letters(home: Path, lines: Iterable[LogLine]) -> None:
    """Remove the letters of these lines, which are in the error log."""
    for line in lines:
        if line.letter:
            _remove(letters_folder(home) / line.letter)


def is_waiting(home: Path, line: LogLine) -> bool:
    """Whether a letter asks for it."""
    return bool(line.letter) and _claimed(letters_folder(home) / line.letter).exists()


def _claimed(path: Path) -> Path:
    return path.with_name(path.name + _CLAIMED)


def _remove(path: Path) -> None:
    for each in (path, _claimed(path)):
        with suppress(OSError):
            each.unlink()


def _open(path: Path) -> tuple[Entry, Limits] | None:
    """None for a letter that is gone, or is none; it goes when it is old."""
    try:
        if time.time() - path.stat().st_mtime > FORGOTTEN_AFTER_S:
            path.unlink()
            return None
        letter = jsonl.decode(path.read_text("utf-8"))
        failure = complete(letter["failure"])
        limits = Limits(**letter["limits"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (failure, limits) if failure["fingerprint"] else None
