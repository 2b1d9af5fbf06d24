"""What people have allowed tools to do: `shared_state/grants.json`, for always or for a session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unified_flow.errors import ConfigError, DatabaseAwayError, RetrievalError
from unified_flow.turns.texts import TextStore

Scope = Literal["once", "session", "always"]
SCOPES: tuple[Scope, ...] = ("once", "session", "always")
NAME = "grants.json"
_HINT = "mend or remove it; without it nothing is granted"


class Grant(BaseModel):
    """`session_id` None means: for always, in every session. It holds for the tool as it was
    defined then (`definition`, a digest), and for calls that name no other host than `hosts`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    tool: str
    session_id: str | None
    by: str
    at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    definition: str = ""
    hosts: tuple[str, ...] = ()

    def __str__(self) -> str:
        scope = "always" if self.session_id is None else "for this session"
        at_hosts = f" for {', '.join(self.hosts)}" if self.hosts else ""
        return f"allowed {scope}{at_hosts} by {self.by}, {self.at:%Y-%m-%d}"


class GrantDocument(BaseModel):
    """All grants, as they are stored; what a newer version wrote beside them is kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    version: int = 1
    grants: tuple[Grant, ...] = ()


class GrantStore:
    """Read anew for each question: another process may have granted or revoked meanwhile. Every
    method raises ConfigError if the text is damaged, or cannot be read or written: nothing counts
    as allowed then."""

    def __init__(self, texts: TextStore) -> None:
        self.texts = texts

    def all(self) -> tuple[Grant, ...]:
        with self._refusing("read"):
            return self._parsed(self.texts.read(NAME)).grants

    def add(self, grant: Grant) -> None:
        """Add a grant, in place of what was granted for another definition."""

        def put(grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
            others = [
                g
                for g in grants
                if (g.tool, g.session_id) != (grant.tool, grant.session_id)
                or (g.definition == grant.definition and g.hosts != grant.hosts)
            ]
            return (*others, grant)

        self._change(put)

    def revoke(self, tool: str | None = None, *, session_id: str | None = None) -> int:
        """How many grants are gone: of the tool, of the session, or of the tool in it."""

        def rest(grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
            return tuple(
                g
                for g in grants
                if (tool is not None and g.tool != tool)
                or (session_id is not None and g.session_id != session_id)
            )

        return self._change(rest) if self.all() else 0

    def _change(self, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]) -> int:
        """Put what `change` makes of the grants in their place; how many fewer there are then."""

        def rewrite(text: str) -> tuple[str, int]:
            before = self._parsed(text)
            after = before.model_copy(update={"grants": change(before.grants)})
            written = json.dumps(after.model_dump(mode="json"), indent=1, ensure_ascii=False)
            return written + "\n", len(before.grants) - len(after.grants)

        with self._refusing("changed"):
            return self.texts.change(NAME, rewrite)

    @contextmanager
    def _refusing(self, done: str) -> Iterator[None]:
        try:
            yield
        except DatabaseAwayError:
            raise
        except RetrievalError as exc:
            raise ConfigError(f"what tools may do cannot be {done}: {exc}", hint=_HINT) from exc

    def _parsed(self, text: str) -> GrantDocument:
        if not text:
            return GrantDocument()
        try:
            return GrantDocument.model_validate_json(text)
        except ValidationError as exc:
            raise ConfigError(
                f"what tools may do cannot be read from {self.texts.place(NAME)}:"
                f" {str(exc).splitlines()[0]}",
                hint=_HINT,
            ) from exc
