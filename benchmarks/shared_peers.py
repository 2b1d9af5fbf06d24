"""Eight phases that wait, on workers of other engines; run by `benchmarks/shared.py`.

    python benchmarks/shared_peers.py ENGINE URL NAME

ENGINE is `procrastinate` (a task a turn, which writes a row for each completed phase, the least
that another worker needs to go on) or `dbos-steps` (DBOS Transact with a step a phase). Prints
"ready" once it takes turns, and runs until it is killed. URL names a database of PostgreSQL.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

import psycopg

PHASES = (
    "query_analyzer",
    "reflection",
    "context_gatherer",
    "planner",
    "coordinator",
    "synthesis",
    "validation",
    "save",
)
WAIT_S = 0.1
TURNS = 4  # at once a worker
POLLING_S = 0.1
OUTPUT = "x" * 800  # characters that a phase leaves
TABLES = """
CREATE TABLE finished (turn_id bigint PRIMARY KEY);
CREATE TABLE done (turn_id bigint, phase text, output text, PRIMARY KEY (turn_id, phase));
"""


def create(engine: str, url: str) -> None:
    """What the engine needs in an empty database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLES)
    if engine == "procrastinate":
        with _sync_app(url).open() as app:
            app.schema_manager.apply_schema()


def enqueuer(engine: str, url: str) -> Callable[[int], None]:
    """A function that puts the turn of a number in the queue."""
    if engine == "procrastinate":
        app = _sync_app(url)
        app.open()
        task = app.configure_task("turn", queue="turns", allow_unknown=True)
        return lambda number: task.defer(turn_id=number) and None
    from dbos import DBOSClient

    client = DBOSClient(system_database_url=_sqlalchemy(url))
    return lambda number: (
        client.enqueue(
            {"workflow_name": "turn", "queue_name": "turns", "workflow_id": f"turn-{number}"},
            number,
        )
        and None
    )


def _sync_app(url: str) -> Any:
    import procrastinate

    return procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=url))


def _sqlalchemy(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def procrastinate_worker(url: str, name: str) -> None:
    import procrastinate

    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=TURNS + 1)
    app = procrastinate.App(connector=connector)

    @app.task(name="turn", queue="turns")
    async def turn(turn_id: int) -> None:
        for phase in PHASES:
            await asyncio.sleep(WAIT_S)
            sql = "INSERT INTO done VALUES (%(turn)s, %(phase)s, %(output)s)"
            await connector.execute_query_async(sql, turn=turn_id, phase=phase, output=OUTPUT)
        await connector.execute_query_async("INSERT INTO finished VALUES (%(turn)s)", turn=turn_id)

    async def run() -> None:
        async with app.open_async():
            print("ready", flush=True)
            await app.run_worker_async(
                queues=["turns"],
                name=name,
                concurrency=TURNS,
                fetch_job_polling_interval=POLLING_S,
                update_heartbeat_interval=1.0,
                stalled_worker_timeout=3.0,
            )

    asyncio.run(run())


def dbos_worker(url: str, name: str) -> None:
    from dbos import DBOS
    from psycopg_pool import AsyncConnectionPool

    pool: list[AsyncConnectionPool[Any]] = []

    @DBOS.step(name="phase")
    async def step(_turn_id: int, phase: str) -> dict[str, str]:
        await asyncio.sleep(WAIT_S)
        return {"phase": phase, "output": OUTPUT}

    @DBOS.step(name="finish")
    async def finish(turn_id: int) -> None:
        if not pool:
            pool.append(AsyncConnectionPool(url, min_size=1, max_size=TURNS, open=False))
            await pool[0].open()
        async with pool[0].connection() as connection:
            await connection.execute("INSERT INTO finished VALUES (%s)", (turn_id,))

    @DBOS.workflow(name="turn")
    async def turn(turn_id: int) -> None:
        for phase in PHASES:
            await step(turn_id, phase)
        await finish(turn_id)

    DBOS(
        config={
            "name": "bench",
            "system_database_url": _sqlalchemy(url),
            "executor_id": name,
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    DBOS.register_queue("turns", worker_concurrency=TURNS, polling_interval_sec=POLLING_S)
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    ENGINE, URL, NAME = sys.argv[1:4]
    {"procrastinate": procrastinate_worker, "dbos-steps": dbos_worker}[ENGINE](URL, NAME)
