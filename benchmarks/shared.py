"""What the shared mode costs, on phases that wait 100 ms, with four turns at once a worker.

    python benchmarks/shared.py [PART ...] [--peers]

PARTS are scale, takeover, idle, puts and backlog; all of them without any. It starts a PostgreSQL
with fsync and real worker processes, all on this machine, so only ratios can be compared between
machines. `--peers` measures Procrastinate, and DBOS with a step a phase, beside it
(`benchmarks/shared_peers.py`, pip install procrastinate). Each line ends with its target.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import psycopg
import shared_peers
from shared_peers import PHASES, POLLING_S, TURNS, WAIT_S

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent / "queue"))

import contention
from turn import beginning, idle_phases

from tests.servers.postgres import new_database, postgres_server
from unified_flow.engine.phase_table import BY_NAME
from unified_flow.flow import UnifiedFlow
from unified_flow.shared.turn_lease import PostgresLease
from unified_flow.turns.events import TurnStarted
from unified_flow.turns.ledger import Ledger

VARIABLE = "FLOW_DATABASE_URL"
OURS = "unified-flow"
ALONE_S = len(PHASES) * WAIT_S
TICKS = os.sysconf("SC_CLK_TCK")
PARTS = ("scale", "takeover", "idle", "puts", "backlog")


# Workers


def worker(home: str, wait_s: float) -> None:
    """`unified-flow worker`, whose phases do nothing but wait; the planner's second visit does not,
    so that a turn waits eight times."""
    from unified_flow.__main__ import main

    phases = idle_phases()
    for phase in phases.values():
        phase.run = _waiting(phase.NAME, phase.run, wait_s)
    BY_NAME.update(phases)
    sys.argv = ["unified-flow", "worker", "--turns", str(TURNS), "--home", home]
    main()


def _waiting(name: str, run: Callable[..., Any], wait_s: float) -> Callable[..., Any]:
    async def waiting(turn: Any, context: Any) -> Any:
        if turn.visit_number(name) == 1:
            await asyncio.sleep(wait_s)
        return await run(turn, context)

    return waiting


@dataclass
class Fleet:
    """Workers of one engine on one database."""

    engine: str
    url: str
    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, count: int, wait_s: float = WAIT_S) -> None:
        started = [self._started(wait_s) for _ in range(count)]
        for process in started:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise SystemExit("a worker ended: see its stderr.txt")
        self.processes += started

    def _started(self, wait_s: float) -> subprocess.Popen[str]:
        number = len(list(self.folder.iterdir()))
        home = self.folder / f"worker{number}"
        home.mkdir()
        here = Path(__file__).parent
        if self.engine == OURS:
            command = [str(here / "shared.py"), "--worker", str(home), str(wait_s)]
        else:
            command = [str(here / "shared_peers.py"), self.engine, self.url, home.name]
        errors = (home / "stderr.txt").open("w")
        return subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=errors, text=True
        )

    def kill(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        self.processes.remove(process)

    def stop(self) -> None:
        for process in list(self.processes):
            self.kill(process)

    def cpu_s(self) -> float:
        total = 0
        for process in self.processes:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def memory_mb(self) -> list[float]:
        return [
            int(Path(f"/proc/{p.pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024
            for p in self.processes
        ]


class Client:
    """Puts turns in the queue of an engine, and knows how many are done."""

    def __init__(self, fleet: Fleet) -> None:
        self.ours = fleet.engine == OURS
        self.connection = psycopg.connect(fleet.url, autocommit=True)
        self._asked = self._looked = 0
        if self.ours:
            home = fleet.folder / "client"
            home.mkdir(exist_ok=True)
            self._flow = UnifiedFlow.from_config(home)
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True).start()
        else:
            self._enqueue = shared_peers.enqueuer(fleet.engine, fleet.url)

    def ask(self) -> None:
        """Does not wait for the answer."""
        self._asked += 1
        if self.ours:
            asyncio.run_coroutine_threadsafe(self._dispatched(), self._loop).result()
        else:
            self._enqueue(self._asked)

    async def _dispatched(self) -> None:
        ledger = await Ledger.create(self._flow.services.turns, _first)
        assert isinstance(ledger.lease, PostgresLease)
        await ledger.lease.dispatch(streamed=False)

    def answered(self) -> None:
        """Ask, and wait for the answer, as whoever follows the turn gets it."""
        if self.ours:
            self._asked += 1
            turn = self._flow.process(f"s{self._asked}", "q")
            asyncio.run_coroutine_threadsafe(turn, self._loop).result()
        else:
            done = self.done()
            self.ask()
            self.wait(done + 1, pause_s=0.005)

    def done(self) -> int:
        self._looked += 1
        table = "turns WHERE status = 'answered'" if self.ours else "finished"
        return self._one(f"SELECT count(*) FROM {table}")

    def wait(self, count: int, pause_s: float = 0.05) -> None:
        while self.done() < count:
            time.sleep(pause_s)

    def transactions(self) -> int:
        """Of all others so far; the server has them a second later."""
        time.sleep(1.2)
        self.connection.execute("SELECT pg_stat_clear_snapshot()")
        return (
            self._one(
                "SELECT xact_commit + xact_rollback FROM pg_stat_database"
                " WHERE datname = current_database()"
            )
            - self._looked
        )

    def wal_bytes(self) -> int:
        return self._one("SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint")

    def _one(self, query: str) -> int:
        row = self.connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        self.connection.close()
        if self.ours:
            self._loop.call_soon_threadsafe(self._loop.stop)


def _first(turn_id: int) -> TurnStarted:
    told = {"request_id": f"r{turn_id}", "session_id": f"s{turn_id}", "user_id": f"u{turn_id % 10}"}
    return beginning(turn_id).model_copy(update=told)


@contextmanager
def fleet_of(server: str, engine: str) -> Iterator[Fleet]:
    """On a new database, without workers yet."""
    with new_database(server) as url, tempfile.TemporaryDirectory(prefix="shared-") as folder:
        if engine == OURS:
            os.environ |= {VARIABLE: url, "UNIFIED_FLOW_SHARED__DATABASE_URL_ENV": VARIABLE}
            command = [sys.executable, "-m", "unified_flow", "shared", "migrate", "--home", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        else:
            shared_peers.create(engine, url)
        fleet = Fleet(engine, url, Path(folder))
        try:
            yield fleet
        finally:
            fleet.stop()


@contextmanager
def polling(seconds: float) -> Iterator[None]:
    """Of our workers that start meanwhile, instead of the default."""
    os.environ["UNIFIED_FLOW_SHARED__POLLING_S"] = str(seconds)
    try:
        yield
    finally:
        del os.environ["UNIFIED_FLOW_SHARED__POLLING_S"]


# What is measured


def line(name: str, value: str, target: str = "", ok: bool = True) -> None:
    verdict = f"{target:<26} {'ok' if ok else 'MISSED'}" if target else ""
    print(f"{name:<58} {value:>18}   {verdict}".rstrip(), flush=True)


def scale(server: str, engine: str) -> None:
    """Turns a second with one and with four workers, what each turn takes of worker and database,
    and what a turn waits for besides its phases if nothing else happens."""
    with fleet_of(server, engine) as fleet, polling(POLLING_S):
        rates = {}
        client = Client(fleet)
        for workers in (1, 4):
            fleet.start(workers - len(fleet.processes))
            client.ask()
            client.wait(done := client.done() + 1)
            turns = 30 * workers
            before, cpu_before = client.transactions(), fleet.cpu_s()
            wal_before, started = client.wal_bytes(), perf_counter()
            for _ in range(turns):
                client.ask()
            client.wait(done + turns)
            rates[workers] = turns / (perf_counter() - started)
            cpu_ms = 1000 * (fleet.cpu_s() - cpu_before) / turns
            wal_kb = (client.wal_bytes() - wal_before) / turns / 1000
            transactions = (client.transactions() - before) / turns
            line(f"{engine}: {workers} workers", f"{rates[workers]:.1f} turns/s")
            if workers == 1:
                waits = sorted(_alone(client) for _ in range(15))
                p50 = 1000 * statistics.median(waits)
                _line(engine, "overhead of a turn alone, p50", f"{p50:.0f} ms", 150, p50)
        client.close()
        ratio = rates[4] / rates[1]
        _line(engine, "4 workers / 1", f"{ratio:.2f}", 3.5, ratio, at_least=True)
        _line(engine, "transactions a turn", f"{transactions:.1f}", 50, transactions)
        line(f"{engine}: write-ahead log a turn", f"{wal_kb:.0f} kB")
        _line(engine, "CPU of a worker a turn", f"{cpu_ms:.1f} ms", 25, cpu_ms)


def _line(
    engine: str, name: str, shown: str, target: float, value: float, at_least: bool = False
) -> None:
    """With the target, which is ours alone."""
    if engine != OURS:
        line(f"{engine}: {name}", shown)
        return
    ok = value >= target if at_least else value <= target
    line(f"{engine}: {name}", shown, f"at {'least' if at_least else 'most'} {target:g}", ok)


def _alone(client: Client) -> float:
    """Seconds that a turn took beyond its phases."""
    started = perf_counter()
    client.answered()
    took_s = perf_counter() - started
    time.sleep(0.3)
    return took_s - ALONE_S


def takeover(server: str, engine: str) -> None:
    """How long the turns of a worker that is killed, or frozen, wait for another one."""
    with fleet_of(server, engine) as fleet:
        client = Client(fleet)
        killed = [_taken_over(fleet, client, signal.SIGKILL) for _ in range(10)]
        p95 = sorted(killed)[-1]
        _line(engine, "takeover after kill -9, longest of 10", f"{p95:.2f} s", 2, p95)
        line(f"{engine}: takeover after kill -9, p50", f"{statistics.median(killed):.2f} s")
        frozen = _taken_over(fleet, client, signal.SIGSTOP)
        _line(engine, "takeover of a frozen worker", f"{frozen:.1f} s", 15, frozen)
        client.close()


def _taken_over(fleet: Fleet, client: Client, how: signal.Signals) -> float:
    """Seconds until the last turn of the worker that had most is another's."""
    fleet.start(2 - len(fleet.processes), wait_s=0.5)
    for _ in range(TURNS):
        client.ask()
    running = "SELECT worker_id, turn_id FROM turns WHERE live AND status = 'running'"
    while len(rows := client.connection.execute(running).fetchall()) < TURNS:
        time.sleep(0.02)
    victim = Counter(worker_id for worker_id, _ in rows).most_common(1)[0][0]
    turns = [turn_id for worker_id, turn_id in rows if worker_id == victim]
    process = next(p for p in fleet.processes if f"-{p.pid}-" in victim)
    process.send_signal(how)
    started = perf_counter()
    left = "SELECT count(*) FROM turns WHERE turn_id = ANY(%s) AND worker_id = %s AND live"
    while client.connection.execute(left, (turns, victim)).fetchone() != (0,):
        time.sleep(0.01)
    took_s = perf_counter() - started
    fleet.kill(process)
    while client.connection.execute("SELECT 1 FROM turns WHERE live LIMIT 1").fetchone():
        time.sleep(0.05)
    return took_s


