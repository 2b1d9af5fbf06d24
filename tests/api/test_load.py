"""More clients than the service takes: each gets an answer or a Retry-After, nothing grows.

SOAK=1 goes on for longer.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.answers import APPROVE, PROCEED
from tests.api.conftest import TOPICS
from tests.api.service import Service, model_flags, serving
from tests.api.test_chaos import always
from tests.servers.model_server import Connection, ModelServer, answer, status

SETTINGS = '[serve]\nrate_limit = "off"\nmax_turns = 50\n'
CLIENTS = 500
SOAK = bool(os.environ.get("SOAK"))
ROUNDS = 60 if SOAK else 2
# Over all rounds, of 50 turns each. It is some 3,000 in two; a turn that stays costs 100 more.
GROWTH_KB = 40_000 if SOAK else 9_000


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: dict[str, Any]


async def ask(port: int, number: int) -> Answered:
    """One request on a connection of its own, without a library that would share one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    question = json.dumps({"question": f"What is a topic, for the {number}th time?"}).encode()
    head = (
        f"POST /query HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(question)}\r\nconnection: close\r\n\r\n"
    )
    writer.write(head.encode() + question)
    said = await reader.read()
    writer.close()
    first, _, body = said.decode().partition("\r\n\r\n")
    status_line, *lines = first.split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    headers = {name.lower(): value for name, _, value in pairs}
    return Answered(int(status_line.split()[1]), headers, json.loads(body))


async def at_once(port: int, clients: int) -> list[Answered]:
    async with asyncio.timeout(120):
        return await asyncio.gather(*(ask(port, number) for number in range(clients)))


def memory_kb(service: Service) -> int:
    lines = Path(f"/proc/{service.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_five_hundred_clients_where_fifty_may_be_served(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "robots.md").write_text(TOPICS)
    turns = Counter[str]()

    def slowly(connection: Connection) -> None:
        connection.server.closing.wait(0.1)
        answer(PROCEED)(connection)

    def mostly_well(connection: Connection) -> None:
        turns["validated"] += 1
        (status(500) if turns["validated"] % 3 == 0 else answer(APPROVE))(connection)

    with ModelServer(always(reflection=slowly, validation=mostly_well)) as upstream:
        flags = model_flags(upstream.url)
        with serving(tmp_path / "home", *flags, docs=docs, settings=SETTINGS) as service:
            port = int(service.url.rpartition(":")[2])
            seen = asyncio.run(at_once(port, CLIENTS))  # all is loaded, and every pool is full
            before_kb = memory_kb(service)
            for _ in range(ROUNDS):
                seen += asyncio.run(at_once(port, CLIENTS))
            grown_kb = memory_kb(service) - before_kb

            # Each gets an answer or a Retry-After.
            statuses = Counter(each.status for each in seen)
            assert set(statuses) <= {200, 503, 502}
            assert statuses[200] >= 50
            assert statuses[503] >= CLIENTS - 50
            refused = [each for each in seen if each.status == 503]
            assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
            assert {each.body["code"] for each in refused} == {"INTERNAL_ERROR"}
            assert {each.body["code"] for each in seen if each.status == 502} <= {"LLM_ERROR"}
            assert grown_kb < GROWTH_KB

            # Every turn has its one line, what is refused a bounded number of them, and the queue
            # holds its caps.
            ids = [each.headers["x-request-id"] for each in seen if each.status != 503]
            logged = Counter(line["request_id"] for line in service.log)
            assert set(logged.values()) == {1}
            assert set(ids) <= set(logged)
            unlogged = service.metric("unified_flow_unlogged_refusals_total")
            assert len(logged) + unlogged == len(seen)
            waiting = service.triage("GET", "/interventions").json()["interventions"]
            assert len(waiting) <= 10  # of one type; the others are counted on them
            assert sum(entry["occurrences"] for entry in waiting) == statuses[502]

            # Only what waits for a person stays.
            stored = list((tmp_path / "home" / "shared_state" / "turns").iterdir())
            assert len(stored) <= statuses[502]
            assert service.ask().status_code in (200, 502)
