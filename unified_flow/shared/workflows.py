"""DBOS: it queues runs of turns, gives them to workers within the limits, and cancels them.

The only file that imports it. A run is a workflow of one step, to which DBOS gives the numbers of
the turn and of its run: the journal alone remembers a turn (architecture/decisions).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from psycopg.conninfo import conninfo_to_dict

from interventions.settings import SharedSettings
from interventions.times import utc_now
from unified_flow.errors import ConfigError
from unified_flow.shared.database import Database
from unified_flow.turns.events import VERSION

if TYPE_CHECKING:
    from sqlalchemy import Engine

APPLICATION = "unified_flow"
# Never another one: DBOS leaves a run of another version where it is.
APPLICATION_VERSION = "1"
OLDEST_VERSION = 4  # of the journals that shared mode has ever written
WORKFLOW = "turn"
# A resumption goes before new work.
PRIORITY_OF_RESUMED, PRIORITY_OF_NEW = 1, 2
ALWAYS = 1_000_000
KEPT = timedelta(hours=1)  # a run that has ended
MOST_FORGOTTEN = 1000  # at once

# As part of a statement, so that a run is queued in the transaction that begins it.
ENQUEUE = f"""dbos.enqueue_workflow(
    workflow_name => '{WORKFLOW}',
    queue_name => %(queue)s,
    positional_args => ARRAY[to_json(turn_id), to_json(run)],
    workflow_id => 'turn-' || turn_id || '-' || run,
    app_version => '{APPLICATION_VERSION}',
    priority => CASE run WHEN 1 THEN {PRIORITY_OF_NEW} ELSE {PRIORITY_OF_RESUMED} END,
    queue_partition_key => user_id,
    application_name => '{APPLICATION}'
)"""

Run = Callable[[int, int], Awaitable[str]]


def queue_name(journal_version: int = VERSION) -> str:
    """The queue of a journal's version: a worker takes only runs that it can read."""
    return f"turns-{journal_version}"


@contextmanager
def plain_errors(database: Database) -> Iterator[None]:
    """What DBOS and SQLAlchemy say at length of the database is raised as `Database.away` says it,
    and not logged."""
    from dbos import error
    from sqlalchemy.exc import DBAPIError

    log = logging.getLogger("dbos")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    except error.DBOSInitializationError as exc:
        raise ConfigError(
            f"the tables of DBOS in {database.named} are missing, or of an older version",
            hint="unified-flow shared migrate",
        ) from exc
    except DBAPIError as exc:
        with database.away():
            raise (exc.orig or exc) from None
    finally:
        log.setLevel(level)


def _url_of(database: Database) -> str:
    """The URL for SQLAlchemy, which cannot split the names of several servers itself."""
    from sqlalchemy import URL

    given = {name: str(value) for name, value in conninfo_to_dict(database.url).items()}
    user, password = given.pop("user", None), given.pop("password", None)
    name = given.pop("dbname", user)
    return URL.create(
        "postgresql", username=user, password=password, database=name, query=given
    ).render_as_string(hide_password=False)


def make_tables(database: Database) -> None:
    """Make DBOS's own tables, in a schema of their own."""
    from dbos import DBOS

    with plain_errors(database):
        DBOS.migrate(_url_of(database))


def are_old(engine: Engine) -> bool:
    """Whether its tables are missing, or of a version before the installed one, as a worker finds
    when it begins."""
    from dbos._migration import should_migrate

    return should_migrate(engine, "dbos", use_listen_notify=False)


def cancel(database: Database, turn_id: int, run: int) -> None:
    """Cancel the run: it is not begun, or stops within a second."""
    from dbos import DBOSClient

    client = DBOSClient(
        system_database_url=_url_of(database),
        application_name=APPLICATION,
        system_database_pool_size=1,
    )
    try:
        with plain_errors(database):
            client.cancel_workflow(f"turn-{turn_id}-{run}")
    finally:
        client.destroy()


