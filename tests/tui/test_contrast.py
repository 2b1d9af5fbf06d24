"""All text can be read: in both themes its contrast is at least 4.5:1 (WCAG 2, level AA)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from rich.style import Style
from textual.color import Color
from textual.pilot import Pilot

from interventions import InterventionQueue
from interventions.home import queue_file
from monitor.app import Monitor
from tests.tui.scene import fill, put, turn, until
from tests.tui.seen import text, top

pytestmark = pytest.mark.anyio
Make = Callable[..., Monitor]
LEAST = 4.5
CODE = (
    "@cached",
    "class Plan(Base):  # a comment",
    '    """What it is."""',
    "    def read(self, key: str = 'x') -> int | None:",
    "        raise ValueError(f'{key} is 5') from None",
    "        return not self.rows[0x1F] and lambda row: len(row) + 2.5 is True",
)


def _used(pilot: Pilot[Any]) -> Iterator[tuple[str, Style]]:
    """Every text on the screen with its style, as the terminal gets it; of a form not what is faded
    behind it."""
    screen = pilot.app.screen
    x, y, width, height = screen.children[0].region if screen.is_modal else screen.region
    for strip in screen._compositor.render_strips()[y : y + height]:
        for segment in strip.crop(x, x + width):
            if segment.style and any(letter.isalnum() for letter in segment.text):
                yield segment.text.strip(), segment.style


@cache
def _contrast(style: Style) -> float:
    assert style.color
    assert style.bgcolor
    pair = [Color.from_rich_color(one) for one in (style.color, style.bgcolor)]
    assert not style.dim, "a terminal dims as it likes"
    light, dark = sorted((_luminance(one) for one in pair), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Color) -> float:
    """WCAG's relative luminance."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.long
@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_every_style_on_every_screen(
    queue: InterventionQueue, monitor: Make, theme: str
) -> None:
    ids = fill(queue, 12)
    queue.resolve(ids[0], "fixed")
    put(queue, error_type="TimeoutError", fingerprint=queue.find(ids[0])["fingerprint"])
    queue.dismiss(ids[1], "no")
    queue.snooze(ids[2], until_n_more=9)
    queue.assign(ids[3], "ada")
    for number in range(2):
        put(queue, fingerprint="a" * 16, session_id=f"s{number}", severity="medium")
    for number in range(7):
        put(queue, session_id="x", severity="critical", error_type=f"E{number}")
    frames = "".join(f"  {'>' if n == 4 else ' '} {n:5} | {line}\n" for n, line in enumerate(CODE))
    trace = f'E: no\n  File "a.py", line 4, in read\n{frames}'
    context = {"turn": turn("planner"), "hint": "Start the server"}
    told = put(queue, severity="critical", traceback=trace, context=context, turn_id=1)
    found: dict[str, str] = {}

    def note(where: str, pilot: Pilot[Any]) -> None:
        for words, style in _used(pilot):
            # Reversed, the contrast is the same.
            contrast = _contrast(style)
            if contrast < LEAST and str(style) not in found:
                found[str(style)] = f"{contrast:.2f} {words!r} in {where}"

    async with monitor().run_test(size=(150, 40)) as pilot:
        pilot.app.theme = theme
        await pilot.pause()
        for keys in (
            *(["space"], *([["j"]] * 5), ["f"], ["p"], ["p"], ["enter"], *([["ctrl+d"]] * 4)),
            *(["escape"], ["2"], ["3"], ["4"], ["j"], ["5"], ["1"]),
            *(["question_mark"], ["escape"], ["r"], ["escape"], ["d"], ["escape"]),
            *(["s"], ["escape"], ["t"], ["escape"], ["slash", *"sev:x"], ["escape"], ["ctrl+p"]),
        ):
            await pilot.press(*keys)
            await pilot.pause(0.1)
            note(f"{top(pilot)} after {' '.join(keys)}", pilot)
        await pilot.press("escape", "slash", *f"id:{told}", "enter", "enter")
        await until(pilot, lambda: "lambda" in text(pilot) and pilot.app.screen.query("DetailView"))
        await pilot.pause(0.5)  # the colours follow
        note("source lines", pilot)
        for keys in (["slash", *"self"], ["enter"], ["c"], ["escape"], ["X"], ["escape"]):
            await pilot.press(*keys)
            await pilot.pause(0.1)
            note(f"{top(pilot)} after {' '.join(keys)}", pilot)
        await pilot.press("q", "escape")
        queue_file(queue.home).write_text("{")
        await until(pilot, lambda: "corrupt" in text(pilot))
        note("corrupt", pilot)
    if found:
        pytest.fail("\n".join(f"{style}: {least}" for style, least in sorted(found.items())))
