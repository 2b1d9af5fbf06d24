"""The keys that are alive, at the bottom: as many as there is room for, the most wanted first.

Textual's own footer cuts off at the right whatever came last, help and the way out included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.binding import ActiveBinding
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from monitor.widgets.keys import ALWAYS, BAR

_TWO_ROWS_FROM = 30
_LISTED = {one for ids, _ in (*BAR, *ALWAYS) for one in ids.split()}


@dataclass(frozen=True)
class KeyHint:
    """Keys that belong together (as they are pressed, and as they are shown) and what they do."""

    keys: tuple[tuple[str, str], ...]
    label: str
    enabled: bool

    @property
    def shown(self) -> str:
        return "/".join(shown for _, shown in self.keys)

    @property
    def size(self) -> int:
        return cell_len(self.shown) + 1 + cell_len(self.label) + 1


def fitting(
    wanted: Sequence[KeyHint], always: Sequence[KeyHint], width: int, rows: int
) -> list[list[KeyHint]]:
    """Those for which there is room; `always` end the last row. Pure."""
    reserved = sum(hint.size for hint in always)
    left, lines = list(wanted), list[list[KeyHint]]()
    while not lines or (left and len(lines) < rows):
        last = len(lines) == rows - 1 or sum(hint.size for hint in left) + reserved <= width
        room, line = width - (reserved if last else 0), list[KeyHint]()
        while left and left[0].size <= room:
            room -= left[0].size
            line.append(left.pop(0))
        lines.append(line)
        if last:
            break
    lines[-1] += always
    return lines


class KeyBar(Static):
    def __init__(self) -> None:
        super().__init__(id="keys", markup=False)
        self._places: list[list[tuple[int, str]]] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def on_resize(self) -> None:
        self.call_after_refresh(self.show)

    def _changed(self, screen: Screen[object]) -> None:
        if screen is self.screen:
            self.call_after_refresh(self.show)

    def show(self) -> None:
        if not self.is_attached:
            return
        wanted, always = self._hints(self.screen.active_bindings.values())
        width = self.app.size.width + 1  # the blank after the last is not needed
        rows = 2 if self.app.size.height >= _TWO_ROWS_FROM else 1
        lines = fitting(wanted, always, width, rows)
        self._places = [_ends(line) for line in lines]
        text = Content("\n").join(Content(" ").join(map(_content, line)) for line in lines)
        if text != self.content:
            self.update(text, layout=False)
        self.styles.height = rows  # also where one would do: what lies below a form has as many

    def _hints(self, alive: Iterable[ActiveBinding]) -> tuple[list[KeyHint], list[KeyHint]]:
        by_id: dict[str, ActiveBinding] = {}
        for active in alive:
            own_id = active.binding.id or active.binding.action
            known = by_id.get(own_id)
            # Of several keys the letter, as in `j,down`.
            if known is None or len(active.binding.key) < len(known.binding.key):
                by_id[own_id] = active
        own = [(one, "") for one, a in by_id.items() if a.binding.show and one not in _LISTED]
        typing = isinstance(self.screen.focused, Input)  # then letters are letters
        wanted = own if typing else [*own, *BAR]
        return self._alive_of(wanted, by_id), self._alive_of(ALWAYS, by_id)

    def _alive_of(
        self, table: Iterable[tuple[str, str]], by_id: Mapping[str, ActiveBinding]
    ) -> list[KeyHint]:
        groups = [([by_id[o] for o in ids.split() if o in by_id], label) for ids, label in table]
        return [self._hint(group, label) for group, label in groups if group]

    def _hint(self, group: Sequence[ActiveBinding], label: str) -> KeyHint:
        keys = [(each.binding.key, self.app.get_key_display(each.binding)) for each in group]
        enabled = any(each.enabled for each in group)
        return KeyHint(tuple(keys), label or group[0].binding.description, enabled)

    def on_click(self, event: events.Click) -> None:
        places = self._places[event.y] if event.y < len(self._places) else []
        pressed = next((key for end, key in places if event.x < end), None)
        if pressed is not None:
            self.app.simulate_key(pressed)


def _content(hint: KeyHint) -> Content:
    dim = "" if hint.enabled else " dim"
    return Content.assemble(
        (hint.shown, f"bold $footer-key-foreground{dim}"), " ", (hint.label, dim.strip())
    )


def _ends(line: Iterable[KeyHint]) -> list[tuple[int, str]]:
    """Where each key ends, its label counted to the last of a group."""
    found, at = [], 0
    for hint in line:
        start = at
        for key, shown in hint.keys:
            start += cell_len(shown) + 1
            found.append((start, key))
        at += hint.size
        found[-1] = (at, found[-1][1])
    return found
