"""The first screen as text, for a pipe or a bug report: the application itself, off screen."""

from __future__ import annotations

import shutil
from typing import Any

from textual.app import App
from textual.pilot import Pilot


def first_screen(app: App[Any]) -> str:
    """As wide and high as the terminal, or as COLUMNS and LINES say; 100 by 30 in a pipe."""
    columns, lines = shutil.get_terminal_size((100, 30))
    taken: list[str] = []

    async def take(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        taken.append(screen_text(app))
        app.exit()

    app.run(headless=True, size=(columns, lines), auto_pilot=take)
    return "\n".join(taken)


def screen_text(app: App[Any]) -> str:
    """What is on the screen, a line each, without colours."""
    # Textual exports pictures of a screen but no text; the compositor is what both are made from.
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips).rstrip()
