"""The report in a real browser: readable in both themes and on paper, and it fetches nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time

from interventions import InterventionQueue
from interventions.health import Window
from interventions.report import as_html, report
from tests.tui.scene import NOW, put
from tests.tui.web.cdp import Browser

pytestmark = [pytest.mark.browser, pytest.mark.anyio]

# The contrast of each text with the background that it stands on, and how far the page overflows.
_MEASURE = """(() => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const found = numbers(getComputedStyle(node).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const texts = [...document.body.querySelectorAll('*')].filter(node => node.tagName != 'title'
    && [...node.childNodes].some(child => child.nodeType == 3 && child.data.trim()));
  const contrasts = texts.map(node => {
    const style = getComputedStyle(node);
    const own = node.ownerSVGElement ? style.fill : style.color;
    const [a, b] = [light(numbers(own)), light(behind(node))];
    const [low, high] = a < b ? [a, b] : [b, a];
    return (high + 0.05) / (low + 0.05);
  });
  const page = numbers(getComputedStyle(document.body).backgroundColor);
  return {texts: texts.length, least: Math.min(...contrasts), page: light(page),
          over: document.documentElement.scrollWidth - innerWidth,
          bars: document.querySelectorAll('svg rect').length};
})()"""


async def test_it_is_readable_in_both_themes_and_on_paper(
    queue: InterventionQueue, tmp_path: Path
) -> None:
    for hours in range(6):
        with freeze_time(NOW - timedelta(hours=hours)):
            name = put(queue, severity=("critical", "high", "medium")[hours % 3])
            queue.resolve(name, "mended")
            put(queue, error_message="<script>document.title = 'taken'</script>" + "A" * 400)
    target = tmp_path / "report.html"
    target.write_text(as_html(report(queue, Window.DAY, NOW)))
    async with Browser(tmp_path / "profile") as browser:
        await browser.open(target.as_uri())
        measured: dict[str, Any] = {}
        for name, media, theme in (
            ("light", "screen", "light"),
            ("dark", "screen", "dark"),
            ("paper", "print", "dark"),
        ):
            features = [{"name": "prefers-color-scheme", "value": theme}]
            await browser.call("Emulation.setEmulatedMedia", media=media, features=features)
            measured[name] = await browser.evaluate(_MEASURE)
        title = await browser.evaluate("document.title")
        printed = await browser.call("Page.printToPDF")
    for found in measured.values():
        assert found["texts"] > 50
        assert found["bars"] > 12
        assert found["least"] >= 4.5
        assert found["over"] <= 0
    assert measured["light"]["page"] == measured["paper"]["page"] == 1
    assert measured["dark"]["page"] < 0.05
    assert title == f"Interventions of {queue.home.name}"
    assert browser.requests == [target.as_uri()]
    assert printed["data"]
