"""The tabs: what each shows, and which entries its rows stand for."""

from __future__ import annotations

from monitor.panes.history import HistoryTab
from monitor.panes.log import LogTab
from monitor.panes.open import OpenTab
from monitor.panes.tab import Tab
from monitor.panes.turns import TurnsTab

TABS: dict[str, type[Tab]] = {kind.name: kind for kind in (OpenTab, HistoryTab, TurnsTab, LogTab)}

__all__ = ["TABS", "Tab"]
