"""A browser that a person would use: refused without the token; with it, triage by keyboard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interventions import InterventionQueue
from tests.tui.scene import put
from tests.tui.web.cdp import Browser
from tests.tui.web.serving import serving

pytestmark = [pytest.mark.browser, pytest.mark.anyio]

_REFUSED = "document.body && document.body.innerText.includes('refused')"
_READY = "!!document.querySelector('body.-first-byte .xterm-helper-textarea')"
_FOCUSED = "document.activeElement.className === 'xterm-helper-textarea'"


async def _until(condition: Callable[[], Awaitable[object]]) -> None:
    for _ in range(300):
        if await condition():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never came to that")


async def test_resolving_in_a_browser(queue: InterventionQueue, tmp_path: Path) -> None:
    first = put(queue, error_message="seen in a browser")
    # The server ends first: a page that is open does not keep it.
    async with Browser(tmp_path / "profile") as browser:
        with serving(queue.home) as address:

            async def shown(text: bytes) -> bool:
                return text in browser.received

            async def resolved() -> bool:
                return bool(queue.find(first)["resolved_at"])

            await browser.open(address.partition("?")[0])
            await _until(lambda: browser.evaluate(_REFUSED))
            await browser.open(address)
            await _until(lambda: browser.evaluate(_READY))
            await _until(lambda: shown(b"seen in a browser"))
            await _until(lambda: browser.evaluate(_FOCUSED))
            await browser.press("r")
            await _until(lambda: shown(b"what you mended"))
            for letter in "fixed it":
                await browser.press(letter)
            await browser.press("Enter", 13)
            await _until(resolved)
            asked = list(browser.requests)
    entry = queue.find(first)
    assert entry["resolution"] == "fixed it"
    assert queue.journal(first)[-1]["via"] == "monitor"
    assert {urlsplit(found).netloc for found in asked} - {""} == {urlsplit(address).netloc}


async def test_a_window_that_becomes_smaller_keeps_its_last_line(
    queue: InterventionQueue, tmp_path: Path
) -> None:
    """The bar of keys is the last line, and nothing scrolls."""
    fits = "document.querySelector('.xterm-screen').offsetHeight <= window.innerHeight"

    async with Browser(tmp_path / "profile") as browser:
        with serving(queue.home) as address:

            async def resize(width: int, height: int) -> None:
                size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
                await browser.call("Emulation.setDeviceMetricsOverride", **size)
                await _until(lambda: browser.evaluate(f"window.innerHeight === {height}"))

            await resize(1000, 700)
            await browser.open(address)
            await _until(lambda: browser.evaluate(_READY))
            await _until(lambda: browser.evaluate(fits))
            await resize(600, 400)
            await _until(lambda: browser.evaluate(fits))


async def test_a_link_opens_one_entry_and_the_page_says_what_was_copied(
    queue: InterventionQueue, tmp_path: Path
) -> None:
    put(queue, error_message="not this one")
    wanted = put(queue, error_message="seen by its link", severity="medium")
    told = "document.querySelector('.told').textContent"
    async with Browser(tmp_path / "profile") as browser:
        with serving(queue.home) as address:

            async def shown(text: bytes) -> bool:
                return text in browser.received

            await browser.open(f"{address}&id={wanted}")
            await _until(lambda: browser.evaluate(_READY))
            await _until(lambda: shown(b"seen by its link"))
            await _until(lambda: browser.evaluate(_FOCUSED))
            await browser.press("y")
            await _until(lambda: browser.evaluate(told))
            said = await browser.evaluate(told)
            assert said == "copied" or said.startswith("not copied: ")
