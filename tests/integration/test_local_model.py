"""A real language model in its own process: SmolLM2, which `make test` fetches.

It speaks the protocol and makes no sense, so what it says is not looked at.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import httpx
import pytest
from pydantic import BaseModel

from tests import forked
from tests.servers.fixtures import ONE_THREAD
from unified_flow.config.paths import LOCAL_PREFIX
from unified_flow.config.settings import load
from unified_flow.errors import ConfigError
from unified_flow.models import ModelCall
from unified_flow.models.local_model import LocalModel
from unified_flow.models.registry import ModelRegistry
from unified_flow.servers import llama_server
from unified_flow.servers.llama_server import LocalModelError, LocalServer, serving
from unified_flow.turns.sections import Sections

pytestmark = pytest.mark.usefixtures("one_thread")

WEIGHTS = Path(sys.prefix) / "smollm2.gguf"


class Word(BaseModel):
    """Short, so that two busy cores say it soon."""

    word: Literal["yes", "no"]


CALL = ModelCall(
    phase="synthesis",
    output=Word,
    prompt="Say a word.",
    query="Hi",
    sections=Sections(),
    temperature=0.0,
    max_tokens=40,
)


def server(path: Path = WEIGHTS, start_timeout_s: float = 60.0) -> LocalServer:
    return LocalServer(path, context_tokens=1024, start_timeout_s=start_timeout_s)


def local_model(home: Path) -> LocalModel:
    return LocalModel(
        "local", WEIGHTS, state=home, context_tokens=1024, start_timeout_s=60, timeout_s=120
    )


@pytest.fixture
def running() -> Iterator[LocalServer]:
    one = server()
    try:
        yield one
    finally:
        one.stop()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_weights_were_fetched() -> None:
    assert WEIGHTS.is_file(), "run the suite by `make test`, which fetches them"


def test_it_listens_on_loopback_for_its_key_alone(running: LocalServer) -> None:
    address = running.start()
    assert address.url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{address.url}/models").status_code == 401
    refused = httpx.post(f"{address.url}/chat/completions", json={"messages": []})
    assert refused.status_code == 401
    asked = httpx.options(
        f"{address.url}/chat/completions",
        headers={"Origin": "http://page.example", "Access-Control-Request-Method": "POST"},
    )
    assert asked.headers.get("access-control-allow-origin", "") == ""
    assert running.start() == address, "one server for all"


def test_a_killed_server_is_said_and_started_again_and_ends_with_the_model(home: Path) -> None:
    """What it answers then fits the schema."""

    async def ask() -> None:
        model = local_model(home)
        slow = CALL.__class__(**{**vars(CALL), "max_tokens": 400, "output": Sentence})
        task = asyncio.ensure_future(model.complete(slow))
        while model.pid is None:
            await asyncio.sleep(0.02)
        while not await asyncio.to_thread(busy, model.pid):
            await asyncio.sleep(0.02)
        os.kill(model.pid, signal.SIGKILL)
        with pytest.raises(LocalModelError, match="signal 9"):
            await task
        assert Word.model_validate_json((await model.complete(CALL)).text)
        pid = model.pid
        assert pid is not None
        await model.aclose()
        assert not alive(pid)

    asyncio.run(ask())


def test_a_warm_server_that_goes_away_is_said(home: Path, running: LocalServer) -> None:
    async def ask() -> None:
        model = local_model(home)
        slow = CALL.__class__(**{**vars(CALL), "max_tokens": 400, "output": Sentence})
        task = asyncio.ensure_future(model.complete(slow))
        assert running.pid is not None
        while not await asyncio.to_thread(busy, running.pid):
            await asyncio.sleep(0.02)
        os.kill(running.pid, signal.SIGKILL)
        with pytest.raises(LocalModelError, match=r"keeps for smollm2\.gguf went away"):
            await task
        await model.aclose()

    with serving(home, WEIGHTS, running.start):
        asyncio.run(ask())


class Sentence(BaseModel):
    """Long, so that there is time to end it."""

    text: Literal["so it goes on and on and on and on and on and on and on and on and on and on"]


def _target(fd: Path) -> str:
    try:
        return str(fd.readlink())
    except FileNotFoundError:
        return ""  # closed meanwhile


def busy(pid: int) -> bool:
    """It has begun to answer: a connection to it is established."""
    table = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    sockets = set(map(_target, Path(f"/proc/{pid}/fd").iterdir()))
    own = {row.split()[9] for row in table if row.split()[3] == "01"}
    return any(f"socket:[{inode}]" in sockets for inode in own)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no model file"),
        (b"PK\x03\x04", "is not a GGUF file"),
    ],
)
def test_what_is_no_model_is_refused_before_anything_starts(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "m.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        server(path).start()


def test_a_damaged_file_is_said_with_the_log_of_llama_cpp(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    with WEIGHTS.open("rb") as whole:
        path.write_bytes(whole.read(3_000_000))
    with pytest.raises(LocalModelError, match="model is corrupted") as caught:
        server(path).start()
    assert "whole" in str(caught.value.hint)


def test_too_little_memory_is_said_before_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:   300000 kB\n")
    assert llama_server.available_bytes(meminfo) == 300_000 * 1024
    monkeypatch.setattr(llama_server, "available_bytes", lambda: 300_000 * 1024)
    with pytest.raises(ConfigError, match=r"needs about 0\.5 GB"):
        llama_server.check_model_file(WEIGHTS)


def test_a_start_that_takes_too_long_is_ended() -> None:
    with pytest.raises(LocalModelError, match="not loaded within") as caught:
        server(start_timeout_s=0.01).start()
    assert "start_timeout_s" in str(caught.value.hint)


def test_the_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path\n"
        "from unified_flow.servers.llama_server import LocalServer\n"
        f"s = LocalServer(Path({str(WEIGHTS)!r}), context_tokens=512, start_timeout_s=60)\n"
        "s.start(); print(s.pid, flush=True); time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    gone = Path(f"/proc/{child}")
    for _ in range(500):
        if not gone.exists() or "Z" in (gone / "stat").read_text().split()[2]:
            break
        os.sched_yield()
        subprocess.run(["sleep", "0.02"], check=True)
    else:
        pytest.fail("the child outlived its parent by ten seconds")


def test_one_command_keeps_it_warm_for_the_others(home: Path) -> None:
    program = f"{ONE_THREAD}from unified_flow.__main__ import main\nmain()"
    serve = [sys.executable, "-c", program, "model", "serve", str(WEIGHTS)]
    warm = forked.Process(
        [*serve, "--home", str(home)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert warm.stderr is not None
    try:
        while "served at" not in warm.stderr.readline():
            assert warm.poll() is None
        state = home / "shared_state"

        async def ask() -> int | None:
            model = local_model(state)
            await model.complete(CALL)
            await model.aclose()
            return model.pid

        assert asyncio.run(ask()) is None, "no process of its own"
        assert (state / "local_model.json").stat().st_mode & 0o777 == 0o600
        second = forked.run(
            [*serve, "--home", str(home)], capture_output=True, text=True, timeout=60, check=False
        )
        assert second.returncode == 2
        assert "already" in second.stderr
        assert "loading" not in second.stderr, "two would need twice the memory"
    finally:
        warm.send_signal(signal.SIGINT)
        warm.communicate(timeout=30)
    assert warm.returncode == 130
    assert (state / "local_model.json").read_text() == ""


def test_the_settings_name_it_in_two_ways(home: Path) -> None:
    settings = load(home, model=f"{LOCAL_PREFIX}{WEIGHTS}")
    settings.check_models(present={"embedded"})
    models = ModelRegistry(settings, state=home)
    assert isinstance(models.named(settings.model), LocalModel)
    with pytest.raises(ConfigError, match="no file is named"):
        load(home, model="local").check_models(present={"embedded"})
    with pytest.raises(ConfigError, match="local: names no file"):
        load(home, model=LOCAL_PREFIX).check_models(present={"embedded"})
    (home / "unified_flow.toml").write_text('model = "local"\n[local]\npath = "m.gguf"\n')
    assert load(home).local_path("local") == home / "m.gguf"
