"""Tools of real MCP servers, over stdio and over HTTP on loopback."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.servers import mcp_server
from tests.servers.mcp_sessions import SessionServer
from unified_flow.config.tables import McpSettings
from unified_flow.errors import (
    ConfigError,
    ToolArgumentError,
    ToolError,
    ToolNotFoundError,
    ToolServerError,
    ToolTimeoutError,
)
from unified_flow.tools import Access, Caller, ToolOutput
from unified_flow.tools.mcp_server import McpServer
from unified_flow.tools.toolbox import Toolbox
from unified_flow.turns.results import ToolRequest

SCRIPT = str(Path(mcp_server.__file__))
SECRET = "tok-1f9c0a3e5b7d"


def stdio(**over: Any) -> McpSettings:
    return McpSettings(**{"command": sys.executable, "args": [SCRIPT], **over})


@asynccontextmanager
async def opened(settings: McpSettings, folder: Path) -> AsyncIterator[Toolbox]:
    box = Toolbox([], [McpServer("test", settings, folder)])
    try:
        await box.open()
        yield box
    finally:
        await box.aclose()


async def call(box: Toolbox, tool: str, **args: Any) -> ToolOutput:
    await box.open(tool)
    return await box.call(*box.check(ToolRequest(tool=tool, args=args)))


def with_box(
    settings: McpSettings, folder: Path, body: Callable[[Toolbox], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with opened(settings, folder) as box:
            await body(box)

    asyncio.run(run())


@pytest.mark.parametrize("spoken_by", [[], ["sdk"]], ids=["itself", "the SDK"])
def test_every_tool_with_its_schema_and_its_results_and_those_that_come_later(
    tmp_path: Path, spoken_by: list[str]
) -> None:
    async def body(box: Toolbox) -> None:
        described = {each.name: each for each in box.describe()}
        assert set(described) == {f"test.{name}" for name in mcp_server.TOOLS}
        assert described["test.add"].description == "Add two whole numbers."
        assert set(described["test.add"].parameters["properties"]) == {"a", "b"}
        found = await call(box, "test.add", a=1, b=2)
        assert found.claims[0].claim == "3"
        assert found.claims[0].source == "test.add"
        with pytest.raises(ToolArgumentError, match=r"'b' is a required property.*a: 'x' is not"):
            await call(box, "test.add", a="x")
        with pytest.raises(ToolError, match=r"test\.refuse says that it failed"):
            await call(box, "test.refuse", reason="no")
        with pytest.raises(ToolError, match=r"1,000,000 at most"):
            await call(box, "test.flood", characters=1_000_001)
        assert all(tool.access == {Access.WRITES, Access.NETWORK} for tool in box)
        # A tool that comes later is there for the next plan.
        with pytest.raises(ToolNotFoundError):
            await call(box, "test.more", text="x")
        await call(box, "test.grow")
        async with asyncio.timeout(10):
            while "test.more" not in {tool.name for tool in box}:
                await box.open()
        assert (await call(box, "test.more", text="x")).result == {"result": "x"}

    with_box(stdio(args=[SCRIPT, *spoken_by]), tmp_path, body)


def test_a_server_s_word_counts_only_if_it_is_trusted(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        access = {tool.name: tool.access for tool in box}
        assert access["test.add"] == {Access.READS}
        assert access["test.note"] == {Access.WRITES, Access.NETWORK}

    with_box(stdio(trust_hints=True), tmp_path, body)


def test_a_server_that_dies_in_the_middle_is_a_clear_failure_and_the_next_call_reconnects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_TOKEN", SECRET)

    async def body(box: Toolbox) -> None:
        with pytest.raises(ToolServerError) as caught:
            await call(box, "test.die", code=3)
        said = str(caught.value)
        assert "the MCP server test went away while die ran" in said
        assert "exit code 3" in said
        assert "out of cheese" in said
        assert SECRET not in said
        assert (await call(box, "test.add", a=1, b=2)).claims[0].claim == "3"

    with_box(stdio(env_from=["SERVER_TOKEN"]), tmp_path, body)


def _children() -> set[int]:
    """Processes below this one, the servers' shells and the servers."""
    rows = subprocess.run(
        ["ps", "-ww", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = {os.getpid()}
    for _ in range(3):
        found |= {int(r.split()[0]) for r in rows if int(r.split()[1]) in found}
    mine = [r for r in rows if int(r.split()[0]) in found and SCRIPT in r]
    return {int(row.split()[0]) for row in mine}


def test_a_server_that_was_killed_between_two_calls_is_started_anew(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        before = _children()
        assert before
        for process in before:
            with suppress(ProcessLookupError):  # one ends with the other
                os.kill(process, signal.SIGKILL)
        while _children() & before:
            await asyncio.sleep(0.01)
        # Its parent died as well, so that nothing but the closed pipe tells of it.
        with_luck = []
        for _ in range(2):
            try:
                with_luck.append(await call(box, "test.add", a=2, b=2))
            except ToolServerError:
                with_luck.append(None)
        assert with_luck[-1] is not None

    with_box(stdio(), tmp_path, body)


def test_closing_waits_until_the_server_has_ended(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        assert _children()
        await box.aclose()
        assert not _children()

    with_box(stdio(), tmp_path, body)


def test_no_process_is_left_when_it_is_closed(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        await call(box, "test.add", a=1, b=1)

    before = _children()
    with_box(stdio(), tmp_path, body)
    assert _children() <= before


def test_it_is_started_once_whoever_asks_and_in_any_event_loop(tmp_path: Path) -> None:
    server = McpServer("test", stdio(), tmp_path)
    box = Toolbox([], [server])

    async def together() -> None:
        await asyncio.gather(*(box.open() for _ in range(4)))
        found = await asyncio.gather(*(call(box, "test.add", a=n, b=0) for n in range(4)))
        assert [f.claims[0].claim for f in found] == ["0", "1", "2", "3"]

    before = _children()
    asyncio.run(together())
    assert _children() <= before, "the loop's end ended it"
    asyncio.run(together())


def test_a_call_that_takes_too_long_fails_and_the_server_stays(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        with pytest.raises(ToolTimeoutError, match=r"test\.sleep did not finish in 0\.3 s"):
            await call(box, "test.sleep", seconds=60)

    with_box(stdio(timeout_s=0.3), tmp_path, body)


def test_a_server_that_hangs_is_started_anew_for_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unified_flow.tools.mcp_connection.ANSWERS_WITHIN_S", 0.3)

    async def body(box: Toolbox) -> None:
        before = _children()
        with pytest.raises(ToolTimeoutError):
            await call(box, "test.hang")
        assert (await call(box, "test.add", a=1, b=2)).claims[0].claim == "3"
        assert _children()
        assert not _children() & before

    with_box(stdio(timeout_s=0.3), tmp_path, body)


def test_a_server_that_is_only_slow_is_kept(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        before = _children()
        with pytest.raises(ToolTimeoutError):
            await call(box, "test.sleep", seconds=0.6)
        assert (await call(box, "test.add", a=1, b=2)).claims[0].claim == "3"
        assert _children() == before

    with_box(stdio(timeout_s=0.3), tmp_path, body)


@pytest.mark.parametrize("how", ["", "stubborn"])
def test_a_server_that_left_a_call_unanswered_is_ended(tmp_path: Path, how: str) -> None:
    async def body(box: Toolbox) -> None:
        with pytest.raises(ToolTimeoutError):
            await call(box, "test.sleep", seconds=600)
        await box.aclose()
        assert not _children()

    with_box(stdio(timeout_s=0.3, args=[SCRIPT, how]), tmp_path, body)


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"command": "no-such-program-here"}, ConfigError, "no program no-such-program-here"),
        ({"env_from": ["NOT_SET_ANYWHERE"]}, ConfigError, "needs NOT_SET_ANYWHERE"),
        ({"args": ["-c", "raise SystemExit('bad licence')"]}, ToolServerError, "bad licence"),
        (
            {"args": ["-c", "input(); input()"], "start_timeout_s": 0.5},
            ToolServerError,
            r"did not answer in 0\.5 s",
        ),
    ],
)
def test_a_server_that_does_not_start_says_which_and_why(
    tmp_path: Path, settings: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        with_box(stdio(**settings), tmp_path, lambda box: asyncio.sleep(0))
    assert "the MCP server test" in str(caught.value)


@pytest.fixture
def http_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, SCRIPT, "http", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        listens = False
        while not listens:
            assert process.poll() is None, "the server ended before it listened"
            with closing(socket.socket()) as probe:
                listens = probe.connect_ex(("127.0.0.1", port)) == 0
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}/mcp", process
    finally:
        process.kill()
        process.wait()


def test_a_server_over_http_and_what_is_said_when_it_goes(
    tmp_path: Path,
    http_server: tuple[str, subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, process = http_server
    monkeypatch.setenv("SERVER_TOKEN", SECRET)

    async def body(box: Toolbox) -> None:
        assert (await call(box, "test.add", a=1, b=2)).claims[0].claim == "3"
        with pytest.raises(ToolArgumentError):
            await call(box, "test.add", a=1)
        process.kill()
        process.wait()
        with pytest.raises(ToolServerError, match="the MCP server test") as caught:
            await call(box, "test.add", a=1, b=2)
        assert f" at {url} " in str(caught.value)
        assert SECRET not in str(caught.value)

    settings = McpSettings(url=url, headers_env={"Authorization": "SERVER_TOKEN"}, timeout_s=10)
    with_box(settings, tmp_path, body)


@pytest.mark.parametrize("says_why", [False, True])
def test_a_session_that_the_server_forgot_is_begun_anew(tmp_path: Path, says_why: bool) -> None:
    server = SessionServer(says_why=says_why)

    async def body(box: Toolbox) -> None:
        assert (await call(box, "test.say")).result == "hello"
        server.sessions.clear()  # it was started anew
        with pytest.raises(ToolServerError, match="had ended the session when say was called"):
            await call(box, "test.say")
        assert (await call(box, "test.say")).result == "hello"
        assert server.begun == 2

    with server:
        with_box(McpSettings(url=server.url, timeout_s=10), tmp_path, body)


def test_an_answer_over_http_is_bounded_while_it_is_read(tmp_path: Path) -> None:
    server = SessionServer(says="x" * (40 * 1024 * 1024))

    async def body(box: Toolbox) -> None:
        with pytest.raises(ToolError, match="larger than 32 MiB"):
            await call(box, "test.say")
        server.says = "hello"
        assert (await call(box, "test.say")).result == "hello"

    with server:
        with_box(McpSettings(url=server.url, timeout_s=30), tmp_path, body)


def test_an_error_of_the_server_is_no_death_whatever_its_number(tmp_path: Path) -> None:
    server = SessionServer()

    async def body(box: Toolbox) -> None:
        for code in (-32000, -32603):
            server.error = {"code": code, "message": "db down"}
            with pytest.raises(ToolError, match=rf"refused by its server: db down \({code}\)"):
                await call(box, "test.say")
        server.error = None
        assert (await call(box, "test.say")).result == "hello"
        assert server.begun == 1

    with server:
        with_box(McpSettings(url=server.url, timeout_s=10), tmp_path, body)


def test_a_doubled_name_stops_none_of_a_server_s_other_tools(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = SessionServer()
    other = [{"name": "hum", "inputSchema": {"type": "object"}}]
    server.tools = [*server.tools * 2, *other, {**other[0], "description": "Hums louder."}]

    async def body(box: Toolbox) -> None:
        assert [tool.name for tool in box] == ["test.say"], "listed twice, it is one tool"
        assert (await call(box, "test.say")).result == "hello"
        with pytest.raises(ToolNotFoundError, match=r"no tool 'test\.hum'") as caught:
            await call(box, "test.hum")
        assert "several tools of that name" in str(caught.value.hint)

    with server:
        with_box(McpSettings(url=server.url), tmp_path, body)
    assert [record.getMessage() for record in caplog.records] == [
        "several tools are named test.hum: none of them is used"
    ]


def test_only_the_tools_that_the_settings_name_are_used(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        assert {tool.name for tool in box} == {"test.say", "test.add"}

    with_box(stdio(include=["s*", "add"], exclude=["sleep"]), tmp_path, body)


def test_an_optional_server_that_is_gone_costs_only_its_tools(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        (_, (reason,)) = list(box), box.lacking.values()
        assert reason.startswith("the MCP server test cannot be started")
        assert list(box) == []

    gone = McpSettings(command="no-such-program", optional=True)
    with_box(gone, tmp_path, body)


def test_an_optional_server_that_dies_in_a_call_has_no_tools_for_a_while(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        with pytest.raises(ToolServerError):
            await call(box, "test.die", code=7)
        assert "exit code 7" in box.lacking["test"]
        await box.open()
        assert list(box) == []

    with_box(stdio(optional=True), tmp_path, body)


def test_a_grant_of_a_server_s_tool_covers_its_command_and_its_environment(tmp_path: Path) -> None:
    definitions = set()

    async def body(box: Toolbox) -> None:
        await box.open()
        definitions.add(next(tool.definition for tool in box if tool.name == "test.add"))

    for over in ({}, {"env": {"LEVEL": "2"}}, {"env_from": ["HOME"]}, {"args": [SCRIPT, "banner"]}):
        with_box(stdio(**over), tmp_path, body)
    assert len(definitions) == 4


def test_a_server_is_told_the_key_of_a_call_that_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    monkeypatch.setenv("NOTES", str(notes))

    async def body(box: Toolbox) -> None:
        await box.open("test.note")
        tool, args = box.check(ToolRequest(tool="test.note", args={"text": "once"}))
        for key in ("1-a", "1-a", "1-b"):
            output = await box.call(tool, args, Caller(call_id=key))
            assert output.result == {"result": "noted once"}
        assert notes.read_text() == "once\nonce\n"

    with_box(stdio(env_from=["NOTES"]), tmp_path, body)


def test_what_is_no_text_is_kept_among_the_files_of_the_turn(tmp_path: Path) -> None:
    async def body(box: Toolbox) -> None:
        await box.open("test.draw")
        tool, args = box.check(ToolRequest(tool="test.draw", args={}))
        output = await box.call(tool, args, Caller(files=tmp_path / "files"))
        text, image, blob = output.result.split("\n")
        assert text == "A robot."
        kept = {path.suffix: path for path in (tmp_path / "files").iterdir()}
        assert image == f"[image: image/png, kept in {kept['.png']}]"
        assert kept[".png"].read_bytes().startswith(b"\x89PNG")
        assert str(kept[".bin"]) in blob
        assert "not kept" in (await box.call(tool, args)).result

    with_box(stdio(), tmp_path, body)