def backlog(server: str, engine: str) -> None:
    """Ten thousand turns that wait: how long a client waits to add one, whether they begin in the
    order in which they came, and what a worker needs of memory."""
    count, watched = 10_000, 400
    with fleet_of(server, engine) as fleet:
        client = Client(fleet)
        took_ms = []
        for _ in range(count):
            started = perf_counter()
            client.ask()
            took_ms.append(1000 * (perf_counter() - started))
        p99 = sorted(took_ms)[int(0.99 * count)]
        _line(engine, f"enqueue of {count:,} turns, p99", f"{p99:.1f} ms", 30, p99)
        fleet.start(4, wait_s=0.02)
        client.wait(50)
        before = max(fleet.memory_mb())
        client.wait(watched)
        after = max(fleet.memory_mb())
        _line(engine, "memory of a worker", f"{before:.0f}, {after:.0f} MB", 1.1, after / before)
        begun = [number for number, in client.connection.execute(
            "SELECT turn_id FROM turn_events WHERE seq = 2 ORDER BY xmin::text::bigint, turn_id"
        ).fetchall()]  # fmt: skip
        most = max(abs(place - number) for place, number in enumerate(begun[:watched], 1))
        _line(engine, "places out of order at most", str(most), 4 * TURNS, most)
        client.close()


