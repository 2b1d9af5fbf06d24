"""`unified-flow shared`: the database of shared mode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from interventions.home import find_home
from unified_flow.cli import options
from unified_flow.cli.terminal import say_result

if TYPE_CHECKING:
    from unified_flow.shared.database import Database


def migrate(home: options.Home = None, as_json: options.AsJson = False) -> None:
    """Make the tables of shared mode, or bring them up to date.

    Settings: the table [shared]. It needs: pip install 'unified-flow[shared]'
    """
    database = database_of(home)
    from unified_flow.shared.migration import migrate as upgrade

    before, now = upgrade(database)
    said = f"the tables are at revision {now}"
    was = {None: "; they were made now", now: ", as before"}.get(before, f"; they were at {before}")
    say_result(as_json, {"before": before, "now": now}, said + was)


def database_of(home: Path | None) -> Database:
    """Raises ConfigError where [shared] names none."""
    from unified_flow.errors import ConfigError
    from unified_flow.stores import shared_database

    database = shared_database(find_home(home))
    if database is None:
        raise ConfigError(
            "no database is shared here",
            hint='[shared] database_url_env = "FLOW_DATABASE_URL" in unified_flow.toml names the'
            " variable that holds its URL",
        )
    return database
