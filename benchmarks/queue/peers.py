"""Other ways to keep a queue of small documents, each with one durable put at a time."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

PUTS = 100
DOCUMENT = {"id": "int_20260104_103000_abc123", "error": "x" * 1900, "context": {"a": [1, 2, 3]}}

Peer = Callable[[Path, int], list[float]]


def installed() -> Iterator[tuple[str, Peer]]:
    for name, module, peer in (
        ("SQLite, WAL, synchronous=FULL", "sqlite3", _sqlite),
        ("litequeue", "litequeue", _litequeue),
        ("persist-queue, file", "persistqueue", _persistqueue),
        ("TinyDB", "tinydb", _tinydb),
    ):
        try:
            import_module(module)
        except ImportError:
            continue
        yield name, peer


def _latencies(put: Callable[[], Any], before: int) -> list[float]:
    for _ in range(before):
        put()
    found = []
    for _ in range(PUTS):
        started = time.perf_counter()
        put()
        found.append(time.perf_counter() - started)
    return found


def _sqlite(place: Path, before: int) -> list[float]:
    connection = sqlite3.connect(place / "queue.sqlite3", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE queue (id INTEGER PRIMARY KEY, document TEXT)")

    def put() -> None:
        document = json.dumps(DOCUMENT)
        connection.execute("INSERT INTO queue (document) VALUES (?)", (document,))

    found = _latencies(put, before)
    connection.close()
    return found


def _litequeue(place: Path, before: int) -> list[float]:
    queue = import_module("litequeue").LiteQueue(str(place / "lite.sqlite3"))
    return _latencies(lambda: queue.put(json.dumps(DOCUMENT)), before)


def _persistqueue(place: Path, before: int) -> list[float]:
    queue = import_module("persistqueue").Queue(str(place / "persist"), autosave=True)
    return _latencies(lambda: queue.put(DOCUMENT), before)


def _tinydb(place: Path, before: int) -> list[float]:
    database = import_module("tinydb").TinyDB(place / "tiny.json")
    return _latencies(lambda: database.insert(dict(DOCUMENT)), before)
