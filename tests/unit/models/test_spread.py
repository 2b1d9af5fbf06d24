"""Many calls at once are spread over small pools; a few keep few connections."""

from __future__ import annotations

import asyncio

import httpx

from tests.servers.model_server import Connection, ModelServer
from unified_flow.servers.client import new_client
from unified_flow.servers.connection_pools import POOLS

PORTS: set[int] = set()


def noted(connection: Connection) -> None:
    PORTS.add(connection.handler.client_address[1])
    connection.json(200, {"data": []})


def connections(calls: int, *, at_once: bool) -> int:
    """How many connections that many calls take."""
    PORTS.clear()

    async def run(url: str) -> None:
        async with new_client(url) as client:

            async def call() -> None:
                (await client.get(f"{url}/models")).raise_for_status()

            if at_once:
                await asyncio.gather(*(call() for _ in range(calls)))
            else:
                for _ in range(calls):
                    await call()

    with ModelServer() as server:
        server.models_behaviour = noted
        asyncio.run(run(server.url))
    return len(PORTS)


def test_calls_one_after_another_share_one_connection() -> None:
    assert connections(10, at_once=False) == 1


def test_more_calls_than_all_pools_take_are_answered() -> None:
    assert connections(POOLS + 20, at_once=True) > 1


def test_a_call_that_fails_gives_its_place_back() -> None:
    async def run() -> None:
        async with new_client("http://127.0.0.1:1/v1") as client:
            for _ in range(20):
                try:
                    await client.get("http://127.0.0.1:1/v1/models")
                except httpx.ConnectError:
                    continue
            assert client._transport._calls == [0]  # type: ignore[attr-defined]

    asyncio.run(run())
