"""The first screen as text or as a picture: the application itself, off screen."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.pilot import Pilot

_WEB_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def first_screen(app: App[Any], render: Callable[[App[Any]], str]) -> str | None:
    """As wide and high as the terminal, or as COLUMNS and LINES say; 100 by 30 in a pipe.

    None when the application failed; it has said so, and its `return_code` is not 0.
    """
    columns, lines = shutil.get_terminal_size((100, 30))
    taken: list[str] = []

    async def take(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        if app.return_code is None:  # to end what has failed would make it a success
            taken.append(render(app))
            app.exit()

    app.run(headless=True, size=(columns, lines), auto_pilot=take)
    return taken[0] if taken and not app.return_code else None


def screen_text(app: App[Any]) -> str:
    """What is on the screen, a line each, without colours."""
    # Textual exports pictures of a screen but no text; the compositor is what both are made from.
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips).rstrip()


def screen_svg(app: App[Any]) -> str:
    """A picture that loads nothing from anywhere: any monospace font will do."""
    return _WEB_FONTS.sub("", app.export_screenshot(title=app.title, simplify=True))