def begin_work(database: Database, settings: SharedSettings, run: Run) -> Callable[[], None]:
    """Take runs from the queues from now on, and have `run` do each, in DBOS's own loop. What is
    returned ends the taking; one that comes a moment later is for other workers to take over."""
    from dbos import DBOS, DBOSPortableJSONSerializer

    logging.getLogger("dbos").setLevel(logging.ERROR)
    logging.getLogger("dbos").addFilter(lambda record: not _is_cancellation(record))
    dbos = DBOS(
        config={
            "name": APPLICATION,
            "system_database_url": _url_of(database),
            "application_version": APPLICATION_VERSION,
            "executor_id": database.program,
            "run_migrations": False,
            # Each NOTIFY wakes every session that listens, and here nothing waits for DBOS's own.
            "use_listen_notify": False,
            "log_level": "ERROR",
            "serializer": DBOSPortableJSONSerializer(),  # no pickles
            "db_engine_kwargs": {
                "connect_args": database.session | {"application_name": database.program},
                # It doubles the statements; after a restart DBOS tries again in any case.
                "pool_pre_ping": False,
            },
        }
    )

    @DBOS.step(name="run", preemptible=True)
    async def step(turn_id: int, number: int) -> str:
        return await run(turn_id, number)

    @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=ALWAYS)
    async def workflow(turn_id: int, number: int) -> str:
        return await step(turn_id, number)

    queues = [queue_name(version) for version in range(OLDEST_VERSION, VERSION + 1)]
    DBOS.listen_queues(queues)
    with plain_errors(database):
        DBOS.launch()
    in_all = settings.turns_at_once or ALWAYS
    for name in queues:
        DBOS.register_queue(
            name,
            worker_concurrency=min(settings.turns_per_worker, in_all),
            global_concurrency=settings.turns_at_once or None,
            partition_concurrency=min(settings.turns_per_user, in_all) or None,
            polling_interval_sec=settings.polling_s,
            on_conflict="always_update",
        )

    def end() -> None:  # DBOS.destroy would cancel a run that it has just taken
        for each in dbos.background_thread_stop_events:
            each.set()

    return end


def _is_cancellation(record: logging.LogRecord) -> bool:
    """DBOS logs each as a defect."""
    from dbos import error

    cause = record.exc_info and record.exc_info[1]
    return isinstance(cause, error.DBOSAwaitedWorkflowCancelledError)


def requeue(database: Database, workers: Collection[str]) -> None:
    """Queue the runs of workers that are gone again, each in the queue of its turn's journal
    version. A cancelled run counts if it is live still: its worker has not noticed. Of this process
    only runs that have not begun: DBOS forgets one if the database goes away just after it was
    taken."""
    from dbos import DBOS
    from dbos._dbos import _get_dbos_instance

    query = "SELECT journal_version, live AND run = %(run)s FROM turns WHERE turn_id = %(turn_id)s"
    for each in DBOS.list_workflows(
        status=["PENDING", "CANCELLED"],
        executor_id=list(workers),
        load_input=False,
        load_output=False,
    ):
        turn_id, run = map(int, each.workflow_id.split("-")[1:])
        version, is_live = database.row(query, turn_id=turn_id, run=run) or (VERSION, False)
        begun = each.workflow_id in _get_dbos_instance()._active_workflows_set.activeList()
        if not begun and (each.status == "PENDING" or is_live):
            DBOS.resume_workflow(each.workflow_id, queue_name=queue_name(version))


def forget_ended() -> None:
    """The journal remembers what it has to; DBOS would keep every run for ever."""
    from dbos import DBOS

    while ended := DBOS.list_workflows(
        status=["SUCCESS", "ERROR", "CANCELLED"],
        completed_before=(utc_now() - KEPT).isoformat(),
        limit=MOST_FORGOTTEN,
        load_input=False,
        load_output=False,
    ):
        DBOS.delete_workflows([each.workflow_id for each in ended])
