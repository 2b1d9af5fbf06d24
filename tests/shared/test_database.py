"""The setting, the migration, and a database that is away."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from subprocess import PIPE, run
from time import monotonic

import pytest
from psycopg.conninfo import conninfo_to_dict
from typer.testing import CliRunner

from tests.forked import Process
from tests.servers.fixtures import VARIABLE
from tests.servers.postgres import Hanging
from tests.shared.conftest import wait_until
from unified_flow.api.readiness import Readiness
from unified_flow.api.running_turns import Progress
from unified_flow.api.upkeep import Upkeep
from unified_flow.cli.app import app
from unified_flow.config.tables import GuardrailSettings
from unified_flow.errors import ConfigError, DatabaseAwayError
from unified_flow.flow import UnifiedFlow
from unified_flow.guardrails.guardrails import open_store
from unified_flow.shared.database import PATIENCE_S, Connection, Database, database_at, joining
from unified_flow.shared.migration import REVISION, migrate, revision_of
from unified_flow.wiring import wire

runner = CliRunner()


def test_migrating_twice_changes_nothing(postgres_url: str) -> None:
    database = Database(postgres_url, "it")
    assert revision_of(database) is None
    before, now = migrate(database)
    assert before is None
    assert migrate(database) == (now, now)
    assert revision_of(database) == now == REVISION
    with database.connection() as connection:
        assert connection.execute("SELECT count(*) FROM turns").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM dbos.workflow_status").fetchone() == (0,)
    database.close()


def test_a_table_of_another_program_is_named(postgres_url: str) -> None:
    database = Database(postgres_url, "it")
    with database.connection() as connection:
        connection.execute("CREATE TABLE turns ()")
    with pytest.raises(ConfigError, match=r'another program.*"turns" already exists'):
        migrate(database)
    assert revision_of(database) is None
    database.close()


def test_of_migrations_at_once_one_makes_the_tables(
    postgres_url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, postgres_url)
    (home / "unified_flow.toml").write_text(f'[shared]\ndatabase_url_env = "{VARIABLE}"\n')
    words = [sys.executable, "-m", "unified_flow", "shared", "migrate", "--json", "--home", home]
    processes = [Process(words, stdout=PIPE, stderr=PIPE, text=True) for _ in range(3)]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in processes]
    assert [code for *_, code in ended] == [0, 0, 0], ended
    told = [json.loads(out) for out, *_ in ended]
    assert len({each["now"] for each in told}) == 1
    assert sum(each["before"] is None for each in told) == 1


def test_a_url_may_name_several_servers_and_options(postgres_url: str) -> None:
    """Each with a port; the one that is there is taken."""
    host = conninfo_to_dict(postgres_url)["host"]
    several = postgres_url.replace(":@/", "@/") + "&port=5432"
    several = several.replace("@/", "@a:5432,b:5432/").replace(str(host), f"/nowhere,{host}")
    database = Database(several.replace("port=5432", "port=1,5432"), "it")
    assert migrate(database)[0] is None
    database.close()
    other = Database(f"{postgres_url}&options=-c%20search_path%3Dpg_catalog", "it")
    assert other.row("SHOW search_path") == ("pg_catalog",)
    other.close()


def test_the_command_migrates(shared_home: Path) -> None:
    outcome = runner.invoke(app, ["shared", "migrate", "--json", "--home", str(shared_home)])
    assert outcome.exit_code == 0, outcome.output
    told = json.loads(outcome.stdout)
    assert told["before"] == told["now"]


def test_without_a_url_it_says_what_to_export(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = runner.invoke(app, ["shared", "migrate", "--home", str(home)])
    assert outcome.exit_code == 2
    assert "database_url_env" in outcome.stderr
    (home / "unified_flow.toml").write_text('[shared]\ndatabase_url_env = "NOWHERE_URL"\n')
    with pytest.raises(ConfigError, match="NOWHERE_URL"):
        database_at(home)
    monkeypatch.setenv("NOWHERE_URL", "mysql://ada:hunter2@db/x")
    with pytest.raises(ConfigError) as refused:
        database_at(home)
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"


def test_a_database_that_is_away_is_said_without_its_url() -> None:
    database = Database("postgresql://ada:hunter2@127.0.0.1:1/flow", "the database")
    for use in (database.connect, lambda: database.connection().__enter__()):
        with pytest.raises(DatabaseAwayError) as away:
            use()
        assert "hunter2" not in f"{away.value!r} {away.value.hint} {away.value.__cause__}"
    database.close()


def test_what_the_server_answers_is_told(postgres_url: str) -> None:
    database = Database(postgres_url.replace("/t_", "/no_t_"), "the database")
    with pytest.raises(DatabaseAwayError, match=r'database "no_t_\w+" does not exist'):
        database.connect()


def test_what_is_read_waits_for_a_database_that_was_away(database: Database) -> None:
    """Its sessions end, as in a restart; the next statement takes another connection."""
    with database.connect() as other:
        database.run(lambda c: c.execute("SELECT 1"))
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid != pg_backend_pid() AND datname = current_database()"
        )
    assert database.run(lambda c: c.execute("SELECT 2").fetchone()) == (2,)


def test_a_server_that_takes_no_more_connections_refuses_everybody_in_time(
    client: UnifiedFlow, served_home: Path, database: Database
) -> None:
    """However many ask at once; and they are told what is wrong."""

    async def ask() -> float:
        asked_at = monotonic()
        with pytest.raises(DatabaseAwayError, match="too many clients already"):
            await client.process("s", "What is a topic?", persist=False)
        return monotonic() - asked_at

    async def ask_many() -> list[float]:
        return await asyncio.gather(*[ask() for _ in range(40)])

    database_at(served_home).close()
    with ExitStack() as stack:
        with suppress(DatabaseAwayError):
            while True:
                stack.enter_context(database.connect())
        assert max(asyncio.run(ask_many())) < PATIENCE_S + 1


def test_a_session_that_takes_no_writes_is_not_used_again(database: Database) -> None:
    """As after the server has been one that only reads."""
    with database.connection() as connection:
        connection.execute("SET default_transaction_read_only = on")
    database.run(lambda c: c.execute("INSERT INTO texts VALUES ('m', 'm', '')"))
    assert database.row("SELECT count(*) FROM texts") == (1,)


def test_a_process_that_was_frozen_within_a_transaction_begins_it_anew(database: Database) -> None:
    """The server has ended its session meanwhile."""
    tries: list[int] = []

    def work(connection: Connection) -> None:
        tries.append(1)
        if len(tries) == 1:
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = '50ms'")
            pid = connection.info.backend_pid
            wait_until(database, f"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = {pid}")
        connection.execute("SELECT 1")

    database.run(work)
    assert len(tries) == 2


def test_a_server_that_hangs_is_away(database_url: str) -> None:
    with Hanging(database_url) as server:
        database = Database(server.url, "it")
        database.patience_s = 1.0
        assert database.run(lambda c: c.execute("SELECT 1").fetchone()) == (1,)
        database.close()
        database = Database(server.url, "it")
        database.patience_s = 1.0
        server.hang()
        with pytest.raises(DatabaseAwayError):
            database.run(lambda c: c.execute("SELECT 1"))
        database.close()


@pytest.mark.parametrize("rules", [True, False], ids=["with rules", "without rules"])
def test_ready_does_not_wait_for_a_database_that_is_away(
    rules: bool, served_home: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also who asks while it is found out."""

    async def ask() -> None:
        services = wire(served_home)
        readiness = Readiness(Upkeep(services), Progress(60.0))
        assert ("guardrails" in await readiness.checks(services)) == rules
        server.hang()
        readiness = Readiness(Upkeep(services), Progress(60.0))
        began = monotonic()
        found = await asyncio.gather(*[readiness.checks(services) for _ in range(2)])
        assert monotonic() - began < 3.5
        assert [each["queue"] for each in found] == ["failed", "failed"]
        await services.aclose()

    with Hanging(database_url) as server:
        monkeypatch.setenv(VARIABLE, server.url)
        if rules:
            with closing(open_store(served_home, GuardrailSettings())) as store:
                store.change("ada", lambda own: own)
        asyncio.run(ask())


