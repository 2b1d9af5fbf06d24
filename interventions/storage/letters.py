"""Failures of writers that wait for the lock, left for its holder.

A letter is a file in `intervention_queue.letters/`. The holder of the lock admits every letter in
its own transaction, and writes the answers into the queue file itself, beside the entries: what a
letter asks for and its answer are committed together or not at all, whichever process is killed.
The writer that waited finds the answer when its turn comes, and takes its letter away; an answer
lasts as long as its letter.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from interventions.entry import Entry, complete
from interventions.errors import StorageError
from interventions.home import open_private, queue_file
from interventions.storage import jsonl
from interventions.storage.error_log import error_lines, log_failure
from interventions.storage.queue_file import read_state
from interventions.storage.store import Admission, AdmissionKind, Limits, PutResult, Transaction

KEY = "letters"
# A writer that was killed leaves its letter behind; no writer waits for the lock this long.
FORGOTTEN_AFTER_S = 600
_TAIL_BYTES = 8192
# Put by the holder of the lock, with its next write.
_CLAIMED = ".claimed"
_GRACE_S = 1.0
_POLL_S = 0.002

_numbers = itertools.count()


class Letters:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._queue_path = queue_file(home)
        self._folder = self._queue_path.with_suffix(".letters")

    def post(self, failure: Entry, limits: Limits) -> str | None:
        """None when it cannot be written: then its writer simply waits for the lock itself."""
        name = f"{os.getpid()}-{next(_numbers)}-{failure['id'][-6:]}"
        data = jsonl.encode({"failure": failure, "limits": asdict(limits)})
        try:
            fd = open_private(self._folder / name, os.O_WRONLY | os.O_EXCL)
            try:
                whole = os.write(fd, data) == len(data)
            finally:
                os.close(fd)
        except OSError:
            whole = False
        if whole:
            return name
        self.withdraw(name)
        return None

    def withdraw(self, name: str) -> bool:
        """False when the holder of the lock has claimed it, and may be about to commit it."""
        try:
            (self._folder / name).unlink()
        except FileNotFoundError:
            with suppress(OSError):
                (self._folder / (name + _CLAIMED)).unlink()
            return False
        except OSError:
            pass
        return True

    def answer_or_withdraw(self, name: str, failure: Entry) -> PutResult | None:
        """For a writer whose time is up: one letter is not both put and given back."""
        answer = self.answer(name, failure)
        if answer is not None or self.withdraw(name):
            return answer
        deadline = time.monotonic() + _GRACE_S
        while answer is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            answer = self.answer(name, failure)
        return answer

    def answer(self, name: str, failure: Entry) -> PutResult | None:
        """What became of the letter's failure, if a holder of the lock has put it."""
        return self._outcome(self._answers().get(name), failure)

    def answer_in(self, work: Transaction, name: str, failure: Entry) -> PutResult | None:
        """The same from a transaction, which knows it for certain."""
        return self._outcome((work.state.extra.get(KEY) or {}).get(name), failure)

    def _outcome(self, found: Any, failure: Entry) -> PutResult | None:
        if not isinstance(found, dict):
            return None
        entry = self._entry(found["id"]) if found["event"] else None
        whole = cast(Entry, {**failure, **found["failure"]})
        return PutResult(whole, _admission(found), entry, found["event"])

    def answer_all(self, work: Transaction, admit: Callable[[Entry, Limits], PutResult]) -> None:
        """Put the failure of every letter into the transaction. The lock is held."""
        before: dict[str, Any] = work.state.extra.get(KEY) or {}
        names = self._names()
        if not names and not before:
            return
        answers = {name: before[name] for name in names if name in before}
        for name in names:
            if name in answers:
                self._forget_if_old(name, answers[name])
            elif (letter := self._open(name)) is None:
                self._forget_if_old(name, None)
            elif self._claim(name):
                answers[name] = _as_answer(admit(*letter))
        extra = {key: value for key, value in work.state.extra.items() if key != KEY}
        work.state = replace(work.state, extra={**extra, KEY: answers} if answers else extra)

    def _names(self) -> list[str]:
        try:
            found = os.listdir(self._folder)  # noqa: PTH208 - in every put
        except OSError:
            return []
        return sorted({name.removesuffix(_CLAIMED) for name in found})

    def _path(self, name: str) -> Path:
        """Claimed, if a holder of the lock got so far and no further."""
        claimed = self._folder / (name + _CLAIMED)
        return claimed if claimed.exists() else self._folder / name

    def _claim(self, name: str) -> bool:
        """False when its writer has just given up."""
        path = self._path(name)
        try:
            path.rename(self._folder / (name + _CLAIMED))
        except OSError:
            return False
        return True

    def _open(self, name: str) -> tuple[Entry, Limits] | None:
        """None for a letter that is still being written, or is none."""
        try:
            letter = json.loads(self._path(name).read_bytes())
            failure = complete(letter["failure"])
            limits = Limits(**letter["limits"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return (failure, limits) if failure["fingerprint"] else None

    def _forget_if_old(self, name: str, answer: dict[str, Any] | None) -> None:
        path = self._path(name)
        with suppress(OSError, StorageError):
            if time.time() - path.stat().st_mtime <= FORGOTTEN_AFTER_S:
                return
            if answer is not None and (letter := self._open(name)) is not None:
                self._log_for(letter[0], answer)
            path.unlink()

    def _log_for(self, failure: Entry, answer: dict[str, Any]) -> None:
        """The line of a writer that was killed between the put and the log."""
        failure = cast(Entry, {**failure, **answer["failure"]})
        if not any(line.get("id") == failure["id"] for line in error_lines(self._home)):
            log_failure(self._home, failure, _admission(answer))

    def _answers(self) -> dict[str, Any]:
        """From the end of the queue file, which is where its writers put them."""
        try:
            with self._queue_path.open("rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - _TAIL_BYTES, 0))
                data = file.read()
            start = data.rindex(b"\n], ")
            tail = json.loads(b'{"interventions": [' + data[start + 1 :])
        except (OSError, ValueError):
            return {}
        answers = tail.get(KEY)
        return answers if isinstance(answers, dict) else {}

    def _entry(self, intervention_id: str) -> Entry | None:
        try:
            entries = read_state(self._queue_path).entries
        except StorageError:
            return None  # the put is committed; only the notification goes without
        return next((entry for entry in entries if entry["id"] == intervention_id), None)


def _admission(answer: dict[str, Any]) -> Admission:
    kind = AdmissionKind(answer["kind"])
    return Admission(kind, answer["id"], answer["reason"], answer["detail"])


def _as_answer(outcome: PutResult) -> dict[str, Any]:
    failure = outcome.failure
    marked = {
        "id": failure["id"],
        "regression_of": failure.get("regression_of"),
        "regression_note": failure.get("regression_note"),
    }
    return {
        "kind": str(outcome.admission.kind),
        "id": outcome.admission.intervention_id,
        "reason": outcome.admission.reason,
        "detail": outcome.admission.detail,
        "failure": {name: value for name, value in marked.items() if name in failure},
        "event": outcome.event,
    }
