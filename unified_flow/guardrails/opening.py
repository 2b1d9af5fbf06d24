"""The store, opened late: without rules nobody pays for SQLAlchemy, nor needs the extra; and what
of it may be shown."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interventions.home import state_folder
from interventions.secrets.redaction import redact
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import ConfigError
from unified_flow.turns.events import stamp

if TYPE_CHECKING:
    from unified_flow.guardrails.store import Decision, GuardrailStore

FILE = "guardrails.sqlite3"
NEEDED = ("sqlalchemy", "alembic", "ahocorasick", "confusable_homoglyphs")


def has_store(home: Path, settings: GuardrailSettings) -> bool:
    """Whether there can be rules: a database is configured, or the file of one is there."""
    return settings.database_url_env is not None or (state_folder(home) / FILE).exists()


def open_store(home: Path, settings: GuardrailSettings) -> GuardrailStore:
    """Raises ConfigError without the extra, and for a variable that holds no URL."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ConfigError(
            f"guardrails need the extra `guardrails` ({missing[0]} is not installed)",
            hint="pip install 'unified-flow[guardrails]'",
        )
    from unified_flow.guardrails.store import store_of

    return store_of(home, settings)


def decision_object(decision: Decision) -> dict[str, Any]:
    """As it leaves the program: redacted, its time as text."""
    row = asdict(decision) | {"created_at": stamp(decision.created_at)}
    return dict(redact(row))
