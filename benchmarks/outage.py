"""An outage of the model server, over HTTP: is every turn that it stopped done once it is mended?

    python benchmarks/outage.py [--requests N] [--clients N] [--jobs N] [--full]

`serve` on loopback gets N questions while nothing listens where its model should be; then the model
is there, and one command lets every turn go on. With `--full` the queue is full of other failures
meanwhile, so that all of the outage is in the emergency log until there is room again.

It ends with 1 unless each question was answered by the model exactly once. What it prints of memory
is the peak of each process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from serving import DOCUMENT, head_of, phase_of, process, reply_to

from interventions import InterventionQueue, InterventionRequest
from interventions.entry import Entry, is_open, turns_of
from interventions.home import queue_file

SETTINGS = 'size = "small"\n[serve]\nrate_limit = "off"\nmax_turns = 1000\n'
NUMBER = re.compile(rb"What is a topic\? (\d+)")


class Model(threading.Thread):
    """Answers every phase well, once it is started; `asked` counts the drafts of each question."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.asked: Counter[int] = Counter()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = int(taken.getsockname()[1])

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, backlog=1024)
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await head_of(reader):
            body = await reader.readexactly(int(head["content-length"]))
            if phase_of(body) == "synthesis" and (found := NUMBER.search(body)):
                self.asked[int(found[1])] += 1
            writer.write(reply_to(body))
        writer.close()


async def ask(port: int, requests: int, clients: int) -> Counter[bytes]:
    """Every question once, each in no session; how many got each status."""
    statuses: Counter[bytes] = Counter()
    left = iter(range(requests))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in left:
            body = json.dumps({"question": f"What is a topic? {number}"}).encode()
            head = f"POST /query HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
            writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + body)
            answered = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(
                int(answered.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            )
            statuses[answered.split()[1]] += 1
        writer.close()

    await asyncio.gather(*[client() for _ in range(clients)])
    return statuses


@dataclass
class Ran:
    out: str
    took_s: float
    peak_mb: float
    code: int


def run(*words: str) -> Ran:
    """A command of ours as a process; its peak needs no other child that was larger."""
    started = perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen([sys.executable, "-m", *words], stdout=out, stderr=sys.stderr)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    return Ran(text, perf_counter() - started, usage.ru_maxrss / 1024, child.returncode)


def peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def size_mb(*paths: Path) -> float:
    files = (f for path in paths for f in (path.rglob("*") if path.is_dir() else [path]))
    return sum(file.stat().st_size for file in files if file.is_file()) / 2**20


def fill(queue: InterventionQueue) -> list[str]:
    """As many other failures as the queue holds."""
    for number in range(queue.limits.max_size):
        queue.put(
            InterventionRequest(
                type="error",
                severity="medium",
                phase="save",
                error_type=f"Error{'ABCDE'[number % 5]}{number // 5}",
                error_message="no room",
                session_id=f"other {number}",
                turn_id=0,
            )
        )
    return [entry["id"] for entry in queue.entries()]


def waiting(queue: InterventionQueue) -> list[Entry]:
    return [entry for entry in queue.entries() if is_open(entry)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outage-") as folder:
        sys.exit(0 if measure(Path(folder), options) else 1)


def measure(folder: Path, options: argparse.Namespace) -> bool:
    count = options.requests
    home, docs = folder / "home", folder / "docs"
    docs.mkdir()
    home.mkdir()
    (docs / "robots.md").write_text(DOCUMENT)
    (home / "unified_flow.toml").write_text(SETTINGS)
    queue, at = InterventionQueue(home), ("--home", str(home))
    others = fill(queue) if options.full else []
    model = Model()
    flow = ["-m", "unified_flow", "serve", "--port", "0", *at, "--docs", str(docs)]
    served = ["--model", "stub", "--base-url", f"http://127.0.0.1:{model.port}/v1"]
    with process(sys.executable, *flow, *served) as (pid, port):
        before = peak_mb(pid)
        started = perf_counter()
        statuses = asyncio.run(ask(port, count, options.clients))
        took_s = perf_counter() - started
        told = ", ".join(f"{n} x {status.decode()}" for status, n in statuses.items())
        print(f"asked           {took_s:7.1f} s   {count / took_s:.0f} a second: {told}")
        print(f"serve           {peak_mb(pid):7.0f} MB  ({before:.0f} before the first)")
        turns = home / "shared_state/turns"
        print(f"turns           {size_mb(turns):7.1f} MB  logs {size_mb(home / 'logs'):.1f} MB")
        kept = queue_file(home)
        print(f"queue           {size_mb(kept) * 1024:7.0f} KB  {len(waiting(queue))} open")
        listed = run("unified_flow", "turns", "list", "--limit", "0", "--jsonl", *at)
        say("turns list", listed, f"{listed.out.count(chr(10))} turns")
        if options.full:
            say("dismiss", run("interventions", "dismiss", *others, "--yes", *at), "the others")
            say("drain", run("interventions", "drain", *at), "")
        entries = waiting(queue)
        known = {turn for entry in entries for turn in turns_of(entry)}
        print(f"known           {len(known):7} turns in {len(entries)} entries")
        model.start()
        jobs = ("--all", "--yes", "--json", "--jobs", str(options.jobs))
        retried = run("interventions", "retry", entries[0]["id"], *jobs, *at)
        outcome = json.loads(retried.out)
        counted = {name: len(outcome[name]) for name in ("passed", "failed", "skipped")}
        say("retry --all", retried, f"{count / retried.took_s:.0f} a second: {counted}")
        left = len(list(turns.glob("turn_*")))
        print(f"left            {left:7} turns, {len(waiting(queue))} open")
    twice = sum(n > 1 for n in model.asked.values())
    lost = count - len(model.asked)
    print(f"lost {lost}, done twice {twice}")
    return not (lost or twice or left or waiting(queue)) and counted["passed"] == count


def say(name: str, ran: Ran, more: str) -> None:
    print(f"{name:<15} {ran.took_s:7.1f} s   {ran.peak_mb:.0f} MB  {more}", flush=True)


if __name__ == "__main__":
    main()
