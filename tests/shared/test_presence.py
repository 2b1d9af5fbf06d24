"""Who is counted among the workers, while the workers look after each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.shared.conftest import StartWorker, wait_until
from unified_flow.shared.database import Database
from unified_flow.shared.presence import Presence, workers_of


@contextmanager
def present(url: str, worker_id: str) -> Iterator[None]:
    database = Database(url, "the database of the test")
    database.program = worker_id
    presence = Presence(database, "the test", 1, lambda gone: None, lambda: None)
    presence.begin()
    try:
        yield
    finally:
        presence.end()
        database.close()


def test_a_machine_may_have_a_name_in_any_script(
    start_worker: StartWorker, database: Database
) -> None:
    start_worker(code=ELSEWHERE)
    assert [each["worker_id"][:6] for each in workers_of(database)] == ["b?ckli"]


ELSEWHERE = """
import socket
socket.gethostname = lambda: "b\\N{LATIN SMALL LETTER A WITH DIAERESIS}ckli"
from unified_flow.__main__ import main
main()
"""


def test_whoever_speaks_again_after_a_silence_is_a_worker_again(database: Database) -> None:
    """As after a minute without the database, or of a machine that was suspended."""
    with ExitStack() as both:
        for name in ("one", "two"):
            both.enter_context(present(database.url, name))
        database.row("UPDATE workers SET seen_at = now() - interval '1 minute' RETURNING 1")
        assert wait_until(
            database, "SELECT bool_and(seen_at > now() - interval '5 seconds') FROM workers"
        )
        both_are_back = (
            "SELECT count(*) = 2 FROM workers JOIN pg_stat_activity"
            " ON application_name = worker_id AND datname = current_database()"
        )
        assert wait_until(database, both_are_back)
        assert [each["worker_id"] for each in workers_of(database)] == ["one", "two"]
