"""The tabs: what each shows, and which entries its rows stand for."""

from __future__ import annotations

from monitor.panes.tabs import HistoryTab, LogTab, OpenTab, Tab, TurnsTab

TABS: dict[str, type[Tab]] = {kind.name: kind for kind in (OpenTab, HistoryTab, TurnsTab, LogTab)}

__all__ = ["TABS", "Tab"]
