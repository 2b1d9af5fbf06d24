"""A real `unified-flow serve` on loopback, and what it left on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests import forked

TRIAGE = "triage-token-0123456789abcdef"
CLIENT = "client-token-0123456789abcdef"
START_S = 240.0
WAIT_S = 240.0
MAIN = "from unified_flow.__main__ import main\nmain()"


@dataclass
class Service:
    """`http` speaks to it; `settings` wrote the home's unified_flow.toml."""

    home: Path
    process: subprocess.Popen[str]
    url: str
    http: httpx.Client = field(repr=False)

    def ask(self, question: Any = "What is a topic?", **more: Any) -> httpx.Response:
        headers = more.pop("headers", {})
        return self.http.post("/query", json={"question": question, **more}, headers=headers)

    def triage(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.http.request(
            method, path, headers={"Authorization": f"Bearer {TRIAGE}"}, **more
        )

    @property
    def log(self) -> list[dict[str, Any]]:
        path = self.home / "logs" / "rag_queries.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def metric(self, name: str) -> float:
        lines = self.http.get("/metrics").text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(name + " "))

    def stop(self, sig: int = signal.SIGTERM) -> int:
        self.process.send_signal(sig)
        return self.process.wait(START_S)


@contextmanager
def serving(
    home: Path,
    *flags: str,
    docs: Path | None = None,
    settings: str = "",
    before: str = "",
    env: Mapping[str, str] | None = None,
) -> Iterator[Service]:
    """It has begun to listen; it is stopped at the end, and must not have said anything else.
    `before` is Python that its process runs first."""
    home.mkdir(exist_ok=True)
    (home / "unified_flow.toml").write_text(settings)
    named = ["--docs", str(docs)] if docs is not None else []
    started = ["-c", f"{before}\n{MAIN}"] if before else ["-m", "unified_flow"]
    command = [sys.executable, *started, "serve", "--port", "0", "--home", str(home)]
    errors = (home / "stderr.txt").open("w+")
    process = forked.Process(
        [*command, *named, *flags],
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={**os.environ, "RAG_TRIAGE_TOKEN": TRIAGE, **(env or {})},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    try:
        assert line.startswith("listening on "), (home / "stderr.txt").read_text()
        url = line.split()[-1]
        with httpx.Client(base_url=url, timeout=30.0) as http:
            yield Service(home, process, url, http)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(START_S)
            finally:
                process.kill()
        process.stdout.close()
        errors.close()


def until(condition: Callable[[], object], what: str) -> None:
    """Waits for what no event announces to a test; fails if it does not come."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def model_flags(url: str) -> list[str]:
    return ["--model", "test-model", "--base-url", url]
