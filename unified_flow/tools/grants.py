"""What people have allowed tools to do: `shared_state/grants.json`, for always or for a session."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Self

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interventions.home import PRIVATE_FILE_MODE, make_private_folder, replace_private, state_folder
from unified_flow.errors import ConfigError

Scope = Literal["once", "session", "always"]
SCOPES: tuple[Scope, ...] = ("once", "session", "always")
LOCK_TIMEOUT_S = 10.0


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
    """All of them, as they are stored; what a newer version wrote beside them is kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    version: int = 1
    grants: tuple[Grant, ...] = ()

    def with_grants(self, grants: tuple[Grant, ...]) -> Self:
        return self.model_copy(update={"grants": grants})


_NO_FILE = GrantDocument()


class GrantStore:
    """Read anew for each question: another process may have granted or revoked meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, home: Path) -> Self:
        return cls(state_folder(home) / "grants.json")

    def all(self) -> tuple[Grant, ...]:
        """Raises ConfigError for a file that cannot be read: nothing counts as allowed then."""
        return self._read().grants

    def add(self, grant: Grant) -> None:
        """In place of what was granted for another definition. Raises ConfigError if the file
        cannot be written."""

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

    def _read(self) -> GrantDocument:
        try:
            return GrantDocument.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return _NO_FILE
        except (OSError, ValidationError) as exc:
            raise ConfigError(
                f"what tools may do cannot be read from {self.path}: {str(exc).splitlines()[0]}",
                hint="mend or remove that file; without it nothing is granted",
            ) from exc

    def _change(self, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]) -> int:
        """Put what `change` makes of the grants in their place, under the lock; how many fewer
        there are then."""
        lock = FileLock(self.path.with_suffix(".lock"), mode=PRIVATE_FILE_MODE)
        try:
            make_private_folder(self.path.parent)
            with lock.acquire(timeout=LOCK_TIMEOUT_S, poll_interval=0.01):
                before = self._read()
                after = before.with_grants(change(before.grants))
                text = json.dumps(after.model_dump(mode="json"), indent=1, ensure_ascii=False)
                replace_private(self.path, text + "\n")
                return len(before.grants) - len(after.grants)
        except Timeout as exc:
            raise ConfigError(f"{lock.lock_file} was held for over {LOCK_TIMEOUT_S:g} s") from exc
        except OSError as exc:
            raise ConfigError(f"{self.path} cannot be written: {exc.strerror}") from exc
