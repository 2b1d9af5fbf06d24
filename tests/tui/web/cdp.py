"""Just enough of the Chrome DevTools protocol to open a page, press keys and watch requests."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Self


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One headless Chromium with one page; `requests` are the addresses that the page asked for,
    `received` what came over its websocket.
    """

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self.requests: list[str] = []
        self.received = b""

    async def __aenter__(self) -> Self:
        program = chromium()
        assert program
        self._process = await asyncio.create_subprocess_exec(
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--remote-debugging-port=0",
            f"--user-data-dir={self._profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stderr
        while True:
            line = (await asyncio.wait_for(self._process.stderr.readline(), 30)).decode()
            assert line, "Chromium ended at once"
            if "DevTools listening on " in line:
                port = line.rpartition(":")[2].partition("/")[0]
                break
        self._draining = asyncio.create_task(self._process.stderr.read())
        import aiohttp

        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json/list") as found:
            (page, *_) = [t for t in await found.json() if t["type"] == "page"]
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"])
        self._reading = asyncio.create_task(self._read())
        await self.call("Network.enable")
        await self.call("Page.enable")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._socket.close()
        await self._session.close()
        await self._reading
        self._process.terminate()
        await self._process.wait()
        await self._draining

    async def _read(self) -> None:
        async for message in self._socket:
            event = json.loads(message.data)
            if "id" in event:
                self._answers.pop(event["id"]).set_result(event)
            elif event["method"] == "Network.requestWillBeSent":
                self.requests.append(event["params"]["request"]["url"])
            elif event["method"] == "Network.webSocketFrameReceived":
                frame = event["params"]["response"]
                data = frame["payloadData"]
                self.received += base64.b64decode(data) if frame["opcode"] == 2 else data.encode()
            elif event["method"] == "Network.webSocketCreated":
                self.requests.append(event["params"]["url"])

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        result = await asyncio.wait_for(answer, 30)
        assert "error" not in result, result
        return dict(result["result"])

    async def open(self, address: str) -> None:
        """Until the page has loaded."""
        await self.call("Page.navigate", url=address)
        while await self.evaluate("document.readyState") != "complete":
            await asyncio.sleep(0.02)

    async def evaluate(self, script: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        return found["result"].get("value")

    async def press(self, key: str, code: int = 0) -> None:
        """A character, or a named key with its Windows key code."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        common = {"key": key, "windowsVirtualKeyCode": code or ord(key.upper()[0])}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **common)
