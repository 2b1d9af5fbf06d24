"""The memories of a user: the text `<user>.jsonl`, a `MemoryRecord` a line."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from interventions.secrets.forms import scrub
from interventions.secrets.rules import is_masked, patterns, words
from unified_flow.errors import InputError, RetrievalError
from unified_flow.lib.text import terms
from unified_flow.turns.results import Memory
from unified_flow.turns.texts import TextStore

T = TypeVar("T")

MAX_TEXT = 2_000
MAX_RECORDS = 5_000
PLAIN = re.compile(r"[a-z0-9_-]{1,63}")
_PROSE, _NO_SECRET = patterns("prose", re.IGNORECASE), words("states_none")
_LOOK_BACK = 100


class MemoryRecord(BaseModel):
    """`turn_id` is the turn that made it or changed it last; None: a person, by hand."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    text: str
    created_at: datetime | None = None
    updated_at: datetime | None = None
    turn_id: int | None = None


class MemoryStore:
    """Every method raises RetrievalError if a text cannot be read or written."""

    def __init__(self, texts: TextStore) -> None:
        self.texts = texts

    def knows(self, user_id: str) -> bool:
        """Whether there may be something of the user; nobody waits for it."""
        return self.texts.may_have(text_name(user_id))

    def all(self, user_id: str) -> list[MemoryRecord]:
        """Oldest first."""
        return self._records(text_name(user_id))

    def counted(self) -> tuple[int, int]:
        """How many users something is remembered of, and how much of them all."""
        found = [len(self._records(name)) for name in self.texts.names()]
        return sum(map(bool, found)), sum(found)

    def search(self, user_id: str, text: str, *, limit: int) -> list[Memory]:
        """Memories that share terms with `text`, best first; score is the share of its terms."""
        wanted = set(terms(text))
        scored = []
        for record in self.all(user_id) if wanted else []:
            score = len(wanted & set(terms(record.text))) / len(wanted)
            if score > 0:
                scored.append(Memory(id=record.id, text=record.text, score=score))
        return sorted(scored, key=lambda memory: -memory.score)[:limit]

    def newest(self, user_id: str, *, limit: int) -> list[Memory]:
        """The last that were made, newest first."""
        known = [Memory(id=record.id, text=record.text, score=1.0) for record in self.all(user_id)]
        return known[::-1][:limit]

    def create(self, user_id: str, text: str, *, turn_id: int | None = None) -> MemoryRecord:
        """What is remembered already, word by word, is not remembered twice.

        Raises InputError for what may not be remembered.
        """
        text = checked(text)

        def add(records: list[MemoryRecord]) -> MemoryRecord:
            known = next((record for record in records if record.text == text), None)
            if known is not None:
                return known
            if len(records) >= MAX_RECORDS:
                raise InputError(
                    f"{user_id!r} has {len(records)} memories, and there is room for no more",
                    field="text",
                    hint="unified-flow memory list, then memory delete ID",
                )
            made = MemoryRecord(
                id=_free_id(records), text=text, created_at=datetime.now(UTC), turn_id=turn_id
            )
            records.append(made)
            return made

        return self._change(user_id, add)

    def update(
        self, user_id: str, memory_id: str, text: str, *, turn_id: int | None = None
    ) -> MemoryRecord | None:
        """None if there is no such memory. Raises InputError as `create` does."""
        news = {"text": checked(text), "updated_at": datetime.now(UTC), "turn_id": turn_id}

        def replace(records: list[MemoryRecord]) -> MemoryRecord | None:
            for place, record in enumerate(records):
                if record.id == memory_id:
                    records[place] = record.model_copy(update=news)
                    return records[place]
            return None

        return self._change(user_id, replace)

    def delete(self, user_id: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """Delete these memories; returns those that were there."""

        def remove(records: list[MemoryRecord]) -> list[MemoryRecord]:
            gone = [record for record in records if record.id in ids]
            records[:] = [record for record in records if record.id not in ids]
            return gone

        return self._change(user_id, remove)

    def forget(self, user_id: str, turn_id: int) -> list[MemoryRecord]:
        """What the turn has made, and what it has changed: how that read before is not known."""
        written = [record.id for record in self.all(user_id) if record.turn_id == turn_id]
        return self.delete(user_id, written) if written else []

    def _change(self, user_id: str, change: Callable[[list[MemoryRecord]], T]) -> T:
        """What `change` returns, which is given the user's memories to be changed in place."""
        name = text_name(user_id)

        def rewrite(text: str) -> tuple[str, T]:
            before = self._parsed(name, text)
            records = list(before)
            changed = change(records)
            lines = "".join(f"{record.model_dump_json()}\n" for record in records)
            return (lines if records != before else text), changed

        return self.texts.change(name, rewrite)

    def _records(self, name: str) -> list[MemoryRecord]:
        return self._parsed(name, self.texts.read(name))

    def _parsed(self, name: str, text: str) -> list[MemoryRecord]:
        try:
            # Not splitlines: a text may hold other ends of lines, which JSON leaves as they are.
            lines = text.split("\n")
            return [MemoryRecord.model_validate_json(line) for line in lines if line.strip()]
        except ValueError as exc:
            raise RetrievalError(
                f"the memories in {self.texts.place(name)} cannot be read:"
                f" {str(exc).splitlines()[0]}",
                hint="mend or remove it",
            ) from exc


def text_name(user_id: str) -> str:
    """Any id makes a safe name: a digest stands for what is not plain. No two ids share one, on
    disks that tell no capitals apart either: a plain name is shorter than a digest."""
    if PLAIN.fullmatch(user_id):
        return f"{user_id}.jsonl"
    return f"{sha256(user_id.encode(errors='surrogatepass')).hexdigest()}.jsonl"


class SecretRefusedError(InputError):
    """What is to be remembered holds a password, a key or a token."""


def checked(text: str) -> str:
    """Raises InputError: a memory is given to models in later turns, so no secret may be one."""
    text = text.strip()
    if not text:
        raise InputError("there is nothing to remember", field="text")
    if len(text) > MAX_TEXT:
        raise InputError(
            f"a memory of {len(text)} characters is too long: {MAX_TEXT} at most", field="text"
        )
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise InputError(
            f"what is to be remembered is no text at character {exc.start}", field="text"
        ) from exc
    if scrub(text) != text or _states_a_secret(text):
        raise SecretRefusedError(
            "what is to be remembered seems to hold a secret, and is not kept",
            field="text",
            hint="leave the password, key or token out of it",
        )
    return text


def _states_a_secret(text: str) -> bool:
    """Whether it names a secret, judged strictly: a refusal costs one more sentence."""
    if _PROSE["numbered"].search(text):
        return True
    for name in _PROSE["name"].finditer(text):
        own = _PROSE["mine"].search(text[max(0, name.start() - _LOOK_BACK) : name.start()])
        stated = own and _PROSE["verb_last"].match(text, name.end())
        stated = stated or _PROSE["stated"].match(text, name.end())
        value = stated["value"].strip(".,;!?()").casefold() if stated else ""
        if value and value not in _NO_SECRET and not is_masked(value):
            return True
    return False


def _free_id(records: Sequence[MemoryRecord]) -> str:
    taken = {record.id for record in records}
    while (new := f"m{secrets.token_hex(3)}") in taken:
        pass
    return new
