"""What serving costs: POST /query against a bare FastAPI endpoint with the same upstream calls.

    python benchmarks/serving.py [--clients N] [--seconds S] [--rounds N] [--size small]
        [--sessions]

A stub model on loopback takes 100 ms a call. The bare endpoint sends it, one after another, the
same requests as a turn, and answers; once with httpx as it comes (`bare`), once over the flow's
pools (`spread`, architecture/decisions, 8), which is the stricter measure. A service of each policy
and the bare ones take rounds; each client sends its next question as soon as it has an answer. All
processes share the machine, so only the ratios mean anything.

Every phase calls the model, six calls in all. With `--size small` rules
decide for five phases and one call remains.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
from pydantic import BaseModel

CALL_S = 0.1
MAX_RATIO = 1.5  # of p50 and p99
MAX_CPU_RATIO = 2.0
POLICIES = ("fail_fast", "graceful")
BARE = ("bare", "spread")
QUESTION = "What is a topic?"
DOCUMENT = (
    "# Robots\n\n## Topics\n\nA topic is a named bus over which nodes exchange messages.\n\n"
    "## Services\n\nA service is a remote procedure call between two nodes.\n"
)
REPLIES: dict[str, list[dict[str, Any]]] = {
    "query_analyzer": [
        {
            "resolved_query": QUESTION,
            "reference_resolution": {"status": "not_needed"},
            "query_type": "specific_content",
        }
    ],
    "reflection": [{"decision": "PROCEED", "confidence": 0.9}],
    "planner": [
        {
            "decision": "EXECUTE",
            "route": "coordinator",
            "tool_requests": [{"tool": "doc.search", "args": {"query": "topic"}}],
        },
        {"decision": "COMPLETE", "route": "synthesis"},
    ],
    "synthesis": [
        {
            "response": "A topic is a named bus.",
            "citations": [{"source": "docs/robots.md:5", "quote": "A topic is a named bus"}],
        }
    ],
    "validation": [
        {
            "decision": "APPROVE",
            "confidence": 0.9,
            "checks": {
                "claims_supported": True,
                "no_hallucinations": True,
                "query_addressed": True,
                "coherent_format": True,
            },
        }
    ],
}


# The stub model


async def stub(record: Path) -> None:
    """Answers each phase after CALL_S; the first turn's requests go into `record`, a line each."""
    recorded: list[str] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await head_of(reader):
            body = await reader.readexactly(int(head["content-length"]))
            if len(recorded) < sum(map(len, REPLIES.values())):
                recorded.append(body.decode())
                record.write_text("\n".join(recorded))
            await asyncio.sleep(CALL_S)
            writer.write(reply_to(body))
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def head_of(reader: asyncio.StreamReader) -> dict[str, str]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return {}
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if line)
    return {name.lower(): value.strip() for name, _, value in pairs}


def phase_of(body: bytes) -> str:
    # With blanks and without, so that older versions can be measured.
    return re.findall(rb'"json_schema": ?{"name": ?"(\w+)"', body)[-1].decode()


def reply_to(body: bytes) -> bytes:
    replies = REPLIES[phase_of(body)]
    # The planner runs twice; the second prompt has what the search found.
    content = replies[-1 if b"A topic is a named bus over" in body else 0]
    message = {"role": "assistant", "content": json.dumps(content)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    data = json.dumps({"object": "chat.completion", "choices": [choice]}).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
    return head.encode() + b"\r\n\r\n" + data


# The bare endpoint


class BareRequest(BaseModel):
    question: str


def bare(upstream: str, record: Path, *, spread: bool) -> None:
    import uvicorn
    from fastapi import FastAPI

    from unified_flow.servers.connection_pool import new_transport

    requests = [line.encode() for line in record.read_text().splitlines()]
    transport = new_transport(upstream) if spread else None
    client = httpx.AsyncClient(transport=transport, timeout=None)
    app = FastAPI()

    @app.post("/query")
    async def query(request: BareRequest) -> dict[str, Any]:
        answer: Any = None
        for content in requests:
            response = await client.post(
                f"{upstream}/chat/completions",
                content=content,
                headers={"content-type": "application/json"},
            )
            answer = json.loads(response.json()["choices"][0]["message"]["content"])
        return {"answer": answer, "question": request.question}

    config = uvicorn.Config(app, port=0, log_level="warning", access_log=False, backlog=1024)
    server = uvicorn.Server(config)

    async def run() -> None:
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        print(f"listening on http://127.0.0.1:{port}", flush=True)
        await serving

    asyncio.run(run())


# Load


@dataclass
class Measured:
    took_ms: list[float] = field(default_factory=list)
    wrong: int = 0
    cpu_s: float = 0.0

    @property
    def p50(self) -> float:
        return statistics.median(self.took_ms)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.took_ms, n=100)[98]

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_s / len(self.took_ms)


