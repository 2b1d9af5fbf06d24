"""`unified-flow shared`: the database of shared mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from interventions.cli.terminal import Code
from interventions.errors import NotFoundError
from interventions.home import find_home
from unified_flow.cli import options
from unified_flow.cli.terminal import say_result
from unified_flow.errors import ConfigError, DatabaseAwayError

if TYPE_CHECKING:
    from unified_flow.cli.doctor import Finding
    from unified_flow.shared.database import Database


def migrate(home: options.Home = None, as_json: options.AsJson = False) -> None:
    """Make the tables of shared mode, or bring them up to date.

    \b
    unified-flow shared migrate

    Settings: the table [shared]. It needs the extra `shared`.
    """
    database = database_of(home)
    from unified_flow.shared.migration import migrate as upgrade

    before, now = upgrade(database)
    said = f"the tables are at revision {now}"
    was = {None: "; they were made now", now: ", as before"}.get(before, f"; they were at {before}")
    say_result(as_json, {"before": before, "now": now}, said + was)


def import_(
    source: Annotated[Path, Argument(metavar="HOME", help="The home that has files.")],
    home: options.Home = None,
    as_json: options.AsJson = False,
) -> None:
    """Take over what a home has kept in files.

    Turns, queue, sessions, memories, grants and rules of guardrails: once, all of it or nothing,
    into a new database. Nobody may write in HOME meanwhile; its files stay as they are.

    \b
    unified-flow shared import /srv/flow
    """
    from unified_flow.home_import import take_over

    if not source.is_dir():
        raise NotFoundError(f"there is no folder {source}")
    parts, earlier = take_over(source, find_home(home), database_of(home))
    said = [f"{part.count:>8}  {part.kind:<13} {part.digest}" for part in parts]
    when = "was taken over before" if earlier else "is taken over: the same digest in both places"
    found = {"earlier": earlier, "parts": [asdict(part) for part in parts]}
    say_result(as_json, found, "\n".join([*said, f"{source} {when}"]))


def check(home: options.Home = None, as_json: options.AsJson = False) -> None:
    """Check that the database can carry the shared mode.

    \b
    unified-flow shared check

    Exit codes: 0 all is well, 1 something is not, 2 it is not configured, 4 the database cannot
    be reached.
    """
    from unified_flow.cli.doctor import show_findings

    database = database_of(home)
    findings = list(_findings(database, find_home(home)))
    show_findings(findings, as_json, home)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(Code.FAILED if findings[1:] else Code.QUEUE)


def _findings(database: Database, home: Path) -> Iterator[Finding]:
    """That of the server alone if it cannot be reached."""
    from unified_flow.cli.doctor import Finding, checked
    from unified_flow.shared import database_check as checks

    try:
        connection = database.connect()
    except DatabaseAwayError as exc:
        yield Finding("server", False, str(exc), exc.hint)
        return
    with connection:
        yield checked("server", lambda: checks.check_server(connection))
        yield checked("session", lambda: checks.check_session(database))
        yield checked("clock", lambda: checks.check_clock(connection))
        # Each of the last three needs the one before.
        yield (found := checked("privileges", lambda: checks.check_privileges(connection)))
    if found.ok:
        yield (found := checked("tables", lambda: checks.check_tables(database)))
    if found.ok:
        yield checked("index", lambda: _index(database, home))


def _index(database: Database, home: Path) -> str:
    from unified_flow.config.settings import load
    from unified_flow.retrieval.documents import published_index

    snapshot = published_index(home, load(home), database).current()
    when = f"{snapshot.published_at:%Y-%m-%d %H:%MZ}"
    return f"{snapshot}, published {when} on {snapshot.published_by}"


def database_of(home: Path | None) -> Database:
    """Raises ConfigError where [shared] names none."""
    from unified_flow.stores import shared_database

    database = shared_database(find_home(home))
    if database is None:
        raise ConfigError(
            "no database is shared here",
            hint='[shared] database_url_env = "FLOW_DATABASE_URL" in unified_flow.toml names the'
            " variable that holds its URL",
        )
    return database