def idle(server: str, engine: str) -> None:
    """What four workers without work cost, a second."""
    with fleet_of(server, engine) as fleet:
        fleet.start(4)
        client = Client(fleet)
        time.sleep(3)
        before, cpu_before, started = client.transactions(), fleet.cpu_s(), perf_counter()
        time.sleep(15)
        cpu_ms = 1000 * (fleet.cpu_s() - cpu_before) / 4
        took_s = perf_counter() - started
        rate = (client.transactions() - before) / (perf_counter() - started)
        _line(engine, "idle, 4 workers: transactions a second", f"{rate:.1f}", 100, rate)
        _line(engine, "idle: CPU a second, each", f"{cpu_ms / took_s:.1f} ms", 30, cpu_ms / took_s)
        connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        line(f"{engine}: connections of 4 workers", str(client._one(connections) - 1))
        client.close()


def puts(server: str, engine: str) -> None:
    """Failures a second that eight processes put at once, against the file on the same disk."""
    with fleet_of(server, engine) as fleet:
        rates: dict[str, list[float]] = {}
        for name in ("file", "table", "file", "table"):
            home = fleet.folder / f"{name}{len(rates)}"
            home.mkdir(exist_ok=True)
            variable = VARIABLE if name == "table" else ""
            os.environ["UNIFIED_FLOW_SHARED__DATABASE_URL_ENV"] = variable
            counted = sum(map(len, contention.run(home, contention.PROCESSES, 4.0)))
            rates.setdefault(name, []).append(counted / 4.0)
        table, file = (statistics.mean(rates[name]) for name in ("table", "file"))
        line(f"puts a second, {contention.PROCESSES} processes", f"{table:.0f}, file {file:.0f}")
        _line(
            engine, "puts a second, table / file", f"{table / file:.2f}", 0.55, table / file, True
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker[0], float(options.worker[1]))
        return
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}")
    engines = [OURS, *(("procrastinate", "dbos-steps") if options.peers else ())]
    with postgres_server(durable=True) as server:
        for part in options.parts or PARTS:
            for engine in engines if part in ("scale", "idle") else [OURS]:
                globals()[part](server, engine)


if __name__ == "__main__":
    main()