async def load(
    port: int, clients: int, seconds: float, measured: Measured, *, kept: bool = False
) -> None:
    """Each client on its own connection, which it keeps. No two questions are the same; with `kept`
    each begins a session."""
    head = f"POST /query HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json"
    until = perf_counter() + seconds

    def request() -> bytes:
        named = {"session_id": secrets.token_hex(6)} if kept else {}
        question = f"{QUESTION} I am k{secrets.token_hex(3)}."
        body = json.dumps({"question": question, **named}).encode()
        return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body

    async def client(number: int) -> None:
        await asyncio.sleep(number * 6 * CALL_S / clients)  # not all in step
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while perf_counter() < until:
            next_request = request()
            started = perf_counter()
            writer.write(next_request)
            answered = await reader.readuntil(b"\r\n\r\n")
            size = int(answered.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(size)
            measured.took_ms.append(1000 * (perf_counter() - started))
            measured.wrong += not answered.startswith(b"HTTP/1.1 200")
        writer.close()

    await asyncio.gather(*map(client, range(clients)))


def cpu_s(pid: int) -> float:
    """User and system time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def process(*command: str, **env: str) -> Iterator[tuple[int, int]]:
    """(pid, port) of a process that prints its port at the end of its first line."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}
    ) as started:
        assert started.stdout is not None
        try:
            yield started.pid, int(started.stdout.readline().split(":")[-1])
        finally:
            started.terminate()


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Measured]:
    docs, record, first = folder / "docs", folder / "asked.jsonl", folder / "turn.jsonl"
    docs.mkdir()
    (docs / "robots.md").write_text(DOCUMENT)
    me = str(Path(__file__).resolve())
    with ExitStack() as stack:
        _, upstream = stack.enter_context(process(sys.executable, me, "--stub", str(record)))
        url = f"http://127.0.0.1:{upstream}/v1"
        servers = {}
        for policy in POLICIES:
            home = _home(folder / policy, policy, options.size)
            flow = [sys.executable, "-m", "unified_flow", "serve", "--port", "0", "--home", home]
            ours = [*flow, "--docs", str(docs), "--model", "stub", "--base-url", url]
            servers[policy] = stack.enter_context(process(*ours))
            _warm(servers[policy][1])
            if not first.exists():
                record.rename(first)  # what one turn asks, however many calls that are
        for name in BARE:
            command = [sys.executable, me, f"--{name}", url, str(first)]
            servers[name] = stack.enter_context(process(*command))
            _warm(servers[name][1])
        measured = {name: Measured() for name in servers}
        for _ in range(options.rounds):
            for name, (pid, port) in servers.items():
                before = cpu_s(pid)
                kept = options.sessions and name in POLICIES
                loading = load(port, options.clients, options.seconds, measured[name], kept=kept)
                asyncio.run(loading)
                measured[name].cpu_s += cpu_s(pid) - before
    return measured


def _home(folder: Path, policy: str, size: str) -> str:
    folder.mkdir()
    settings = '[serve]\nrate_limit = "off"\nmax_turns = 1000\n'
    (folder / "unified_flow.toml").write_text(f'policy = "{policy}"\nsize = "{size}"\n{settings}')
    return str(folder)


def _warm(port: int) -> None:
    response = httpx.post(
        f"http://127.0.0.1:{port}/query", json={"question": QUESTION}, timeout=30.0
    )
    response.raise_for_status()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10.0, help="of one round of one server")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--size", choices=["large", "small"], default="large")
    parser.add_argument("--sessions", action="store_true", help="of turns that are kept")
    parser.add_argument("--stub", type=Path, help=argparse.SUPPRESS)
    for name in BARE:
        parser.add_argument(f"--{name}", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stub:
        asyncio.run(stub(options.stub))
    elif options.bare or options.spread:
        upstream, record = options.bare or options.spread
        bare(upstream, Path(record), spread=options.spread is not None)
    else:
        with tempfile.TemporaryDirectory(prefix="serving-") as folder:
            measured = measure(Path(folder), options)
        for name, each in measured.items():
            print(
                f"{name:<9} {len(each.took_ms):>6} answers, {each.wrong} not 200   "
                f"p50 {each.p50:7.1f} ms   p99 {each.p99:7.1f} ms   {each.cpu_ms:5.2f} ms of CPU"
            )
        missed = False
        for policy in POLICIES:
            own, other = measured[policy], measured["bare"]
            ratios = own.p50 / other.p50, own.p99 / other.p99, own.cpu_ms / other.cpu_ms
            missed |= max(ratios[:2]) > MAX_RATIO or ratios[2] > MAX_CPU_RATIO
            print(
                f"/query, {policy}, by bare: p50 {ratios[0]:.2f}, p99 {ratios[1]:.2f} (at most"
                f" {MAX_RATIO}), CPU {ratios[2]:.2f} (at most {MAX_CPU_RATIO})"
            )
        if missed:
            sys.exit(1)


if __name__ == "__main__":
    main()