@pytest.mark.parametrize(
    "words", [["ask", "What is a turn?"], ["worker"], ["workers"], ["turns", "list"]]
)
def test_a_command_before_the_tables_are_made_says_how_to_make_them(
    words: list[str], shared_home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, postgres_url)
    outcome = runner.invoke(app, [*words, "--home", str(shared_home)])
    assert outcome.exit_code == 2
    assert "the tables in the database" in outcome.stderr
    assert "hint: unified-flow shared migrate" in outcome.stderr


def test_what_is_joined_belongs_to_the_other_transaction(database: Database) -> None:
    with database.connect() as session:
        with suppress(ZeroDivisionError), session.transaction(), joining(session):
            with database.transaction() as connection:
                connection.execute("INSERT INTO texts VALUES ('m', 'm', '')")
            raise ZeroDivisionError
        assert session.execute("SELECT count(*) FROM texts").fetchone() == (0,)


def test_a_home_that_shares_nothing_imports_nothing_of_it(home: Path) -> None:
    """`ask` on one machine costs what it did."""
    code = (
        "import sys; from unified_flow.flow import UnifiedFlow;"
        f" UnifiedFlow.from_config({str(home)!r});"
        " print([m for m in sys.modules if m.split('.')[0] in ('dbos', 'psycopg', 'sqlalchemy')"
        " or m.startswith('unified_flow.shared')])"
    )
    outcome = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout == "[]\n"
