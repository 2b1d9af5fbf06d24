"""The shared mode with all that goes wrong with it: does every turn come to its one end?

    python -m tests.shared.acceptance [--questions 1000] [--kills 20] [--output FILE]

One PostgreSQL, two `serve`, four `worker` and a monitor, each a process with a home of its own, get
questions over HTTP. Meanwhile workers and services are killed (-9), the database crashes and comes
back, the model is away until some turns have failed and `retry --all` lets them go on, and all
programs are replaced, one after the other, by a version that writes a newer journal. Then every
journal and the queue are checked. It ends with 1 if anything is not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pexpect
import psycopg

from interventions.entry import is_open, turns_of
from interventions.queue import queue_at
from tests import forked
from tests.answers import DRAFT
from tests.servers.model_server import Connection, ModelServer, answer, status
from tests.servers.postgres import crashed, new_database, postgres_server
from unified_flow.turns.events import VERSION

ROOT = Path(__file__).parents[2]
VARIABLE = "FLOW_DATABASE_URL"
WORKERS, SERVICES, TURNS, CLIENTS = 4, 2, 4, 24
MODEL_S = 0.3  # for one draft
PATIENCE_S = 120.0
DOCUMENT = (
    "# Robots\n\n## Topics\n\nA topic is a named bus over which nodes exchange messages.\n\n"
    "## Services\n\nA service is a remote procedure call between two nodes.\n"
)
# How often a turn completes each phase: its small model leaves all but the draft to rules.
COMPLETED = dict.fromkeys(
    (
        "query_analyzer",
        "reflection",
        "context_gatherer",
        "coordinator",
        "synthesis",
        "validation",
        "save",
    ),
    1,
) | {"planner": 2}

# What explains a turn that did not come to its end.
TURN = ("turn_id", "status", "live", "run", "followers", "worker_id", "journal_version", "lines")
EVENT = ("at", "event", "phase", "version", "runner", "reason", "error_type", "error_message")
ENTRY = ("id", "phase", "error_type", "error_message", "turn_id", "turns", "last_seen")
SHOWN = 10
UNFINISHED = (
    "SELECT workflow_uuid, status, executor_id, queue_name FROM dbos.workflow_status"
    " WHERE status NOT IN ('SUCCESS', 'CANCELLED')"
)


class AcceptanceError(Exception):
    """What should have happened did not, in time."""


def until(condition: Callable[[], object], what: str) -> None:
    ends_at = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > ends_at:
            raise AcceptanceError(f"not within {PATIENCE_S:g} s: {what}")
        time.sleep(0.05)


@dataclass
class Program:
    """A process of ours, which can begin again with the same home; `source` is the folder of the
    version that it runs."""

    home: Path
    words: list[str]
    source: Path = ROOT
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        with (self.home / "stderr.txt").open("a") as errors:
            begun = forked.Process if self.source == ROOT else subprocess.Popen
            process = begun(
                [sys.executable, "-m", "unified_flow", *self.words, "--home", str(self.home)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=self.home,
                env=os.environ | {"PYTHONPATH": str(self.source)},
            )
        assert process.stdout is not None
        self.process = process
        if not process.stdout.readline():
            raise AcceptanceError(
                f"{self.words[0]} ended: {(self.home / 'stderr.txt').read_text()}"
            )

    def end(self, how: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(how)
            process.wait(PATIENCE_S)
            assert process.stdout is not None
            process.stdout.close()


class Clients:
    """Ask every question of one of the services, and again, as a proxy does, where one is away."""

    def __init__(self, urls: list[str], questions: int) -> None:
        self._urls = urls
        self._left = iter(range(questions))
        self._count = min(CLIENTS, questions // 10)
        self._allowed = 0
        self.statuses: Counter[int] = Counter()
        self.repeated = 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    @property
    def done(self) -> int:
        return self.statuses.total()

    def start(self) -> None:
        self._thread.start()

    def wait(self, answers: int) -> None:
        """Until there are so many, with as many asked beyond them as there are clients."""
        self.allow(answers + self._count)
        until(lambda: self.done >= answers, f"{answers} answers")

    def allow_more(self, questions: int) -> None:
        self.allow(self._allowed + questions)

    def allow(self, questions: int) -> None:
        """So many may be asked in all."""
        self._allowed = max(self._allowed, questions)

    def join(self) -> None:
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            raise AcceptanceError("some questions got no answer")

    async def _run(self) -> None:
        async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
            await asyncio.gather(*[self._client(http) for _ in range(self._count)])

    async def _client(self, http: httpx.AsyncClient) -> None:
        for number in self._left:
            while number >= self._allowed:
                await asyncio.sleep(0.02)
            self.statuses[await self._ask(http, number)] += 1

    async def _ask(self, http: httpx.AsyncClient, number: int) -> int:
        body = {"question": f"What is a topic? {number}", "session_id": f"s{number}"}
        headers = {"X-Request-ID": f"q{number}"}
        ends_at, attempt = time.monotonic() + PATIENCE_S, number
        while time.monotonic() < ends_at:
            url = self._urls[attempt % len(self._urls)]
            attempt += 1
            try:
                response = await http.post(f"{url}/query", json=body, headers=headers)
            except httpx.TransportError:
                response = None
            if response is not None and response.status_code != 503:
                return response.status_code
            self.repeated += 1
            await asyncio.sleep(0.2)
        return 0


class Cluster:
    """The programs, and what is done to them."""

    def __init__(self, folder: Path, url: str, model: ModelServer, workers: int) -> None:
        self.folder = folder
        self.url = url
        self._model = model
        self._random = random.Random(21)
        self.services = [
            self._program(["serve", "--port", str(_free_port())]) for _ in range(SERVICES)
        ]
        words = ["worker", "--turns", str(TURNS), "--drain", "20"]
        self.workers = [self._program(words) for _ in range(workers)]
        self.office = self._home()
        self.source = ROOT
        self._retried = ""

    def _program(self, words: list[str]) -> Program:
        return Program(self._home(), words)

    def _home(self) -> Path:
        home = self.folder / f"home{len(list(self.folder.glob('home*')))}"
        home.mkdir()
        (home / "unified_flow.toml").write_text(
            f'model = "stub"\nbase_url = "{self._model.url}"\nsize = "small"\n'
            f'[shared]\ndatabase_url_env = "{VARIABLE}"\n'
            '[serve]\nrate_limit = "off"\nmax_turns = 1000\n'
        )
        return home

    @contextmanager
    def running(self) -> Iterator[None]:
        self.command("unified_flow", "shared", "migrate")
        (self.folder / "docs").mkdir()
        (self.folder / "docs" / "robots.md").write_text(DOCUMENT)
        self.command("unified_flow", "index", str(self.folder / "docs"))
        try:
            for program in [*self.workers, *self.services]:
                program.start()
            yield
        finally:
            for program in [*self.workers, *self.services]:
                program.end(signal.SIGKILL)

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{each.words[2]}" for each in self.services]

    def command(self, *words: str, code: int | None = 0) -> str:
        """A command in a home of its own, as from an engineer's machine."""
        run = forked.run if self.source == ROOT else subprocess.run
        ran = run(
            [sys.executable, "-m", *words, "--home", str(self.office)],
            capture_output=True,
            text=True,
            cwd=self.office,
            env=os.environ | {"PYTHONPATH": str(self.source)},
            timeout=PATIENCE_S * 2,
        )
        if code is not None and ran.returncode != code:
            raise AcceptanceError(f"{words} ended with {ran.returncode}: {ran.stderr}")
        return ran.stdout

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode()).fetchall()

    def describe(self) -> str:
        """How things stand, for whoever looks for the reason."""
        parts = [str(self.rows("SELECT status, live, count(*) FROM turns GROUP BY 1, 2"))]
        parts += map(str, self.rows(UNFINISHED))
        parts += map(str, self.rows("SELECT * FROM workers ORDER BY started_at"))
        left = self.rows(f"SELECT {', '.join(TURN)} FROM turns WHERE status != 'answered'")
        for row in left[:SHOWN]:
            parts.append(str(dict(zip(TURN, row, strict=True))))
            lines = self.rows(f"SELECT line FROM turn_events WHERE turn_id = {row[0]} ORDER BY seq")
            events = (json.loads(bytes(line)) for (line,) in lines)
            parts += [f"    {dict((k, e[k]) for k in EVENT if k in e)}" for e in events]
        opened = (entry for entry in queue_at(self.office).entries() if is_open(entry))
        parts += [str({name: entry.get(name) for name in ENTRY}) for entry in opened]
        parts.append(f"the last retry: {self._retried}")
        for errors in self.folder.glob("home*/stderr.txt"):
            parts.append(f"{errors.parent.name}: {errors.read_text()[-2000:]}")
        return "\n".join(parts)

    # What goes wrong

    def kill_worker(self) -> None:
        self._kill(self.workers)

    def kill_service(self) -> None:
        self._kill(self.services)

    def _kill(self, programs: list[Program]) -> None:
        victim = self._random.choice(programs)
        victim.end(signal.SIGKILL)
        victim.start()

    def crash_database(self) -> None:
        with crashed(self.url):
            time.sleep(1.0)

    def model_outage(self, failures: int, ask: Callable[[], None]) -> None:
        """Until so many turns have failed; then they go on."""
        self._model.script = {"synthesis": status(500)}
        ask()
        until(lambda: self._failed() >= failures, f"{failures} turns have failed")
        self._model.script = {"synthesis": _draft}
        self.retry_all()

    def _failed(self) -> int:
        return int(self.rows("SELECT count(*) FROM turns WHERE status = 'failed'")[0][0])

    def retry_all(self) -> None:
        """Until nothing is open; a retried turn may fail once more while the model comes back."""
        ends_at = time.monotonic() + PATIENCE_S
        while entries := json.loads(self.command("interventions", "list", "--json"))[
            "interventions"
        ]:
            if time.monotonic() > ends_at:
                raise AcceptanceError(f"{len(entries)} interventions stay open")
            words = ("interventions", "retry", entries[0]["id"], "--all", "--yes", "--json")
            self._retried = self.command(*words, code=None)

    def upgrade(self, clients: Clients) -> None:
        """Each program ends in good order, workers first, and the newer version takes its place."""
        source = _newer_version(self.folder / "newer")
        for program in [*self.workers, *self.services]:
            clients.allow_more(1)
            if program is self.services[0]:  # asked of the older version, run by the newer
                clients.wait(clients.done + 1)
            program.end(signal.SIGTERM)
            program.source = source
            program.start()
        self.source = source


