"""`unified-flow worker` and `workers`: who runs the turns of shared mode."""

from __future__ import annotations

import os
import signal
import threading
from time import sleep
from typing import Annotated

from typer import Option

from interventions.cli.terminal import note, say
from interventions.home import find_home
from unified_flow.cli import options
from unified_flow.cli.shared import database_of
from unified_flow.cli.terminal import counted, say_object

AGAIN_S = 1.0


def worker(
    turns: Annotated[
        int | None, Option(min=1, help="At once, in every worker; the one started last decides.")
    ] = None,
    drain: Annotated[
        float, Option(min=0, help="Seconds that turns get to end after SIGTERM.")
    ] = 30.0,
    home: options.Home = None,
) -> None:
    """Run the turns that others ask for, until SIGTERM or Ctrl-C.

    \b
    unified-flow worker
    unified-flow worker --turns 8 --drain 60

    After SIGTERM it begins no more; what has not ended by then, other workers take over.
    Settings: the table [shared]. It needs the extra `shared`.
    """
    database = database_of(home)
    from dataclasses import replace
    from functools import partial
    from math import inf

    from interventions.settings import SharedSettings, settings_of
    from unified_flow.engine.telemetry.logs import logged
    from unified_flow.lib.threads import wait_for
    from unified_flow.shared import workflows
    from unified_flow.shared.database_check import check_session
    from unified_flow.shared.presence import Presence, workers_of
    from unified_flow.shared.turn_store import PostgresTurnStore
    from unified_flow.turns.events import this_process
    from unified_flow.worker import Worker

    workers_of(database)  # DBOS would say at length that there are no tables
    check_session(database)
    place = find_home(home)
    settings = settings_of(place, SharedSettings)
    settings = replace(settings, turns_per_worker=turns or settings.turns_per_worker)
    database.patience_s = inf  # it has nothing better to do than to wait
    store = PostgresTurnStore(database)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with logged(place):
        of_turns = Worker.of(place, store)
        presence = Presence(
            database,
            str(this_process()),
            settings.turns_per_worker,
            partial(workflows.requeue, database),
            workflows.forget_ended,
        )
        take_no_more = workflows.begin_work(database, settings, of_turns.run)
        presence.begin()
        at_once = settings.turns_per_worker
        print(f"worker {database.program} takes turns, {at_once} at once", flush=True)
        while not ending.wait(AGAIN_S):
            pass  # a signal that comes just as a wait begins does not end it
        note(f"draining, for at most {drain:g} s")
        presence.draining = True
        # What still runs then goes on elsewhere: nothing of it may be journalled here.
        limit = threading.Timer(drain, os._exit, [0])
        limit.daemon = True
        limit.start()
        take_no_more()
        while of_turns.running:
            sleep(0.1)
        wait_for(of_turns.aclose())
        presence.end()
    os._exit(0)  # threads of DBOS may wait for what other workers do


def list_workers(home: options.Home = None, as_json: options.AsJson = False) -> None:
    """The workers that live, and the turns that each runs.

    \b
    unified-flow workers
    """
    database = database_of(home)
    from interventions.times import to_text
    from unified_flow.shared.presence import workers_of

    rows = workers_of(database)
    for row in rows:
        row |= {name: to_text(row[name]) for name in ("started_at", "seen_at")}
    if as_json:
        say_object({"workers": rows})
        return
    for row in rows:
        does = f"turns {', '.join(map(str, row['running']))}" if row["running"] else "idle"
        state = ", draining" if row["draining"] else ""
        say(f"{row['worker_id']}  {row['run_by']}, since {row['started_at']}: {does}{state}")
    say(counted(len(rows), "worker"))
