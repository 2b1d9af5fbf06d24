"""The colours: a dark and a light theme, in which all text has a contrast of 4.5:1 or more."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="dark",
    primary="#4aa5ee",
    secondary="#004578",
    accent="#ffb454",
    warning="#ffb454",
    error="#d95f7f",
    success="#5ccf7f",
    foreground="#e6e6e6",
    background="#121212",
    surface="#1a1a1a",
    panel="#24303a",
)
LIGHT = Theme(
    name="light",
    primary="#0b5394",
    secondary="#38618c",
    accent="#955d00",
    warning="#955d00",
    error="#b5173e",
    success="#197a37",
    foreground="#1c1c1c",
    background="#ffffff",
    surface="#ffffff",
    panel="#e9eef3",
    dark=False,
    variables={"primary-muted": "#d3e2f1"},
)
THEMES = (DARK, LIGHT)
