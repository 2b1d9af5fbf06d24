"""Group commit: failures of writers that wait for the lock, left for its holder.

A letter is a file in `intervention_queue.letters/`. The holder of the lock admits every letter in
its own transaction, and writes the answers into the queue file itself, beside the entries: what a
letter asks for and its answer are committed together or not at all, whichever process is killed.
The writer that waits finds the answer there, and takes its letter away; an answer lasts as long as
its letter.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from interventions.entry import Entry, complete
from interventions.errors import StorageError
from interventions.home import open_private, queue_file
from interventions.storage import jsonl
from interventions.storage.error_log import log_failure
from interventions.storage.history import History
from interventions.storage.queue_file import read_state
from interventions.storage.store import Admission, AdmissionKind, Limits, PutResult, Transaction

KEY = "letters"
# A writer that was killed leaves its letter behind; no writer waits for the lock this long.
FORGOTTEN_AFTER_S = 600
_TAIL_BYTES = 1 << 16
# Put by the holder of the lock, with its next write.
_CLAIMED = ".claimed"
_GRACE_S = 1.0
_POLL_S = 0.002


class Letter:
    """Of one writer, which leaves it when it has to wait."""

    answer: PutResult

    def __init__(self, home: Path, failure: Entry, limits: Limits) -> None:
        self._home, self._failure, self._limits = home, failure, limits
        self._path: Path | None = None

    def is_answered(self) -> bool:
        """Whether a holder of the lock has put the failure; `answer` says what became of it. Asked
        for the first time, it leaves the letter."""
        if self._path is None:
            self.post()
        if self._path is None or not _claimed(self._path).exists():
            return False
        queue_path = queue_file(self._home)
        answer = _last_answers(queue_path).get(self._path.name)
        if answer is None:
            return False
        entries: Iterable[Entry] = ()
        if answer["event"]:
            with suppress(StorageError):  # the put is committed; only the notification goes without
                state = read_state(queue_path)
                entries = state.entries if state else ()
        self.answer = _as_result(answer, self._failure, entries)
        return True

    def answer_in(self, work: Transaction) -> PutResult | None:
        """The same from a transaction, which knows it for certain."""
        name = self._path.name if self._path else ""
        answer = _answers(work.state.extra).get(name)
        return _as_result(answer, self._failure, work.state.entries) if answer else None

    def post(self) -> None:
        """A letter that cannot be written is none: its writer simply waits for the lock."""
        self._path = letters_folder(self._home) / os.urandom(8).hex()
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
            for path in (self._path, _claimed(self._path)):
                with suppress(OSError):
                    path.unlink()

    def answer_or_withdraw(self) -> PutResult | None:
        """For a writer whose time is up: one letter is not both put and given back."""
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


def answer_all(home: Path, work: Transaction, admit: Callable[[Entry, Limits], PutResult]) -> None:
    """Put the failure of every letter into the transaction. The lock is held."""
    before = _answers(work.state.extra)
    paths = _letters(letters_folder(home))
    if not paths and not before:
        return
    answers = {path.name: before[path.name] for path in paths if path.name in before}
    for path in paths:
        if path.name in answers or (letter := _open(path)) is None:
            _forget_if_old(home, path, answers.get(path.name))
        elif _claim(path):
            answers[path.name] = _as_answer(admit(*letter))
    extra = {key: value for key, value in work.state.extra.items() if key != KEY}
    work.state = replace(work.state, extra={**extra, KEY: answers} if answers else extra)


@lru_cache(maxsize=16)
def letters_folder(home: Path) -> Path:
    return queue_file(home).with_suffix(".letters")


def _letters(folder: Path) -> list[Path]:
    """Claimed or not, by the names that their writers gave them."""
    try:
        found = os.listdir(folder)  # noqa: PTH208 - in every put
    except OSError:
        return []
    return [folder / name for name in sorted({name.removesuffix(_CLAIMED) for name in found})]


def _claimed(path: Path) -> Path:
    return path.with_name(path.name + _CLAIMED)


def _claim(path: Path) -> bool:
    """False when its writer has just given up. It may be claimed already, by a holder of the lock
    that got so far and no further."""
    with suppress(OSError):
        path.rename(_claimed(path))
    return _claimed(path).exists()


def _open(path: Path) -> tuple[Entry, Limits] | None:
    """None for a letter that is still being written, or is none."""
    try:
        letter = jsonl.decode(_where(path).read_text("utf-8"))
        failure = complete(letter["failure"])
        limits = Limits(**letter["limits"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (failure, limits) if failure["fingerprint"] else None


def _where(path: Path) -> Path:
    return _claimed(path) if _claimed(path).exists() else path


def _forget_if_old(home: Path, path: Path, answer: dict[str, Any] | None) -> None:
    """Its writer was killed. A failure that was put gets the line of the log that was not written
    any more."""
    with suppress(OSError, StorageError):
        if time.time() - _where(path).stat().st_mtime <= FORGOTTEN_AFTER_S:
            return
        if answer is not None and (letter := _open(path)) is not None:
            result = _as_result(answer, letter[0])
            if not History(home).is_logged(result.failure["id"]):
                log_failure(home, result.failure, result.admission)
        _where(path).unlink()


def _last_answers(queue_path: Path) -> dict[str, Any]:
    """From the last line of the queue file, which is where its writers put them."""
    try:
        with queue_path.open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _TAIL_BYTES, 0))
            data = file.read()
        tail = json.loads(b"{" + data.rstrip().rpartition(b"\n")[2].removeprefix(b"], "))
    except (OSError, ValueError):
        return {}
    return _answers(tail)


def _answers(fields: dict[str, Any]) -> dict[str, Any]:
    """Of the queue file, which somebody may have edited."""
    answers = fields.get(KEY)
    found = answers if isinstance(answers, dict) else {}
    return {name: answer for name, answer in found.items() if _is_answer(answer)}


def _is_answer(answer: Any) -> bool:
    whole = isinstance(answer, dict) and answer.keys() >= _SAID
    return whole and answer["kind"] in tuple(AdmissionKind) and isinstance(answer["failure"], dict)


_SAID = {"kind", "id", "reason", "detail", "failure", "event"}
_MARKED = ("id", "regression_of", "regression_note")


def _as_answer(result: PutResult) -> dict[str, Any]:
    failure, admission = result.failure, result.admission
    return {
        "kind": str(admission.kind),
        "id": admission.intervention_id,
        "reason": admission.reason,
        "detail": admission.detail,
        "failure": {name: failure.get(name) for name in _MARKED if name in failure},
        "event": result.event,
    }


def _as_result(answer: dict[str, Any], failure: Entry, entries: Iterable[Entry] = ()) -> PutResult:
    admission = Admission(
        AdmissionKind(answer["kind"]), answer["id"], answer["reason"], answer["detail"]
    )
    entry = next((entry for entry in entries if entry["id"] == answer["id"]), None)
    return PutResult(
        cast(Entry, {**failure, **answer["failure"]}), admission, entry, answer["event"]
    )