def _draft(connection: Connection) -> None:
    time.sleep(MODEL_S)
    answer(DRAFT)(connection)


def _free_port() -> int:
    """None that a connection of another process may get while its service begins again."""
    while True:
        port = random.randrange(10_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _newer_version(folder: Path) -> Path:
    """A copy of the program that writes the next version of the journal."""
    for package in ("unified_flow", "interventions", "monitor"):
        shutil.copytree(ROOT / package, folder / package)  # with what is compiled already
    for name, old, new in (
        ("events.py", rf"^VERSION = {VERSION}$", f"VERSION = {VERSION + 1}"),
        ("lines.py", r"^UPCASTERS(.*)\{$", rf"UPCASTERS\1{{\n    {VERSION}: _unchanged,"),
    ):
        file = folder / "unified_flow/turns" / name
        text, changed = re.subn(old, new, file.read_text(), flags=re.MULTILINE)
        assert changed == 1, name
        file.write_text(text)
    return folder


@contextmanager
def _monitor(cluster: Cluster) -> Iterator[Any]:
    """In a terminal of its own; what it shows is in `logfile_read`."""
    words = ["-m", "monitor", "--home", str(cluster.office)]
    with (cluster.folder / "monitor.txt").open("w") as shown:
        screen = pexpect.spawn(
            sys.executable, words, dimensions=(40, 120), encoding="utf-8", timeout=None,
            env=os.environ | {"TERM": "xterm-256color"},
        )  # fmt: skip
        screen.logfile_read = shown
        reader = threading.Thread(target=screen.expect, args=[pexpect.EOF], daemon=True)
        reader.start()
        try:
            yield screen
        finally:
            screen.terminate(force=True)
            reader.join()


# The run


@dataclass
class Report:
    lines: list[str] = field(default_factory=list)
    ok: bool = True

    def say(self, line: str) -> None:
        self.lines.append(line)
        print(line, flush=True)

    def check(self, what: str, wrong: object) -> None:
        """`wrong` is what speaks against it; nothing is well."""
        self.ok = self.ok and not wrong
        self.say(f"{'NOT' if wrong else 'ok ':4} {what}{f': {wrong}' if wrong else ''}")


def plan(questions: int, kills: int) -> list[tuple[int, str]]:
    """(answers after which it happens, what happens), in order. Services are killed before the
    model is away: a question that is asked again after its turn has failed is a new turn."""
    services = kills // 5
    early = [(questions * (n + 1) // (2 * services + 2), "kill_service") for n in range(services)]
    workers = [
        (questions * (n + 1) // (kills - services + 1), "kill_worker")
        for n in range(kills - services)
    ]
    rest = [(0.4, "crash_database"), (0.6, "model_outage"), (0.75, "upgrade")]
    return sorted([*early, *workers, *((int(questions * at), what) for at, what in rest)])


def run(questions: int, kills: int, workers: int = WORKERS) -> Report:
    report = Report()
    report.say(f"$ python -m tests.shared.acceptance --questions {questions} --kills {kills}")
    with ExitStack() as stack:
        model = stack.enter_context(ModelServer({"synthesis": _draft}))
        server = stack.enter_context(postgres_server(durable=True))
        url = stack.enter_context(new_database(server))
        os.environ[VARIABLE] = url
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="acceptance-")))
        cluster = Cluster(folder, url, model, workers)
        stack.enter_context(cluster.running())
        monitor = stack.enter_context(_monitor(cluster))
        try:
            _drive(cluster, questions, kills, report)
            check(cluster, questions, report)
            if not report.ok:
                report.say(cluster.describe())
        except AcceptanceError as exc:
            report.check("it goes on", str(exc))
            report.say(cluster.describe())
        report.check("the monitor is still there", not monitor.isalive())
        shown = (folder / "monitor.txt").read_text()
        report.check("and has shown the outage", "synthesis" not in shown)
    return report


def _drive(cluster: Cluster, questions: int, kills: int, report: Report) -> None:
    clients, started = Clients(cluster.urls, questions), time.monotonic()
    happened: Counter[str] = Counter()
    clients.start()
    for answers, what in plan(questions, kills):
        clients.wait(answers)
        begun = time.monotonic()
        if what == "model_outage":
            failures = max(5, questions // 50)
            cluster.model_outage(failures, partial(clients.allow_more, failures))
        elif what == "upgrade":
            cluster.upgrade(clients)
        else:
            getattr(cluster, what)()
        happened[what] += 1
        if not what.startswith("kill"):
            report.say(f"     {what} after {answers} answers, {time.monotonic() - begun:.1f} s")
    clients.allow(questions)
    clients.join()
    until(lambda: not cluster.rows("SELECT 1 FROM turns WHERE live"), "no turn is live")
    cluster.retry_all()
    until(lambda: not cluster.rows(UNFINISHED), "no run is left in DBOS")
    for program in [*cluster.workers, *cluster.services]:
        program.end(signal.SIGTERM)
    took_s = time.monotonic() - started
    report.say(f"     {questions} questions in {took_s:.0f} s; {dict(happened)}")
    report.say(f"     HTTP: {dict(clients.statuses)}, {clients.repeated} sent again")


def check(cluster: Cluster, questions: int, report: Report) -> None:
    turns: dict[int, list[dict[str, Any]]] = {}
    for number, line in cluster.rows("SELECT turn_id, line FROM turn_events ORDER BY turn_id, seq"):
        turns.setdefault(number, []).append(json.loads(bytes(line)))
    events = Counter(
        event["event"] for lines in turns.values() for event in lines if not event.get("dispatched")
    )
    asked = Counter(lines[0]["request_id"] for lines in turns.values())
    report.say(
        f"     {len(turns)} turns; {events['turn_taken_over']} times taken over, "
        f"{events['phase_failed']} failures, {events['turn_resumed']} resumptions"
    )
    report.check(
        "every question is one turn",
        [name for name in (f"q{n}" for n in range(questions)) if asked[name] != 1],
    )
    report.check("no other turn", sorted(asked.keys() - {f"q{n}" for n in range(questions)}))
    wrong = cluster.rows(
        "SELECT turn_id, status FROM turns WHERE status IS DISTINCT FROM 'answered'"
    )
    report.check("every turn is answered in the end", wrong)

    def those(condition: Callable[[list[dict[str, Any]]], bool]) -> list[int]:
        return [number for number, lines in turns.items() if condition(lines)]

    def count(lines: list[dict[str, Any]], name: str) -> int:
        return sum(event["event"] == name for event in lines)

    report.check("it ends once", those(lambda lines: count(lines, "turn_completed") != 1))
    report.check(
        "it fails at most once, and then a person lets it go on",
        those(lambda lines: not 1 >= count(lines, "phase_failed") == count(lines, "turn_resumed")),
    )
    report.check(
        "no completed phase is repeated",
        those(
            lambda lines: (
                Counter(e["phase"] for e in lines if e["event"] == "phase_completed") != COMPLETED
            )
        ),
    )
    calls = {number: calls_in(lines) for number, lines in turns.items()}
    usual, _ = Counter(calls.values()).most_common(1)[0]
    report.check(
        "nor a recorded call of a model or a tool",
        [number for number, made in calls.items() if made != usual],
    )
    versions = Counter(
        tuple(sorted({event["version"] for event in lines if "version" in event}))
        for lines in turns.values()
    )
    report.say(f"     journal versions of the turns: {dict(versions)}")
    report.check("some were begun by one version and ended by the other", len(versions) < 2)
    _check_queue(cluster, those(lambda lines: count(lines, "phase_failed") > 0), report)


def calls_in(lines: list[dict[str, Any]]) -> tuple[str, ...]:
    """Of models and tools, that were answered, by phase."""
    answered = ("model_called", "tool_completed")
    return tuple(sorted(f"{e['event']} {e['phase']}" for e in lines if e["event"] in answered))


def _check_queue(cluster: Cluster, failed: list[int], report: Report) -> None:
    queue = queue_at(cluster.office)
    entries = {entry["id"]: entry for entry in [*queue.closed(), *queue.entries()]}.values()
    report.say(f"     {len(entries)} interventions")
    told = Counter(turn for entry in entries for turn in turns_of(entry))
    report.check(
        "every failed turn is in one intervention",
        sorted(turn for turn in {*failed, *told} if told[turn] != (turn in failed)),
    )
    report.check("none is open", [entry["id"] for entry in entries if is_open(entry)])
    report.check(
        "every one is resolved, and verified",
        [entry["id"] for entry in entries if not entry["resolutions"][-1].get("verified")],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    report = run(options.questions, options.kills)
    if options.output is not None:
        options.output.write_text("\n".join(report.lines) + "\n")
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
